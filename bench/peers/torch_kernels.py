#!/usr/bin/env python3
"""Times the kernels of `ingot bench` in PyTorch and in Ingot, in turns: the same sizes and types, random data.

PyTorch eager and torch.compile run in processes of their own (two spinning thread pools on one machine spoil each other); torch.compile
is checked against eager, and each side against f64, before anything is timed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from torch_peer import ask, median_us

MODES = ["eager", "compile"]
# Sizes a kernel is measured on, by `ingot bench NAME --json`; here only what PyTorch computes.
NAMES = ["chain8", "softmax", "layer_norm", "rowsum", "colsum", "fullsum", "transpose_copy", "matmul", "linear_gelu", "gemv",
         "attention"]


def kernel(name, sizes, dtype):
    """The operands (random) and the function of a case."""
    import torch
    from torch.nn import functional as F

    def randn(*shape):
        return torch.randn(*shape, dtype=torch.float32).to(dtype)

    def weight(n, k):
        return (torch.randn(n, k, dtype=torch.float32) / k**0.5).to(dtype)

    def chain8(x, y):
        z = x * y + 0.5
        z = torch.sigmoid(z) * x
        z = torch.tanh(z - y)
        return z * 2 + y

    if name == "chain8":
        return [randn(*sizes), randn(*sizes)], chain8
    if name == "softmax":
        return [randn(*sizes)], lambda x: torch.softmax(x, -1)
    if name == "layer_norm":
        return [randn(*sizes), randn(sizes[1]), randn(sizes[1])], lambda x, w, b: F.layer_norm(x, sizes[1:], w, b)
    if name == "rowsum":
        return [randn(*sizes)], lambda x: x.sum(1)
    if name == "colsum":
        return [randn(*sizes)], lambda x: x.sum(0)
    if name == "fullsum":
        return [randn(*sizes)], lambda x: x.sum()
    if name == "transpose_copy":
        return [randn(*sizes)], lambda x: x.t().contiguous()
    if name == "matmul":
        return [randn(*sizes[:2]), randn(*sizes[1:])], torch.matmul
    if name == "linear_gelu":
        m, k, n = sizes
        return [randn(m, k), weight(n, k), randn(n)], lambda x, w, b: F.gelu(F.linear(x, w, b))
    if name == "gemv":
        m, k, n = sizes
        return [randn(m, k), weight(n, k)], F.linear
    heads, positions, depth, causal = sizes
    operands = [randn(1, heads, positions, depth) for _ in range(3)]
    return operands, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


def torch_worker(args):
    """Answers a case (one line of JSON) with its median time, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    print(json.dumps({"ready": torch.__version__}), flush=True)
    known = {}
    with torch.inference_mode():
        for line in sys.stdin:
            if line not in known:
                case = json.loads(line)
                dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[case["dtype"]]
                operands, function = kernel(case["name"], case["sizes"], dtype)
                expected = function(*operands)
                if args.worker == "compile":
                    torch._dynamo.reset()
                    function = torch.compile(function)
                    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-3
                    torch.testing.assert_close(function(*operands), expected, rtol=tolerance, atol=tolerance)
                exact = kernel_in_double(case, operands)
                error = ((expected.double() - exact).abs().max() / exact.abs().max()).item()
                assert error < (2e-2 if dtype == torch.bfloat16 else 1e-4), (case, error)
                known[line] = lambda function=function, operands=operands: function(*operands)
            print(json.dumps(median_us(known[line], args.seconds)), flush=True)


def kernel_in_double(case, operands):
    import torch

    function = kernel(case["name"], case["sizes"], torch.float32)[1]
    return function(*[x.double() for x in operands])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument("names", nargs="*", help="of kernels; all of them if none is given: " + ", ".join(NAMES))
    parser.add_argument("--ingot", default=root / "build" / "ingot", help="the ingot command")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of measurement a case, contender and round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return torch_worker(args)
    unknown = [name for name in args.names if name not in NAMES]
    if unknown:
        parser.error(f"no such kernel: {', '.join(unknown)}; there are: {', '.join(NAMES)}")

    workers = {}
    for mode in MODES:
        common = ["--threads", str(args.threads), "--seconds", str(args.seconds)]
        workers[mode] = subprocess.Popen([sys.executable, __file__, "--worker", mode, *common], text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)
        workers[mode].stdout.readline()
    table = []
    for name in args.names or NAMES:
        cases = {}
        for _ in range(args.rounds):
            command = [str(args.ingot), "bench", name, "--threads", str(args.threads), "--json"]
            result = json.loads(subprocess.run(command + ["--seconds", str(4 * args.seconds)], check=True, text=True,
                                               stdout=subprocess.PIPE).stdout)
            time.sleep(0.05)
            for case in result["cases"]:
                key = json.dumps({"name": name, "sizes": case["sizes"], "dtype": case["dtype"]})
                row = cases.setdefault(key, {"ingot_eager": [], "ingot_compiled": [], "share": [], **{mode: [] for mode in MODES}})
                row["ingot_eager"].append(case["eager_us"])
                row["ingot_compiled"].append(case["compiled_us"])
                row["share"].append(case["roof_share"])
                for mode in MODES:
                    row[mode].append(ask(workers[mode], key))
                    time.sleep(0.05)
        for key, row in cases.items():
            us = {contender: statistics.median(samples) for contender, samples in row.items()}
            table.append({**json.loads(key), "us": {k: v for k, v in us.items() if k != "share"}, "roof_share": us["share"],
                          "ratio_to_eager": us["eager"] / us["ingot_eager"],
                          "ratio_to_best": min(us[mode] for mode in MODES) / us["ingot_compiled"]})
    for process in workers.values():
        process.stdin.close()
        process.wait()
    if args.json:
        print(json.dumps({"threads": args.threads, "rounds": args.rounds, "rows": table}))
        return 0
    print(f"{'kernel':<15}{'sizes':<18}{'dtype':<6}{'torch eager':>12}{'compile':>10}{'ingot eager':>13}{'compiled':>10}{'eager/eager':>13}"
          f"{'best/compiled':>15}{'roof':>7}   (us a call, medians, {args.threads} threads)")
    for r in table:
        us = r["us"]
        print(f"{r['name']:<15}{'x'.join(map(str, r['sizes'])):<18}{r['dtype']:<6}{us['eager']:>12.1f}{us['compile']:>10.1f}"
              f"{us['ingot_eager']:>13.1f}{us['ingot_compiled']:>10.1f}{r['ratio_to_eager']:>12.2f}x{r['ratio_to_best']:>14.2f}x"
              f"{100 * r['roof_share']:>6.0f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
