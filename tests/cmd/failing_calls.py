#!/usr/bin/env python3
"""Lets the k-th call of open, write, fsync, rename, unlink, mmap, accept or clone fail, for every k,
in a run, in a run that resumes and in a conversion.

failing_calls.py GXP [--sample N] [--only WORKLOAD:CALL:K]

Whatever fails, the program ends in time and by an exit code that it documents, and nothing is lost:
exit code 0 only with the result of a program in which nothing failed, and after any other the same
command, with --resume where there is a checkpoint, gets to that result. strace makes the calls fail,
counted for each thread. Exit status 77: it cannot trace here.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

TIMEOUT_S = 60
EXIT_CODES = {0, 2, 3, 4, 5}
ERRORS = {
    "openat": "EIO",
    "write": "ENOSPC",
    "pwrite64": "ENOSPC",
    "fsync": "EIO",
    "fdatasync": "EIO",
    "rename": "EIO",
    "renameat2": "EIO",
    "unlink": "EIO",
    "unlinkat": "EIO",
    "mmap": "ENOMEM",
    "ftruncate": "EIO",
    "accept4": "EMFILE",
    "clone3": "EAGAIN",
    "clone": "EAGAIN",
}
RUN = """
[model]
vocab_size = 256
hidden = 16
layers = 1
heads = 2
context = 16
[data]
train = ["text.txt"]
tokenizer = "byte"
[train]
steps = 6
micro_batch = 2
threads = 1
device = "cpu"
[checkpoint]
dir = "ck"
every = 2
[comm]
timeout_s = 20
"""


def lost_error(log):
    """Whether the call that failed was to write the error."""
    with open(log, errors="replace") as file:
        return any("write(2, " in line and "INJECTED" in line for line in file)


class Workload:
    """A command in a folder of its own, and what must be there in the end."""

    def __init__(self, name, gxp, arguments, result, begun):
        self.name, self.gxp, self.arguments = name, gxp, arguments
        self.result = result  # a checkpoint, compared with --diff
        self.begun = begun  # what must not be lost, made before by this command, or None
        self.folder = tempfile.mkdtemp(prefix=f"gxp-{name}-")
        self.start = os.path.join(self.folder, "start")
        os.mkdir(self.start)
        with open(os.path.join(self.start, "run.toml"), "w") as file:
            file.write(RUN)
        with open(os.path.join(self.start, "text.txt"), "w") as file:
            file.write("".join(f"{i} men went to mow, went to mow a meadow\n" for i in range(200)))
        if begun:
            self.must(begun, self.start)
        self.reference = self.copy("reference")
        self.must(arguments, self.reference)

    def copy(self, name):
        to = os.path.join(self.folder, name)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.start, to)
        return to

    def call(self, arguments, folder, prefix=()):
        process = subprocess.Popen([*prefix, self.gxp, *arguments], cwd=folder, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
            return process.returncode, out + err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return "hangs", "".join(process.communicate())

    def must(self, arguments, folder):
        code, text = self.call(arguments, folder)
        if code != 0:
            sys.exit(f"{self.name}: {' '.join(arguments)}: {code}\n{text}")

    def calls(self):
        """For each call, the range of k: after those of the loader, as often as a thread makes it."""
        folder = self.copy("counted")
        log = os.path.join(self.folder, "calls")
        code, text = self.call(self.arguments, folder, ["strace", "-f", "-o", log, "-e", "trace=" + ",".join(ERRORS)])
        if code != 0:
            print(f"cannot trace: {text}")
            sys.exit(77)
        made, first = {}, {}
        with open(log, errors="replace") as file:
            for line in file:
                found = re.match(r"(\d+)\s+(\w+)\(", line)
                if not found or found[2] not in ERRORS:
                    continue
                made[found.groups()] = made.get(found.groups(), 0) + 1
                if not first and ('"run.toml"' in line or '"ck' in line):
                    first = {call: count for (_, call), count in made.items()}
        most = {}
        for (_, call), count in made.items():
            most[call] = max(count, most.get(call, 0))
        return {call: range(first.get(call, 0) + 1, count + 1) for call, count in most.items()}

    def differs(self, folder):
        code, text = self.call(["convert-ckpt", "--diff", self.result, os.path.join(self.reference, self.result)], folder)
        return "" if code == 0 else text.splitlines()[0] if text else "differs"

    def go_on(self):
        return self.arguments + ["--resume"]

    def check(self, call, k):
        """Nothing, or what is wrong when the k-th call fails."""
        folder = self.copy(f"{call}-{k}")
        log = os.path.join(folder, "strace.log")
        code, text = self.call(self.arguments, folder,
                               ["strace", "-f", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={ERRORS[call]}:when={k}"])
        problem = self.problem_of(code, text, folder)
        if problem.endswith("without an error") and lost_error(log):
            problem = ""
        if not problem:
            shutil.rmtree(folder, ignore_errors=True)
        return problem

    def problem_of(self, code, text, folder):
        said = text.strip().splitlines()[-1:] or [""]
        if code not in EXIT_CODES:
            return f"ends with {code}: {said[0]}"
        if code == 0:
            wrong = self.differs(folder)
            return f"exit code 0, but {wrong}" if wrong else ""
        if not any("error" in line for line in text.splitlines()):
            return f"exit code {code} without an error"
        again, text = self.call(self.again(folder), folder)
        if again != 0:
            return f"{said[0]}; then, without a fault, {again}: {text.strip().splitlines()[-1]}"
        wrong = self.differs(folder)
        return f"{said[0]}; then, without a fault, {wrong}" if wrong else ""


class Training(Workload):
    def again(self, folder):
        steps = os.path.join(folder, "ck")
        has_steps = os.path.isdir(steps) and any(name.startswith("step-") for name in os.listdir(steps))
        if self.begun and not has_steps:
            return ["topo", "--from", "the-checkpoint-is-lost"]
        plain = [argument for argument in self.arguments if argument != "--resume"]
        return plain + (["--resume"] if has_steps else ["--overwrite"])


class Conversion(Workload):
    def again(self, folder):
        return self.arguments + ["--force"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gxp")
    parser.add_argument("--sample", type=int, default=1, help="every N-th call only")
    parser.add_argument("--only", help="WORKLOAD:CALL:K")
    options = parser.parse_args()
    gxp = os.path.abspath(options.gxp)
    if shutil.which("strace") is None:
        print("skipped: no strace")
        return 77
    train = ["train", "run.toml"]
    workloads = [
        Training("run", gxp, train, "ck/step-00000006", None),
        Training("two-ranks", gxp, train + ["--nproc", "2"], "ck/step-00000006", None),
        Training("resume", gxp, train + ["--resume"], "ck/step-00000006", train + ["--set", "train.steps=4", "--set", "lr_schedule.total_steps=6"]),
        Conversion("convert", gxp, ["convert-ckpt", "ck", "out", "--to", "huggingface"], "out", train),
    ]
    cases = []
    for workload in workloads:
        for call, ks in sorted(workload.calls().items()):
            cases += [(workload, call, k) for k in ks[:: options.sample]]
    if options.only:
        cases = [case for case in cases if f"{case[0].name}:{case[1]}:{case[2]}" == options.only]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (workload, call, k), problem in zip(cases, pool.map(lambda case: case[0].check(*case[1:]), cases)):
            if problem:
                wrong += 1
                print(f"{workload.name}:{call}:{k} ({ERRORS[call]}): {problem}", flush=True)
    print(f"{len(cases)} calls failed, {wrong} of them wrongly dealt with")
    for workload in workloads:
        if not wrong:
            shutil.rmtree(workload.folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
