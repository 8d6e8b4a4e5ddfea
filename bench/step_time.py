#!/usr/bin/env python3
"""Predicted step times (`gxp shard-plan --measure`) beside measured ones (`gxp train`), over strategies, ranks, models.

  bench/step_time.py --gxp build/release/cmd/gxp [--rounds 3] [--profile FILE]

Each round predicts and then trains each configuration, so that a change of the machine's speed meets both; the error is
that of the median prediction against the median of the measured ones. --profile: of the links, made by
`gxp allreduce-test --calibrate`. Prints a table, the errors and Spearman's rank correlation.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

from train_vs_pytorch import RUN_FILE, WARM_UP_STEPS, write_tokens

#          layers hidden heads vocabulary sequence
MODELS = {
    "tiny": (4, 256, 4, 256, 256),
    "small": (6, 384, 6, 256, 256),
    "deep": (12, 256, 4, 1024, 128),
    "wide": (2, 768, 12, 4096, 128),
}
#        model, ranks, strategy, micro-batch, other settings
RUNS = [
    ("tiny", 1, "ddp", 8, ""), ("tiny", 2, "ddp", 8, ""), ("tiny", 2, "zero1", 8, ""), ("tiny", 2, "zero2", 8, ""),
    ("tiny", 2, "zero3", 8, ""), ("tiny", 2, "zero3", 2, ""), ("tiny", 2, "shard_grad_op", 4, "train.precision=bf16"),
    ("tiny", 2, "zero2", 4, "train.grad_accum=4"), ("tiny", 1, "ddp", 2, "train.grad_accum=4"),
    ("small", 1, "ddp", 4, ""), ("small", 2, "ddp", 4, ""), ("small", 2, "zero3", 4, ""),
    ("small", 2, "zero1", 2, "train.precision=bf16"), ("small", 2, "zero3", 1, "train.grad_accum=2"),
    ("deep", 1, "ddp", 4, ""), ("deep", 2, "ddp", 4, ""), ("deep", 2, "zero2", 8, ""), ("deep", 2, "zero3", 2, ""),
    ("wide", 1, "ddp", 4, ""), ("wide", 2, "ddp", 4, ""), ("wide", 2, "zero1", 4, ""), ("wide", 2, "zero3", 4, ""),
    ("wide", 2, "zero3", 1, "train.precision=bf16"), ("wide", 2, "ddp", 1, "comm.transport=tcp"),
]
STEPS = 8


def run_file(folder, model, batch):
    layers, hidden, heads, vocabulary, sequence = MODELS[model]
    tokens = os.path.join(folder, model + ".i32")
    if not os.path.exists(tokens):
        write_tokens(tokens, vocabulary, sequence, 64)
    path = os.path.join(folder, "run.toml")
    with open(path, "w") as file:
        file.write(RUN_FILE.format(layers=layers, hidden=hidden, heads=heads, vocabulary=vocabulary, sequence=sequence,
                                   batch=batch, steps=WARM_UP_STEPS + STEPS, tokens=tokens))
    return path


def once(args, folder, run):
    model, ranks, strategy, batch, others = run
    path = run_file(folder, model, batch)
    sets = ["--set", f"parallel.strategy={strategy}", "--set", f"train.threads={2 // ranks}"]
    for setting in others.split():
        sets += ["--set", setting]
    if args.profile:
        sets += ["--set", f"comm.profile={args.profile}"]
    plan = [args.gxp, "shard-plan", path, "--measure", "--format", "json", "--nproc", str(ranks), *sets]
    facts = json.loads(subprocess.run(plan, check=True, capture_output=True, text=True).stdout)
    metrics = os.path.join(folder, "metrics.jsonl")
    subprocess.run([args.gxp, "train", path, "--overwrite", "--nproc", str(ranks), "--metrics", metrics, *sets], check=True,
                   capture_output=True)
    with open(metrics) as file:
        seconds = [json.loads(line)["step_ms"] / 1e3 for line in file][WARM_UP_STEPS:]
    return facts["step_seconds"], statistics.median(seconds)


def ranks_of(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [order.index(i) for i in range(len(values))]


def spearman(a, b):
    n = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(ranks_of(a), ranks_of(b))) / (n * (n * n - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", default="build/release/cmd/gxp")
    parser.add_argument("--profile", default="")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    predicted, measured, errors = [], [], []
    print("| model | ranks | strategy | micro-batch | settings | predicted ms | measured ms | error |\n" + "|---" * 8 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS:
            pairs = [once(args, folder, run) for _ in range(args.rounds)]
            predicted.append(statistics.median(p for p, _ in pairs))
            measured.append(statistics.median(m for _, m in pairs))
            errors.append(predicted[-1] / measured[-1] - 1)
            model, ranks, strategy, batch, others = run
            print(f"| {model} | {ranks} | {strategy} | {batch} | {others} | {predicted[-1] * 1e3:.1f} | "
                  f"{measured[-1] * 1e3:.1f} | {errors[-1]:+.1%} |", flush=True)
    print(f"\n{len(RUNS)} configurations: mean absolute error {statistics.mean(map(abs, errors)):.1%}, "
          f"worst {max(map(abs, errors)):.1%}, Spearman {spearman(predicted, measured):.3f}")


if __name__ == "__main__":
    main()
