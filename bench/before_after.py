#!/usr/bin/env python3
"""Two builds of the command side by side: each benchmark in turns, medians of every figure that both of them print.

  bench/before_after.py BEFORE AFTER [--rounds 5] [--seconds 0.5] [--json] [benchmark ...]

BEFORE and AFTER are commands (build/ingot of two states). A ratio below 1 is a gain. Exits with 1 where the median of a
figure is worse by more than --allow percent; of a figure whose rounds differ among themselves by more, it says so.
"""
import argparse
import json
import statistics
import subprocess
import sys

BENCHMARKS = ["digits_mlp", "digits_cnn", "bytegpt", "bind", "compile", "dispatch", "math", "replay", "reduction_order", "chain8",
              "softmax", "layer_norm", "rowsum", "colsum", "fullsum", "transpose_copy", "matmul", "linear_gelu", "gemv", "attention"]
LESS_IS_BETTER = ("_us", "_ns", "_ms", "cycles_16", "ns_per_op")
MORE_IS_BETTER = ("_gbps", "_gflops")
# What these figures are divided by, or what the machine gives, says nothing about a state.
NOT_OURS = ("roof_us", "read_gbps")


def figures(value, path=()):
    """{name: number} of all that is measured; entries of a list are told by what they are of."""
    if isinstance(value, dict):
        label = [str(value[key]) for key in ("function", "name", "dtype", "sizes", "batch", "n", "rows", "columns") if key in value]
        for key, inner in value.items():
            if isinstance(inner, (dict, list)):
                yield from figures(inner, path + (key,))
            elif isinstance(inner, (int, float)) and key.endswith(LESS_IS_BETTER + MORE_IS_BETTER) and key not in NOT_OURS:
                yield " ".join([*path, *label, key]), float(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from figures(inner, path)


def measure(command, benchmark, seconds):
    done = subprocess.run([command, "bench", benchmark, "--seconds", str(seconds), "--json"], capture_output=True, text=True)
    return dict(figures(json.loads(done.stdout))) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("benchmark", nargs="*", default=BENCHMARKS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each benchmark's own measuring")
    parser.add_argument("--allow", type=float, default=3, help="percent by which a figure may be worse")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_intermixed_args()
    rows, worse = [], 0
    for benchmark in arguments.benchmark:
        sides = {"before": [], "after": []}
        for _ in range(arguments.rounds):
            for side, runs in sides.items():
                runs.append(measure(getattr(arguments, side), benchmark, arguments.seconds))
        if None in sides["before"] + sides["after"]:
            print(f"{benchmark}: not known to both", file=sys.stderr)
            continue
        for name in sides["before"][0]:
            values = {side: [run[name] for run in runs if name in run] for side, runs in sides.items()}
            if not values["before"] or not values["after"] or not all(values["before"]) or not all(values["after"]):
                continue
            if name.endswith(MORE_IS_BETTER):
                ratio = statistics.median(values["before"]) / statistics.median(values["after"])
            else:
                ratio = statistics.median(values["after"]) / statistics.median(values["before"])
            noise = max((max(v) - min(v)) / statistics.median(v) for v in values.values())
            is_worse = ratio > 1 + arguments.allow / 100
            worse += is_worse
            rows.append({"benchmark": benchmark, "figure": name, "before": statistics.median(values["before"]),
                         "after": statistics.median(values["after"]), "ratio": ratio, "spread": noise, "worse": is_worse})
            if not arguments.json:
                mark = " worse" if is_worse else ""
                print(f"{benchmark:16}{name:64}{rows[-1]['before']:14.4g}{rows[-1]['after']:14.4g}{ratio:8.3f}"
                      f"  rounds differ by {100 * noise:.0f}%{mark}", flush=True)
    if arguments.json:
        print(json.dumps({"rounds": arguments.rounds, "seconds": arguments.seconds, "figures": rows}))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
