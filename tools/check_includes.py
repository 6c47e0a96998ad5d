#!/usr/bin/env python3
"""Refuses an include that points the wrong way: base <- ir <- codegen; base <- runtime; both <- compiler <- eager <- trace <- compile <- conformance <- cli.
Refuses locks that a fork() could cut in two, and questions which op one has outside of the pattern rewrites, too. Each run
shows first that the rules refuse what they are for."""
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
# OpId::name and OpId::count_ are no op: a row's name in a list that ops.def makes, and their number.
AN_OP = r"(\w+::)*OpId::(?!name\b|count_)\w+"
ASKS_FOR_AN_OP = re.compile(rf"[!=]=\s*{AN_OP}|{AN_OP}\s*[!=]=|\bcase\s+{AN_OP}|"
                            r"(info\([^()]*\)|\bop|\brow)\.name\s*[!=]=\s*\"|(info\([^()]*\)|\bop|\brow)\.id\s*[!=]=")


def faults_of(path, text):
    """Path below src/."""
    floor, passes = path.parts[0], path.parts[:2] == ("ir", "passes")
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#include\s+"([^"/]+)/', line)
        if match and match.group(1) in MAY_SEE and match.group(1) not in MAY_SEE[floor]:
            yield number, f"{floor} may not include {match.group(1)}"
        if floor == "codegen" and re.search(r"#include\s+[<\"](cuda|nvrtc|cublas)", line):
            yield number, "codegen may not include a CUDA header"
        if path.stem != "mutex" and re.search(r"std::(shared_|recursive_|timed_)*mutex\b", line):
            yield number, "a lock is an ingot::Mutex (base/mutex.h), which holds over fork()"
        if path.suffix == ".h" and floor in {"base", "ir", "eager", "trace", "compile"} and PRIVATE.search(line):
            yield number, "a public header may include only the standard library"
        if not passes and ASKS_FOR_AN_OP.search(line.split("//")[0]):
            yield number, "only ir/passes asks which op it has; ask its row for a column, a trait or a form (ir/ops.def)"


REFUSED = [("base/a.cpp", '#include "ir/op.h"'), ("codegen/a.cpp", '#include "runtime/cpu.h"'),
           ("codegen/cuda/a.cpp", "#include <cuda.h>"), ("eager/a.cpp", "std::mutex m;"),
           ("trace/a.h", "#include <fmt/format.h>"), ("codegen/lower/a.cpp", "if (node.op == OpId::arange) return;"),
           ("eager/a.cpp", "bool b = ir::OpId::add != call.op;"), ("runtime/a.cpp", "    case ingot::OpId::permute:"),
           ("trace/a.cpp", 'if (ir::info(node.op).name == "as_strided")'), ("ir/rules/a.cpp", "if (op.id == wanted)")]
TAKEN = [("ir/passes/a.cpp", "if (node.op == OpId::arange) return;"), ("codegen/a.cpp", '#include "ir/op.h"'),
         ("codegen/elementwise.cpp", "  case OpId::name: \\"), ("eager/a.cpp", "OpCall clone{OpId::clone, false};"),
         ("eager/a.cpp", "x = y;  // not op == OpId::arange"), ("base/mutex.h", "std::mutex m;")]
for path, line in REFUSED:
    assert list(faults_of(pathlib.Path(path), line)), f"{path}: not refused: {line}"
for path, line in TAKEN:
    assert not list(faults_of(pathlib.Path(path), line)), f"{path}: refused: {line}"

source = pathlib.Path(__file__).resolve().parent.parent / "src"
faults = [f"{path}:{number}: {fault}" for path in sorted(source.rglob("*"))
          if path.suffix in {".h", ".cpp", ".def"} and path.parent != source
          for number, fault in faults_of(path.relative_to(source), path.read_text())]
print("\n".join(faults) if faults else "includes: every one points the right way; ops are asked for by their columns")
sys.exit(bool(faults))
