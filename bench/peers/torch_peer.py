#!/usr/bin/env python3
"""Times the demo's three models in PyTorch and in Ingot, in turns, on the same weights and inputs.

Each contender runs in a process of its own (two spinning thread pools on one machine spoil each other); rounds are interleaved
with pauses, and the median over all rounds is shown. Outputs are compared before anything is timed.
"""
import argparse
import os
import sys
import tempfile
import time

from common import INGOT, Workers, bench_ingot, finish, medians, option_parser, rounds, serve

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
        serve([first for _, first in calls], lambda line: calls[int(line)][0], args.seconds)


def show(table, threads):
    print(f"{'model':<11}{'batch':>6}{'torch eager':>13}{'compile':>10}{'best':>10}{'ingot eager':>13}{'compiled':>10}"
          f"{'compiled vs best':>18}{'eager vs eager':>16}   (us a call, medians, {threads} threads)")
    for r in table:
        us = r["us"]
        print(f"{r['model']:<11}{r['batch']:>6}{us['eager']:>13.1f}{us['compile']:>10.1f}{us['compile_best']:>10.1f}{us['ingot_eager']:>13.1f}"
              f"{us['ingot_compiled']:>10.1f}{r['ratio_to_best_compile']:>17.2f}x{r['ratio_to_eager']:>15.2f}x   error {r['max_abs_error']:.1e}")


def main():
    parser = option_parser(__doc__, MODES, seconds=1.0)
    parser.add_argument("--outputs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return torch_worker(args)

    samples = [{who: [] for who in [*MODES, *INGOT]} for _ in ROWS]
    agree = {}
    with tempfile.TemporaryDirectory() as outputs:
        workers = Workers(__file__, args, MODES, {"eager": ["--outputs", outputs]})
        for _ in rounds(args):
            for row, (name, batch) in enumerate(ROWS):
                for mode in MODES:
                    samples[row][mode].append(workers.ask(mode, str(row)))
                result = bench_ingot(args, name, "--batch", batch, "--compare", os.path.join(outputs, f"{name}_{batch}.safetensors"))
                samples[row]["ingot_eager"].append(result["eager_us"])
                samples[row]["ingot_compiled"].append(result["compiled_us"])
                agree[row] = result["max_abs_error_to_peer"]
        workers.close()

    table = []
    for row, (name, batch) in enumerate(ROWS):
        us = medians(samples[row])
        table.append({"model": name, "batch": batch, "us": us, "first_call_s": {mode: workers.ready[mode][row] for mode in MODES},
                      "max_abs_error": agree[row], "ratio_to_best_compile": min(us["compile"], us["compile_best"]) / us["ingot_compiled"],
                      "ratio_to_eager": us["eager"] / us["ingot_eager"]})
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
