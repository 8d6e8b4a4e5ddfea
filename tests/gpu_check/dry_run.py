#!/usr/bin/env python3
"""gpu_check.py with stand-ins for what it runs, so that neither a GPU nor a build is needed.

  tests/gpu_check/dry_run.py                          asserts what its reports say when programs warn, fail, hang, die or lack keys
  tests/gpu_check/dry_run.py --show OUT [PART...]     one run whose report is left in OUT, within the parts' real seconds
"""
import gzip
import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHECK = os.path.join(HERE, "..", "..", "bench", "gpu_check.py")
PROGRAMS = {"gxp": "cmd", "gxp_cuda_test": "tests/cuda", "gxp_cuda_bench": "bench", "nvidia-smi": "tools", "compute-sanitizer": "tools",
            "python": "tools", "libgxp_kernel_times.so": "bench"}
PATIENCE = 0.05


def make_stand_ins(folder):
    for program, place in PROGRAMS.items():
        path = os.path.join(folder, place, program)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/stand_in.py" {program} "$@"\n')
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def start(build, out, parts, how="", patience=PATIENCE):
    tools = os.path.join(os.path.dirname(build) if build.endswith("bundle") else build, "tools")
    environment = {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "GXP_STAND_IN": how, "GXP_CHECK_PYTHON": os.path.join(tools, "python")}
    command = [sys.executable, CHECK, "--build", build, "--out", out, "--patience", str(patience), *parts]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(build, out, parts, how="", patience=PATIENCE):
    process = start(build, out, parts, how, patience)
    out, _ = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out)


class Report:
    def __init__(self, build, out, parts, how="", patience=PATIENCE):
        begin = time.monotonic()
        self.done = run(build, out, parts, how, patience)
        self.seconds = time.monotonic() - begin
        self.log = gzip.open(os.path.join(out, "gpu-check.log.gz"), "rt").read()
        with open(os.path.join(out, "gpu-check.json"), encoding="utf-8") as file:
            self.steps = {step["name"]: step for step in json.load(file)["steps"]}
        with open(os.path.join(out, "gpu-check.md"), encoding="utf-8") as file:
            self.text = file.read()

    def failed(self):
        return {name for name, step in self.steps.items() if step["status"].startswith("FAILED")}

    def status(self, name):
        return self.steps[name]["status"]


def expect(condition, what, report):
    if not condition:
        sys.exit(f"gpu_check: expected that {what}\n{report.done.stdout}\n{report.text}")


def check_report_at_once(build, out):
    """What was measured is in the report while a later step hangs."""
    process = start(build, out, ["full"], "hangs:gxp_cuda_bench")
    report, seen = os.path.join(out, "gpu-check.md"), False
    while process.poll() is None and not seen:
        time.sleep(0.05)
        seen = os.path.exists(report) and "| 8B layers | 400000 |" in open(report, encoding="utf-8").read()
    seen = seen and process.poll() is None
    process.communicate(timeout=300)
    if not seen:
        sys.exit("gpu_check: expected that a report is written after each step")


def check_all_is_well(build, out):
    every = Report(build, out, ["smoke", "full", "sweep"], patience=1)
    expect(every.done.returncode == 0 and not every.failed(), "nothing fails", every)
    expect(not any(step["status"].startswith("left out") for step in every.steps.values()), "nothing is left out", every)
    for words in ("| 1.5B | 400000 | 40.0% | 10.0 | 10.800 -> 8.900 | 1755 MHz, 650 W, slowed by power cap |  | 2.00 |", "copy of 1 GiB",
                  "| 10240 | 10440 | +200 |", "of [these] \"tests\" | passed |", "racecheck", "124M, slices of 32 MiB",
                  "cuBLASLt 1 (/usr/lib/libcublasLt.so.13)", "| 4 | 64 | 500 | 500 | 120.0 | 4000 | 75% | 75% |",
                  "collectives of 2 ranks, rows that are exact: 6", "| 8B layers | attention | 2.00 | 50.0% | 2.50 | 0.80 | 1.00 |", "| 124M | a kernel 132x1x1 | 2.0 | 5.000 | 100.0% | 1.000 |"):
        expect(words in every.text, f"the report has '{words}'", every)
    expect(every.text in every.done.stdout, "the report is printed", every)


def check_cases(build, out):
    failed = Report(build, out, ["smoke"], "fails:gxp_cuda_test:case 3,")
    expect(failed.failed() == {"test cases"} and failed.done.returncode == 1, "a failing case fails its step alone", failed)
    expect("1 of 20 cases: case 3, of [these]" in failed.status("test cases"), "the case is named", failed)
    expect("these_test.cc:12: failed: 1 == 2 for: 1 == 2" in failed.text and "warning" not in failed.status("test cases"),
           "its assertion is told, in spite of a warning on stderr", failed)

    died = Report(build, out, ["smoke"], "dies:gxp_cuda_test:case 3,")
    expect("1 of 20 cases" in died.status("test cases") and "ended with signal 11" in died.text, "a crash costs its case alone", died)

    hung = Report(build, out, ["smoke"], "hangs:gxp_cuda_test:case 3,", patience=1)
    expect("1 of 20 cases" in hung.status("test cases") and hung.steps["test cases"]["seconds"] <= 45, "a hang costs 45 s at most", hung)
    expect("stacks:\nprocess" in hung.log and "thread python" in hung.log, "a hang leaves its stacks", hung)
    expect(hung.seconds < 140, "all of it ends in time", hung)


def check_benches(build, out):
    warned = Report(build, out, ["full"], "warns:gxp_cuda_bench")
    expect(not warned.failed() and "copy of 1 GiB" in warned.text, "a warning loses no table", warned)

    failed = Report(build, out, ["full"], "fails:gxp_cuda_bench")
    expect(failed.failed() == {"kernels"} and "| 1.5B qkv dW | FAILED: cuBLASLt has no algorithm |" in failed.text, "a failing product is a row",
           failed)
    expect("| the last product |" in failed.text, "the rows after it are there", failed)

    lacking = Report(build, out, ["full"], "lacks:gxp_cuda_bench")
    expect("| FAILED: TypeError" in lacking.text and "| 1.5B fp8 | 400000 |" in lacking.text, "a value that is none costs its table alone", lacking)

    hung = Report(build, out, ["full"], "hangs:gxp_cuda_bench")
    expect(hung.failed() == {"kernels"} and "did not end in" in hung.status("kernels"), "it is said that it hung", hung)
    expect("| 1.5B fp8 |" in hung.text, "what follows is measured", hung)


def check_training(build, out):
    graphs = Report(build, out, ["full"], "fails:gxp:train ")
    expect("capturing" in graphs.status("124M") and graphs.status("124M").endswith("it works with train.cuda_graphs=off"),
           "the way that works is named", graphs)
    expect("| 124M | 400000 |" in graphs.text and graphs.status("774M") == "ok", "later steps take that way", graphs)
    expect(graphs.status("124M, 4 rows, graphs") == "left out: graphs have failed before", "what cannot work is left out", graphs)

    guesses = Report(build, out, ["smoke"], "guesses:gxp")
    expect("the loss went from 10.800 to 10.800" in guesses.status("four steps of 124M, attention cudnn"), "a loss that does not fall fails",
           guesses)

    died = Report(build, out, ["smoke"], "dies:gxp:train ")
    expect("memcheck of two layers" in died.status("four steps of 124M, attention cudnn"), "an error of the GPU is looked for by memcheck", died)

    hung = Report(build, out, ["full"], "hangs:gxp:train ")
    expect(hung.status("1.5B") == "left out: two training steps in a row did not end in time", "hangs cost two steps", hung)
    expect("copy of 1 GiB" in hung.text, "what follows is measured", hung)

    lacking = Report(build, out, ["full"], "lacks:gxp")
    expect("FAILED: KeyError: 'mfu'" in lacking.status("774M"), "a missing key is named", lacking)
    expect("FAILED: collectives work on pinned host memory" in lacking.status("all-reduces of 2 ranks"),
           "calls that leave the GPU's memory fail", lacking)


def check_limits(build, out):
    none = Report(build, out, ["full"], "lacks:python")
    expect(none.done.returncode == 3 and len(none.steps) == 3, "nothing is run without cuBLASLt", none)
    late = Report(build, out, ["--limit-s", "0", "full"])
    expect(late.status("1.5B") == "left out: no time left", "steps without time are named", late)
    some = Report(build, out, ["--only", "^8B layers$", "full"])
    expect(list(some.steps)[3:] == ["8B layers"], "only what was asked for is run", some)


def check_archive(build, folder):
    """As `make gpu-bundle` packs it."""
    bundle = os.path.join(folder, "bundle")
    os.makedirs(bundle)
    with tarfile.open(os.path.join(bundle, "gpu-bundle.tar.xz"), "w:xz") as tar:
        for place in set(PROGRAMS.values()) - {"tools"}:
            tar.add(os.path.join(build, place), os.path.join("gpu-bundle", place))
    os.rename(os.path.join(build, "tools"), os.path.join(folder, "tools"))
    report = Report(bundle, os.path.join(folder, "out"), ["smoke"])
    expect(not report.failed() and "passed" in report.text, "a bundle is unpacked", report)


def main():
    with tempfile.TemporaryDirectory(prefix="gpu-check-stand-ins-") as folder:
        build, out = os.path.join(folder, "build"), os.path.join(folder, "out")
        make_stand_ins(build)
        if sys.argv[1:2] == ["--show"]:
            done = run(build, sys.argv[2], sys.argv[3:], os.environ.get("GXP_STAND_IN", ""), patience=1)
            print(done.stdout, end="")
            sys.exit(done.returncode)
        check_report_at_once(build, out)
        for check in (check_all_is_well, check_cases, check_benches, check_training, check_limits):
            check(build, out)
        check_archive(build, folder)
    print("gpu_check: the reports are as they should be")


if __name__ == "__main__":
    main()
