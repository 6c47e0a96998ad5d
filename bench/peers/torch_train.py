#!/usr/bin/env python3
"""Times a whole training step of the demo's models in PyTorch and in Ingot, in turns, on the same shapes and data.

A step is forward, cross-entropy, backward, clipping (the GPT) and the optimizer: AdamW(fused=True) for the GPT, SGD with Nesterov
momentum for the CNN. Each contender runs in a process of its own; rounds are interleaved with pauses, and the median over all rounds is
shown. Before anything is timed, PyTorch eager and compiled must follow the losses of tests/data/training.json, which Ingot's tests do
too, and Ingot's eager and compiled steps must have the same bits.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from torch_peer import ask, median_us, models

ROWS = [("bytegpt", 8), ("bytegpt", 32), ("digits_cnn", 64)]
MODES = ["eager", "compile"]
FOLLOWED = 5  # steps


class Step:
    """A training step on the weights that ship."""

    def __init__(self, data, name, compiled, lr=None):
        import torch
        from torch.nn import functional as F

        self.name, self.model = name, models(data)[name].train()
        if name == "bytegpt":
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr or 1.5e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        else:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr or 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)

        def loss_of(x, y):
            return F.cross_entropy(self.model(x).flatten(0, -2), y.flatten())

        self.loss_of = torch.compile(loss_of) if compiled else loss_of

    def __call__(self, x, y):
        import torch

        loss = self.loss_of(x, y)
        loss.backward()
        if self.name == "bytegpt":
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def batch_of(data, name, starts):
    """Windows of the text, or images, that begin here."""
    import torch
    from safetensors.torch import load_file

    if name == "bytegpt":
        text = torch.tensor(list((data / "text.txt").read_bytes()), dtype=torch.int64)
        rows = torch.stack([text[i : i + 129] for i in starts])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    digits = load_file(data / "digits.safetensors")
    at = torch.tensor(starts) % 1797
    return digits["images"][at].float().view(-1, 1, 8, 8) / 16, digits["labels"][at]


def starts_followed(name, step):
    """As tests/data/training.json says."""
    if name == "bytegpt":
        return [(8 * step + row) * 1009 % (35149 - 129) for row in range(8)]
    return list(range(32 * step, 32 * step + 32))


def follow(args, name, compiled):
    expected = json.loads((args.root / "tests" / "data" / "training.json").read_text())[name]["losses"]
    step = Step(args.data, name, compiled, lr=1e-4 if name == "bytegpt" else 0.05)
    for number in range(FOLLOWED):
        loss = step(*batch_of(args.data, name, starts_followed(name, number))).item()
        assert abs(loss - expected[number]) < 1e-3 * expected[number], (name, compiled, number, loss, expected[number])


def torch_worker(args):
    """Answers one line (a row number) with the median of that row, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    compiled = args.worker == "compile"
    for name in dict.fromkeys(name for name, _ in ROWS):
        follow(args, name, compiled)
    calls, first = [], []
    for name, batch in ROWS:
        torch._dynamo.reset()
        step = Step(args.data, name, compiled)
        x, y = batch_of(args.data, name, torch.randint(0, 1024, (batch,), generator=torch.Generator().manual_seed(1)).tolist())
        start = time.perf_counter()
        step(x, y)
        first.append(time.perf_counter() - start)
        calls.append(lambda step=step, x=x, y=y: step(x, y))
    print(json.dumps({"ready": first}), flush=True)
    for line in sys.stdin:
        print(json.dumps(median_us(calls[int(line)], args.seconds)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument("--ingot", default=root / "build" / "ingot", help="the ingot command")
    parser.add_argument("--data", type=pathlib.Path, default=root / "examples" / "data")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measurement a row, contender and round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.root = root
    if args.worker:
        return torch_worker(args)

    common = ["--data", str(args.data), "--threads", str(args.threads), "--seconds", str(args.seconds)]
    workers, first = {}, {}
    for mode in MODES:
        workers[mode] = subprocess.Popen([sys.executable, __file__, "--worker", mode, *common], text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)
        print(f"preparing PyTorch {mode} ...", file=sys.stderr)
        first[mode] = json.loads(workers[mode].stdout.readline())["ready"]
    samples = {(who, row): [] for who in [*MODES, "ingot_eager", "ingot_compiled"] for row in range(len(ROWS))}
    ingot = {}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds} ...", file=sys.stderr)
        for row, (name, batch) in enumerate(ROWS):
            for mode in MODES:
                samples[mode, row].append(ask(workers[mode], str(row)))
                time.sleep(0.05)
            command = [str(args.ingot), "bench", name, "--mode", "train", "--batch", str(batch), *common, "--json"]
            ingot[row] = json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
            samples["ingot_eager", row].append(ingot[row]["eager_us"])
            samples["ingot_compiled", row].append(ingot[row]["compiled_us"])
            time.sleep(0.05)
    for process in workers.values():
        process.stdin.close()
        process.wait()

    table = []
    for row, (name, batch) in enumerate(ROWS):
        us = {who: statistics.median(samples[who, row]) for who in [*MODES, "ingot_eager", "ingot_compiled"]}
        table.append({"model": name, "batch": batch, "us": us, "first_step_s": {mode: first[mode][row] for mode in MODES},
                      "ingot_compile_ms": ingot[row]["compile_ms"], "roof_share": ingot[row]["roof_share"],
                      "peak_bytes_compiled": ingot[row]["peak_bytes_compiled"],
                      "ratio_to_compile": us["compile"] / us["ingot_compiled"], "ratio_to_eager": us["eager"] / us["ingot_eager"]})
    if args.json:
        print(json.dumps({"threads": args.threads, "rounds": args.rounds, "rows": table}))
        return 0
    print(f"{'model':<11}{'batch':>6}{'torch eager':>13}{'compile':>10}{'ingot eager':>13}{'compiled':>10}{'of the roof':>13}"
          f"{'compiled':>10}{'eager':>8}   (ms a step, medians, {args.threads} threads)")
    for r in table:
        ms = {who: us / 1e3 for who, us in r["us"].items()}
        print(f"{r['model']:<11}{r['batch']:>6}{ms['eager']:>13.2f}{ms['compile']:>10.2f}{ms['ingot_eager']:>13.2f}"
              f"{ms['ingot_compiled']:>10.2f}{100 * r['roof_share']:>12.0f}%{r['ratio_to_compile']:>9.2f}x{r['ratio_to_eager']:>7.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
