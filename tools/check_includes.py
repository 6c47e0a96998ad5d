#!/usr/bin/env python3
"""Refuses an include that points the wrong way: base <- ir <- codegen; base <- runtime; both <- compiler <- eager <- trace <- compile <- conformance <- cli.
Refuses locks that a fork() could cut in two, too."""
import pathlib
import re
import sys

MAY_SEE = {
    "base": {"base"},
    "ir": {"base", "ir"},
    "codegen": {"base", "ir", "codegen"},
    "runtime": {"base", "runtime"},
}
MAY_SEE["compiler"] = MAY_SEE["codegen"] | MAY_SEE["runtime"] | {"compiler"}
MAY_SEE["eager"] = MAY_SEE["compiler"] | {"eager"}
MAY_SEE["trace"] = MAY_SEE["eager"] | {"trace"}
MAY_SEE["compile"] = MAY_SEE["trace"] | {"compile"}
MAY_SEE["conformance"] = MAY_SEE["compile"] | {"conformance"}
MAY_SEE["cli"] = MAY_SEE["conformance"] | {"cli"}
PRIVATE = re.compile(r"#include\s+[<\"](fmt|spdlog|nlohmann|xbyak|Zydis|CLI)/")

source = pathlib.Path(__file__).resolve().parent.parent / "src"
faults = []
for path in sorted(source.rglob("*")):
    if path.suffix not in {".h", ".cpp", ".def"} or path.parent == source:
        continue
    room = path.relative_to(source).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include\s+"([^"/]+)/', line)
        if match and match.group(1) in MAY_SEE and match.group(1) not in MAY_SEE[room]:
            faults.append(f"{path}:{number}: {room} may not include {match.group(1)}")
        if room == "codegen" and re.search(r"#include\s+[<\"](cuda|nvrtc|cublas)", line):
            faults.append(f"{path}:{number}: codegen may not include a CUDA header")
        if path.stem != "mutex" and re.search(r"std::(shared_|recursive_|timed_)*mutex\b", line):
            faults.append(f"{path}:{number}: a lock is an ingot::Mutex (base/mutex.h), which holds over fork()")
        if path.suffix == ".h" and room in {"base", "ir", "eager", "trace", "compile"} and PRIVATE.search(line):
            faults.append(f"{path}:{number}: a public header may include only the standard library")
print("\n".join(faults) if faults else "includes: every one points the right way")
sys.exit(bool(faults))
