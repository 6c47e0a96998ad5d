#!/usr/bin/env python3
"""Writes tests/data/recurrent.safetensors: recurrent layers of PyTorch in double, their outputs, last states and gradients.

    python3 tools/recurrent_cases.py tests/data/recurrent.safetensors      (needs the torch package)

A case is named KIND/NUMBER; its tensors are CASE/weight/NAME, CASE/input, CASE/h_0, CASE/c_0 (where states are given),
CASE/output, CASE/h_n, CASE/c_n and CASE/grad/NAME of output.square().sum() + h_n.sum() + 2 c_n.sum(). The header's entry
CASE holds the layer's settings as words."""
import json
import struct
import sys

import torch

# kind, settings, steps, batch (0: none), initial states
CASES = [
    ("RNN", {}, 5, 2, False),
    ("RNN", {"nonlinearity": "relu", "bias": False, "num_layers": 2}, 4, 3, True),
    ("RNN", {"bidirectional": True, "batch_first": True}, 3, 2, True),
    ("GRU", {}, 5, 2, True),
    ("GRU", {"num_layers": 2, "bidirectional": True}, 4, 2, True),
    ("GRU", {"bias": False}, 6, 0, True),
    ("LSTM", {}, 1, 1, False),
    ("LSTM", {"num_layers": 2, "batch_first": True}, 5, 3, True),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "bias": False}, 4, 2, True),
    ("LSTM", {"bidirectional": True}, 150, 1, True),
    ("LSTM", {"bidirectional": True, "num_layers": 2}, 4, 0, True),
]
INPUT, HIDDEN = 3, 4


def main(path):
    torch.manual_seed(5)
    tensors, header = {}, {}
    for number, (kind, settings, steps, batch, given) in enumerate(CASES):
        name = f"{kind}/{number}"
        header[name] = " ".join(f"{k}={str(v).lower()}" for k, v in settings.items())
        layer = getattr(torch.nn, kind)(INPUT, HIDDEN, **settings).double()
        shape = (batch, steps) if settings.get("batch_first") else (steps, batch)
        x = torch.randn(*(shape if batch else (steps,)), INPUT, dtype=torch.float64, requires_grad=True)
        rows = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
        states = {s: torch.randn(rows, *([batch] if batch else []), HIDDEN, dtype=torch.float64, requires_grad=True)
                  for s in (["h_0", "c_0"] if kind == "LSTM" else ["h_0"])}
        hx = tuple(states.values()) if kind == "LSTM" else states["h_0"]
        output, last = layer(x, hx) if given else layer(x)
        last = dict(zip(["h_n", "c_n"], last)) if kind == "LSTM" else {"h_n": last}
        loss = output.square().sum() + last["h_n"].sum()
        if "c_n" in last:
            loss = loss + 2 * last["c_n"].sum()
        loss.backward()
        tensors |= {f"{name}/input": x, f"{name}/output": output, f"{name}/grad/input": x.grad}
        tensors |= {f"{name}/{k}": v for k, v in last.items()}
        if given:
            tensors |= {f"{name}/{k}": v for k, v in states.items()}
            tensors |= {f"{name}/grad/{k}": v.grad for k, v in states.items()}
        for parameter, p in layer.named_parameters():
            tensors[f"{name}/weight/{parameter}"] = p
            tensors[f"{name}/grad/{parameter}"] = p.grad

    data = b""
    entries = {"__metadata__": header}
    for key, t in tensors.items():
        values = t.detach().contiguous().flatten().tolist()
        raw = struct.pack(f"<{len(values)}d", *values)
        entries[key] = {"dtype": "F64", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main(sys.argv[1])
