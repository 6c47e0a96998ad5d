#!/usr/bin/env python3
"""Proves that files mean the same compiled alone and with their folder (INGOT_UNITY): each function of ours that Clang makes
of a unit, unoptimized, names the functions, objects and numbers that it names in its own file. Otherwise what one file has
in an anonymous namespace took the place of what another one meant. Usage: tools/check_units.py [BUILD FOLDER [FLOOR ...]]; the
folder is to be configured with INGOT_UNITY and built (its generated sources are read). Takes six minutes on two cores."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
# How exceptions leave a function differs with what is known of its callees: that, and destructors, are passed over.
NAMED = re.compile(r'@(?!__gxx|__cxa_|__clang_call|_ZSt9terminate|llvm\.)(?:"[^"]*"|[\w.$]+)|'
                   r'\b(?!i32 0\b)(?:i8|i32|i64|double|float) -?[\dx][\w.+-]*|c"[^"]*"|'
                   r'(?<== )(?:[if]cmp|f?add|f?sub|f?mul|[usf]div|[us]rem|shl|[al]shr|and|x?or) .*, -?[\w.+-]+$', re.M)


def functions(source, command):
    """{mangled name: what it names} of our functions in a source; {"": error} if it does not compile."""
    flags = [f.replace('\\"', '"') for f in command.split()[1:] if re.match(r"-[DI]|-isystem|-std|-fPIC|-fvisibility", f)]
    clang = subprocess.run(["clang++", *flags, "-w", "-O0", "-S", "-emit-llvm", "-o", "-", source], text=True, cwd=BUILD,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if clang.returncode: return {"": clang.stderr}
    constants = dict(re.findall(r"^(@[\w.$]+) = (?:private|internal) [^@\n]*?constant (.*?)(?:, align \d+)?$",
                                clang.stdout, re.M))

    def held(text, depth=0):
        """Constants by what they hold: their names only number them, as those of lambdas and of what is local do."""
        text = re.sub(r'\d*\$_\d+|%(?:"[^"]*"|[\w.$:-]+)', "", text)
        return re.sub(r"@[\w.$]+", lambda m: held(constants[m[0]], depth + 1) if m[0] in constants and depth < 4 else m[0],
                      text)

    return {name: {word for word in NAMED.findall(held(body)) if not re.search(r"D\dEv\"?$", word)}
            for name, body in re.findall(r"^define [^@\n]*@\"?([\w.$]+)\"?(\(.*?^\})", clang.stdout, re.M | re.S)
            if re.match(r"_ZZ?NK?5ingot", name) and not re.search(r"\$_\d", name)}


entries = json.loads((BUILD / "compile_commands.json").read_text())
floors = "|".join(sys.argv[2:]) or r"\w+"
units = [e for e in entries if re.search(rf"/ingot_({floors})\.dir/Unity/", e["file"])]
judged, faults = 0, collections.defaultdict(list)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    jobs = [(e["file"], pool.submit(functions, e["file"], e["command"]),
             [(s, pool.submit(functions, s, e["command"])) for s in
              re.findall(r'#include "(.*)"', pathlib.Path(e["file"]).read_text())]) for e in units]
    for file, whole, parts in jobs:
        together = whole.result()
        for source, part in parts:
            alone = part.result()
            judged += len(alone)
            if "" in alone: faults[source].append("does not compile alone: " + alone[""].splitlines()[0])
            for name, words in alone.items():
                if name and together.get(name) != words:
                    faults[source].append(f"{name}: {' '.join(sorted(words ^ together.get(name, set()))[:4])}")
        print(f"{pathlib.Path(file).name}: {len(parts)} files", flush=True)
for source, lines in faults.items():
    for line in lines: print(f"{source}: {line[:300]}")
print(f"units: {judged} functions of files alone, {sum(map(len, faults.values()))} other ones in their units")
sys.exit(bool(faults) or not judged)
