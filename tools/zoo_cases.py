#!/usr/bin/env python3
"""Writes small models with what torchvision makes of them in double, in the form that `ingot models check` reads.

    python3 tools/zoo_cases.py tests/data/zoo efficientnet_b0 convnext_tiny mlp     (needs torch and torchvision)

A file has weight/NAME (f32), input/0, eval_output, and of one step of training without dropout train_output, loss,
grad/NAME (rounded to f32) and buffer_after/NAME; the header's `about` says what it is and the loss."""
import json
import struct
import sys

import torch
from torch import nn
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, MBConvConfig

CODES = {torch.float32: ("F32", "f"), torch.float64: ("F64", "d"), torch.int64: ("I64", "q")}


def efficientnet():
    stages = [(1, 3, 1, 8, 1), (6, 3, 2, 8, 2), (4, 5, 2, 12, 1), (6, 3, 2, 16, 1), (6, 5, 1, 16, 2), (6, 5, 2, 24, 1), (6, 3, 1, 32, 1)]
    inputs = [8] + [s[3] for s in stages]
    settings = [MBConvConfig(e, k, s, i, o, n, width_mult=1.0, depth_mult=1.0)
                for (e, k, s, o, n), i in zip(stages, inputs)]
    model = EfficientNet(settings, dropout=0, stochastic_depth_prob=0, num_classes=10, last_channel=64)
    return model, torch.randn(4, 3, 64, 64), "torchvision EfficientNet with B0's strides, narrow, 10 classes"


def convnext():
    stages = [CNBlockConfig(8, 12, 1), CNBlockConfig(12, 16, 2), CNBlockConfig(16, 24, 1), CNBlockConfig(24, None, 1)]
    model = ConvNeXt(stages, stochastic_depth_prob=0, layer_scale=0.5, num_classes=10)
    return model, torch.randn(3, 3, 64, 64), "torchvision ConvNeXt, 8 to 24 channels, layer scale from 0.5, 10 classes"


def mlp():
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 10))
    return model, torch.randn(5, 12), "Linear(12, 16) ReLU Linear(16, 24) ReLU Linear(24, 10)"


MODELS = {"efficientnet_b0": efficientnet, "convnext_tiny": convnext, "mlp": mlp}


def write(path, tensors, about):
    data, entries = b"", {"__metadata__": {"about": about}}
    for key, t in tensors.items():
        code, letter = CODES[t.dtype]
        values = t.detach().contiguous().flatten().tolist()
        raw = struct.pack(f"<{len(values)}{letter}", *values)
        entries[key] = {"dtype": code, "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main(folder, names):
    for name in names:
        torch.manual_seed(3)
        model, x, about = MODELS[name]()
        for p in model.parameters():  # biases and scales away from 0 and 1
            if p.dim() == 1:
                p.data += 0.1 * torch.randn_like(p)
        labels = torch.randint(0, 10, (x.shape[0],))
        tensors = {f"weight/{k}": v.clone() for k, v in model.state_dict().items()} | {"input/0": x}
        model.double()
        model.eval()
        tensors["eval_output"] = model(x.double())
        model.train()
        tensors["train_output"] = model(x.double())
        loss = nn.functional.cross_entropy(tensors["train_output"], labels)
        loss.backward()
        tensors["loss"] = loss.reshape(1)
        tensors |= {f"grad/{k}": p.grad.float() for k, p in model.named_parameters()}
        tensors |= {f"buffer_after/{k}": b for k, b in model.named_buffers()}
        words = " ".join(str(int(v)) for v in labels)
        write(f"{folder}/{name}.safetensors", tensors, f"{about}; loss: cross-entropy against {words}")


main(sys.argv[1], sys.argv[2:])
