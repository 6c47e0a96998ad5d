#!/usr/bin/env python3
"""Times the kernels of `ingot bench` in PyTorch and in Ingot, in turns: the same sizes and types, random data.

PyTorch eager and torch.compile run in processes of their own (two spinning thread pools on one machine spoil each other); torch.compile
is checked against eager, and each side against f64, before anything is timed.
"""
import json
import sys

from common import INGOT, Workers, bench_ingot, finish, medians, option_parser, serve

MODES = ["eager", "compile"]
# Sizes a kernel is measured on, by `ingot bench NAME --json`; here only what PyTorch computes.
NAMES = ["chain8", "softmax", "layer_norm", "rowsum", "colsum", "fullsum", "transpose_copy", "matmul", "linear_gelu", "gemv",
         "attention", "lstm"]


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
    if name == "lstm":
        steps, batch, width = sizes

        def layer(x, *weights):
            state = torch.zeros(1, batch, width, dtype=x.dtype)
            return torch.lstm(x, (state, state), weights, False, 1, 0.0, False, False, False)[0]

        return [randn(steps, batch, width), weight(4 * width, width), weight(4 * width, width)], layer
    heads, positions, depth, causal = sizes
    operands = [randn(1, heads, positions, depth) for _ in range(3)]
    return operands, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))


def torch_worker(args):
    """Answers a case (one line of JSON) with its median time, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    known = {}

    def call_of(line):
        if line in known:
            return known[line]
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
        known[line] = lambda: function(*operands)
        return known[line]

    with torch.inference_mode():
        serve(torch.__version__, call_of, args.seconds)


def kernel_in_double(case, operands):
    import torch

    function = kernel(case["name"], case["sizes"], torch.float32)[1]
    return function(*[x.double() for x in operands])


def show(table, threads):
    print(f"{'kernel':<15}{'sizes':<18}{'dtype':<6}{'torch eager':>12}{'compile':>10}{'ingot eager':>13}{'compiled':>10}{'eager/eager':>13}"
          f"{'best/compiled':>15}{'roof':>7}   (us a call, medians, {threads} threads)")
    for r in table:
        us = r["us"]
        print(f"{r['name']:<15}{'x'.join(map(str, r['sizes'])):<18}{r['dtype']:<6}{us['eager']:>12.1f}{us['compile']:>10.1f}"
              f"{us['ingot_eager']:>13.1f}{us['ingot_compiled']:>10.1f}{r['ratio_to_eager']:>12.2f}x{r['ratio_to_best']:>14.2f}x"
              f"{100 * r['roof_share']:>6.0f}%")


def main():
    parser = option_parser(__doc__, MODES, seconds=0.5)
    parser.add_argument("names", nargs="*", help="of kernels; all of them if none is given: " + ", ".join(NAMES))
    args = parser.parse_args()
    if args.worker:
        return torch_worker(args)
    unknown = [name for name in args.names if name not in NAMES]
    if unknown:
        parser.error(f"no such kernel: {', '.join(unknown)}; there are: {', '.join(NAMES)}")

    workers = Workers(__file__, args, MODES)
    table = []
    for name in args.names or NAMES:
        cases = {}
        for _ in range(args.rounds):
            for case in bench_ingot(args, name, seconds=4 * args.seconds)["cases"]:
                key = json.dumps({"name": name, "sizes": case["sizes"], "dtype": case["dtype"]})
                row = cases.setdefault(key, {who: [] for who in [*MODES, *INGOT, "share"]})
                row["ingot_eager"].append(case["eager_us"])
                row["ingot_compiled"].append(case["compiled_us"])
                row["share"].append(case["roof_share"])
                for mode in MODES:
                    row[mode].append(workers.ask(mode, key))
        for key, row in cases.items():
            us = medians(row)
            share = us.pop("share")
            table.append({**json.loads(key), "us": us, "roof_share": share, "ratio_to_eager": us["eager"] / us["ingot_eager"],
                          "ratio_to_best": min(us[mode] for mode in MODES) / us["ingot_compiled"]})
    workers.close()
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
