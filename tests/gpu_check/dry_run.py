#!/usr/bin/env python3
"""gpu_check.py with stand-ins for what it runs, so that neither a GPU nor a build is needed.

  tests/gpu_check/dry_run.py                          asserts what its reports say when programs warn, hang, die or lack keys
  tests/gpu_check/dry_run.py --show OUT [PART...]     one run whose report is left in OUT
"""
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
PROGRAMS = {"gxp": "cmd", "gxp_cuda_test": "tests/cuda", "gxp_cuda_bench": "bench", "nvidia-smi": "tools", "compute-sanitizer": "tools"}


def make_stand_ins(folder):
    for program, place in PROGRAMS.items():
        path = os.path.join(folder, place, program)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/stand_in.py" {program} "$@"\n')
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def start(build, out, parts, how=""):
    tools = os.path.join(os.path.dirname(build) if build.endswith("bundle") else build, "tools")
    environment = {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "GXP_STAND_IN": how}
    command = [sys.executable, CHECK, "--build", build, "--out", out, "--patience", "0.05", *parts]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def run(build, out, parts, how=""):
    process = start(build, out, parts, how)
    out, _ = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out)


class Report:
    def __init__(self, build, out, parts, how=""):
        self.done = run(build, out, parts, how)
        with open(os.path.join(out, "gpu-check.json"), encoding="utf-8") as file:
            self.steps = {step["name"]: step for step in json.load(file)["steps"]}
        with open(os.path.join(out, "gpu-check.md"), encoding="utf-8") as file:
            self.text = file.read()

    def failed(self):
        return {name for name, step in self.steps.items() if step["status"].startswith("FAILED")}


def expect(condition, what, report):
    if not condition:
        sys.exit(f"gpu_check: expected that {what}\n{report.done.stdout}\n{report.text}")


def check_report_at_once(build, out):
    """What was measured is in the report while a later step hangs."""
    process = start(build, out, ["measure"], "hangs:gxp_cuda_bench")
    report, seen = os.path.join(out, "gpu-check.md"), False
    while process.poll() is None and not seen:
        time.sleep(0.05)
        seen = os.path.exists(report) and "| 8B layers | 400000 |" in open(report, encoding="utf-8").read()
    seen = seen and process.poll() is None
    process.communicate(timeout=300)
    if not seen:
        sys.exit("gpu_check: expected that a report is written after each step")


def check_all(build, out):
    check_report_at_once(build, out)
    every = Report(build, out, [])
    expect(every.done.returncode == 0 and not every.failed(), "nothing fails", every)
    for words in ("| 1.5B | 400000 | 40.0% | 10.0 |", "copy of 1 GiB", "| 10240 | 10440 | +200 |", "All tests passed", "racecheck",
                  "124M, slices of 32 MiB", "one: 10.5, two: 10.5", "| 4 | 64 | 500 | 500 | 120.0 | 4000 | 75% | 75% |",
                  "collectives of 2 ranks, rows that are exact: 2"):
        expect(words in every.text, f"the report has '{words}'", every)
    expect(every.text in every.done.stdout, "the report is printed", every)

    warned = Report(build, out, ["measure"], "warns:gxp_cuda_bench")
    expect(not warned.failed() and "copy of 1 GiB" in warned.text, "a warning loses no table", warned)

    hung = Report(build, out, ["measure"], "hangs:gxp_cuda_bench")
    expect(hung.failed() == {"kernels"} and hung.done.returncode == 1, "what hangs fails alone", hung)
    expect("did not end in" in hung.steps["kernels"]["status"], "it is said that it hung", hung)
    expect("| 1.5B fp8 |" in hung.text, "what follows is measured", hung)

    died = Report(build, out, ["check", "sweep"], "dies:gxp_cuda_test")
    expect(died.failed() == {f"tests {i}/6" for i in range(1, 7)}, "what dies fails alone", died)
    expect("copy of 1 GiB" in died.text and "+200" in died.text, "what follows is measured", died)

    lacking = Report(build, out, ["measure"], "lacks:gxp")
    expect("FAILED: KeyError: 'mfu'" in lacking.steps["774M"]["status"], "a missing key is named", lacking)
    expect("copy of 1 GiB" in lacking.text, "what follows is measured", lacking)

    pinned = Report(build, out, ["check"], "lacks:gxp")
    expect("FAILED: collectives work on pinned host memory" in pinned.steps["all-reduces of 2 ranks"]["status"],
           "calls that leave the GPU's memory fail", pinned)

    none = Report(build, out, ["measure"], "dies:nvidia-smi")
    expect(none.done.returncode == 3 and len(none.steps) == 1, "nothing is run without a GPU", none)

    late = subprocess.run([sys.executable, CHECK, "--build", build, "--out", out, "--limit-s", "0"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PATH": os.path.join(build, "tools") + ":" + os.environ["PATH"]}, timeout=60, check=False)
    if "1.5B: left out: no time left" not in late.stdout:
        sys.exit(f"gpu_check: expected that steps without time are named\n{late.stdout}")


def check_archive(build, folder):
    """As `make gpu-bundle` packs it."""
    bundle = os.path.join(folder, "bundle")
    os.makedirs(bundle)
    with tarfile.open(os.path.join(bundle, "gpu-bundle.tar.xz"), "w:xz") as tar:
        for place in set(PROGRAMS.values()) - {"tools"}:
            tar.add(os.path.join(build, place), os.path.join("gpu-bundle", place))
    os.rename(os.path.join(build, "tools"), os.path.join(folder, "tools"))
    report = Report(bundle, os.path.join(folder, "out"), ["check"])
    expect(not report.failed() and "All tests passed" in report.text, "a bundle is unpacked", report)


def main():
    with tempfile.TemporaryDirectory(prefix="gpu-check-stand-ins-") as folder:
        build = os.path.join(folder, "build")
        make_stand_ins(build)
        if sys.argv[1:2] == ["--show"]:
            done = run(build, sys.argv[2], sys.argv[3:])
            print(done.stdout, end="")
            sys.exit(done.returncode)
        check_all(build, os.path.join(folder, "out"))
        check_archive(build, folder)
    print("gpu_check: the reports are as they should be")


if __name__ == "__main__":
    main()
