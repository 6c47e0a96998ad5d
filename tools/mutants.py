#!/usr/bin/env python3
"""Faults made by a script, to see whether the tests notice them (docs/mutants.md).

Copies the sources to a scratch folder, changes one operator, constant, comparison or statement at a time, compiles, and
runs the tests of the floor. Which faults are made follows from the seed and the sources alone. Results are written after
each, and a run that was cut off goes on where it stopped.

  tools/mutants.py --scratch /tmp/mutants --results mutants.json [--count 200] [--seed 1] [--commit REV]
  tools/mutants.py --results mutants.json --table
  tools/mutants.py --results mutants.json --note 17 "equivalent: the loop ends one later and does nothing"
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What is changed, and the test programs that should notice, nearest first.
GROUPS = {
    "passes": (["src/ir/passes/*.cpp", "src/ir/decompose/*.cpp"], ["test_ir", "test_compile"]),
    "lowering": (["src/codegen/lower/*.cpp"], ["test_codegen", "test_eager", "test_compile"]),
    "emitters": (["src/codegen/x86/*.cpp", "src/codegen/scalar/*.cpp"], ["test_codegen", "test_eager"]),
    "recorder": (["src/trace/record*.cpp", "src/trace/segment*.cpp", "src/trace/trace_tree.cpp",
                  "src/trace/build_graph*.cpp"], ["test_trace", "test_compile"]),
    "guards": (["src/trace/flush_point.cpp", "src/eager/call/stride_class.cpp", "src/compiler/*.cpp",
                "src/trace/function.cpp", "src/compile/frozen*.cpp"], ["test_trace", "test_compile"]),
    "weights": (["src/runtime/memory/weight_cache.cpp"], ["test_runtime", "test_compile"]),
}

SWAPS = {"==": "!=", "!=": "==", "<=": "<", ">=": ">", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "<": "<=",
         ">": ">=", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
# Binary, between spaces: so that templates, pointers, unary signs and arrows are left alone.
OPERATOR = re.compile(r" (==|!=|<=|>=|&&|\|\||\+=|-=|<|>|\+|-|\*|/|%) ")
NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?![\w.\"'])")
WORD = re.compile(r"\b(true|false|min|max|begin|end|continue|break)\b")
CONDITION = re.compile(r"\bif \((?!constexpr)(.*)\)( \{| return.*;| continue;| break;)?$")
STATEMENT = re.compile(r"^\s+(?!return\b|break\b|continue\b|case\b|default\b|using\b|else\b|throw\b|static\b|const\b|auto\b)"
                       r"([\w\]\[\.\(\)>-]+ (=|\+=|-=|\|=|&=) .*|[\w:]+(\.|->)\w+\(.*\)|\+\+\w+|--\w+|\w+\(.*\));$")
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min", "continue": "break", "break": "continue"}
# Checks of our own, texts and logs: what they say is not what the program does.
SKIPPED = re.compile(r"INGOT_CHECK|#\s*(include|define|if|endif|pragma)|^\s*//|log::|fmt::|explanation|static_assert|fail\(")


def code_of(line):
    """The line without its comment and with its texts blanked, at the same columns."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m.group()) - 2) + '"', line)
    line = re.sub(r"'(\\.|[^'\\])'", lambda m: "'" + "_" * (len(m.group()) - 2) + "'", line)
    return line.split("//")[0]


def mutants_of_line(line):
    """(kind, changed line) for each fault that one line can have."""
    if SKIPPED.search(line):
        return
    code = code_of(line)
    for m in OPERATOR.finditer(code):
        if "template" in code or "operator" in code:
            continue
        yield "operator", line[:m.start(1)] + SWAPS[m.group(1)] + line[m.end(1):]
    for m in NUMBER.finditer(code):
        value = int(m.group(1))
        yield "constant", line[:m.start(1)] + str(value + 1 if value != 1 else 0) + line[m.end(1):]
    for m in WORD.finditer(code):
        if m.group(1) in WORDS:
            yield "word", line[:m.start(1)] + WORDS[m.group(1)] + line[m.end(1):]
    m = CONDITION.search(code)
    if m and m.group(1).count("(") == m.group(1).count(")"):
        yield "condition", line[:m.start(1)] + "!(" + line[m.start(1):m.end(1)] + ")" + line[m.end(1):]
    if STATEMENT.match(code.rstrip()) and not code.rstrip().endswith(");;"):
        yield "dropped", re.match(r"\s*", line).group() + ";"


def sources_of(commit, scratch):
    """The folder src/ of a commit, so that a long run and the faults of its survivors outlive changes to the sources."""
    folder = pathlib.Path(scratch) / ("sources-" + commit)
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.check_output(["git", "archive", commit, "src"], cwd=ROOT)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def choose(sources, count, seed):
    """As many of each group, files by their length."""
    chosen, seen = [], set()
    for name, (patterns, _) in GROUPS.items():
        all_of_group = []
        for pattern in patterns:
            for path in sorted(sources.glob(pattern)):
                for number, line in enumerate(path.read_text().splitlines()):
                    for kind, changed in mutants_of_line(line):
                        all_of_group.append((str(path.relative_to(sources)), number + 1, kind, line, changed))
        # One kind is not to crowd out the others.
        chooser = random.Random(f"{seed}/{name}")
        chooser.shuffle(all_of_group)
        share = (count + len(GROUPS) - 1) // len(GROUPS)
        kinds = {}
        for mutant in all_of_group:
            kinds.setdefault(mutant[2], []).append(mutant)
        while share > 0 and any(kinds.values()):
            for kind in sorted(kinds):
                if share <= 0 or not kinds[kind]:
                    continue
                file, number, _, before, after = kinds[kind].pop()
                if (file, number) in seen:
                    continue
                seen.add((file, number))
                share -= 1
                chosen.append({"group": name, "file": file, "line": number, "kind": kind, "before": before.strip(),
                               "after": after.strip(), "text": after})
    random.Random(seed).shuffle(chosen)
    chosen = chosen[:count]
    for number, mutant in enumerate(chosen):
        mutant["id"] = number
    return chosen


def run(command, seconds, **options):
    """(exit code or None where the time ran out, output)."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               text=True, errors="replace", **options)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


class Bench:
    """The scratch copy of the sources, and its build."""

    def __init__(self, sources, scratch, builder, jobs):
        self.root = pathlib.Path(scratch)
        self.build = self.root / "build"
        self.builder = builder.split() + ["--build", str(self.build), "-j", str(jobs), "--target"]
        self.seconds = {}
        for name in ("src", "tests", "tools", "cmake", "examples"):
            shutil.copytree((sources if name == "src" else ROOT) / name, self.root / name, dirs_exist_ok=True, copy_function=self.copy)
        self.copy(ROOT / "CMakeLists.txt", self.root / "CMakeLists.txt")
        code, output = run(["cmake", "-S", str(self.root), "-B", str(self.build), "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DINGOT_TESTS=ON"], 600)
        if code:
            sys.exit(output)

    @staticmethod
    def copy(source, target):
        """Only what differs, so that a second run builds nothing again."""
        if pathlib.Path(source).is_dir():
            return
        if not pathlib.Path(target).exists() or pathlib.Path(source).read_bytes() != pathlib.Path(target).read_bytes():
            shutil.copyfile(source, target)

    def compile(self, tests):
        code, output = run(self.builder + tests, 3600)
        return code == 0, output

    def test(self, name, seconds):
        return run([str(self.build / "tests" / name), "--gtest_brief=1", "--gtest_fail_fast",
                    "--gtest_filter=-*Cuda*"], seconds, cwd=self.build / "tests")

    def baseline(self, tests):
        """The tests must pass as they are; how long they take bounds how long they may take with a fault."""
        ok, output = self.compile(tests)
        if not ok:
            sys.exit(output[-4000:])
        for name in tests:
            if name in self.seconds:
                continue
            start = time.time()
            code, output = self.test(name, 3600)
            if code:
                sys.exit(f"{name} fails without any fault:\n{output[-4000:]}")
            self.seconds[name] = time.time() - start

    def judge(self, mutant):
        tests = GROUPS[mutant["group"]][1]
        self.baseline(tests)
        path = self.root / mutant["file"]
        original = path.read_text()
        lines = original.split("\n")
        lines[mutant["line"] - 1] = mutant["text"]
        start = time.time()
        try:
            path.write_text("\n".join(lines))
            ok, output = self.compile(tests)
            if not ok:
                return {"outcome": "did not compile", "by": "", "seconds": round(time.time() - start)}
            for name in tests:
                code, output = self.test(name, 60 + 5 * self.seconds[name])
                if code is None:
                    return {"outcome": "caught", "by": f"{name}: ran out of time", "seconds": round(time.time() - start)}
                if code:
                    failed = re.search(r"\[  FAILED  \] (\S+)", output)
                    by = failed.group(1) if failed else f"exit {code}"
                    return {"outcome": "caught", "by": f"{name}: {by}", "seconds": round(time.time() - start)}
            return {"outcome": "survived", "by": "", "seconds": round(time.time() - start)}
        finally:
            path.write_text(original)


def table(results):
    rows = {}
    for r in results:
        row = rows.setdefault(r["group"], {"caught": 0, "survived": 0, "did not compile": 0, "equivalent": 0})
        equivalent = r["outcome"] == "survived" and r.get("note", "").startswith("equivalent")
        row["equivalent" if equivalent else r["outcome"]] += 1
    print("| | caught | survived | equivalent | did not compile | caught of those that count |")
    print("|---|---|---|---|---|---|")
    total = {}
    for name, row in list(rows.items()) + [("all", total)]:
        counted = row.get("caught", 0) + row.get("survived", 0)
        share = f"{100 * row.get('caught', 0) / counted:.1f}%" if counted else "-"
        print(f"| {name} | {row.get('caught', 0)} | {row.get('survived', 0)} | {row.get('equivalent', 0)} | "
              f"{row.get('did not compile', 0)} | {share} |")
        for key, value in row.items():
            if row is not total:
                total[key] = total.get(key, 0) + value
    for r in results:
        if r["outcome"] == "survived":
            print(f"\n{r['id']}. {r['file']}:{r['line']} ({r['kind']}) {r.get('note', '')}\n"
                  f"    {r['before']}\n    {r['after']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", help="a folder outside src/ for the copy and its build")
    parser.add_argument("--results", default="mutants.json")
    parser.add_argument("--most", type=int, default=10**9, help="judge at most so many now")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--builder", default="cmake", help="how builds are started, for example 'nice cmake'")
    parser.add_argument("--commit", help="whose src/ gets the faults; the tests are those of the tree. Default: the tree's own")
    parser.add_argument("--group", choices=sorted(GROUPS), action="append", help="judge the faults of these alone now")
    parser.add_argument("--again", action="store_true", help="judge survivors without a note again")
    parser.add_argument("--merge", metavar="FILE", help="take over what FILE holds of the same faults")
    parser.add_argument("--list", action="store_true", help="print the faults and judge none")
    parser.add_argument("--table", action="store_true", help="print what RESULTS holds")
    parser.add_argument("--note", nargs=2, metavar=("ID", "TEXT"), help="a note by hand; 'equivalent: ...' counts apart")
    arguments = parser.parse_args()
    path = pathlib.Path(arguments.results)
    state = json.loads(path.read_text()) if path.exists() else {}
    results = state.get("results", [])
    if arguments.note:
        for r in results:
            if r["id"] == int(arguments.note[0]):
                r["note"] = arguments.note[1]
        path.write_text(json.dumps(state, indent=1) + "\n")
        return
    if arguments.table:
        return table(results)
    if arguments.merge:
        other = json.loads(pathlib.Path(arguments.merge).read_text())
        if state and state["identity"] != other["identity"]:
            parser.error("the two hold results of other faults")
        merged = {r["id"]: r for r in other["results"]} | {r["id"]: r for r in results}
        other["results"] = [merged[i] for i in sorted(merged)]
        path.write_text(json.dumps(other, indent=1) + "\n")
        return
    if arguments.commit and not arguments.scratch:
        parser.error("--commit needs --scratch, where its sources are put")
    sources = sources_of(arguments.commit, arguments.scratch) if arguments.commit else ROOT
    mutants = choose(sources, arguments.count, arguments.seed)
    if arguments.list:
        for m in mutants:
            print(f"{m['id']}. {m['file']}:{m['line']} ({m['kind']})\n    {m['before']}\n    {m['after']}")
        return
    if not arguments.scratch:
        parser.error("--scratch is needed to judge faults")
    scratch = pathlib.Path(arguments.scratch).resolve()
    if scratch == ROOT or (ROOT / "src") in [scratch, *scratch.parents]:
        parser.error("--scratch must lie outside of src/")
    # Other sources make other faults: their results do not mix.
    identity = hashlib.sha256(json.dumps(mutants, sort_keys=True).encode()).hexdigest()[:16]
    if state and state.get("identity") != identity:
        parser.error(f"{path} holds results of another seed, count or state of the sources")
    state = {"identity": identity, "seed": arguments.seed, "count": arguments.count, "commit": arguments.commit,
             "results": results}
    scratch.mkdir(parents=True, exist_ok=True)
    bench = Bench(sources, scratch, arguments.builder, arguments.jobs)
    open_again = {r["id"] for r in results if arguments.again and r["outcome"] == "survived" and "note" not in r}
    done = {r["id"] for r in results} - open_again
    now = [m for m in mutants if m["id"] not in done and (not arguments.group or m["group"] in arguments.group)]
    for mutant in now[:arguments.most]:
        result = {k: v for k, v in mutant.items() if k != "text"} | bench.judge(mutant)
        results[:] = [r for r in results if r["id"] != result["id"]] + [result]
        path.write_text(json.dumps(state, indent=1) + "\n")
        print(f"{result['id']}. {result['file']}:{result['line']} ({result['kind']}): {result['outcome']} "
              f"{result['by']} {result['seconds']} s", flush=True)
    table(results)


if __name__ == "__main__":
    main()
