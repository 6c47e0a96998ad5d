#!/usr/bin/env python3
"""Times well-known models in PyTorch, ONNX Runtime, OpenVINO and in Ingot, in turns, on the same weights and inputs.

A row is NAME, NAME:BATCH or NAME:BATCHxTOKENS; models.py has them. Each contender runs in a process of its own (two spinning thread
pools on one machine spoil each other) in its best form in f32 with the same number of threads; rounds are interleaved with pauses,
and the median over all rounds is shown. Every output is compared with that of the same weights in double, Ingot's in each round.

With --autocast PyTorch and Ingot run in a region of bf16, and OpenVINO is told to compute in bf16; ONNX Runtime, which has no such form on a
processor, takes no part.
"""
import argparse
import math
import os
import re
import sys
import tempfile
import time

from common import Workers, bench_ingot, finish, median_us, medians, option_parser, rounds, serve

ROWS = "resnet18,resnet50,mobilenet_v2,efficientnet_b0,convnext_tiny,unet,bert,vit,llama,gpt2"
MODES = ["eager", "compile", "compile_best", "onnxruntime", "openvino"]
ENGINES = ["onnxruntime", "openvino"]
MOST_ERROR = {False: 1e-4, True: 0.1}  # of the largest output; with autocast


def rows_of(text):
    """As (name, batch, tokens or None)."""
    found = [re.fullmatch(r"(\w+)(?::(\d+)(?:x(\d+))?)?", row) for row in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"got '{text}', expected NAME[:BATCH[xTOKENS]],...")
    return [(row[1], int(row[2] or 1), int(row[3]) if row[3] else None) for row in found]


def label(row):
    name, batch, length = row
    return f"{name}_{batch}" + (f"x{length}" if length else "")


def error(got, expected):
    return ((got.double() - expected).abs().max() / expected.abs().max()).item()


def contender(mode, row, threads, folder, autocast):
    """A call, and what it gives."""
    import torch
    from models import model_and_inputs

    model, inputs = model_and_inputs(*row)
    if mode not in ENGINES:
        if mode != "eager":
            torch._dynamo.reset()
            model = torch.compile(model)

        def call():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                return model(*inputs)

        return call, call
    path = os.path.join(folder, f"{label(row)}.onnx")
    torch.onnx.export(model, inputs, path, dynamo=True, verbose=False)
    if mode == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feed = {given.name: x.numpy() for given, x in zip(session.get_inputs(), inputs, strict=True)}
        return lambda: session.run(None, feed), lambda: torch.from_numpy(session.run(None, feed)[0])
    return openvino_forms(model, inputs, path, threads, "bf16" if autocast else "f32")


def openvino_forms(model, inputs, path, threads, precision):
    """OpenVINO reads PyTorch's models itself, too, traced or exported: the fastest of the forms that it takes."""
    import openvino
    import torch

    def traced():
        shapes = [list(x.shape) for x in inputs]
        return openvino.convert_model(model, example_input=inputs if len(inputs) > 1 else inputs[0], input=shapes)

    found = []
    for form in (lambda: path, traced, lambda: openvino.convert_model(torch.export.export(model, inputs))):
        try:
            compiled = openvino.Core().compile_model(form(), "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                                     "INFERENCE_PRECISION_HINT": precision})
        except Exception as reason:  # a form that it does not take
            print(reason, file=sys.stderr)
            continue
        request = compiled.create_infer_request()
        for at, x in enumerate(inputs):
            request.set_input_tensor(at, openvino.Tensor(x.numpy().copy()))  # its own memory: x ends with the function
        found.append((median_us(request.infer, 0.5), request))
    request = min(found, key=lambda each: each[0])[1]
    return request.infer, lambda: (request.infer(), torch.from_numpy(request.get_output_tensor().data.copy()))[1]


def worker(args):
    """Answers one line (a row number) with the median of that row, until its input ends."""
    import torch
    from models import in_double, inputs_of_file, model_and_inputs, weights

    torch.set_num_threads(args.threads)
    if args.worker == "compile_best":
        import torch._inductor.config as inductor

        inductor.freezing = True
        inductor.max_autotune = True
    calls, ready = [], []
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        for row in args.rows:
            model, inputs = model_and_inputs(*row)
            if args.outputs:
                from safetensors.torch import save_file

                given = {f"input/{at}": x for at, x in enumerate(inputs_of_file(model, inputs))}
                save_file({**weights(model), **given}, os.path.join(args.outputs, f"{label(row)}.safetensors"))
            expected = in_double(model, inputs)
            if args.outputs:
                save_file({"output": expected.float()}, os.path.join(args.outputs, f"{label(row)}_output.safetensors"))
            del model
            call, output = contender(args.worker, row, args.threads, folder, args.autocast)
            start = time.perf_counter()
            got = output()
            ready.append({"first_call_s": time.perf_counter() - start, "error": error(got, expected),
                          "largest": expected.abs().max().item()})
            assert ready[-1]["error"] < MOST_ERROR[args.autocast], (args.worker, row, ready[-1])
            calls.append(call)
        serve(ready, lambda line: calls[int(line)], args.seconds)


def fastest(us, forms):
    """The least of those that took part, or None."""
    return min((us[form] for form in forms if form in us), default=None)


def show(table, threads):
    contenders = list(table[0]["us"])
    ratios = [key for key in table[0] if key.startswith("ratio")]
    print(f"{'model':<16}{'batch':>8}" + "".join(f"{who:>14}" for who in contenders) + "".join(f"{key:>19}" for key in ratios) +
          f"   (ms a call, medians, {threads} threads)")
    for r in table:
        batch = f"{r['batch']}x{r['tokens']}" if r["tokens"] else str(r["batch"])
        print(f"{r['model']:<16}{batch:>8}" + "".join(f"{r['us'][who] / 1e3:>14.2f}" for who in contenders) +
              "".join(f"{r[key]:>18.2f}x" for key in ratios) +
              f"   error {r['error']:.1e}, of PyTorch {r['ready']['eager']['error']:.1e}")
    for key in ratios:
        print(f"geomean of {key}: {math.prod(r[key] for r in table) ** (1 / len(table)):.2f}x")


def main():
    parser = option_parser(__doc__, MODES, seconds=1.0)
    parser.add_argument("--models", default=ROWS, help="NAME[:BATCH[xTOKENS]],...")
    parser.add_argument("--forms", default=",".join(MODES), help="eager, and of " + ", ".join(MODES[1:]))
    parser.add_argument("--numerics", default="default", help="Ingot's level: strict, default or fast")
    parser.add_argument("--autocast", action="store_true", help="in bf16, where products are")
    parser.add_argument("--outputs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.rows = rows_of(args.models)
    if args.worker:
        return worker(args)

    modes = ["eager", *(mode for mode in args.forms.split(",") if mode != "eager")]
    modes = [mode for mode in modes if not (args.autocast and mode == "onnxruntime")]
    autocast = ["--autocast"] if args.autocast else []
    samples = [{who: [] for who in [*modes, "ingot"]} for _ in args.rows]
    errors = {}
    with tempfile.TemporaryDirectory() as outputs:
        extra = {mode: ["--models", args.models, *autocast] for mode in modes}
        extra["eager"] += ["--outputs", outputs]
        workers = Workers(__file__, args, modes, extra)
        for _ in rounds(args):
            for row, each in enumerate(args.rows):
                for mode in modes:
                    samples[row][mode].append(workers.ask(mode, str(row)))
                file = os.path.join(outputs, label(each))
                result = bench_ingot(args, each[0], "--mode", "frozen", "--numerics", args.numerics, "--weights",
                                     f"{file}.safetensors", "--compare", f"{file}_output.safetensors", *autocast,
                                     seconds=2 * args.seconds)  # half of them are eager's
                assert (result["bitwise_equal"] or args.numerics == "fast") and result["fallbacks"] == 0, result
                samples[row]["ingot"].append(result["compiled_us"])
                errors[row] = result["max_abs_error_to_peer"] / workers.ready["eager"][row]["largest"]
                assert errors[row] < MOST_ERROR[args.autocast], (each, errors[row])
        workers.close()

    table = []
    for row, (name, batch, length) in enumerate(args.rows):
        us = medians(samples[row])
        result = {"model": name, "batch": batch, "tokens": length, "us": us, "error": errors[row],
                  "ready": {mode: workers.ready[mode][row] for mode in modes}}
        for key, forms in [("ratio_to_engine", ENGINES), ("ratio_to_compile", ["compile", "compile_best"])]:
            if best := fastest(us, forms):
                result[key] = best / us["ingot"]
        table.append(result)
    return finish(args, table, lambda table: show(table, args.threads))


if __name__ == "__main__":
    sys.exit(main())
