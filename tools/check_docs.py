#!/usr/bin/env python3
"""Refuses pages that name a file or folder that is not there: links, paths in `code`, and those of the pictures. A path
is one of the repository, or of src/; without its ending it stands for the files of that name. And an API reference that is
not what the headers say."""
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = set(subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines())
FOLDERS = {str(parent) for file in FILES for parent in pathlib.PurePath(file).parents}
TOPS = tuple(folder + "/" for folder in sorted(FOLDERS) if folder != "." and "/" not in folder)
FLOORS = tuple(folder.removeprefix("src/") + "/" for folder in sorted(FOLDERS) if re.fullmatch(r"src/\w+", folder))


def is_there(path):
    path = path.rstrip("/")
    return (path in FILES or path in FOLDERS or any(file.startswith(path + ".") for file in FILES)
            or ("*" in path and any(fnmatch.fnmatch(file, path) for file in FILES)))


faults, looked_at = [], 0
for page in sorted(file for file in FILES if file.endswith(".md")):
    text = (ROOT / page).read_text()
    prose = re.sub(r"```.*?```", "", text, flags=re.S)  # a lambda looks like a link
    for link in re.findall(r"\]\(([^)#\s]+)", prose):
        if link.startswith("http"):
            continue
        looked_at += 1
        target = (ROOT / page).parent / link
        if not target.exists():
            faults.append(f"{page}: links to {link}")
    words = [word for code in re.findall(r"`([^`\n]+)`", text) for word in code.split()]
    words += [word for picture in re.findall(r"```\n(.*?)```", text, re.S) for word in picture.split()]
    for word in words:
        word = word.strip(",;:.()\"")
        path = word if word.startswith(TOPS) else "src/" + word if word.startswith(FLOORS) else None
        if path is None or not re.fullmatch(r"[\w./*-]+", path):
            continue
        looked_at += 1
        if not is_there(path):
            faults.append(f"{page}: names {word}")
if subprocess.run([ROOT / "tools" / "api_reference.py", "--check"]).returncode:
    faults.append("docs/api.md: out of date")
print("\n".join(faults) if faults else f"docs: {looked_at} paths, all there")
sys.exit(bool(faults))
