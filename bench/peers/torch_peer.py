#!/usr/bin/env python3
"""Times the demo's three models in PyTorch and in Ingot, in turns, on the same weights and inputs.

Each contender runs in a process of its own (two spinning thread pools on one machine spoil each other); rounds are interleaved
with pauses, and the median over all rounds is shown. Outputs are compared before anything is timed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = [("digits_mlp", 1), ("digits_mlp", 64), ("digits_cnn", 1), ("digits_cnn", 64), ("bytegpt", 1), ("bytegpt", 8)]
MODES = ["eager", "compile", "compile_best"]


def models(data):
    import torch
    from safetensors.torch import load_file
    from torch import nn
    from torch.nn import functional as F

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32)
            self.conv2, self.bn2 = nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64)
            self.conv3, self.bn3 = nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64)
            self.fc = nn.Linear(64, 10)

        def forward(self, x):
            x = F.relu(self.bn1(self.conv1(x)))
            x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
            x = x + F.relu(self.bn3(self.conv3(x)))
            return self.fc(x.mean((2, 3)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.attn_qkv, self.attn_out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.mlp_up, self.mlp_down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x):
            n, t, _ = x.shape
            q, k, v = (y.view(n, t, 4, 32).transpose(1, 2) for y in self.attn_qkv(self.ln_1(x)).split(128, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn_out(y.transpose(1, 2).reshape(n, t, 128))
            return x + self.mlp_down(F.gelu(self.mlp_up(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(256, 128), nn.Embedding(128, 128)
            self.h = nn.ModuleList(Block() for _ in range(4))
            self.ln_f = nn.LayerNorm(128)

        def forward(self, ids):
            x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
            for block in self.h:
                x = block(x)
            return self.ln_f(x) @ self.wte.weight.t()

    made = {
        "digits_mlp": nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)),
        "digits_cnn": Cnn(),
        "bytegpt": Gpt(),
    }
    for name, model in made.items():
        missing = model.load_state_dict(load_file(data / f"{name}.safetensors"), strict=False)
        assert not [key for key in missing.missing_keys if "num_batches" not in key], missing
        model.eval()
    return made


def inputs(data, name, batch):
    import torch
    from safetensors.torch import load_file

    if name == "bytegpt":
        text = (data / "text.txt").read_bytes()
        return torch.tensor(list(text[: 128 * batch]), dtype=torch.int64).view(batch, 128)
    images = load_file(data / "digits.safetensors")["images"][:batch].float() / 16
    return images.view(batch, 64) if name == "digits_mlp" else images.view(batch, 1, 8, 8)


def median_us(call, seconds):
    for _ in range(5):
        call()
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 20:
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1e6)
    return statistics.median(samples)


def torch_worker(args):
    """Answers one line (a row number) with the median of that row, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    if args.worker == "compile_best":
        import torch._inductor.config as inductor

        inductor.freezing = True
        inductor.max_autotune = True
    made = models(args.data)
    calls = []
    with torch.inference_mode():
        for name, batch in ROWS:
            x, model = inputs(args.data, name, batch), made[name]
            expected = model(x)
            if args.worker != "eager":
                torch._dynamo.reset()
                model = torch.compile(model)
            start = time.perf_counter()
            got = model(x)
            first = time.perf_counter() - start
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
            if args.outputs:
                from safetensors.torch import save_file

                save_file({"output": got.contiguous().clone()}, os.path.join(args.outputs, f"{name}_{batch}.safetensors"))
            calls.append((lambda model=model, x=x: model(x), first))
        print(json.dumps({"ready": [first for _, first in calls]}), flush=True)
        for line in sys.stdin:
            print(json.dumps(median_us(calls[int(line)][0], args.seconds)), flush=True)


def ask(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument("--ingot", default=root / "build" / "ingot", help="the ingot command")
    parser.add_argument("--data", type=pathlib.Path, default=root / "examples" / "data")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of measurement a row, contender and round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--outputs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return torch_worker(args)

    with tempfile.TemporaryDirectory() as outputs:
        common = ["--data", str(args.data), "--threads", str(args.threads), "--seconds", str(args.seconds)]
        workers, first = {}, {}
        for mode in MODES:
            extra = ["--outputs", outputs] if mode == "eager" else []
            workers[mode] = subprocess.Popen([sys.executable, __file__, "--worker", mode, *common, *extra], text=True,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            print(f"preparing PyTorch {mode} ...", file=sys.stderr)
            first[mode] = json.loads(workers[mode].stdout.readline())["ready"]
        samples = {(mode, row): [] for mode in [*MODES, "ingot_eager", "ingot_compiled"] for row in range(len(ROWS))}
        agree = {}
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds} ...", file=sys.stderr)
            for row, (name, batch) in enumerate(ROWS):
                for mode in MODES:
                    samples[mode, row].append(ask(workers[mode], str(row)))
                    time.sleep(0.05)
                command = [str(args.ingot), "bench", name, "--batch", str(batch), "--threads", str(args.threads), "--seconds",
                           str(args.seconds), "--data", str(args.data), "--compare", os.path.join(outputs, f"{name}_{batch}.safetensors"),
                           "--json"]
                result = json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
                samples["ingot_eager", row].append(result["eager_us"])
                samples["ingot_compiled", row].append(result["compiled_us"])
                agree[row] = result["max_abs_error_to_peer"]
                time.sleep(0.05)
        for process in workers.values():
            process.stdin.close()
            process.wait()

    table = []
    for row, (name, batch) in enumerate(ROWS):
        us = {mode: statistics.median(samples[mode, row]) for mode in [*MODES, "ingot_eager", "ingot_compiled"]}
        table.append({"model": name, "batch": batch, "us": us, "first_call_s": {mode: first[mode][row] for mode in MODES},
                      "max_abs_error": agree[row], "ratio_to_best_compile": min(us["compile"], us["compile_best"]) / us["ingot_compiled"],
                      "ratio_to_eager": us["eager"] / us["ingot_eager"]})
    if args.json:
        print(json.dumps({"threads": args.threads, "rounds": args.rounds, "rows": table}))
        return 0
    print(f"{'model':<11}{'batch':>6}{'torch eager':>13}{'compile':>10}{'best':>10}{'ingot eager':>13}{'compiled':>10}"
          f"{'compiled vs best':>18}{'eager vs eager':>16}   (us a call, medians, {args.threads} threads)")
    for r in table:
        us = r["us"]
        print(f"{r['model']:<11}{r['batch']:>6}{us['eager']:>13.1f}{us['compile']:>10.1f}{us['compile_best']:>10.1f}{us['ingot_eager']:>13.1f}"
              f"{us['ingot_compiled']:>10.1f}{r['ratio_to_best_compile']:>17.2f}x{r['ratio_to_eager']:>15.2f}x   error {r['max_abs_error']:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
