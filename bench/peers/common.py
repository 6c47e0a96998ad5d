"""What the peers' scripts share: options, PyTorch's processes, Ingot's runs, times."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INGOT = ["ingot_eager", "ingot_compiled"]
PAUSE = 0.05  # seconds after a contender: until its threads sleep


def option_parser(description, modes, seconds):
    """`seconds`: by default. --worker is how a script starts itself for a form of PyTorch."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default=ROOT / "build" / "ingot", help="the ingot command")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "examples" / "data")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=seconds, help="of measurement a case, contender and round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=modes, help=argparse.SUPPRESS)
    return parser


def median_us(call, seconds):
    for _ in range(5):
        call()
    samples, end = [], time.perf_counter() + seconds
    while (now := time.perf_counter()) < end or len(samples) < 7 or (len(samples) < 20 and now < end + 10 * seconds):
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1e6)
    return statistics.median(samples)


def serve(ready, call_of, seconds):
    """A worker: says `ready`, then answers each line with the median of the call that it names, until its input ends."""
    print(json.dumps({"ready": ready}), flush=True)
    for line in sys.stdin:
        print(json.dumps(median_us(call_of(line), seconds)), flush=True)


class Workers:
    """The forms of PyTorch, each in a process of its own: spinning thread pools of one process spoil each other."""

    def __init__(self, script, args, modes, extra=None):
        self.ready, self._processes, self._errors = {}, {}, {}
        for mode in modes:
            print(f"preparing PyTorch {mode} ...", file=sys.stderr)
            command = [sys.executable, script, "--worker", mode, "--data", str(args.data), "--threads", str(args.threads), "--seconds",
                       str(args.seconds), *(extra or {}).get(mode, [])]
            self._errors[mode] = tempfile.TemporaryFile("w+")
            self._processes[mode] = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                     stderr=self._errors[mode])
            self.ready[mode] = self._answer(mode)["ready"]

    def _answer(self, mode):
        line = self._processes[mode].stdout.readline()
        if not line:
            self._errors[mode].seek(0)
            sys.exit(f"PyTorch {mode}: {self._errors[mode].read()}")
        return json.loads(line)

    def ask(self, mode, line):
        """The median in microseconds of what the line names."""
        process = self._processes[mode]
        process.stdin.write(line + "\n")
        process.stdin.flush()
        us = self._answer(mode)
        time.sleep(PAUSE)
        return us

    def close(self):
        for process in self._processes.values():
            process.communicate()


def bench_ingot(args, *options, seconds=None):
    """What `ingot bench` with these options says."""
    command = [str(args.ingot), "bench", *map(str, options), "--threads", str(args.threads), "--data", str(args.data), "--seconds",
               str(seconds or args.seconds), "--json"]
    result = json.loads(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
    time.sleep(PAUSE)
    return result


def rounds(args):
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds} ...", file=sys.stderr)
        yield number


def medians(samples):
    return {who: statistics.median(of) for who, of in samples.items()}


def finish(args, table, show):
    """As JSON, or as show() prints it."""
    if args.json:
        print(json.dumps({"threads": args.threads, "rounds": args.rounds, "rows": table}))
    else:
        show(table)
    return 0
