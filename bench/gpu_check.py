#!/usr/bin/env python3
"""Checks the CUDA backend on the GPU at hand and measures it, in two calls and without a network.

  bench/gpu_check.py --build build/cuda [--out build/gpu-check] [--limit-s S] [--only REGEX] smoke
  bench/gpu_check.py --build build/cuda [--out build/gpu-check] [--limit-s S] [--only REGEX] full

Run it in the project's folder. --build has cmd/gxp, tests/cuda/gxp_cuda_test and bench/gxp_cuda_bench, built here, or the
archive of them that `make gpu-bundle` makes, which is unpacked. The programs need libcublasLt.so.13, and libcudnn.so.9 for
cuDNN's attention, which are found as the loader does, in the CUDA toolkit, or in the Python packages of the python3 that runs
this. Parts:
  smoke  in 140 s: what works. The libraries that are loaded; the test cases, each in a process of its own; four steps of
         GPT-2 124M with cuDNN's attention, with gxp's, and without CUDA graphs; copy and product; NCCL
  full   in 470 s: how fast. Tokens/s, MFU and loss of 124M, 774M, 1.5B and of layers of an 8B Llama; PyTorch on the same
         text; where a step's time goes; kernels beside the rates of a copy and a product; ranks and collectives on the GPU,
         exactness and speed; test cases; fp8; planned memory beside the driver's count; compute-sanitizer
  sweep  in 300 s: slices of cuDNN's workspace, GELUs and biases' gradients fused into products or not, the spread of cuBLASLt's
         algorithms, logits' rows, train.keep
Each step stands alone. A step that ends wrong or not in time is "FAILED: why" in the report, a hang with its stacks in the log,
and the next step runs; a step for which the part's seconds leave no time is named. A training step that fails is tried again
without CUDA graphs, with gxp's attention and without timed choices, and the first way that works is named and kept. After each
step gpu-check.json, gpu-check.md and the programs' output, gpu-check.log, are written to --out. The exit code is 1 if a step
failed, 3 without a GPU or without cuBLASLt.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from gpu import cases, machine, training
from gpu.programs import Check, Failed, LeftOut, find_tool, last_lines, library_folders
from gpu.training import MODELS, MORE_MODELS, gpt2

ARCHIVE = "gpu-bundle.tar.xz"
SLICES_MIB = (32, 64, 128, 256, 1024)
LOGITS_ROWS = (1024, 2048, 4096, 5336, 8192)
# Pairs of operations, types and reductions, so that each two of them meet.
PAIRS = (("--op", "all_reduce", "-d", "all", "-o", "all"), ("--op", "all", "-d", "all", "-o", "sum"),
         ("--op", "all", "-d", "float", "-o", "all"))


def bench_kernels(check, limit_s, *options):
    """A row each as it is measured: those before a failure count, and a row may be an error."""
    outcome = check.start([check.path("bench", "gxp_cuda_bench"), "--json", *options], limit_s,
                          {"GXP_GEMM_CACHE": os.path.join(check.work, "cublaslt")})
    rows = []
    for line in outcome.stdout.splitlines():
        if line.startswith("{"):
            rows.append(json.loads(line))
    check.note({"kernels": rows})
    errors = [f"{row['what']}: {row['error']}" for row in rows if "error" in row]
    if outcome.code != 0:
        errors.append(f"gxp_cuda_bench {outcome.how()} after {len(rows)} rows: {outcome.said(2)}")
    if errors:
        raise Failed("; ".join(errors), outcome.code)


def bench_collectives(check, ranks, memory, limit_s, *options):
    command = [check.path("cmd", "gxp"), "allreduce-test", "--device", "cuda", "--nproc", str(ranks), "--memory", memory,
               "--format", "json", *options]
    report = json.loads(check.run(command, limit_s))
    if report["collectives_on"] != "the GPUs' memory":
        raise Failed(f"collectives work on {report['collectives_on']}")
    return report


def collectives_are_exact(check, ranks):
    """Sizes of one shot and of tiles; the command itself fails where an element is wrong."""
    rows = 0
    for memory in ("ordinary", "communicator"):
        for pair in PAIRS:
            options = (*pair, "-b", "1000", "-e", "512000", "-f", "512", "-n", "1", "-w", "0")
            rows += len(bench_collectives(check, ranks, memory, 40, *options)["results"])
            check.note({"exact": {f"collectives of {ranks} ranks, rows that are exact": rows}})


def time_all_reduces(check, ranks):
    report = bench_collectives(check, ranks, "communicator", 40, "-b", "1M", "-e", "256M", "-f", "4")
    rows = [{"ranks": ranks, "size": row["size"], "copy_gb_per_s": report["copy_gb_per_s"],
             **{half: {key: row[half][key] for key in ("time_us", "busbw", "copy_share")} for half in ("out_of_place", "in_place")}}
            for row in report["results"]]
    return {"collectives": rows}


def nccl_of_one_rank(check):
    """The real library's start, memory, registration, a call and its end."""
    command = [check.path("cmd", "gxp"), "allreduce-test", "--device", "cuda", "--nproc", "1", "--engine", "nccl", "--format", "json",
               "-b", "1M", "-e", "16M", "-f", "4"]
    return {"exact": {"NCCL of one rank, rows that are exact": len(json.loads(check.run(command, 30))["results"])}}


def sanitize(check, mode):
    tool = find_tool("compute-sanitizer")
    if tool is None:
        raise LeftOut("compute-sanitizer was not found")
    test = check.path("tests", "cuda", "gxp_cuda_test")
    out = check.run([tool, "--tool", mode, "--error-exitcode", "9", test, ",".join(cases.SANITIZED)], 120)
    return {"sanitizer": {mode: last_lines(out, 1)}}


def look(check):
    """What there is to run on: done by each part, for a part may be a call of its own."""
    check.step("nvidia-smi", 0, lambda: machine.describe_gpu(check))
    check.step("libraries that are loaded", 0, lambda: machine.versions(check))
    check.step("a GPU that gxp can use", 0, lambda: cases.list_cases(check))
    return not any(step["status"].startswith("FAILED") for step in check.results["steps"][-2:])


def smoke(check):
    check.step("test cases", 10, lambda: cases.run_cases(check, spare_s=60))
    train = training.Training(check)
    for what, settings in (("attention cudnn", ("train.attention=cudnn",)), ("attention own", ("train.attention=own",)),
                           ("no graphs", ("train.cuda_graphs=off",))):
        name = f"four steps of 124M, {what}"
        train.step(name, gpt2("124M", 32, 1, 4, *settings))
    check.step("copy and product", 5, lambda: bench_kernels(check, 20, "--ceilings"))
    check.step("NCCL of one rank", 5, lambda: nccl_of_one_rank(check))


def full(check):
    train = training.Training(check)
    train.step("124M", MODELS["124M"])
    train.step("124M, fastest", MORE_MODELS["124M, fastest"])
    for how in ("compiled", "eager"):
        check.step(f"PyTorch, 124M, {how}", 20, lambda h=how: training.run_torch(check, "124M", h))
    check.step("classes of kernels of 124M", 10, lambda: training.time_by_class(check, "124M", MODELS["124M"]))
    check.step("kernels of a step of 124M", 10, lambda: training.kernels_of_step(check, "124M", MODELS["124M"]))
    for name in ("8B layers", "1.5B", "774M"):
        train.step(name, MODELS[name])
        train.step(f"{name}, fastest", MORE_MODELS[f"{name}, fastest"])
        check.step(f"classes of kernels of {name}", 10, lambda n=name: training.time_by_class(check, n, MODELS[n]))
        check.step(f"kernels of a step of {name}", 10, lambda n=name: training.kernels_of_step(check, n, MODELS[n]))
    for name in ("8B layers fp8", "8B layers fp8, fastest"):
        train.step(name, MORE_MODELS[name])
    check.step("kernels", 20, lambda: bench_kernels(check, 60))
    check.step("two ranks, two processes", 20, lambda: training.two_ranks(check))
    for ranks in (2, 4):
        check.step(f"all-reduces of {ranks} ranks", 10, lambda n=ranks: time_all_reduces(check, n))
        check.step(f"collectives of {ranks} ranks", 10, lambda n=ranks: collectives_are_exact(check, n))
    for name, how in (("8B layers", "compiled"), ("1.5B", "compiled by blocks"), ("774M", "compiled by blocks")):
        check.step(f"PyTorch, {name}, {how}", 40, lambda n=name, h=how: training.run_torch(check, n, h))
    check.step("test cases", 20, lambda: cases.run_cases(check))
    for settings in training.MEMORY_RUNS:
        check.step(f"memory with {settings}", 10, lambda s=settings: training.compare_memory(check, s))
    for name in ("1.5B fp8", "124M, own attention", "124M, 4 rows, graphs", "124M, 4 rows, no graphs"):
        train.step(name, MORE_MODELS[name])
    for mode in ("memcheck", "racecheck"):
        check.step(mode, 30, lambda m=mode: sanitize(check, m))


def sweep(check):
    train = training.Training(check)
    check.step("slices, ends and candidates", 30, lambda: bench_kernels(check, 90, "--sweep"))
    for mib in SLICES_MIB:
        train.step(f"124M, slices of {mib} MiB", gpt2("124M", 32, 1, 8, "train.attention=cudnn"), {"GXP_CUDNN_SLICE_MIB": str(mib)})
    for rows in LOGITS_ROWS:
        train.step(f"124M, logits of {rows} tokens", gpt2("124M", 32, 1, 8, f"train.logits_rows={rows}"))
    for keep in ("none", "norms", "all"):
        train.step(f"124M, train.keep {keep}", gpt2("124M", 32, 1, 8, f"train.keep={keep}"))


PARTS = {"smoke": (140, smoke), "full": (470, full), "sweep": (300, sweep)}


def unpack(build, work):
    """The folder of the programs: `build`, or what its archive has."""
    archive = os.path.join(build, ARCHIVE)
    if not os.path.exists(archive):
        return os.path.abspath(build)
    with tarfile.open(archive, "r:xz") as tar:
        tar.extractall(work)
    folder = os.path.join(work, "gpu-bundle")
    # GCC's libraries are almost everywhere, and newer ones serve vendors' libraries better.
    starts = subprocess.run([os.path.join(folder, "cmd", "gxp"), "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            check=False, env={**os.environ, "LD_LIBRARY_PATH": ":".join(library_folders(folder))})
    if starts.returncode != 0:
        for file in glob.glob(os.path.join(folder, "fallback", "*")):
            shutil.copy(file, os.path.join(folder, "lib"))
    return folder


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cuda")
    parser.add_argument("--out", default="build/gpu-check")
    parser.add_argument("--limit-s", type=float, help="seconds of each part, in place of its own")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="the steps whose names this finds")
    parser.add_argument("--patience", type=float, default=1, help="times the steps' own limits, for dry runs")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; none: smoke and full")
    args = parser.parse_args()
    args.parts = args.parts or ["smoke", "full"]
    for part in args.parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'; there are {', '.join(PARTS)}")
    args.out = os.path.abspath(args.out)
    return args


def run_parts(check, args):
    for part in args.parts:
        limit_s, act = PARTS[part]
        check.begin(part, limit_s if args.limit_s is None else args.limit_s)
        if not look(check):
            print("gpu-check: no usable GPU here, or a library is missing; docs/GPU.md says what is needed", file=sys.stderr)
            sys.exit(3)
        act(check)


def main():
    args = parse()
    os.makedirs(args.out, exist_ok=True)
    for name in ("gpu-check.log", "gpu-check.log.gz"):
        open(os.path.join(args.out, name), "wb").close()
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        check = Check(args.out, unpack(args.build, work), work, args.only, args.patience)
        run_parts(check, args)
    with open(os.path.join(args.out, "gpu-check.md"), encoding="utf-8") as file:
        print(file.read())
    sys.exit(1 if check.failed() else 0)


if __name__ == "__main__":
    main()
