#!/usr/bin/env python3
"""Checks the CUDA backend on the GPU at hand and measures it, in at most 8 minutes and without a network.

  bench/gpu_check.py --build build/cuda [--out build/gpu-check]

Run in the project's folder. --build has cmd/gxp, tests/cuda/gxp_cuda_test and bench/gxp_cuda_bench, made here or carried
(make gpu-bundle). They need libcublasLt.so.13, found as the loader does, or in the Python packages of the python3 that
runs this. Parts, in this order: the tests, which hold every kernel against the CPU's oracle and train the golden traces under
every strategy with one and two ranks; compute-sanitizer over a sample of them; planned memory beside the driver's count;
the kernels beside the copy and product rates of the same run; tokens/s and MFU of GPT-2 124M, 774M, 1.5B and of layers
of an 8B Llama, each beside PyTorch (eager and compiled) where this python3 has torch, of 124M in small batches with and
without CUDA graphs, and of the larger two with fp8 products. A part that would not end in time is left out, and named.
Writes gpu-check.json and gpu-check.md; the exit code is 1 if a check failed.
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from train_vs_pytorch import write_tokens

BUDGET_S = 8 * 60
WARM_UP_STEPS = 3

#           family, layers, hidden, heads, MLP, vocabulary, sequence, rows, other settings
MODELS = {
    "124M": ("gpt2", 12, 768, 12, 0, 50304, 1024, 32, ""),
    "774M": ("gpt2", 36, 1280, 20, 0, 50304, 1024, 8, ""),
    "1.5B": ("gpt2", 48, 1600, 25, 0, 50304, 1024, 8, "train.recompute=selective"),
    "8B layers": ("llama", 4, 4096, 32, 14336, 32000, 4096, 2, "model.kv_heads=8"),
    "124M, 4 rows, graphs": ("gpt2", 12, 768, 12, 0, 50304, 1024, 4, "train.cuda_graphs=on"),
    "124M, 4 rows, no graphs": ("gpt2", 12, 768, 12, 0, 50304, 1024, 4, "train.cuda_graphs=off"),
    "1.5B fp8": ("gpt2", 48, 1600, 25, 0, 50304, 1024, 8, "train.recompute=selective train.matmul=fp8"),
    "8B layers fp8": ("llama", 4, 4096, 32, 14336, 32000, 4096, 2, "model.kv_heads=8 train.matmul=fp8"),
}
# Whose memory is compared: a run that computes little.
MEMORY_RUNS = ["parallel.strategy=ddp", "parallel.strategy=zero3 train.recompute=full"]
SANITIZED = "layernorm*,rmsnorm*,an embedding*,*classifier*,attention is right*,bias_backward*"


class Check:
    def __init__(self, args):
        self.args = args
        self.start = time.monotonic()
        self.results = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv)}
        self.failed, self.left_out = [], []
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(library_folders(args.build))}

    def left_s(self):
        return BUDGET_S - (time.monotonic() - self.start)

    def run(self, command, limit_s, environment=None):
        """(exit code or None after the time limit, output)."""
        limit = max(5, min(limit_s, self.left_s()))
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit,
                                  env={**self.environment, **(environment or {})}, check=False)
            return done.returncode, done.stdout
        except FileNotFoundError as missing:
            return 127, str(missing)
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            return None, output.decode(errors="replace") if isinstance(output, bytes) else output

    def part(self, name, needs_s, check):
        if self.left_s() < needs_s:
            self.left_out.append(f"{name}: no time left")
            return
        begin = time.monotonic()
        ok = check()
        self.results.setdefault("seconds", {})[name] = round(time.monotonic() - begin, 1)
        print(f"{name}: {'ok' if ok else 'FAILED'}", flush=True)
        if not ok:
            self.failed.append(name)

    def path(self, *parts):
        return os.path.join(self.args.build, *parts)


def library_folders(build):
    """Those of the environment, of a bundle, and of NVIDIA's Python packages."""
    folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f] + [os.path.abspath(os.path.join(build, "lib"))]
    for site in sys.path:
        folders += glob.glob(os.path.join(site, "nvidia", "*", "lib"))
    return folders


def last_lines(text, count=6):
    return "\n".join(text.strip().splitlines()[-count:])


def describe_gpu(check):
    code, out = check.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], 20)
    check.results["gpu"] = out.strip() if code == 0 else "unknown"
    return code == 0


def run_tests(check):
    code, out = check.run([check.path("tests", "cuda", "gxp_cuda_test")], 150)
    check.results["tests"] = last_lines(out, 2)
    if code != 0:
        check.results["tests_output"] = out[-6000:]
    return code == 0


def sanitize(check):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        check.left_out.append("sanitizer: compute-sanitizer was not found")
        return True
    found = {}
    for mode in ("memcheck", "racecheck"):
        command = [tool, "--tool", mode, "--error-exitcode", "9", check.path("tests", "cuda", "gxp_cuda_test"), SANITIZED]
        code, out = check.run(command, 45)
        if code is None:
            check.left_out.append(f"sanitizer: {mode} did not end in 45 s")
            continue
        found[mode] = last_lines(out, 1)
        if code != 0:
            found[mode + "_output"] = out[-4000:]
    check.results["sanitizer"] = found
    return not any(key.endswith("_output") for key in found)


def run_file(check, name, steps):
    family, layers, hidden, heads, mlp, vocabulary, sequence, rows, _ = MODELS[name]
    tokens = os.path.join(check.args.out, f"{vocabulary}-{sequence}.i32")
    if not os.path.exists(tokens):
        write_tokens(tokens, vocabulary, sequence, 64)
    path = os.path.join(check.args.out, "run.toml")
    llama = f"mlp_hidden = {mlp}\ntied_head = false\n" if mlp else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'[model]\nfamily = "{family}"\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\n'
                   f'vocab_size = {vocabulary}\ncontext = {sequence}\n{llama}'
                   f'[data]\ntrain = ["{tokens}"]\nsequence = {sequence}\n'
                   f'[train]\nsteps = {steps}\nmicro_batch = {rows}\nprecision = "bf16"\ndevice = "cuda"\n'
                   f'gemm_cache = "{check.args.out}"\n')
    return path


def train(check, name, steps, settings, limit_s):
    """The lines of metrics, or the output that tells why there are none."""
    metrics = os.path.join(check.args.out, "metrics.jsonl")
    if os.path.exists(metrics):
        os.remove(metrics)
    sets = [part for setting in settings.split() for part in ("--set", setting)]
    command = [check.path("cmd", "gxp"), "train", run_file(check, name, steps), "--metrics", metrics, *sets]
    code, out = check.run(command, limit_s)
    if code != 0:
        return None, last_lines(out)
    with open(metrics, encoding="utf-8") as file:
        return [json.loads(line) for line in file], out


def compare_memory(check):
    rows, good = [], True
    for settings in MEMORY_RUNS:
        lines, out = train(check, "124M", 3, settings, 60)
        command = [check.path("cmd", "gxp"), "memcalc", os.path.join(check.args.out, "run.toml"), "--format", "json",
                   *[part for setting in settings.split() for part in ("--set", setting)]]
        code, planned = check.run(command, 20)
        if lines is None or code != 0:
            rows.append({"settings": settings, "error": out if lines is None else last_lines(planned)})
            good = False
            continue
        peak = json.loads(planned)["results"][0]["peak_bytes"]
        driver = lines[-1]["driver_bytes"]
        rows.append({"settings": settings, "planned_bytes": peak, "driver_bytes": driver, "error": peak / driver - 1})
        good = good and abs(peak / driver - 1) < 0.03
    check.results["memory"] = rows
    return good


def bench_kernels(check):
    code, out = check.run([check.path("bench", "gxp_cuda_bench"), "--json"], 90,
                          {"GXP_GEMM_CACHE": os.path.join(check.args.out, "cublaslt")})
    try:
        check.results["kernels"] = json.loads(out)
    except ValueError:
        check.results["kernels_output"] = last_lines(out)
    return code == 0


def run_torch(check, name, compiled):
    family, layers, hidden, heads, _, vocabulary, sequence, rows, _ = MODELS[name]
    if family != "gpt2" or name.endswith("fp8"):
        return None
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gpt_bench.py")
    command = [sys.executable, script, "--device", "cuda", "--dtype", "bf16", "--fused", "--steps", "8", "--warmup", "3",
               "--sizes", ",".join(map(str, (layers, hidden, heads, vocabulary, sequence, rows)))]
    code, out = check.run(command + (["--compile"] if compiled else []), 90)
    return json.loads(out.strip().splitlines()[-1])["tokens_per_s"] if code == 0 else None


def has_torch(check):
    code, _ = check.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], 60)
    return code == 0


def has_float8(check):
    code, out = check.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], 20)
    return code == 0 and tuple(map(int, out.split()[0].split("."))) >= (8, 9)


def measure_training(check):
    torch = has_torch(check)
    if not torch:
        check.left_out.append("PyTorch: this python3 has no torch that sees the GPU")
    rows, good = [], True
    for name, model in MODELS.items():
        if check.left_s() < 40:
            check.left_out.append(f"training {name}: no time left")
            continue
        if name.endswith("fp8") and not has_float8(check):
            check.left_out.append(f"training {name}: the GPU has no 8-bit products")
            continue
        lines, out = train(check, name, 10, model[-1], 90)
        if lines is None:
            rows.append({"model": name, "error": out})
            good = False
            continue
        timed = lines[WARM_UP_STEPS:]
        row = {"model": name, "tokens_per_s": statistics.median(line["tokens_per_s"] for line in timed),
               "mfu": statistics.median(line["mfu"] for line in timed), "peak_bytes": timed[-1]["peak_bytes"]}
        for key, compiled in (("torch_eager_tokens_per_s", False), ("torch_compiled_tokens_per_s", True)):
            if torch and "cuda_graphs" not in model[-1] and check.left_s() > 60:
                row[key] = run_torch(check, name, compiled)
        rows.append(row)
    check.results["training"] = rows
    check.results["mfu_convention"] = ("6 FLOPs per multiplied parameter and token, causal half of attention, over the data "
                                       "sheet's bf16 rate without sparsity")
    return good


def ratio(row, key):
    other = row.get(key)
    return f"{row['tokens_per_s'] / other:.2f}" if other else ""


def write_markdown(check, path):
    r = check.results
    lines = [f"# GPU check, {r['date']}", "", f"{r.get('gpu')}; `{r['command']}`", ""]
    lines += [f"Failed: {', '.join(check.failed) or 'nothing'}. Left out: {'; '.join(check.left_out) or 'nothing'}.", "",
              f"Tests: {r.get('tests', 'not run')}", "", f"Sanitizer: {r.get('sanitizer', 'not run')}", ""]
    lines += ["| memory of 124M | planned MiB | driver MiB | error |", "|---|---|---|---|"]
    for row in r.get("memory", []):
        if "planned_bytes" in row:
            lines.append(f"| {row['settings']} | {row['planned_bytes'] / 2**20:.0f} | {row['driver_bytes'] / 2**20:.0f} "
                         f"| {100 * row['error']:+.1f}% |")
    lines += ["", f"MFU: {r.get('mfu_convention', '')}", "",
              "| model | tokens/s | MFU | over PyTorch eager | over torch.compile |", "|---|---|---|---|---|"]
    for row in r.get("training", []):
        if "tokens_per_s" not in row:
            lines.append(f"| {row['model']} | {row['error']} | | | |")
            continue
        lines.append(f"| {row['model']} | {row['tokens_per_s']:.0f} | {100 * row['mfu']:.1f}% "
                     f"| {ratio(row, 'torch_eager_tokens_per_s')} | {ratio(row, 'torch_compiled_tokens_per_s')} |")
    lines += ["", "| kernel | us | TFLOP/s | GB/s | of the ceiling |", "|---|---|---|---|---|"]
    for k in r.get("kernels", []):
        lines.append(f"| {k['what']} | {1e6 * k['seconds']:.1f} | {k['flops_per_s'] / 1e12:.1f} "
                     f"| {k['bytes_per_s'] / 1e9:.0f} | {100 * k['share_of_ceiling']:.0f}% |")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cuda")
    parser.add_argument("--out", default="build/gpu-check")
    check = Check(parser.parse_args())
    check.args.out = os.path.abspath(check.args.out)
    os.makedirs(check.args.out, exist_ok=True)
    if not describe_gpu(check):
        print("gpu-check: nvidia-smi finds no GPU here; run it where there is one (docs/GPU.md)", file=sys.stderr)
        sys.exit(3)
    check.part("tests", 10, lambda: run_tests(check))
    check.part("sanitizer", 30, lambda: sanitize(check))
    check.part("memory", 30, lambda: compare_memory(check))
    check.part("kernels", 30, lambda: bench_kernels(check))
    check.part("training", 60, lambda: measure_training(check))
    check.results.update(failed=check.failed, left_out=check.left_out)
    with open(os.path.join(check.args.out, "gpu-check.json"), "w", encoding="utf-8") as file:
        json.dump(check.results, file, indent=1)
    report = os.path.join(check.args.out, "gpu-check.md")
    write_markdown(check, report)
    with open(report, encoding="utf-8") as file:
        print(file.read())
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
