#!/usr/bin/env python3
"""Writes tests/data/optimizers.safetensors: PyTorch's optimizers and schedulers of learning rates, in double.

    python3 tools/optimizer_cases.py tests/data/optimizers.safetensors      (needs the torch package)

The parameters, SHAPES, stand in vectors one after the other; the last one is a group of its own with half the rate.
`start` is where all begin, row i of `grad` their gradients at step i. after/NAME has a row for each of STEPS; the
header's entry `configurations` holds the options by these names, which begin with the optimizer's. lbfgs/NAME has the
parameters after each step on Rosenbrock's function, in the row after the loss that it began with, and the evaluations
so far; `lbfgs` of the header the options. rates/NAME has the rates of both groups and the momentum at each epoch."""
import json
import math
import struct
import sys

import torch
from torch.optim import swa_utils
from torch.optim.lr_scheduler import *

SHAPES = [(7,), (3, 5), (2, 3, 2)]
STEPS = [1, 2, 10, 50]
CONFIGURATIONS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9},
    "SGD nesterov decay": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "SGD dampening": {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
    "Adam": {"lr": 0.01},
    "Adam decay": {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-6},
    "Adam amsgrad": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "AdamW maximize": {"lr": 0.01, "weight_decay": 0.2, "maximize": True},
    "RMSprop": {"lr": 0.01},
    "RMSprop centered momentum": {"lr": 0.01, "centered": True, "momentum": 0.9, "weight_decay": 0.01},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.1},
    "NAdam": {"lr": 0.01},
    "NAdam decay": {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-6},
    "NAdam decoupled": {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1},
    "NAdam maximize": {"lr": 0.01, "maximize": True},
    "RAdam": {"lr": 0.01},
    "RAdam decay": {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-6},
    "RAdam decoupled": {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam short memory": {"lr": 0.01, "betas": [0.5, 0.6], "maximize": True},
    "Adamax": {"lr": 0.01},
    "Adamax decay": {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.95], "eps": 1e-3, "maximize": True},
    "Adadelta": {},
    "Adadelta decay": {"lr": 0.5, "rho": 0.7, "eps": 1e-4, "weight_decay": 0.1, "maximize": True},
    "ASGD": {"lr": 0.1},
    "ASGD average": {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 4, "weight_decay": 0.1, "maximize": True},
    "Rprop": {},
    "Rprop narrow": {"lr": 0.1, "etas": [0.4, 1.5], "step_sizes": [0.05, 0.3], "maximize": True},
}
LBFGS_STEPS = 4
LBFGS = {
    "plain": {"lr": 0.001, "max_iter": 5},
    "short memory": {"lr": 0.001, "history_size": 2},
    "strong_wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 4},
    "strong_wolfe, tolerances": {"lr": 0.5, "line_search_fn": "strong_wolfe", "max_eval": 12, "history_size": 3,
                                 "tolerance_grad": 1e-2, "tolerance_change": 1e-3},
}
EPOCHS = 60
RATES = {
    "StepLR": lambda o: StepLR(o, 3, 0.7),
    "MultiStepLR": lambda o: MultiStepLR(o, [2, 5, 5, 40], 0.5),
    "ExponentialLR": lambda o: ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: CosineAnnealingLR(o, 10, 0.01),
    "LinearLR": lambda o: LinearLR(o, 0.1, 1, 5),
    "ConstantLR": lambda o: ConstantLR(o, 0.25, 7),
    "ConstantLR default": lambda o: ConstantLR(o),
    "PolynomialLR": lambda o: PolynomialLR(o, 50, 2.5),
    "PolynomialLR default": lambda o: PolynomialLR(o),
    "LambdaLR": lambda o: LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda o: MultiplicativeLR(o, lambda e: 1 - 1 / (e + 3)),
    "CosineAnnealingWarmRestarts": lambda o: CosineAnnealingWarmRestarts(o, 7, eta_min=0.01),
    "CosineAnnealingWarmRestarts longer": lambda o: CosineAnnealingWarmRestarts(o, 4, 2),
    "CyclicLR triangular": lambda o: CyclicLR(o, [0.01, 0.02], 0.3, 5, 9),
    "CyclicLR triangular2": lambda o: CyclicLR(o, 0.01, [0.3, 0.2], 6, mode="triangular2", base_momentum=0.6),
    "CyclicLR exp_range": lambda o: CyclicLR(o, 0.01, 0.3, 6, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "CyclicLR scale_fn": lambda o: CyclicLR(o, 0.01, 0.3, 6, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
    "OneCycleLR": lambda o: OneCycleLR(o, [1.0, 0.5], total_steps=EPOCHS),
    "OneCycleLR three phases": lambda o: OneCycleLR(o, 1.0, total_steps=EPOCHS, three_phase=True, anneal_strategy="linear"),
    "ReduceLROnPlateau": lambda o: ReduceLROnPlateau(o, factor=0.5, patience=2, min_lr=[0.01, 0.001]),
    "SequentialLR": lambda o: SequentialLR(o, [LinearLR(o, 0.1, 1, 5), CosineAnnealingLR(o, 20), StepLR(o, 7, 0.5)],
                                           [5, 25]),
    "SequentialLR multiplicative": lambda o: SequentialLR(
        o, [ConstantLR(o, 0.5, 20), MultiplicativeLR(o, lambda e: 0.95)], [10]),
    "SequentialLR cyclic": lambda o: SequentialLR(
        o, [LinearLR(o, 0.1, 1, 5), CyclicLR(o, 0.01, 0.3, 6), CosineAnnealingWarmRestarts(o, 5)], [5, 30]),
    "ChainedScheduler": lambda o: ChainedScheduler([ConstantLR(o, 0.1, 4), ExponentialLR(o, 0.95), StepLR(o, 20, 0.5)]),
    "SWALR": lambda o: swa_utils.SWALR(o, [0.05, 0.2]),
    "SWALR linear": lambda o: swa_utils.SWALR(o, 0.05, 7, "linear"),
    "SWALR at once": lambda o: swa_utils.SWALR(o, 0.05, 0),
    "SequentialLR averaging": lambda o: SequentialLR(o, [ExponentialLR(o, 0.9), swa_utils.SWALR(o, 0.05, 5)], [20]),
}


def metric(epoch):
    return 1 - 0.1 * epoch if epoch < 4 else 1.0


def split(vector):
    parts = vector.split([math.prod(s) for s in SHAPES])
    return [p.reshape(s).clone().requires_grad_() for p, s in zip(parts, SHAPES)]


def joined(parts):
    return torch.cat([p.detach().reshape(-1) for p in parts])


def groups(params, lr):
    return [{"params": params[:-1], "lr": lr}, {"params": params[-1:], "lr": lr / 2}]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def main(path, dtype=torch.float64):
    torch.manual_seed(3)
    torch.set_default_dtype(dtype)  # of the numbers that optimizers keep, too
    count = sum(math.prod(s) for s in SHAPES)
    start = torch.randn(count, dtype=torch.float64)
    grad = torch.randn(STEPS[-1], count, dtype=torch.float64) + 0.3 * start
    grad[:, 0] = 0
    tensors = {"start": start, "grad": grad}
    for name, options in CONFIGURATIONS.items():
        kind = getattr(torch.optim, name.split()[0])
        params = split(start.to(dtype))
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        lr = options.pop("lr", kind([torch.zeros(1)]).defaults["lr"])
        optimizer = kind(groups(params, lr), lr=lr, **options)
        rows = []
        for step in range(STEPS[-1]):
            for p, g in zip(params, split(grad[step])):
                p.grad = g.detach().to(dtype)
            optimizer.step()
            if step + 1 in STEPS:
                rows.append(joined(params))
        tensors["after/" + name] = torch.stack(rows)
    for name, options in LBFGS.items():
        params = [torch.tensor([-1.2, 1.0, 0.5], dtype=dtype, requires_grad=True),
                  torch.tensor([[1.5, -0.5]], dtype=dtype, requires_grad=True)]
        optimizer = torch.optim.LBFGS(params, **options)

        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(torch.cat([p.reshape(-1) for p in params]))
            loss.backward()
            return loss

        rows = []
        for _ in range(LBFGS_STEPS):
            loss = optimizer.step(closure).detach()
            evaluations = optimizer.state[params[0]]["func_evals"]
            rows.append(torch.cat([loss.reshape(1), joined(params), torch.tensor([evaluations])]))
        tensors["lbfgs/" + name] = torch.stack(rows)
    for name, scheduler in RATES.items():
        params = split(start)
        optimizer = torch.optim.SGD(groups(params, 0.5), momentum=0.9)
        scheduler = scheduler(optimizer)
        rows = []
        for epoch in range(EPOCHS):
            rows.append([group["lr"] for group in optimizer.param_groups] + [optimizer.param_groups[0]["momentum"]])
            optimizer.step()
            if epoch + 1 < EPOCHS:
                scheduler.step(*([metric(epoch)] if name.startswith("ReduceLR") else []))
        tensors["rates/" + name] = torch.tensor(rows, dtype=torch.float64)

    header = {"__metadata__": {"configurations": json.dumps(CONFIGURATIONS), "lbfgs": json.dumps(LBFGS)}}
    data = b""
    for name, t in sorted(tensors.items()):
        raw = t.detach().to(torch.float64).contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main(sys.argv[1], *[getattr(torch, t) for t in sys.argv[2:]])
