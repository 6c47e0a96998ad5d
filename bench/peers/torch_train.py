#!/usr/bin/env python3
"""Times a whole training step of the demo's models in PyTorch and in Ingot, in turns, on the same shapes and data.

A step is forward, cross-entropy, backward, clipping (the GPT) and the optimizer: AdamW for the GPT, SGD with Nesterov momentum for the
CNN. PyTorch takes part in four forms, and with the CNN each of them with images in both layouts:

  eager    the optimizer's fused form
  model    forward and loss compiled, and so their backward; the optimizer's fused form
  update   and clipping and the optimizer's step (foreach) compiled apart
  step     all of it one compiled function, by compiled autograd

Each form runs in a process of its own; rounds are interleaved with pauses, and the median over all rounds is shown. Before anything is
timed, each form must follow the losses of tests/data/training.json to 1e-4, which Ingot's tests do too, and Ingot's eager and compiled
steps must have the same bits. The ratio is to the fastest form.
"""
import functools
import json
import sys
import time

from common import INGOT, ROOT, Workers, bench_ingot, finish, medians, option_parser, rounds, serve
from torch_peer import models

ROWS = [("bytegpt", 8), ("bytegpt", 32), ("digits_cnn", 64)]
FORMS = ["eager", "model", "update", "step"]
LAYOUTS = {"bytegpt": [""], "digits_cnn": ["", " nhwc"]}  # torch.channels_last
FOLLOWED = 5  # steps


class Step:
    """A training step on the weights that ship."""

    def __init__(self, data, name, layout, form, lr=None):
        import torch
        from torch.nn import functional as F

        compile = functools.partial(torch.compile, dynamic=False)  # each row has kernels of its own sizes
        model = models(data)[name].train()
        self.format = torch.channels_last if layout else torch.contiguous_format
        if layout:
            model = model.to(memory_format=self.format)
        parameters = list(model.parameters())
        fused = {"fused": True} if form in ("eager", "model") else {"foreach": True}  # fused is one op: nothing to compile
        if name == "bytegpt":
            optimizer = torch.optim.AdamW(parameters, lr=lr or 1.5e-3, betas=(0.9, 0.95), weight_decay=0.1, **fused)
        else:
            optimizer = torch.optim.SGD(parameters, lr=lr or 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3, **fused)

        def loss_of(x, y):
            return F.cross_entropy(model(x).flatten(0, -2), y.flatten())

        def update():
            if name == "bytegpt":
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()

        if form in ("model", "update"):
            loss_of = compile(loss_of)
        if form == "update":
            update = compile(update)

        def step(x, y):
            loss = loss_of(x, y)
            loss.backward()
            update()
            optimizer.zero_grad(set_to_none=True)
            return loss.detach()

        self.step = compile(step) if form == "step" else step

    def prepare(self, batch):
        """In the layout of the images."""
        x, y = batch
        return (x.contiguous(memory_format=self.format) if x.dim() == 4 else x), y

    def __call__(self, x, y):
        return self.step(x, y)


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


def follow(data, name, layout, form):
    expected = json.loads((ROOT / "tests" / "data" / "training.json").read_text())[name]["losses"]
    step = Step(data, name, layout, form, lr=1e-4 if name == "bytegpt" else 0.05)
    for number in range(FOLLOWED):
        loss = step(*step.prepare(batch_of(data, name, starts_followed(name, number)))).item()
        assert abs(loss - expected[number]) < 1e-4 * expected[number], (name, layout, form, number, loss, expected[number])


def rows_of(args):
    return [row for row in ROWS if row[0] in args.names]


def torch_worker(args):
    """Answers one line (a row number and a layout) with the median of that row, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    torch._dynamo.config.compiled_autograd = args.worker == "step"
    torch._dynamo.config.recompile_limit = 64  # rows and layouts share the code of a step
    calls, first = {}, {}
    for name in args.names:
        for layout in LAYOUTS[name]:
            follow(args.data, name, layout, args.worker)
    for row, (name, batch) in enumerate(rows_of(args)):
        for layout in LAYOUTS[name]:
            step = Step(args.data, name, layout, args.worker)
            starts = torch.randint(0, 1024, (batch,), generator=torch.Generator().manual_seed(1)).tolist()
            x, y = step.prepare(batch_of(args.data, name, starts))
            start = time.perf_counter()
            step(x, y)
            first[f"{row}{layout}"] = time.perf_counter() - start
            calls[f"{row}{layout}"] = lambda step=step, x=x, y=y: step(x, y)
    serve(first, lambda line: calls[line.rstrip("\n")], args.seconds)


def show(table, threads):
    print(f"milliseconds a step, medians, {threads} threads")
    for r in table:
        print(f"{r['model']}, batch {r['batch']}: {r['ratio_to_best']:.2f}x the fastest form of PyTorch, {r['ratio_to_eager']:.2f}x eager to eager, "
              f"{100 * r['roof_share']:.0f}% of the roof")
        print("  " + ", ".join(f"{who} {us / 1e3:.2f}" for who, us in r["us"].items()))


def main():
    parser = option_parser(__doc__, FORMS, seconds=2.0)
    parser.add_argument("names", nargs="*", default=list(LAYOUTS), help="of models; all of them if none is given: " + ", ".join(LAYOUTS))
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in LAYOUTS]:
        parser.error(f"no such model: {', '.join(unknown)}; there are: {', '.join(LAYOUTS)}")
    if args.worker:
        return torch_worker(args)

    rows = rows_of(args)
    workers = Workers(__file__, args, FORMS, {form: args.names for form in FORMS})
    forms = {name: [(form, layout) for form in FORMS for layout in layouts] for name, layouts in LAYOUTS.items()}
    samples = [{who: [] for who in [*map("".join, forms[name]), *INGOT, "roof_share"]} for name, _ in rows]
    ingot = {}
    for _ in rounds(args):
        for row, (name, batch) in enumerate(rows):
            for form, layout in forms[name]:
                samples[row][form + layout].append(workers.ask(form, f"{row}{layout}"))
            ingot[row] = bench_ingot(args, name, "--mode", "train", "--batch", batch)
            for who, key in zip([*INGOT, "roof_share"], ["eager_us", "compiled_us", "roof_share"]):
                samples[row][who].append(ingot[row][key])
    workers.close()

    table = []
    for row, (name, batch) in enumerate(rows):
        us = medians(samples[row])
        share = us.pop("roof_share")
        peers = {who: us[who] for who in map("".join, forms[name])}
        eager = min(us["eager" + layout] for layout in LAYOUTS[name])
        table.append({"model": name, "batch": batch, "us": us, "best": min(peers, key=peers.get),
                      "first_step_s": {form + layout: workers.ready[form][f"{row}{layout}"] for form, layout in forms[name]},
                      "ingot_compile_ms": ingot[row]["compile_ms"], "roof_share": share,
                      "peak_bytes_compiled": ingot[row]["peak_bytes_compiled"], "step_bytes_compiled": ingot[row]["step_bytes_compiled"],
                      "ratio_to_best": min(peers.values()) / us["ingot_compiled"], "ratio_to_eager": eager / us["ingot_eager"]})
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
