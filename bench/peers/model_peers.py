#!/usr/bin/env python3
"""Times well-known image models in PyTorch, ONNX Runtime, OpenVINO and in Ingot, in turns, on the same weights and inputs.

Models and random weights are torchvision's. Each contender runs in a process of its own (two spinning thread pools on one machine
spoil each other) in its best form in f32 with the same number of threads; rounds are interleaved with pauses, and the median over
all rounds is shown. Every output is compared with that of the same weights in double, Ingot's in each round.
"""
import argparse
import math
import os
import sys
import tempfile
import time

from common import Workers, bench_ingot, finish, medians, option_parser, rounds, serve

MODELS = ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny"]
MODES = ["eager", "compile", "compile_best", "onnxruntime", "openvino"]
ENGINES = ["onnxruntime", "openvino"]
MOST_ERROR = 1e-4  # of the largest output


def model_and_input(name, batch):
    import torch
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    for module in model.modules():  # as after training: what a batch norm takes off is not nothing
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model, torch.randn(batch, 3, 224, 224)


def error(got, expected):
    return ((got.double() - expected).abs().max() / expected.abs().max()).item()


def contender(mode, name, batch, threads, folder):
    """A call, and what it gives."""
    import torch

    model, x = model_and_input(name, batch)
    if mode not in ENGINES:
        if mode != "eager":
            torch._dynamo.reset()
            model = torch.compile(model)
        return lambda: model(x), lambda: model(x)
    path = os.path.join(folder, f"{name}_{batch}.onnx")
    torch.onnx.export(model, (x,), path, dynamo=True, verbose=False)
    if mode == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: x.numpy()}
        return lambda: session.run(None, feed), lambda: torch.from_numpy(session.run(None, feed)[0])
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                           "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(x.numpy().copy()))  # its own memory: x ends with this function
    return request.infer, lambda: (request.infer(), torch.from_numpy(request.get_output_tensor().data.copy()))[1]


def worker(args):
    """Answers one line (a row number) with the median of that row, until its input ends."""
    import torch

    torch.set_num_threads(args.threads)
    if args.worker == "compile_best":
        import torch._inductor.config as inductor

        inductor.freezing = True
        inductor.max_autotune = True
    calls, ready = [], []
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        for name, batch in args.rows:
            model, x = model_and_input(name, batch)
            if args.outputs:
                from safetensors.torch import save_file

                weights = {f"weight/{key}": value for key, value in model.state_dict().items()}
                save_file({**weights, "input/0": x}, os.path.join(args.outputs, f"{name}_{batch}.safetensors"))
            expected = model.double()(x.double())
            if args.outputs:
                save_file({"output": expected.float()}, os.path.join(args.outputs, f"{name}_{batch}_output.safetensors"))
            call, output = contender(args.worker, name, batch, args.threads, folder)
            start = time.perf_counter()
            got = output()
            ready.append({"first_call_s": time.perf_counter() - start, "error": error(got, expected),
                          "largest": expected.abs().max().item()})
            assert ready[-1]["error"] < MOST_ERROR, (args.worker, name, ready[-1])
            calls.append(call)
        serve(ready, lambda line: calls[int(line)], args.seconds)


def fastest(us, forms):
    """The least of those that took part, or None."""
    return min((us[form] for form in forms if form in us), default=None)


def show(table, threads):
    contenders = list(table[0]["us"])
    ratios = [key for key in table[0] if key.startswith("ratio")]
    print(f"{'model':<16}{'batch':>6}" + "".join(f"{who:>14}" for who in contenders) + "".join(f"{key:>19}" for key in ratios) +
          f"   (ms a call, medians, {threads} threads)")
    for r in table:
        print(f"{r['model']:<16}{r['batch']:>6}" + "".join(f"{r['us'][who] / 1e3:>14.2f}" for who in contenders) +
              "".join(f"{r[key]:>18.2f}x" for key in ratios) +
              f"   error {r['error']:.1e}, of PyTorch {r['ready']['eager']['error']:.1e}")
    for key in ratios:
        print(f"geomean of {key}: {math.prod(r[key] for r in table) ** (1 / len(table)):.2f}x")


def main():
    parser = option_parser(__doc__, MODES, seconds=1.0)
    parser.add_argument("--models", default=",".join(MODELS), help="of " + ", ".join(MODELS))
    parser.add_argument("--forms", default=",".join(MODES), help="eager, and of " + ", ".join(MODES[1:]))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--outputs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.rows = [(name, args.batch) for name in args.models.split(",")]
    if args.worker:
        return worker(args)

    modes = ["eager", *(mode for mode in args.forms.split(",") if mode != "eager")]
    samples = [{who: [] for who in [*modes, "ingot"]} for _ in args.rows]
    errors = {}
    with tempfile.TemporaryDirectory() as outputs:
        extra = {mode: ["--models", args.models, "--batch", str(args.batch)] for mode in modes}
        extra["eager"] += ["--outputs", outputs]
        workers = Workers(__file__, args, modes, extra)
        for _ in rounds(args):
            for row, (name, batch) in enumerate(args.rows):
                for mode in modes:
                    samples[row][mode].append(workers.ask(mode, str(row)))
                file = os.path.join(outputs, f"{name}_{batch}")
                result = bench_ingot(args, name, "--mode", "frozen", "--weights", f"{file}.safetensors", "--compare",
                                     f"{file}_output.safetensors")
                assert result["bitwise_equal"] and result["fallbacks"] == 0, result
                samples[row]["ingot"].append(result["compiled_us"])
                errors[row] = result["max_abs_error_to_peer"] / workers.ready["eager"][row]["largest"]
                assert errors[row] < MOST_ERROR, (name, errors[row])
        workers.close()

    table = []
    for row, (name, batch) in enumerate(args.rows):
        us = medians(samples[row])
        result = {"model": name, "batch": batch, "us": us, "error": errors[row],
                  "ready": {mode: workers.ready[mode][row] for mode in modes}}
        for key, forms in [("ratio_to_engine", ENGINES), ("ratio_to_compile", ["compile", "compile_best"])]:
            if best := fastest(us, forms):
                result[key] = best / us["ingot"]
        table.append(result)
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
