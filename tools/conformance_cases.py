#!/usr/bin/env python3
"""Packs a selection of a folder of conformance cases for the tests: of each op the first cases of each kind of dtype.

    tools/conformance_cases.py FOLDER tests/data/conformance_extended.tar.xz

A case is left out where the stored reference is not the value of the function within the case's own tolerance: PyTorch's
special functions lose digits (bessel_j0 of f64 is off by 8e-9, polygamma has a pole of 2e13), and so does what it computes in 16
bits. The truth is mpmath's, or PyTorch's own in double of the same inputs. So are gradients to what a function does not read.
Needs torch and mpmath.
"""
import json
import pathlib
import struct
import sys
import tarfile
import tempfile
from fractions import Fraction

import mpmath
import torch

FIRST = {"wide": 2, "half": 1, "integer": 1, "bool": 1}  # cases of a kind
KINDS = {"f64": "wide", "f32": "wide", "f16": "half", "bf16": "half", "bool": "bool"}
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


def laguerre(n, x):
    before, last = Fraction(1), 1 - Fraction(float(x))
    for k in range(1, n):
        before, last = last, ((2 * k + 1 - Fraction(float(x))) * last - k * before) / (k + 1)
    return mpmath.mpf((last if n else before).numerator) / (last if n else before).denominator


def second_kind(n):
    return lambda x: mpmath.bessely(n, x) if x > 0 else mpmath.ninf if x == 0 else mpmath.nan


def polygamma(x, n):
    return mpmath.inf if x <= 0 and x == mpmath.floor(x) else mpmath.psi(int(n), x)


EXACT = {
    "polygamma": polygamma,
    "special.polygamma": polygamma,
    "special.airy_ai": lambda x: mpmath.airyai(x) if mpmath.isfinite(x) else mpmath.nan,
    "special.bessel_j0": lambda x: mpmath.besselj(0, x),
    "special.bessel_j1": lambda x: mpmath.besselj(1, x),
    "special.bessel_y0": second_kind(0),
    "special.bessel_y1": second_kind(1),
    "special.i1": lambda x: mpmath.besseli(1, x),
    "special.modified_bessel_i1": lambda x: mpmath.besseli(1, x),
    "special.i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "special.ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "special.chebyshev_polynomial_t": lambda x, n: mpmath.chebyt(int(n), x) if n >= 0 else mpmath.mpf(0),
    "special.chebyshev_polynomial_u": lambda x, n: mpmath.chebyu(int(n), x) if n >= 0 else mpmath.mpf(0),
    "special.laguerre_polynomial_l": lambda x, n: laguerre(int(n), x) if n >= 0 else mpmath.mpf(0),
}
IN_DOUBLE = {"grid_sampler_2d": torch.grid_sampler_2d, "matrix_exp": torch.matrix_exp}  # of 16-bit inputs
TRIANGLES = {"cholesky_inverse": 0, "cholesky_solve": 1}  # the argument of which one triangle is read


class Cases:
    def __init__(self, path):
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        self.header, self.data = json.loads(raw[8:8 + size]), raw[8 + size:]
        self.metadata = self.header.pop("__metadata__")
        self.cases = json.loads(self.metadata["cases"])

    def bytes_of(self, key):
        begin, end = self.header[key]["data_offsets"]
        return self.data[begin:end]

    def tensor(self, key):
        stored = self.header[key]
        flat = torch.frombuffer(bytearray(self.bytes_of(key) or b"\0" * 8), dtype=DTYPES[stored["dtype"]])
        return flat[:torch.Size(stored["shape"]).numel()].reshape(stored["shape"])

    def value(self, v):
        return self.tensor(v["tensor"]) if isinstance(v, dict) and "tensor" in v else v

    def write(self, path, chosen):
        keys = sorted(set(tensor_keys(chosen)))
        header = {"__metadata__": {**self.metadata, "cases": json.dumps(chosen)}}
        offset = 0
        for key in keys:
            size = len(self.bytes_of(key))
            header[key] = {**self.header[key], "data_offsets": [offset, offset + size]}
            offset += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(map(self.bytes_of, keys)))


def tensor_keys(value):
    if isinstance(value, list):
        return [key for item in value for key in tensor_keys(item)]
    if not isinstance(value, dict):
        return []
    own = [value["tensor"]] if isinstance(value.get("tensor"), str) else []
    return own + [key for name, item in value.items() for key in tensor_keys(item)]


def is_near(stored, exact, case):
    if mpmath.isnan(exact) or stored != stored:
        return bool(mpmath.isnan(exact)) and stored != stored
    if mpmath.isinf(exact):
        return stored == float(exact)
    return abs(stored - exact) <= case["atol"] + case["rtol"] * abs(stored)


def is_right(cases, case):
    op, args = cases.metadata["op"], [cases.value(a) for a in case["args"]]
    stored = cases.value(case["outputs"][0])
    if op in EXACT:
        operands = torch.broadcast_tensors(*(torch.as_tensor(a).double() for a in args))
        lines = zip(*(t.flatten().tolist() for t in operands), stored.double().flatten().tolist())
        return all(is_near(line[-1], EXACT[op](*map(mpmath.mpf, line[:-1])), case) for line in lines)
    if op in IN_DOUBLE and KINDS.get(case["dtype"]) == "half":
        exact = IN_DOUBLE[op](*(a.double() if isinstance(a, torch.Tensor) else a for a in args))
        return torch.allclose(stored.double(), exact, case["rtol"], case["atol"], True)
    if op in TRIANGLES and case.get("grad"):
        of = case["args"][TRIANGLES[op]]["tensor"]
        gradient = next(cases.tensor(v["tensor"]) for v in case["grad"]["values"] if v["of"] == of)
        return not (gradient.tril(-1) if case["kwargs"].get("upper") else gradient.triu(1)).any()
    return True


def main(folder, packed):
    mpmath.mp.dps = 40
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(packed, "w:xz") as tar:
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            cases, count, chosen = Cases(path), {}, []
            for case in cases.cases:
                kind = KINDS.get(case["dtype"], "integer")
                if count.get(kind, 0) == FIRST[kind]:
                    continue
                if not is_right(cases, case):
                    print(f"{cases.metadata['op']} {case['name']}: the reference is not the value of the function")
                    continue
                count[kind] = count.get(kind, 0) + 1
                chosen.append(case)
            if not chosen:
                continue
            written = pathlib.Path(scratch) / path.name
            cases.write(written, chosen)
            info = tar.gettarinfo(written, f"{pathlib.Path(folder).name}/{path.name}")
            info.mtime, info.uid, info.gid, info.uname, info.gname, info.mode = 0, 0, 0, "", "", 0o644
            with open(written, "rb") as data:
                tar.addfile(info, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
