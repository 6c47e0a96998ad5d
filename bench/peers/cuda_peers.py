#!/usr/bin/env python3
"""Times the kernels of `ingot bench cuda` in PyTorch and in Ingot on one GPU: the same sizes and types, random data.

PyTorch runs eager, in torch.compile, and in torch.compile with max-autotune-no-cudagraphs, what is compiled checked against eager. As in
Ingot, 50 calls follow one another between two events, over several sets of buffers where one would stay in L2; PyTorch's are captured
in one CUDA graph, so that no time of Python's is counted. A form that does not compile, or for which no time is left, is told with its
reason.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODES = {"eager": None, "compile": {}, "max-autotune": {"mode": "max-autotune-no-cudagraphs"}}
BATCH = 50


def kernel(name, sizes, dtype):
    """The shapes of the operands and the function of a case."""
    from torch.nn import functional as F
    import torch

    row = sizes[-1:]
    return {
        "gelu(x) * y + z": ([sizes] * 3, lambda x, y, z: F.gelu(x) * y + z),
        "softmax": ([sizes], lambda x: torch.softmax(x, -1)),
        "layer_norm": ([sizes, row, row], lambda x, w, b: F.layer_norm(x, row, w, b)),
        "rms_norm": ([sizes, row], lambda x, w: F.rms_norm(x, row, w)),
        "row sum": ([sizes], lambda x: x.sum(1)),
        "full sum": ([sizes], lambda x: x.sum()),
        "column sum": ([sizes], lambda x: x.sum(0)),
        "transposed copy": ([sizes], lambda x: x.t().contiguous()),
    }[name]


def time_us(call, seconds):
    """Median of batches of calls, in microseconds a call; `call` is given a number that counts up."""
    import torch

    for number in range(3):
        call(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(BATCH):
            call(number)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    samples, end = [], None
    while not samples or time.perf_counter() < end:
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        if end is None:  # the first batch warms up
            end = time.perf_counter() + seconds
            continue
        samples.append(1e3 * before.elapsed_time(after) / BATCH)
    return statistics.median(samples)


class Case:
    """Operands of a case, in as many sets as `ingot bench cuda` takes."""

    def __init__(self, case):
        import torch

        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[case["dtype"]]
        shapes, self.function = kernel(case["name"], case["sizes"], self.dtype)
        generator = torch.Generator("cuda").manual_seed(1)
        # The same range as Ingot's: no sum of many is near zero.
        self.sets = [[(torch.rand(*shape, device="cuda", generator=generator) * 3 - 1).to(self.dtype) for shape in shapes]
                     for _ in range(case["buffer_sets"])]
        self.expected = self.function(*self.sets[0])
        self.tolerance = 2e-5 if self.dtype == torch.float32 else 2e-2

    def time(self, mode, seconds):
        """Microseconds, and the seconds of the first call."""
        import torch

        function, first = self.function, 0.0
        if MODES[mode] is not None:
            torch._dynamo.reset()
            function = torch.compile(function, dynamic=False, **MODES[mode])
            start = time.perf_counter()
            got = function(*self.sets[0])
            torch.cuda.synchronize()
            first = time.perf_counter() - start
            scale = self.expected.abs().max().double()
            error = ((got.double() - self.expected.double()).abs().max() / scale).item()
            assert error < self.tolerance, f"differs from eager by {error:.1e}"
        return time_us(lambda number: function(*self.sets[number % len(self.sets)]), seconds), first


def measure(result, args):
    import torch

    start = time.perf_counter()
    rows = [{**case, "ingot_us": case["us"], "torch_us": {}, "torch_first_s": {}, "torch_missing": {}} for case in result["cases"]]
    # The slowest to compile comes last: what time there is goes to the others first.
    for modes in (["eager", "compile"], ["max-autotune"]):
        for row in rows:
            case = None
            for mode in modes:
                label = f"{row['name']} {'x'.join(map(str, row['sizes']))} {row['dtype']}"
                if mode not in args.modes or time.perf_counter() - start > args.budget:
                    row["torch_missing"][mode] = "not asked for" if mode not in args.modes else "no time left"
                    continue
                print(f"{label}: {mode} ...", file=sys.stderr)
                try:
                    case = case or Case(row)
                    row["torch_us"][mode], row["torch_first_s"][mode] = case.time(mode, args.seconds)
                except Exception as error:  # no compiler for Triton, an operator that fails: the others go on
                    row["torch_missing"][mode] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                    print(f"  {row['torch_missing'][mode]}", file=sys.stderr)
            del case
            torch.cuda.empty_cache()
            yield rows


def ingot_result(args):
    """What `ingot bench cuda` says, or has said. It is printed for results that are wrong, too."""
    if args.ingot_json:
        return json.loads(args.ingot_json.read_text())
    command = [str(args.ingot), "bench", "cuda", "--json", "--seconds", str(args.seconds * 20)]
    return json.loads(subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False).stdout)


def show(report):
    result = report["ingot"]
    print(f"{result['device']}, CUDA {result['driver_version']} of the driver, NVRTC {result['nvrtc']}, PyTorch {report['torch']}; "
          f"a copy of 1 GiB: {result['copy_gbps']:.0f} GB/s read and written")
    print(f"{'kernel':<17}{'sizes':>14}{'':>6}{'eager':>10}{'compile':>10}{'autotune':>10}{'ingot':>10}{'best/ingot':>12}{'of copy':>9}"
          "   (us a call, medians)")
    for row in report["rows"]:
        us = row["torch_us"]
        cells = "".join(f"{us[mode]:>10.1f}" if mode in us else f"{'-':>10}" for mode in MODES)
        print(f"{row['name']:<17}{'x'.join(map(str, row['sizes'])):>14}{row['dtype']:>6}{cells}", end="")
        if row["ingot_us"] is None:
            print(f"  {row['failure']}")
            continue
        best = f"{min(us.values()) / row['ingot_us']:>11.2f}x" if us else f"{'-':>12}"
        print(f"{row['ingot_us']:>10.1f}{best}{100 * row['copy_share']:>8.0f}%{'' if row['good'] else '  WRONG'}")
    for reason in sorted({f"{mode}: {why}" for row in report["rows"] for mode, why in row["torch_missing"].items()}):
        print(f"  missing: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default=ROOT / "build" / "ingot", help="the ingot command")
    parser.add_argument("--ingot-json", type=pathlib.Path, help="what `ingot bench cuda --json` said, instead of running it")
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--seconds", type=float, default=0.2, help="of measurement a case and form")
    parser.add_argument("--budget", type=float, default=240, help="seconds after which no other form is begun")
    parser.add_argument("--output", type=pathlib.Path, help="a file for the JSON, written after each case")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = ingot_result(args)

    import torch

    if not torch.cuda.is_available():
        sys.exit("cuda_peers: PyTorch finds no CUDA device")
    report = {"ingot": {key: value for key, value in result.items() if key != "cases"}, "torch": torch.__version__}
    with torch.inference_mode():
        for rows in measure(result, args):
            report["rows"] = rows
            if args.output:
                args.output.write_text(json.dumps(report) + "\n")
    if args.json:
        print(json.dumps(report))
    else:
        show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
