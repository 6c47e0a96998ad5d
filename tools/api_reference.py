#!/usr/bin/env python3
"""Writes docs/api.md, the public API, from the headers: what stands there, without bodies and private parts.

  tools/api_reference.py            writes it
  tools/api_reference.py --check    fails if it is not what the headers say
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
# Not for users: what these hold is passed over, wherever it stands.
PRIVATE_NAMESPACES = {"detail", "eager", "trace", "runtime", "compiler", "codegen", "ir", ""}
# Public headers include them; nothing of them is for users.
PRIVATE_HEADERS = {"base/small_vector.h", "base/counted_ptr.h", "base/read_epoch.h", "base/fields.h", "base/hash.h", "base/for_each.h"}
FIRST = ["eager/tensor.h", "eager/size.h", "base/dtype.h", "base/error.h", "eager/ops/arguments.h"]


def headers():
    """Of ingot.h, in its order, with what these include in turn behind them."""
    found, queue = [], FIRST + re.findall(r'#include "([^"]+)"', (ROOT / "src" / "ingot.h").read_text())
    while queue:
        name = queue.pop(0)
        if name in found or name in PRIVATE_HEADERS or not (ROOT / "src" / name).exists():
            continue
        found.append(name)
        queue += re.findall(r'#include "([^"]+)"', (ROOT / "src" / name).read_text())
    return found


class Reader:
    """Splits a header into documented declarations."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def skip_to_brace_end(self):
        depth = 0
        while self.at < len(self.text):
            c = self.text[self.at]
            if self.text.startswith("//", self.at):
                self.at = self.text.index("\n", self.at)
                continue
            if c in "\"'" and not (c == "'" and self.text[self.at - 1].isalnum()):
                self.at += 1
                while self.text[self.at] != c:
                    self.at += 2 if self.text[self.at] == "\\" else 1
            depth += {"{": 1, "}": -1}.get(c, 0)
            self.at += 1
            if depth == 0:
                return

    def items(self, end=None, members=False):
        """(documentation, declaration, brace): brace is None, or the place of the opening one. Of members, plain
        comments are documentation, too."""
        doc = []
        while self.at < (end or len(self.text)):
            line_end = self.text.find("\n", self.at)
            line = self.text[self.at:line_end].strip()
            if not line:
                doc, self.at = [], line_end + 1
            elif line.startswith("///") or (members and line.startswith("//")):
                doc.append(line.lstrip("/").removeprefix(" "))
                self.at = line_end + 1
            elif line.startswith("//"):
                self.at = line_end + 1
            elif line.startswith("#"):
                start = self.at
                while self.text[line_end - 1] == "\\":
                    line_end = self.text.index("\n", line_end + 1)
                if line.startswith("#define") and doc:
                    yield doc, self.text[start:self.text.find("\n", start)].strip().rstrip("\\").strip(), None
                doc, self.at = [], line_end + 1
            else:
                declaration, brace = self.declaration()
                rest = self.text[self.at:self.text.find("\n", self.at)].strip()
                if members and brace is None and rest.startswith("//"):
                    doc = doc + [rest[2:].strip()]
                    self.at = self.text.find("\n", self.at) + 1
                yield doc, declaration, brace
                doc = []

    def declaration(self):
        start, depth = self.at, 0
        while self.at < len(self.text):
            c = self.text[self.at]
            if self.text.startswith("//", self.at):
                self.at = self.text.index("\n", self.at)
                continue
            if depth == 0 and c == "{":
                head = " ".join(re.sub(r"//[^\n]*", "", self.text[start:self.at]).split())
                brace = self.at
                # A brace behind "= " or in an initializer of a constructor is part of the declaration.
                self.skip_to_brace_end()
                if head.endswith("="):
                    continue
                if self.text[self.at:self.at + 1] == ";":
                    self.at += 1
                elif self.text[self.at:].lstrip(" ").startswith((",", "{", ";", ":")):
                    continue
                return head, brace
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
            self.at += 1
            if depth == 0 and c == ";":
                return " ".join(re.sub(r"//[^\n]*", "", self.text[start:self.at - 1]).split()), None
            if depth == 0 and c == ":" and self.text[start:self.at].strip() in ("public:", "private:", "protected:"):
                return self.text[start:self.at].strip(), None
            if depth == 0 and c == ")" and self.text[start:self.at].strip().startswith("INGOT_") and \
                    self.text[self.at:].startswith("\n"):
                return self.text[start:self.at].strip(), None
        return self.text[start:].strip(), None


def cleaned(declaration):
    text = re.sub(r"\b(INGOT_API|\[\[nodiscard\]\]|\[\[maybe_unused\]\]|inline|constexpr)\s*", "", declaration)
    text = re.sub(r"(,\s*)?(ingot::)?(detail::)?MadeAt at = (detail::)?MadeAt\(\)", "", text)
    text = re.sub(r"(,\s*)?Location (location|caller|l) = Location\(\)", "", text)
    # The members that a constructor sets.
    text = re.sub(r"(\))(\s*(noexcept|const))?\s+:\s+\w+.*$", r"\1", text)
    return re.sub(r"\(\s*,\s*", "(", text).strip()


def wanted(declaration, has_body):
    if not has_body and re.match(r"(template <.*> )?(class|struct|enum)\b", declaration):
        return False
    return declaration and not re.search(
        r"\bfriend\b|\boperator=\(|= delete|\bdetail::|^using (?!\w+ =)|^static_assert|^~|^template <> |"
        r"TensorImpl|^\w+::\w+\(|^concept|^template <.*> concept|^virtual ~|^extern", declaration)


def members(reader, brace, lines, indent, public):
    end = reader.at
    inner = Reader(reader.text)
    inner.at = brace + 1
    stop = end - 1
    while reader.text[stop] != "}":
        stop -= 1
    for doc, declaration, inside in inner.items(stop, members=True):
        if declaration in ("public:", "private:", "protected:"):
            public = declaration == "public:"
        elif public and declaration.strip("}; "):
            write(inner, doc, declaration, inside, lines, indent)


def write(reader, doc, declaration, brace, lines, indent=""):
    head = re.match(r"(?:template <.*> (?:requires.* )?)?(?:class|struct|union|enum(?: class)?)\b", declaration)
    text = cleaned(declaration)
    if not wanted(text, brace is not None):
        return
    handle = re.match(r"INGOT_MODULE\((\w+)", text)
    if handle:
        lines.append(f"{indent}class {handle[1]};  // the handle to {handle[1]}Impl")
        return
    if re.match(r"INGOT_[A-Z_]+\(", text) or text.startswith("#define INGOT_") and not doc:
        return
    lines += [f"{indent}// {line}".rstrip() for line in doc]
    if not head or brace is None:
        for i, part in enumerate(wrapped(text + ("" if text.startswith("#") else ";"), 118 - len(indent))):
            lines.append(indent + ("    " if i else "") + part)
        return
    if text.startswith("enum"):
        body = re.sub(r"//[^\n]*", "", reader.text[brace + 1:reader.text.index("}", brace)])
        lines.append(f"{indent}{text} {{ {' '.join(body.split()).rstrip(',')} }};")
        return
    inside = []
    members(reader, brace, inside, indent + "  ", "class " not in head[0] + " ")
    lines.append(f"{indent}{text} {{" + ("" if inside else "};"))
    if inside:
        lines += inside + [indent + "};"]


def wrapped(text, width):
    parts = []
    while len(text) > width:
        cut = max(text.rfind(", ", 0, width), text.rfind("> ", 0, width // 2))
        if cut < 20:
            break
        parts.append(text[:cut + 1])
        text = text[cut + 2:]
    return parts + [text]


def walk(reader, end, lines, private=False):
    for doc, declaration, brace in reader.items(end):
        space = re.fullmatch(r"(?:inline )?namespace ?([\w:]*)", declaration)
        if space:
            inner = Reader(reader.text)
            inner.at = brace + 1
            names = space[1].split("::")
            if not PRIVATE_NAMESPACES & set(names):
                walk(inner, reader.at - 1, lines)
        elif declaration.strip("}; "):
            before = len(lines)
            write(reader, doc, declaration, brace, lines)
            if len(lines) > before and (doc or brace is not None):
                lines.append("")


def page():
    out = ["# API reference", "",
           "Made from the headers by `tools/api_reference.py`; `#include <ingot/ingot.h>` brings all of it, in namespace",
           "`ingot`. The ops, as functions and as methods of `Tensor`, have PyTorch's names and arguments and stand in",
           "[operators.md](operators.md). Last arguments of type `Location`, the caller's line by default, are left out.", ""]
    for name in headers():
        text = (ROOT / "src" / name).read_text()
        lines = []
        walk(Reader(text), len(text), lines)
        while lines and not lines[-1]:
            lines.pop()
        if not any(line.startswith(("class", "struct", "enum", "#define")) or "(" in line for line in lines):
            continue
        intro = []
        for line in text.splitlines():
            if not line.startswith("//"):
                break
            intro.append(line[2:].strip())
        first = " ".join(intro).split("  ")[0]
        out += [f"## `{name}`", "", first, "", "```cpp", *lines, "```", ""]
    return "\n".join(out)


def main():
    made = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != made:
            sys.exit("docs/api.md is not what the headers say: run tools/api_reference.py")
        return
    PAGE.write_text(made)
    print(f"{PAGE.relative_to(ROOT)}: {len(made.splitlines())} lines")


if __name__ == "__main__":
    main()
