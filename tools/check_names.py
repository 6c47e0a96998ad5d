#!/usr/bin/env python3
"""Refuses a name of an anonymous namespace that another file sees, too. Files of a folder are compiled at once (INGOT_UNITY),
where such a name takes the place of what another file means: of a namesake in that file or in a header, in the same
namespace or in one around it. Names are those of functions, types, constants and enumerators; overloads within a file
are its own affair. Each run shows first that the rule refuses what it is for; tools/check_units.py proves the outcome."""
import collections
import pathlib
import re
import sys

from check_headers import NAME, NOT_A_FUNCTION, declarations, sources_below

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Floors whose files are compiled one by one.
APART = set(re.findall(r"^ingot_floor\((\w+) APART", (ROOT / "CMakeLists.txt").read_text(), re.M))
TEMPLATE = re.compile(r"^(template\s*<.*?>\s*(?=\w))+", re.S)
TYPE = re.compile(r"(?:(enum)(\s+class)?|struct|class|union)\s+(\w+)\s*(?:final\s*)?(?::[^(]*)?$")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
VARIABLE = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)(?:\[\w*\])*\s*=(?!=)|^[^=]*\b([A-Za-z_]\w*)(?:\[\w*\])*$")
ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")


def declared(text):
    """(scopes, name) of what stands at the scope of a namespace."""
    for scopes, head, body in declarations(text, False):
        head = TEMPLATE.sub("", head)
        before = head.partition("(")[0]
        kind, alias, function = TYPE.match(head), ALIAS.match(head), NAME.search(head)
        if head.startswith(NOT_A_FUNCTION) or "=" in before or before.count("<") != before.count(">"): function = None
        if kind:
            yield scopes, kind[3]
            if kind[1] and not kind[2]: yield from ((scopes, name) for name in ENUMERATOR.findall(body or ""))
        elif alias:
            yield scopes, alias[1]
        elif function:
            yield scopes, re.sub(r"\s", "", function[1])
        elif not head.startswith(NOT_A_FUNCTION):
            yield from ((scopes, name) for names in VARIABLE.findall(head) for name in names if name)


def faults_of(files):
    """Of {path below src/: text}: (name, sources that hide it in an anonymous namespace, others that see it)."""
    hidden, seen = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in files.items():
        for scopes, name in declared(text):
            around = tuple(part for scope in scopes for part in scope.split("::") if part)
            if "" in scopes and path.suffix == ".cpp" and path.parts[0] not in APART:
                hidden[path.parts[0], around, name].add(path)
            elif "" not in scopes and (path.suffix == ".h" or path.parts[0] not in APART):
                seen[around, name].add(path)
    for (floor, around, name), sources in sorted(hidden.items()):
        others = {path for depth in range(len(around) + 1) for path in seen[around[:depth], name]
                  if path.suffix == ".h" or path.parts[0] == floor} - sources
        if len(sources) > 1 or others: yield "::".join(around + (name,)), sorted(sources), sorted(others)


def anonymous(text):
    return f"namespace {{\n{text}\n}}"


F, OTHER_F = "int f(int n) { return n; }", "int f(double) { return 0; }"
ONE, ONE_OF = "constexpr int kOne = 1;", "enum E { kNone, kOne };"
REFUSED = [{"p/x.cpp": anonymous(F), "p/y.cpp": anonymous(OTHER_F)},
           {"p/x.cpp": anonymous(F), "p/y.h": "int f(double);"},
           {"p/x.cpp": f"namespace b {{\n{anonymous(ONE_OF)}\n}}", "q/y.h": ONE},
           {"p/x.cpp": f"namespace b {{\n{anonymous(ONE)}\n}}", "q/y.h": ONE_OF},
           {"p/x.cpp": anonymous("struct S {\n  int n;\n};"), "p/y.cpp": anonymous("struct S {\n  int m;\n};")}]
TAKEN = [{"p/x.cpp": anonymous(F + OTHER_F), "p/y.h": "struct S { int f(); };"},
         {"p/x.cpp": anonymous(F), "q/y.cpp": anonymous(OTHER_F)},
         {"p/x.cpp": anonymous(F), "p/y.h": "namespace b {\nint f(double);\n}"}]


def main():
    def of_case(case):
        return list(faults_of({pathlib.Path(path): f"namespace a {{\n{text}\n}}\n" for path, text in case.items()}))

    for case in REFUSED: assert of_case(case), f"not refused: {case}"
    for case in TAKEN: assert not of_case(case), f"refused: {case}"
    found = list(faults_of(sources_below(ROOT / "src")))
    for name, sources, others in found:
        print(f"{name}: in an anonymous namespace of {', '.join(map(str, sources))}"
              + (f", and in {', '.join(map(str, others))}" if others else ""))
    if not found: print("names: none of an anonymous namespace takes the place of another")
    return bool(found)


if __name__ == "__main__": sys.exit(main())
