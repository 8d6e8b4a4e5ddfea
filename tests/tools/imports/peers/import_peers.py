#!/usr/bin/env python3
"""Configurations of other launchers, read by gxp and by the launchers' own parsers.

    import_peers.py GXP CONFIGS

CONFIGS is tests/data/configs. What gxp imports must be what DeepSpeed's DeepSpeedConfig, accelerate's
load_config_from_file() and transformers' TrainingArguments say of the file: sizes of the batch, stage,
offload, types, optimizer, rates, schedule, ranks. What gxp exports must be read by DeepSpeedConfig.
Parsers that are not installed are named and skipped; without any, exit code 77.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

GXP, CONFIGS = sys.argv[1:3]
RANKS = 8
STRATEGIES = ["ddp", "zero1", "zero2", "zero3"]
failures = []


def check(name, what, ours, theirs):
    if ours != theirs:
        failures.append(f"{name}: {what}: gxp has {ours!r}, the peer {theirs!r}")


def gxp(*arguments):
    done = subprocess.run([GXP, "train", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout


def imported(path, *more):
    """The report, with the defaults of the program merged into `settings`; None if it is refused."""
    code, out = gxp("--import", path, "--format", "json", *more)
    if code != 0:
        return None
    report = json.loads(out)
    report["all"] = {**report["source_defaults"], **report["settings"]}
    return report


def files(folder, ending):
    return [path for path in sorted(glob.glob(f"{CONFIGS}/{folder}/*{ending}"))
            if not path.endswith(".expected.json")]


def compare_deepspeed(name, path, report):
    import deepspeed.runtime.config as config
    config.dist.get_rank = lambda *_: 0
    config.dist.get_world_size = lambda *_: RANKS
    try:
        theirs = config.DeepSpeedConfig(path)
    except Exception as error:
        return str(error)
    ours = report["all"]
    batch = report["batch"]
    check(name, "batch", [batch["micro"], batch["grad_accum"], batch["global"]],
          [theirs.train_micro_batch_size_per_gpu, theirs.gradient_accumulation_steps,
           theirs.train_batch_size])
    strategy = ours.get("parallel.strategy", "ddp")
    if strategy != "zero3_hpz":
        check(name, "stage", strategy, STRATEGIES[int(theirs.zero_optimization_stage)])
    for setting, block in (("offload.optimizer", theirs.zero_config.offload_optimizer),
                           ("offload.parameters", theirs.zero_config.offload_param)):
        device = "none" if block is None else getattr(block.device, "value", block.device)
        check(name, setting, ours.get(setting, "none"),
              {"none": "none", "cpu": "memory", "nvme": "file"}[device])
    type_there = "fp16" if theirs.float16_config.enabled else \
        "bf16" if theirs.bfloat16_config.enabled else "fp32"
    check(name, "type", ours.get("train.precision", "fp32"), type_there)
    check(name, "clipping", ours["optim.clip"], theirs.gradient_clipping)
    params = theirs.optimizer_params or {}
    if "lr" in params and not theirs.scheduler_name:
        check(name, "lr", ours["optim.lr"], float(params["lr"]))
    if "weight_decay" in params:
        check(name, "weight_decay", ours["optim.weight_decay"], params["weight_decay"])
    if theirs.scheduler_name:
        check(name, "schedule", ours["lr_schedule.name"],
              {"WarmupLR": "warmup", "WarmupDecayLR": "linear",
               "WarmupCosineLR": "cosine"}[theirs.scheduler_name])
    return None


def deepspeed_files():
    import deepspeed
    deepspeed.utils.logger.setLevel(50)
    compared = exported = 0
    with tempfile.TemporaryDirectory() as folder:
        run, back = f"{folder}/run.toml", f"{folder}/ds.json"
        for path in files("deepspeed", ".json"):
            name = os.path.basename(path)
            has_auto = '"auto"' in open(path).read()
            report = imported(path, "--nproc", str(RANKS), "--set", "data.train=x", "--set",
                              "model.layers=2", "-o", run)
            if report is None:
                continue
            if not has_auto:
                compared += compare_deepspeed(name, path, report) is None
            if gxp(run, "--export", "deepspeed", "-o", back)[0] != 0:
                continue
            again = imported(back, "--nproc", str(RANKS))
            if again is None:
                failures.append(f"{name}: gxp does not import what it has exported")
                continue
            refusal = compare_deepspeed(name + ", exported", back, again)
            if refusal:
                failures.append(f"{name}: DeepSpeed does not read the export: {refusal}")
            exported += 1
    return f"{compared} files and {exported} exports"


def accelerate_files():
    from accelerate.commands.config.config_args import load_config_from_file
    compared = 0
    for path in files("accelerate", ".yaml"):
        name = os.path.basename(path)
        report = imported(path)
        if report is None:
            continue
        theirs = load_config_from_file(path)
        ours = report["all"]
        precision = theirs.mixed_precision
        precision = {"no": "fp32", False: "fp32", None: "fp32", "fp8": "bf16"}.get(precision,
                                                                                  precision)
        check(name, "type", ours.get("train.precision", "fp32"), precision)
        ranks = ours.get("--nproc", 1) * ours.get("--nnodes", 1)
        check(name, "ranks", ranks, theirs.num_processes)
        check(name, "hosts", ours.get("--nnodes", 1), theirs.num_machines)
        compared += 1
    return f"{compared} files"


def trainer_files():
    from transformers import HfArgumentParser, TrainingArguments
    compared = 0
    for path in files("training_arguments", ".json"):
        name = os.path.basename(path)
        report = imported(path)
        given = json.load(open(path))
        if report is None or "deepspeed" in given:
            continue
        # Their checks of this machine's GPU, and of keys that are gone, are not about the values.
        switches = {key: given.pop(key, False) for key in ("bf16", "fp16")}
        given = {key: value for key, value in given.items()
                 if key in TrainingArguments.__dataclass_fields__ and key not in ("tf32", "fsdp",
                                                                                  "fsdp_config")}
        theirs = HfArgumentParser(TrainingArguments).parse_dict({**given, "use_cpu": True})[0]
        ours = report["all"]
        for setting, value in (("train.micro_batch", theirs.per_device_train_batch_size),
                               ("optim.lr", theirs.learning_rate),
                               ("optim.weight_decay", theirs.weight_decay),
                               ("optim.beta2", theirs.adam_beta2),
                               ("optim.clip", theirs.max_grad_norm),
                               ("train.seed", theirs.seed),
                               ("train.steps", theirs.max_steps)):
            check(name, setting, ours[setting], value)
        check(name, "type", ours.get("train.precision", "fp32"),
              "bf16" if switches["bf16"] else "fp16" if switches["fp16"] else "fp32")
        schedule = getattr(theirs.lr_scheduler_type, "value", theirs.lr_scheduler_type)
        check(name, "schedule", ours["lr_schedule.name"],
              {"constant_with_warmup": "warmup"}.get(schedule, schedule.split("_")[0]))
        compared += 1
    return f"{compared} files"


def main():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    ran = False
    for module, compare in (("deepspeed", deepspeed_files), ("accelerate", accelerate_files),
                            ("transformers", trainer_files)):
        try:
            __import__(module)
        except ImportError as error:
            print(f"skipped: {module}: {error}")
            continue
        print(f"{module}: {compare()}", flush=True)
        ran = True
    for failure in failures:
        print(failure)
    return 1 if failures else 0 if ran else 77


sys.exit(main())
