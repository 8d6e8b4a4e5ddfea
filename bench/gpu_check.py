#!/usr/bin/env python3
"""Checks the CUDA backend on the GPU at hand and measures it, in parts and without a network.

  bench/gpu_check.py --build build/cuda [--out build/gpu-check] [--limit-s 570] [measure] [check] [sweep] [deep]

Run in the project's folder. --build has cmd/gxp, tests/cuda/gxp_cuda_test and bench/gxp_cuda_bench, made here, or the
archive of them that `make gpu-bundle` makes, which is unpacked. They need libcublasLt.so.13, and for cuDNN's attention
libcudnn.so.9, found as the loader does or in the Python packages of the python3 that runs this. Parts, in order of value;
without a name, all:
  measure  the GPU, versions, four steps of GPT-2 124M with cuDNN's attention and with gxp's, tokens/s and MFU of 124M,
           774M, 1.5B and of layers of an 8B Llama in large batches, the kernels beside the rates of a copy and a product,
           fp8, small batches with and without CUDA graphs
  check    the tests, which hold every kernel against the CPU's oracle and train the golden traces, in shards with the
           slowest cases' seconds; planned memory beside the driver's count; two ranks in two processes on the GPU; collectives
           of 2 and 4 ranks on it: exactness of all, and the share of the copies' rate that all-reduces reach
  sweep    slices of cuDNN's workspace, GELUs and biases' gradients fused into products or not, the spread of cuBLASLt's
           algorithms, logits' rows, what is kept of single passes (train.keep)
  deep     compute-sanitizer's memcheck and racecheck of some tests; PyTorch, eager and compiled, on 124M
Each step of a part stands alone: what it lacks, or that it ended wrong or not in time, is "FAILED: why" in the report, and
the next one runs. A step for which --limit-s leaves no time is left out, and named. After each step gpu-check.json,
gpu-check.md and the programs' logs, gpu-check.log, are written to --out. The exit code is 1 if a step failed, 3 without a GPU.
"""
import argparse
import glob
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

from gpu_report import write_markdown

ARCHIVE = "gpu-bundle.tar.xz"
WARM_UP_STEPS = 2
TOKEN_ROWS = 256  # at least a step's
TEST_SHARDS = 6
SANITIZED = "layernorm*,rmsnorm*,an embedding*,*classifier*,attention is right*,bias_backward*,a norm's backward*"
SLICES_MIB = (32, 64, 128, 256, 1024)
LOGITS_ROWS = (1024, 2048, 4096, 5336, 8192)

GPT2 = {"124M": (12, 768, 12), "774M": (36, 1280, 20), "1.5B": (48, 1600, 25)}


def gpt2(size, rows, accumulation, steps, *settings):
    layers, hidden, heads = GPT2[size]
    return {"family": "gpt2", "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 50304, "sequence": 1024,
            "rows": rows, "accumulation": accumulation, "steps": steps, "settings": settings}


def llama(accumulation, steps, *settings):
    """Four layers of an 8B model: all of them and their optimizer's state take more than a GPU has."""
    return {"family": "llama", "layers": 4, "hidden": 4096, "heads": 32, "vocabulary": 32000, "sequence": 4096, "rows": 2,
            "accumulation": accumulation, "steps": steps, "settings": ("model.kv_heads=8", *settings)}


# Rows and accumulation as a run on 139 GiB would have them: nothing is made again, and AdamW, once a step, is a small
# part of it.
MODELS = {
    "124M": gpt2("124M", 32, 1, 12),
    "774M": gpt2("774M", 32, 4, 6),
    "1.5B": gpt2("1.5B", 16, 8, 5),
    "8B layers": llama(8, 6),
}
MORE_MODELS = {
    "1.5B fp8": gpt2("1.5B", 16, 8, 5, "train.matmul=fp8"),
    "8B layers fp8": llama(8, 6, "train.matmul=fp8"),
    "124M, own attention": gpt2("124M", 32, 1, 8, "train.attention=own"),
    "124M, 4 rows, graphs": gpt2("124M", 4, 1, 12, "train.cuda_graphs=on"),
    "124M, 4 rows, no graphs": gpt2("124M", 4, 1, 12, "train.cuda_graphs=off"),
}
MEMORY_RUNS = ("parallel.strategy=ddp train.keep=norms",
               "parallel.strategy=zero3 train.recompute=full train.keep=none")
# Beyond 3% of it the driver may count this much more than was planned: it loads code of cuBLASLt and cuDNN when a kernel
# is first used, some hundred MiB with their tables, which no plan can know.
LAZY_CODE_BYTES = 768 << 20


class Failed(Exception):
    """A step's result; its words are the report's."""


class LeftOut(Exception):
    """Why a step cannot be taken here."""


def last_lines(text, count=6):
    return " | ".join(text.strip().splitlines()[-count:])


def library_folders(build):
    """Those of a bundle, of the environment, and of NVIDIA's Python packages: for gxp's programs alone."""
    folders = [os.path.join(build, "lib")] + [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    for site in sys.path:
        folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))
    return folders


class Check:
    def __init__(self, args, build, work):
        self.args, self.build, self.work = args, build, work
        self.start = time.monotonic()
        self.results = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "steps": []}
        self.library_path = ":".join(library_folders(build))

    def left_s(self):
        return self.args.limit_s - (time.monotonic() - self.start)

    def path(self, *parts):
        return os.path.join(self.build, *parts)

    def run(self, command, limit_s, environment=None):
        """Its stdout. Failed if it ends wrong or not in time; stderr goes to the log."""
        own = os.path.abspath(command[0]).startswith(self.build + os.sep) or "compute-sanitizer" in command[0]
        environment = {**os.environ, **({"LD_LIBRARY_PATH": self.library_path} if own else {}), **(environment or {})}
        limit = max(5, min(limit_s * self.args.patience, self.left_s()))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                                           start_new_session=True)
            except OSError as error:
                raise Failed(f"start {command[0]}: {error.strerror}") from error
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:  # its ranks, too
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            stdout, stderr = (self.read(file) for file in (out, err))
        self.log(command, code, stdout, stderr)
        if code is None:
            raise Failed(f"{os.path.basename(command[0])} did not end in {limit:.0f} s: {last_lines(stderr or stdout, 2)}")
        if code != 0:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise Failed(f"{os.path.basename(command[0])} ended with {how}: {last_lines(stderr or stdout, 4)}")
        return stdout

    @staticmethod
    def read(file):
        file.seek(0)
        return file.read().decode(errors="replace")

    def log(self, command, code, out, err):
        with open(os.path.join(self.args.out, "gpu-check.log"), "a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(command)}\n{out[-20000:]}{err[-8000:]}(exit code {code})\n\n")

    def step(self, part, name, needs_s, act):
        """`act` returns what the report shows, under its own name."""
        begin = time.monotonic()
        step = {"part": part, "name": name, "status": "ok"}
        try:
            if self.left_s() < needs_s * self.args.patience:
                raise LeftOut("no time left")
            step["data"] = act()
        except LeftOut as why:
            step["status"] = f"left out: {why}"
        except Failed as why:
            step["status"] = f"FAILED: {why}"
        except Exception as why:  # what a program wrote is not what is expected: the next step runs
            step["status"] = f"FAILED: {type(why).__name__}: {why}"
        step["seconds"] = round(time.monotonic() - begin, 1)
        self.results["steps"].append(step)
        self.write()
        print(f"{part}: {name}: {step['status']} ({step['seconds']} s)", flush=True)

    def write(self):
        path, part = os.path.join(self.args.out, "gpu-check"), os.path.join(self.args.out, ".part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)
        os.replace(part, path + ".json")
        write_markdown(self.results, part)
        os.replace(part, path + ".md")

    def failed(self):
        return any(step["status"].startswith("FAILED") for step in self.results["steps"])


# ---- training

def write_tokens(path, model):
    generator = random.Random(1)
    count = TOKEN_ROWS * (model["sequence"] + 1)
    with open(path, "wb") as file:
        for _ in range(TOKEN_ROWS):
            row = generator.choices(range(model["vocabulary"]), k=count // TOKEN_ROWS)
            file.write(b"".join(token.to_bytes(4, "little") for token in row))


def run_file(check, model):
    tokens = os.path.join(check.work, f"{model['vocabulary']}-{model['sequence']}.i32")
    if not os.path.exists(tokens):
        write_tokens(tokens, model)
    wide = "mlp_hidden = 14336\ntied_head = false\n" if model["family"] == "llama" else ""
    path = os.path.join(check.work, "run.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'[model]\nfamily = "{model["family"]}"\nlayers = {model["layers"]}\nhidden = {model["hidden"]}\n'
                   f'heads = {model["heads"]}\nvocab_size = {model["vocabulary"]}\ncontext = {model["sequence"]}\n{wide}'
                   f'[data]\ntrain = ["{tokens}"]\nsequence = {model["sequence"]}\n'
                   f'[train]\nsteps = {model["steps"]}\nmicro_batch = {model["rows"]}\n'
                   f'grad_accum = {model["accumulation"]}\nprecision = "bf16"\ndevice = "cuda"\n'
                   f'gemm_cache = "{check.work}"\n')
    return path


def settings_of(model):
    return [part for setting in model["settings"] for part in ("--set", setting)]


def train(check, model, limit_s, environment=None, ranks=1):
    """The lines of metrics."""
    metrics = os.path.join(check.work, "metrics.jsonl")
    if os.path.exists(metrics):
        os.remove(metrics)
    command = [check.path("cmd", "gxp"), "train", run_file(check, model), "--metrics", metrics, *settings_of(model)]
    check.run(command + (["--nproc", str(ranks)] if ranks > 1 else []), limit_s, environment)
    with open(metrics, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    if len(lines) != model["steps"]:
        raise Failed(f"{len(lines)} lines of metrics for {model['steps']} steps")
    return lines


def measure_model(check, name, model, limit_s=150, environment=None):
    if "train.matmul=fp8" in model["settings"]:
        needs_float8(check)
    timed = train(check, model, limit_s, environment)[WARM_UP_STEPS:]
    row = {"model": name, "tokens_per_s": statistics.median(line["tokens_per_s"] for line in timed),
           "mfu": statistics.median(line["mfu"] for line in timed), "peak_bytes": timed[-1]["peak_bytes"],
           "loss": timed[-1]["loss"]}
    return {"training": [row]}


def needs_float8(check):
    out = check.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], 20)
    if tuple(map(int, out.split()[0].split("."))) < (8, 9):
        raise LeftOut("the GPU has no 8-bit products")


# ---- the parts' steps

def describe_gpu(check):
    query = "name,driver_version,memory.total,clocks.max.sm,power.limit"
    return {"gpu": check.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], 20).strip()}


def versions(check):
    found = {"gxp": check.run([check.path("cmd", "gxp"), "--version"], 20).strip(), "python": sys.version.split()[0]}
    for folder in check.library_path.split(":"):
        for file in glob.glob(os.path.join(folder, "libcublasLt.so.*")) + glob.glob(os.path.join(folder, "libcudnn.so.*")):
            found[os.path.basename(file)] = folder
    return {"versions": found}


def bench_kernels(check, *options):
    out = check.run([check.path("bench", "gxp_cuda_bench"), "--json", *options], 120,
                    {"GXP_GEMM_CACHE": os.path.join(check.work, "cublaslt")})
    rows = json.loads(out)
    for row in rows:
        for key in ("what", "seconds", "flops_per_s", "bytes_per_s", "share_of_ceiling"):
            row[key]  # a KeyError names it
    return {"kernels": rows}


def list_tests(check):
    """Not by run(): Catch2 2 ends a list with the number of tests as its exit code."""
    command = [check.path("tests", "cuda", "gxp_cuda_test"), "--list-test-names-only"]
    environment = {**os.environ, "LD_LIBRARY_PATH": check.library_path}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, env=environment,
                          check=False)
    names = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode == 77 or not names:
        raise Failed(f"gxp_cuda_test lists no tests (exit code {done.returncode}): {last_lines(done.stdout, 2)}")
    return names


def run_shard(check, shard):
    """Every TEST_SHARDS-th test, so that the long ones are spread."""
    names = list_tests(check)[shard::TEST_SHARDS]
    listed = os.path.join(check.work, "tests.txt")
    with open(listed, "w", encoding="utf-8") as file:
        file.write("\n".join(names) + "\n")
    out = check.run([check.path("tests", "cuda", "gxp_cuda_test"), "--durations", "yes", "--input-file", listed], 150)
    seconds = []
    for line in out.splitlines():
        first, _, name = line.partition(" s: ")
        try:
            seconds.append((float(first), name))
        except ValueError:
            continue
    return {"tests": {"shard": shard, "said": last_lines(out, 1), "slowest": sorted(seconds, reverse=True)[:5]}}


def compare_memory(check, settings):
    model = gpt2("124M", 32, 1, 3, *settings.split())
    driver = train(check, model, 60)[-1]["driver_bytes"]
    command = [check.path("cmd", "gxp"), "memcalc", run_file(check, model), "--format", "json", *settings_of(model)]
    planned = json.loads(check.run(command, 20))["results"][0]["peak_bytes"]
    if not -0.03 * planned <= driver - planned <= 0.03 * planned + LAZY_CODE_BYTES:
        raise Failed(f"{planned} bytes are planned, the driver counts {driver}")
    return {"memory": [{"settings": settings, "planned_bytes": planned, "driver_bytes": driver}]}


def two_ranks(check):
    model = gpt2("124M", 8, 1, 4, "parallel.strategy=zero2")
    one = train(check, gpt2("124M", 8, 2, 4), 60)[-1]["loss"]
    two = train(check, model, 90, ranks=2)[-1]["loss"]
    if abs(one - two) > 0.02:
        raise Failed(f"two ranks have loss {two} where one with as many rows has {one}")
    return {"ranks": {"one": one, "two": two}}


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
        options = ("--op", "all", "-d", "all", "-o", "all", "-b", "1000", "-e", "512000", "-f", "512", "-n", "1", "-w", "0")
        rows += len(bench_collectives(check, ranks, memory, 90, *options)["results"])
    return {"exact": {f"collectives of {ranks} ranks, rows that are exact": rows}}


def time_all_reduces(check, ranks):
    report = bench_collectives(check, ranks, "communicator", 60, "-b", "1M", "-e", "256M", "-f", "4")
    rows = [{"ranks": ranks, "size": row["size"], "copy_gb_per_s": report["copy_gb_per_s"],
             **{half: {key: row[half][key] for key in ("time_us", "busbw", "copy_share")} for half in ("out_of_place", "in_place")}}
            for row in report["results"]]
    return {"collectives": rows}


def sanitize(check, mode):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        raise LeftOut("compute-sanitizer was not found")
    test = check.path("tests", "cuda", "gxp_cuda_test")
    return {"sanitizer": {mode: last_lines(check.run([tool, "--tool", mode, "--error-exitcode", "9", test, SANITIZED], 150), 1)}}


def run_torch(check, compiled):
    model = MODELS["124M"]
    sizes = ",".join(str(model[key]) for key in ("layers", "hidden", "heads", "vocabulary", "sequence", "rows"))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gpt_bench.py")
    try:
        check.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], 60)
    except Failed as why:
        raise LeftOut(f"this python3 has no torch that sees the GPU: {why}") from why
    command = [sys.executable, script, "--device", "cuda", "--dtype", "bf16", "--fused", "--steps", "8", "--warmup", "3",
               "--sizes", sizes, *(["--compile"] if compiled else [])]
    out = check.run(command, 120)
    return {"torch": {"compiled" if compiled else "eager": json.loads(out.strip().splitlines()[-1])["tokens_per_s"]}}


def measure(check):
    check.step("measure", "versions", 5, lambda: versions(check))
    for by in ("cudnn", "own"):
        model = gpt2("124M", 32, 1, 4, f"train.attention={by}")
        name = f"four steps of 124M, attention {by}"
        check.step("measure", name, 10, lambda m=model, n=name: measure_model(check, n, m, 90))
    for name, model in MODELS.items():
        check.step("measure", name, 30, lambda n=name, m=model: measure_model(check, n, m))
    check.step("measure", "kernels", 20, lambda: bench_kernels(check))
    for name, model in MORE_MODELS.items():
        check.step("measure", name, 30, lambda n=name, m=model: measure_model(check, n, m))


def check_results(check):
    for shard in range(TEST_SHARDS):
        check.step("check", f"tests {shard + 1}/{TEST_SHARDS}", 20, lambda s=shard: run_shard(check, s))
    for settings in MEMORY_RUNS:
        check.step("check", f"memory with {settings}", 20, lambda s=settings: compare_memory(check, s))
    check.step("check", "two ranks, two processes", 20, lambda: two_ranks(check))
    for ranks in (2, 4):
        check.step("check", f"all-reduces of {ranks} ranks", 10, lambda n=ranks: time_all_reduces(check, n))
        check.step("check", f"collectives of {ranks} ranks", 20, lambda n=ranks: collectives_are_exact(check, n))


def sweep(check):
    check.step("sweep", "slices, ends and candidates", 30, lambda: bench_kernels(check, "--sweep"))
    for mib in SLICES_MIB:
        name = f"124M, slices of {mib} MiB"
        model = gpt2("124M", 32, 1, 8, "train.attention=cudnn")
        check.step("sweep", name, 10,
                   lambda n=name, m=model, s=mib: measure_model(check, n, m, 60, {"GXP_CUDNN_SLICE_MIB": str(s)}))
    for rows in LOGITS_ROWS:
        name = f"124M, logits of {rows} tokens"
        model = gpt2("124M", 32, 1, 8, f"train.logits_rows={rows}")
        check.step("sweep", name, 10, lambda n=name, m=model: measure_model(check, n, m, 60))
    for keep in ("none", "norms", "all"):
        name = f"124M, train.keep {keep}"
        model = gpt2("124M", 32, 1, 8, f"train.keep={keep}")
        check.step("sweep", name, 10, lambda n=name, m=model: measure_model(check, n, m, 60))


def deep(check):
    for mode in ("memcheck", "racecheck"):
        check.step("deep", mode, 30, lambda m=mode: sanitize(check, m))
    for compiled in (False, True):
        name = f"PyTorch, {'compiled' if compiled else 'eager'}"
        check.step("deep", name, 30, lambda c=compiled: run_torch(check, c))


PARTS = {"measure": measure, "check": check_results, "sweep": sweep, "deep": deep}


def unpack(build, work):
    """The folder of the programs: `build`, or what its archive has."""
    archive = os.path.join(build, ARCHIVE)
    if not os.path.exists(archive):
        return os.path.abspath(build)
    with tarfile.open(archive, "r:xz") as tar:
        tar.extractall(work)
    folder = os.path.join(work, "gpu-bundle")
    # GCC's libraries are almost everywhere, and newer ones serve vendors' libraries better.
    starts = subprocess.run([os.path.join(folder, "cmd", "gxp"), "--version"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, check=False,
                            env={**os.environ, "LD_LIBRARY_PATH": ":".join(library_folders(folder))})
    if starts.returncode != 0:
        for file in glob.glob(os.path.join(folder, "fallback", "*")):
            shutil.copy(file, os.path.join(folder, "lib"))
    return folder


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cuda")
    parser.add_argument("--out", default="build/gpu-check")
    parser.add_argument("--limit-s", type=float, default=570, help="seconds for all parts together")
    parser.add_argument("--patience", type=float, default=1, help="times the steps' own limits, for dry runs")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    args = parser.parse_args()
    for part in args.parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'; there are {', '.join(PARTS)}")
    args.out = os.path.abspath(args.out)
    return args


def main():
    args = parse()
    os.makedirs(args.out, exist_ok=True)
    open(os.path.join(args.out, "gpu-check.log"), "w", encoding="utf-8").close()
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        check = Check(args, unpack(args.build, work), work)
        check.step("gpu", "nvidia-smi", 0, lambda: describe_gpu(check))
        if check.failed():
            print("gpu-check: nvidia-smi finds no GPU here; run it where there is one (docs/GPU.md)", file=sys.stderr)
            sys.exit(3)
        for name in args.parts or PARTS:
            PARTS[name](check)
    with open(os.path.join(args.out, "gpu-check.md"), encoding="utf-8") as file:
        print(file.read())
    sys.exit(1 if check.failed() else 0)


if __name__ == "__main__":
    main()
