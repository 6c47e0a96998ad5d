#!/usr/bin/env python3
"""Refuses a header whose code stands where nobody looks for it. What `x.h` declares is defined in `x.cpp` beside it; in
`x_*.cpp`, if the subject takes more than one source; or, if `x.h` is one interface over a folder x (`x/*.cpp`, or `*.cpp`
beside it in a folder x), in the folder's sources. A source with a header of its own name holds no other header's code. Of
overloads one at its place is enough. And refuses a function of an anonymous namespace whose name is that of another one
which its floor's files would see if they were compiled at once, as they are (INGOT_UNITY): a call would find whichever
fits better. Each run shows first that the rules refuse what they are for."""
import collections
import pathlib
import re
import sys

APART = {"conformance"}  # whose files are compiled one by one: tables of functions, each by the name of its op
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
    for pattern in (r"//[^\n]*", r"/\*.*?\*/", r"^[ \t]*#(?:.*\\\n)*.*", r"\[\[.*?\]\]", r"\balignas\([^)]*\)",
                    r"\bINGOT_API\b"):
        text = re.sub(pattern, "", text, flags=re.M | re.S if "/\\*" in pattern else re.M)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', "0", text)


def functions(text):
    """(qualified name, its text, whether it is defined) of every function at the scope of a namespace or class."""
    scopes, depth, head, bodies = [], 0, "", 0
    for token in re.findall(r"[{};()]|[^{};()]+", without_words(text)):
        if bodies:
            bodies += (token == "{") - (token == "}")
            continue
        depth += (token == "(") - (token == ")")
        if depth or token not in "{};":
            head += token
            continue
        head = LABELS.sub("", head).strip()
        scope = SCOPE.search(head) if token == "{" else None
        if token == "}":
            del scopes[-1:]
        elif scope:
            scopes.append(scope["space"] if scope["namespace"] else scope["name"])
        else:
            name = NAME.search(head)
            if name and not head.startswith(NOT_A_FUNCTION):
                yield "::".join(scopes + [re.sub(r"\s", "", name[1])]), head, token == "{" or head.endswith("= default")
            bodies = token == "{"
        head = ""


def faults_of(files):
    """Of {path below src/: text}: (header, its sources, functions) wherever a header's code stands in a source of another name."""
    defined, declared = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in files.items():
        for name, head, here in functions(text):
            if "" in name.split("::")[:-1]: continue
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


def namesakes_of(files):
    """Of {path below src/: text}: (function of an anonymous namespace, its sources, what else its floor has of that name)."""
    hidden, seen = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in files.items():
        for name, head, _ in functions(text):
            *scopes, last = name.split("::")
            before = head.partition("(")[0]
            if "=" in before or before.count("<") != before.count(">"): continue  # the type or value of a variable
            if "" in scopes and path.suffix == ".cpp":
                hidden[path.parts[0], "::".join(filter(None, scopes)), last].add(path)
            elif path.suffix == ".h" or path.parts[0] not in APART:
                seen["::".join(scopes), last].add(path)
    for (floor, scope, name), sources in sorted(hidden.items()):
        others = {path for path in seen[scope, name] if path.suffix == ".h" or path.parts[0] == floor} - sources
        if floor not in APART and (len(sources) > 1 or others):
            yield f"{scope}::{name}", sorted(sources), sorted(others)


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


def of_case(case, rule=faults_of):
    return list(rule({pathlib.Path(path): f"namespace a {{\n{text}\n}}\n" for path, text in case.items()}))


NAMESAKES = [{"p/x.cpp": "namespace {\nint f(int n) { return n; }\n}", "p/y.cpp": "namespace {\nint f(double) { return 0; }\n}"},
             {"p/x.cpp": "namespace {\nint f(int n) { return n; }\n}", "p/y.h": "int f(double);"}]
NONE = [{"p/x.cpp": "namespace {\nint f(int n) { return n; }\nint f(double) { return 0; }\n}", "p/y.h": "struct S { int f(); };"},
        {"p/x.cpp": "namespace {\nint f(int n) { return n; }\n}", "q/y.cpp": "namespace {\nint f(double) { return 0; }\n}"}]


for case in REFUSED: assert of_case(case), f"not refused: {case}"
for case in TAKEN: assert not of_case(case), f"refused: {case}"
for case in NAMESAKES: assert of_case(case, namesakes_of), f"not refused: {case}"
for case in NONE: assert not of_case(case, namesakes_of), f"refused: {case}"

source = pathlib.Path(__file__).resolve().parent.parent / "src"
files = {path.relative_to(source): path.read_text()
         for path in sorted(source.rglob("*")) if path.suffix in {".h", ".cpp"}}
found, namesakes = faults_of(files), list(namesakes_of(files))
for header, sources, names in found:
    print(f"{header}: {', '.join(name.removeprefix('ingot::') for name in names)}: "
          f"defined in {', '.join(map(str, sources))}")
for name, sources, others in namesakes:
    print(f"{name}: in an anonymous namespace of {', '.join(map(str, sources))}"
          + (f", and in {', '.join(map(str, others))}" if others else ""))
if not found and not namesakes: print("headers: all have their code in a source of their name, and no function hides another")
sys.exit(bool(found or namesakes))
