#!/usr/bin/env python3
"""Times a whole training step in PyTorch and in Ingot, in turns, on the same shapes and data.

A row is NAME or NAME:BATCH. A step of the demo's models is forward, cross-entropy, backward, clipping (the GPT) and the optimizer: AdamW
for the GPT, SGD with Nesterov momentum for the CNN; of those of models.py, with random weights, it is forward, the mean square of the
output, backward and AdamW, as `ingot bench NAME --mode train` does it. PyTorch takes part in four forms, and with images each of them in
both layouts:

  eager    the optimizer's fused form
  model    forward and loss compiled, and so their backward; the optimizer's fused form
  update   and clipping and the optimizer's step (foreach) compiled apart
  step     all of it one compiled function, by compiled autograd

Each form runs in a process of its own; rounds are interleaved with pauses, and the median over all rounds is shown. Before anything is
timed, each form must follow the losses of tests/data/training.json to 1e-4, which Ingot's tests do too (those of models.py what PyTorch's
eager form gives without dropout, to 1e-3; with --autocast both to 5e-2), and Ingot's eager and compiled steps must have the same bits. The ratio is to the fastest form;
two more are eager to eager, and PyTorch's "model" to Ingot's step "in parts", the loss compiled alone.
"""
import argparse
import functools
import json
import re
import sys
import time

from common import ROOT, Workers, bench_ingot, finish, medians, option_parser, rounds, serve
from torch_peer import models

ROWS = "bytegpt:8,bytegpt:32,digits_cnn:64"
FORMS = ["eager", "model", "update", "step"]
SHIPPED = ["bytegpt", "digits_cnn"]  # with weights, data, and losses to follow
WITHOUT_IMAGES = ["bytegpt", "bert", "gpt2", "llama", "lstm_lm", "dlrm", "mlp_tiny"]
FOLLOWED = 5  # steps
TRAINED = {"ingot_eager": "eager_us", "ingot_compiled": "compiled_us", "ingot_parts": "parts_us", "roof_share": "roof_share"}
PAIRS = [("ratio_to_eager", "eager to eager"), ("ratio_to_model", "model to model")]


def rows_of(text):
    """As (name, batch)."""
    found = [re.fullmatch(r"(\w+)(?::(\d+))?", row) for row in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"got '{text}', expected NAME[:BATCH],...")
    return [(row[1], int(row[2] or 1)) for row in found]


def layouts_of(name):
    return [""] if name in WITHOUT_IMAGES else ["", " nhwc"]  # torch.channels_last


class Step:
    """A training step: on the weights that ship, or on random ones, without dropout if it is to be compared."""

    def __init__(self, data, row, layout, form, lr=None, dropout=True, autocast=False):
        import torch
        from torch.nn import functional as F

        name, batch = row
        compile = functools.partial(torch.compile, dynamic=False)  # each row has kernels of its own sizes
        self.inputs = None
        if name in SHIPPED:
            model = models(data)[name].train()
        else:
            from models import model_and_inputs

            model, self.inputs = model_and_inputs(name, batch, None)
            model.train()
            if not dropout:
                without_dropout(model)
        self.format = torch.channels_last if layout else torch.contiguous_format
        if layout:
            model = model.to(memory_format=self.format)
        parameters = list(model.parameters())
        fused = {"fused": True} if form in ("eager", "model") else {"foreach": True}  # fused is one op: nothing to compile
        if name == "bytegpt":
            optimizer = torch.optim.AdamW(parameters, lr=lr or 1.5e-3, betas=(0.9, 0.95), weight_decay=0.1, **fused)
        elif name == "digits_cnn":
            optimizer = torch.optim.SGD(parameters, lr=lr or 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3, **fused)
        else:
            optimizer = torch.optim.AdamW(parameters, lr=lr or 1e-4, weight_decay=0.01, **fused)

        if name in SHIPPED:
            def loss_of(x, y):
                return F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        else:
            def loss_of(*inputs):
                return model(*inputs).square().mean()

        def update():
            if name == "bytegpt":
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()

        if form in ("model", "update"):
            loss_of = compile(loss_of)
        self.autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast)
        if form == "update":
            update = compile(update)

        def step(*inputs):
            with self.autocast:
                loss = loss_of(*inputs)
            loss.backward()
            update()
            optimizer.zero_grad(set_to_none=True)
            return loss.detach()

        self.step = compile(step) if form == "step" else step

    def prepare(self, batch):
        """In the layout of the images."""
        return [x.contiguous(memory_format=self.format) if x.dim() == 4 else x for x in batch]

    def __call__(self, *inputs):
        return self.step(*inputs)


def without_dropout(model):
    """Of layers and of whole branches of residuals; what takes a probability as an argument reads it from its module or configuration."""
    for module in model.modules():
        for name in ("p", "dropout", "attention_dropout", "dropout_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


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


def follow(data, row, layout, form, autocast):
    name = row[0]
    if name in SHIPPED:
        expected = json.loads((ROOT / "tests" / "data" / "training.json").read_text())[name]["losses"]
        step = Step(data, row, layout, form, lr=1e-4 if name == "bytegpt" else 0.05, autocast=autocast)
        batches = [step.prepare(batch_of(data, name, starts_followed(name, number))) for number in range(FOLLOWED)]
        most = 5e-2 if autocast else 1e-4
    else:
        usual, step = (Step(data, row, layout_, form_, lr=1e-5, dropout=False, autocast=cast) for layout_, form_, cast in
                       [("", "eager", False), (layout, form, autocast)])
        expected = [usual(*usual.inputs).item() for _ in range(FOLLOWED)]
        batches = [step.prepare(step.inputs)] * FOLLOWED
        most = 5e-2 if autocast else 1e-3
    for number, batch in enumerate(batches):
        loss = step(*batch).item()
        assert abs(loss - expected[number]) < most * expected[number], (row, layout, form, number, loss, expected[number])


def torch_worker(args):
    """Answers one line (a row number and a layout) with the median of that row, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    torch._dynamo.config.compiled_autograd = args.worker == "step"
    torch._dynamo.config.recompile_limit = 64  # rows and layouts share the code of a step
    calls, first = {}, {}
    for number, row in enumerate(args.rows):
        for layout in layouts_of(row[0]):
            follow(args.data, row, layout, args.worker, args.autocast)
            step = Step(args.data, row, layout, args.worker, autocast=args.autocast)
            if row[0] in SHIPPED:
                starts = torch.randint(0, 1024, (row[1],), generator=torch.Generator().manual_seed(1)).tolist()
                batch = batch_of(args.data, row[0], starts)
            else:
                batch = step.inputs
            batch = step.prepare(batch)
            start = time.perf_counter()
            step(*batch)
            first[f"{number}{layout}"] = time.perf_counter() - start
            calls[f"{number}{layout}"] = lambda step=step, batch=batch: step(*batch)
    serve(first, lambda line: calls[line.rstrip("\n")], args.seconds)


def show(table, threads):
    print(f"milliseconds a step, medians, {threads} threads")
    for r in table:
        pairs = "".join(f"{r[key]:.2f}x {what}, " for key, what in PAIRS if r[key])
        print(f"{r['model']}, batch {r['batch']}: {r['ratio_to_best']:.2f}x the fastest form of PyTorch, {pairs}"
              f"{100 * r['roof_share']:.0f}% of the roof")
        print("  " + ", ".join(f"{who} {us / 1e3:.2f}" for who, us in r["us"].items()))


def main():
    parser = option_parser(__doc__, FORMS, seconds=2.0)
    parser.add_argument("--models", dest="rows", type=rows_of, default=ROWS, help="NAME[:BATCH],... (default: %(default)s)")
    parser.add_argument("--forms", type=lambda text: text.split(","), default=FORMS, help="of PyTorch: " + ", ".join(FORMS))
    parser.add_argument("--autocast", action="store_true", help="forward and loss in bf16, on both sides")
    args = parser.parse_args()
    if args.worker:
        return torch_worker(args)

    autocast = ["--autocast"] if args.autocast else []
    names = ",".join(f"{name}:{batch}" for name, batch in args.rows)
    workers = Workers(__file__, args, args.forms, {form: ["--models", names, *autocast] for form in args.forms})
    forms = [[(form, layout) for form in args.forms for layout in layouts_of(name)] for name, _ in args.rows]
    samples = [{who: [] for who in [*map("".join, of), *TRAINED]} for of in forms]
    ingot = {}
    for _ in rounds(args):
        for row, (name, batch) in enumerate(args.rows):
            for form, layout in forms[row]:
                samples[row][form + layout].append(workers.ask(form, f"{row}{layout}"))
            ingot[row] = bench_ingot(args, name, "--mode", "train", "--batch", batch, *autocast)
            for who, key in TRAINED.items():
                samples[row][who].append(ingot[row][key])
    workers.close()

    table = []
    for row, (name, batch) in enumerate(args.rows):
        us = medians(samples[row])
        share = us.pop("roof_share")
        peers = {who: us[who] for who in map("".join, forms[row])}
        of = {form: [us[form + layout] for layout in layouts_of(name)] for form in args.forms}
        table.append({"model": name, "batch": batch, "us": us, "best": min(peers, key=peers.get),
                      "first_step_s": {form + layout: workers.ready[form][f"{row}{layout}"] for form, layout in forms[row]},
                      "ingot_compile_ms": ingot[row]["compile_ms"], "roof_share": share,
                      "peak_bytes_compiled": ingot[row]["peak_bytes_compiled"], "step_bytes_compiled": ingot[row]["step_bytes_compiled"],
                      "ratio_to_best": min(peers.values()) / us["ingot_compiled"],
                      "ratio_to_eager": min(of["eager"]) / us["ingot_eager"] if "eager" in of else None,
                      "ratio_to_model": min(of["model"]) / us["ingot_parts"] if "model" in of else None})
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
