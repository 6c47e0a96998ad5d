#!/usr/bin/env python3
"""Refuses a header whose code stands where nobody looks for it. What `x.h` declares is defined in `x.cpp` beside it; in
`x_*.cpp`, if the subject takes more than one source; or, if `x.h` is one interface over a folder x (`x/*.cpp`, or `*.cpp`
beside it in a folder x), in the folder's sources. A source with a header of its own name holds no other header's code. Of
overloads one at its place is enough. Each run shows first that the rule refuses what it is for."""
import collections
import pathlib
import re
import sys

# A method of Tensor stands with the family of its op, beside the free function of that name.
ANYWHERE = {"ingot::Tensor"}
SCOPE = re.compile(r"(?P<namespace>(inline\s+)?namespace\b\s*(?P<space>[\w:]*))|"
                   r"(?P<type>(class|struct|union)\s+(\w+\s+)*?(?P<name>(\w+::)*\w+)(<[^{]*>)?(\s+final)?(\s*:[^:{(][^{(]*)?)$")
OPERATOR = r"operator\s*(?:\(\)|\[\]|[^\s\w(]+|[\w:]+&?)"
NAME = re.compile(rf"((?:\w+(?:<[\w:, ]*>)?::)*~?(?:{OPERATOR}|\w+))\s*\(")
LABELS = re.compile(r"^(\s*(public|private|protected)\s*:)+")
NOT_A_FUNCTION = ("template", "friend", "using", "static_assert", "typedef", "extern template", "INGOT_")


def without_words(text):
    """The code alone: without comments, literals and lines of the preprocessor."""
    for pattern in (r'R"(\w*)\((?s:.*?)\)\1"', r"//[^\n]*", r"/\*.*?\*/", r"^[ \t]*#(?:.*\\\n)*.*", r"\[\[.*?\]\]",
                    r"\balignas\([^)]*\)", r"\bINGOT_API\b"):
        text = re.sub(pattern, "", text, flags=re.M | re.S if "/\\*" in pattern else re.M)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', "0", text)


def declarations(text, in_types):
    """(scopes, head, body) of what is declared at the scope of a namespace, with `in_types` of a class, too; no body: None."""
    scopes, depth, head, bodies, body = [], 0, "", 0, ""
    for token in re.findall(r"[{};()]|[^{};()]+", without_words(text)):
        if bodies:
            bodies += (token == "{") - (token == "}")
            body += token
            if not bodies:
                yield list(scopes), head, body[:-1]
                head = body = ""
            continue
        depth += (token == "(") - (token == ")")
        if depth or token not in "{};":
            head += token
            continue
        head = LABELS.sub("", head).strip()
        scope = SCOPE.search(head) if token == "{" else None
        if token == "{" and not (scope and (in_types or scope["namespace"])):
            bodies = 1
            continue
        if token == "}":
            del scopes[-1:]
        elif scope:
            scopes.append(scope["space"] if scope["namespace"] else scope["name"])
        else:
            yield list(scopes), head, None
        head = ""


def functions(text):
    """(qualified name, its text, whether it is defined) of every function at the scope of a namespace or class."""
    for scopes, head, body in declarations(text, True):
        name = NAME.search(head)
        if name and "" not in scopes and not head.startswith(NOT_A_FUNCTION):
            yield ("::".join(scopes + [re.sub(r"\s", "", name[1])]), head,
                   body is not None or head.endswith("= default"))


def sources_below(folder):
    """{path: text} of all C++."""
    return {path.relative_to(folder): path.read_text()
            for path in sorted(folder.rglob("*")) if path.suffix in {".h", ".cpp"}}


def faults_of(files):
    """Of {path below src/: text}: (header, its sources, functions) wherever a header's code stands in a source of another name."""
    defined, declared = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in files.items():
        for name, head, here in functions(text):
            of_its_own = re.search(r"\b(inline|constexpr)\b|=\s*(0|delete)$", head) or (path.suffix == ".h" and here)
            if path.suffix == ".cpp" and here and not head.startswith("static"):
                defined[name].add(path)
            elif path.suffix == ".h" and not of_its_own and name.rpartition("::")[0] not in ANYWHERE:
                declared[name].add(path)

    def holds(source, header):
        subject = header.with_suffix("")
        if source.with_suffix("") == subject: return True
        if source.with_suffix(".h") in files: return False
        return (source.parent == subject or (source.parent == header.parent and
                (source.name.startswith(header.stem + "_") or header.stem == header.parent.name)))

    elsewhere = collections.defaultdict(list)
    for name, headers in declared.items():
        for header in headers:
            if defined[name] and not any(holds(source, header) for source in defined[name]):
                elsewhere[header, tuple(sorted(defined[name]))].append(name)
    return sorted((header, sources, names) for (header, sources), names in elsewhere.items())


# A header declares f() or a method m(); its source is where it should not be, or should.
REFUSED = [{"x.h": "int f(int n);", "y.cpp": "int f(int n) { return n; }"},
           {"x.h": "struct S {\n  void m();\n};", "y.cpp": "void S::m() {}"},
           {"x.h": "int f();", "x.cpp": "", "x_y.h": "", "x_y.cpp": "int f() { return 0; }"},
           {"p/x.h": "int f();", "q/x.cpp": "int f() { return 0; }"}]
TAKEN = [{"x.h": "int f(int n);", "x.cpp": "int f(int n) { return n; }"},
         {"x.h": "int f(int n);", "x_more.cpp": "int f(int n) { return n; }"},
         {"x.h": "int f(int n);", "x/y.cpp": "int f(int n) { return n; }"},
         {"x/x.h": "int f(int n);", "x/y.cpp": "int f(int n) { return n; }"},
         {"x.h": "inline int f() { return 0; }\ntemplate <class T>\nint g();", "y.cpp": "int f() { return 0; }"},
         {"x.h": "struct S {\n  int f();\n};", "y.cpp": "namespace {\nint f() { return 0; }\n}"}]


def of_case(case):
    return faults_of({pathlib.Path(path): f"namespace a {{\n{text}\n}}\n" for path, text in case.items()})


def main():
    for case in REFUSED: assert of_case(case), f"not refused: {case}"
    for case in TAKEN: assert not of_case(case), f"refused: {case}"
    source = pathlib.Path(__file__).resolve().parent.parent / "src"
    found = faults_of(sources_below(source))
    for header, sources, names in found:
        print(f"{header}: {', '.join(name.removeprefix('ingot::') for name in names)}: "
              f"defined in {', '.join(map(str, sources))}")
    if not found: print("headers: all have their code in a source of their name")
    return bool(found)


if __name__ == "__main__": sys.exit(main())
