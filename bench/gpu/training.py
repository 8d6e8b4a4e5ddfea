"""Steps of a GPU's check that train: models, the text they learn, second tries, clocks, and PyTorch on the same text."""
import array
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time

from gpu.programs import PYTHON, Failed, LeftOut, find_tool, last_lines, read, wait_or_kill

WARM_UP_STEPS = 2
FIRST_SAMPLE_S = 5  # until nvidia-smi must have told a clock
GPT2 = {"124M": (12, 768, 12), "774M": (36, 1280, 20), "1.5B": (48, 1600, 25)}


def gpt2(size, rows, accumulation, steps, *settings, step_s=0.1, start_s=20):
    """`step_s`: as predicted for an H100 (docs/GPU.md); `start_s`: to begin, with the first step's trials."""
    layers, hidden, heads = GPT2[size]
    return {"family": "gpt2", "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 50304, "sequence": 1024, "rows": rows,
            "accumulation": accumulation, "steps": steps, "settings": settings, "limit_s": start_s + 3 * steps * step_s}


def llama(accumulation, steps, *settings):
    """Four layers of an 8B model: all of them and their optimizer's state take more than a GPU has."""
    return {"family": "llama", "layers": 4, "hidden": 4096, "heads": 32, "vocabulary": 32000, "sequence": 4096, "rows": 2,
            "accumulation": accumulation, "steps": steps, "settings": ("model.kv_heads=8", *settings), "limit_s": 40 + 3 * steps * 0.9}


# The planned peaks are 14, 65, 70 and 25 GiB at most, whatever train.keep stores: they fit an H100 as they are. AdamW, once a
# step, is a small part of it.
MODELS = {
    "124M": gpt2("124M", 32, 1, 12),
    "774M": gpt2("774M", 32, 4, 6, step_s=1.6, start_s=30),
    "1.5B": gpt2("1.5B", 16, 8, 5, step_s=3.0, start_s=40),
    "8B layers": llama(8, 6),
}
# What a run takes that needs speed rather than the same bits again.
FASTEST = ("train.keep=all", "train.deterministic=off")
FASTEST_MODELS = {f"{name}, fastest": {**model, "settings": model["settings"] + FASTEST} for name, model in MODELS.items()}
MORE_MODELS = {
    **FASTEST_MODELS,
    "8B layers fp8": llama(8, 6, "train.matmul=fp8"),
    "8B layers fp8, fastest": llama(8, 6, "train.matmul=fp8", "train.fp8_accumulation=fast", *FASTEST),
    "1.5B fp8": gpt2("1.5B", 16, 8, 5, "train.matmul=fp8", step_s=3.0, start_s=40),
    "124M, own attention": gpt2("124M", 32, 1, 8, "train.attention=own"),
    "124M, 4 rows, graphs": gpt2("124M", 4, 1, 12, "train.cuda_graphs=on"),
    "124M, 4 rows, no graphs": gpt2("124M", 4, 1, 12, "train.cuda_graphs=off"),
}
# PyTorch's micro-batches, where a step's rows do not fit its memory in ours.
TORCH_ROWS = {"774M": 16, "1.5B": 8}
# To compile a model of 48 layers as a whole takes minutes.
TORCH_COMPILES = {"eager": [], "compiled": ["--compile"], "compiled by blocks": ["--compile-blocks"]}
# What a failing step is tried with, in this order: each leaves out one more of what had never run on this GPU.
WAYS_OUT = ((), ("train.cuda_graphs=off",), ("train.cuda_graphs=off", "train.attention=own"),
            ("train.cuda_graphs=off", "train.attention=own", "train.gemm_cache=off"))
# Bits of clocks_throttle_reasons.active that slow a GPU down.
THROTTLES = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "temperature", 0x40: "hardware temperature", 0x80: "power brake"}
MEMORY_RUNS = ("parallel.strategy=ddp train.keep=norms", "parallel.strategy=zero3 train.recompute=full train.keep=none")
# Beyond 3% of it the driver may count this much more than was planned: it loads code of cuBLASLt and cuDNN when a kernel
# is first used, some hundred MiB with their tables, which no plan can know.
LAZY_CODE_BYTES = 768 << 20


# ---- the text: tokens drawn by Zipf's law, so that a loss which does not fall is seen

def zipf(vocabulary):
    """Cumulated frequencies, and the entropy in nats: on a text not seen before no model has a lower loss."""
    weights = [1 / rank for rank in range(1, vocabulary + 1)]
    total = sum(weights)
    return list(itertools.accumulate(weights)), -sum(w / total * math.log(w / total) for w in weights)


def token_file(check, model):
    path = os.path.join(check.work, f"{model['vocabulary']}-{model['sequence']}.i32")
    if not os.path.exists(path):
        rows = max(m["rows"] * m["accumulation"] * m["steps"] for m in MODELS.values() if m["sequence"] == model["sequence"])
        cumulated, _ = zipf(model["vocabulary"])
        count = rows * (model["sequence"] + 1)
        tokens = array.array("i", random.Random(1).choices(range(model["vocabulary"]), cum_weights=cumulated, k=count))
        with open(path, "wb") as file:
            tokens.tofile(file)
    return path


class WrongLoss(Failed):
    """The run ended well."""


def check_losses(model, losses):
    """The last is not below the text's entropy, and well below the first: frequencies are learned first, in a few steps (GPT-2 124M
    on an H100: 11.01 to 9.11 in four, 7.71 in twelve), the slower the lower the rate."""
    _, entropy = zipf(model["vocabulary"])
    most = losses[0] - min(1.5, len(losses) / 8) * 768 / model["hidden"]
    if not entropy - 0.1 <= losses[-1] <= most:
        raise WrongLoss(f"the loss went from {losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} steps; right is {entropy - 0.1:.2f} to {most:.2f}")


def learning_rate(model):
    """Without a warm-up, wide models need a lower one: Adam's first steps change an output by about the rate times the width."""
    return round(6e-4 * (768 / model["hidden"]) ** 2, 7)


# ---- runs

def run_file(check, model):
    wide = "mlp_hidden = 14336\ntied_head = false\n" if model["family"] == "llama" else ""
    path = os.path.join(check.work, "run.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'[model]\nfamily = "{model["family"]}"\nlayers = {model["layers"]}\nhidden = {model["hidden"]}\n'
                   f'heads = {model["heads"]}\nvocab_size = {model["vocabulary"]}\ncontext = {model["sequence"]}\n{wide}'
                   f'[data]\ntrain = ["{token_file(check, model)}"]\nsequence = {model["sequence"]}\norder = "sequential"\n'
                   f'[optim]\nlr = {learning_rate(model)}\n[lr_schedule]\nname = "constant"\n'
                   f'[train]\nsteps = {model["steps"]}\nmicro_batch = {model["rows"]}\n'
                   f'grad_accum = {model["accumulation"]}\nprecision = "bf16"\ndevice = "cuda"\n'
                   f'gemm_cache = "{check.work}"\n')
    return path


def set_options(settings):
    return [part for setting in settings for part in ("--set", setting)]


def train(check, model, limit_s, environment=None, ranks=1, settings=()):
    """The lines of metrics."""
    metrics = os.path.join(check.work, "metrics.jsonl")
    if os.path.exists(metrics):
        os.remove(metrics)
    command = [check.path("cmd", "gxp"), "train", run_file(check, model), "--metrics", metrics, *set_options(model["settings"] + tuple(settings))]
    check.run(command + (["--nproc", str(ranks)] if ranks > 1 else []), limit_s, environment)
    with open(metrics, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    if len(lines) != model["steps"]:
        raise Failed(f"{len(lines)} lines of metrics for {model['steps']} steps")
    return lines


class Clocks:
    """The GPU's clock, power and what slows it, sampled while the body runs."""

    def __enter__(self):
        self.file, self.process = tempfile.TemporaryFile(), None
        tool = find_tool("nvidia-smi")
        if tool:
            command = [tool, "--query-gpu=clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active", "--format=csv,noheader,nounits",
                       "--id=0", "-lms", "100"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.DEVNULL, start_new_session=True)
            self.wait_for_a_sample()
        return self

    def wait_for_a_sample(self):
        """So that a short body has one; a GPU that tells nothing costs FIRST_SAMPLE_S."""
        end = time.monotonic() + FIRST_SAMPLE_S
        while not os.fstat(self.file.fileno()).st_size and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    def __exit__(self, *_):
        if self.process:
            wait_or_kill(self.process, 0)

    def row(self):
        """Of the samples at more than half of the greatest power: those of the steps."""
        samples = []
        for line in read(self.file).splitlines():
            try:
                clock, power, heat, reasons = line.split(",")
                samples.append((float(clock), float(power), float(heat), int(reasons, 16)))
            except ValueError:
                continue  # cut off, or a value that this GPU does not tell
        if not samples:
            return {}
        busy = [s for s in samples if s[1] > 0.5 * max(s[1] for s in samples)]
        slowed = [name for bit, name in THROTTLES.items() if sum(bool(s[3] & bit) for s in busy) > len(busy) / 4]
        return {"sm_mhz": statistics.median(s[0] for s in busy), "watts": max(s[1] for s in busy), "celsius": max(s[2] for s in busy),
                "slowed_by": slowed}


def measure(check, name, model, limit_s, environment=None, settings=()):
    with Clocks() as clocks:
        lines = train(check, model, limit_s, environment, settings=settings)
    losses = [line["loss"] for line in lines]
    timed = lines[WARM_UP_STEPS:]
    row = {"model": name, "tokens_per_s": statistics.median(line["tokens_per_s"] for line in timed),
           "mfu": statistics.median(line["mfu"] for line in timed), "peak_bytes": timed[-1]["peak_bytes"], "losses": losses, **clocks.row()}
    check.note({"training": [row]})  # even if its losses are wrong
    check_losses(model, losses)


class Training:
    """Steps that train, which learn from each other what does not work on this GPU."""

    def __init__(self, check):
        self.check = check
        self.way = 0  # in WAYS_OUT: the first that has not failed
        self.late = 0  # steps in a row that did not end in time
        self.sanitized = False

    def step(self, name, model, environment=None):
        self.check.step(name, model["limit_s"] / 2, lambda: self.measure(name, model, environment))

    def measure(self, name, model, environment):
        if "train.matmul=fp8" in model["settings"]:
            needs_float8(self.check)
        if self.late >= 2:
            raise LeftOut("two training steps in a row did not end in time")
        if self.way and "train.cuda_graphs=on" in model["settings"]:
            raise LeftOut("graphs have failed before")
        try:
            measure(self.check, name, model, model["limit_s"], environment, WAYS_OUT[self.way])
            self.late = 0
        except Failed as why:
            if why.code is None:  # the next training step, not this one, finds a way out: a hang costs its time once
                self.late += 1
                self.way = min(self.way + 1, len(WAYS_OUT) - 1)
                raise
            self.late = 0
            found = self.find_way(name, model, environment)
            memcheck = "" if found.startswith("it works") or isinstance(why, WrongLoss) else f"; {self.sanitize(model)}"
            raise Failed(f"{why}; {found}{memcheck}") from why

    def find_way(self, name, model, environment):
        for way in range(self.way + 1, len(WAYS_OUT)):
            if self.check.left_s() < 15 * self.check.patience:
                break
            try:
                measure(self.check, name, model, min(30, model["limit_s"]), environment, WAYS_OUT[way])
            except Failed as why:
                if why.code is None:
                    break
                continue
            self.way = way
            return f"it works with {' '.join(WAYS_OUT[way])}"
        return "no way out was found"

    def sanitize(self, model):
        """The kernel and address of a GPU's error, once a call, in two layers of the model."""
        tool = find_tool("compute-sanitizer")
        if self.sanitized or tool is None or self.check.left_s() < 60 * self.check.patience:
            return "memcheck was not run"
        self.sanitized = True
        small = {**model, "layers": 2, "steps": 1, "rows": 1, "accumulation": 1}
        outcome = self.check.start([tool, "--tool", "memcheck", self.check.path("cmd", "gxp"), "train", run_file(self.check, small),
                                    *set_options(model["settings"])], 60)
        found = [line for line in outcome.stdout.splitlines() if line.startswith("=========")]
        return f"memcheck of two layers: {last_lines(chr(10).join(found[:12]), 12) or outcome.how()}"


def needs_float8(check):
    capability = check.results.get("compute_capability", "")
    if capability and tuple(map(int, capability.split("."))) < (8, 9):
        raise LeftOut("the GPU has no 8-bit products")


# ---- where a step's time goes, memory, ranks, PyTorch

def compare_memory(check, settings):
    model = gpt2("124M", 32, 1, 3, *settings.split())
    driver = train(check, model, model["limit_s"])[-1]["driver_bytes"]
    command = [check.path("cmd", "gxp"), "memcalc", run_file(check, model), "--format", "json", *set_options(model["settings"])]
    planned = json.loads(check.run(command, 20))["results"][0]["peak_bytes"]
    check.note({"memory": [{"settings": settings, "planned_bytes": planned, "driver_bytes": driver}]})
    if not -0.03 * planned <= driver - planned <= 0.03 * planned + LAZY_CODE_BYTES:
        raise Failed(f"{planned} bytes are planned, the driver counts {driver}")


def two_ranks(check):
    model = gpt2("124M", 8, 1, 4, "parallel.strategy=zero2")
    one = train(check, gpt2("124M", 8, 2, 4), 40)[-1]["loss"]
    two = train(check, model, 60, ranks=2)[-1]["loss"]
    check.note({"ranks": {"loss of one rank": one, "of two": two}})
    if abs(one - two) > 0.02:
        raise Failed(f"two ranks have loss {two} where one with as many rows has {one}")


def kernels_of_step(check, name, model):
    """Time of each kernel by CUPTI, in steps that neither time trials nor record graphs anew: the cache has every choice."""
    library, steps = check.path("bench", "libgxp_kernel_times.so"), 4
    if not os.path.exists(library):
        raise LeftOut("the build has no libgxp_kernel_times.so")
    table = os.path.join(check.work, "kernels.json")
    train(check, {**model, "steps": steps}, model["limit_s"], {"CUDA_INJECTION64_PATH": library, "GXP_KERNEL_TIMES": table})
    if not os.path.exists(table):
        raise Failed("CUDA did not load libgxp_kernel_times.so; is libcupti.so there?")
    with open(table, encoding="utf-8") as file:
        kernels = json.load(file)
    if not kernels:
        raise Failed("CUPTI saw no kernel")
    kernels = [kernel for kernel in kernels if kernel["name"] != "copy of kind 1"]  # from the host: the first weights
    for kernel in kernels:
        for key in ("calls", "seconds", "idle_seconds"):
            kernel[key] /= steps
    return {"step_kernels": [{"model": name, **kernel} for kernel in sorted(kernels, key=lambda k: -k["seconds"])]}


def time_by_class(check, name, model):
    """Each class of kernels as measured, beside the prediction from the step program."""
    command = [check.path("cmd", "gxp"), "train", run_file(check, model), "--time-by-class", "--format", "json", *set_options(model["settings"])]
    report = json.loads(check.run(command, model["limit_s"]))
    return {"by_class": [{"model": name, **row} for row in report["classes"]]}


def run_torch(check, name, how):
    model = MODELS[name]
    rows = TORCH_ROWS.get(name, model["rows"])
    sizes = ",".join(str(model[key]) for key in ("layers", "hidden", "heads", "vocabulary", "sequence")) + f",{rows}"
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torch_gpt_bench.py")
    seen = check.start([PYTHON, "-c", "import torch; assert torch.cuda.is_available()"], 60)
    if seen.code != 0:
        raise LeftOut(f"this python3 has no torch that sees the GPU: {seen.said(1)}")
    steps = max(3, model["steps"] - 3)
    command = [PYTHON, script, "--device", "cuda", "--dtype", "bf16", "--fused", "--steps", str(steps), "--warmup", "3",
               "--family", model["family"], "--sizes", sizes, "--accumulate", str(model["rows"] * model["accumulation"] // rows),
               "--tokens", token_file(check, model), "--lr", str(learning_rate(model)), "--schedule", "constant", *TORCH_COMPILES[how]]
    with Clocks() as clocks:
        out = check.run(command, 60 + 2 * model["limit_s"])
    result = json.loads(out.strip().splitlines()[-1])
    return {"torch": [{"model": name, "how": how, "tokens_per_s": result["tokens_per_s"], "losses": result["losses"],
                       "peak_bytes": result["peak_gpu_mib"] * 2**20, **clocks.row()}]}
