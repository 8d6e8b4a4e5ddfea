#!/usr/bin/env python3
"""gxp train beside PyTorch on the CPU: tokens/s and peak resident memory, interleaved, medians.

  bench/train_vs_pytorch.py --gxp build/release/cmd/gxp --python VENV/bin/python [--configs tiny small gpt2-124m]
                            [--precision bf16] [--pairs one ddp fsdp]
                            [--gemm-bench build/release/bench/gxp_gemm_bench]

VENV has torch, numpy and safetensors. Pairs: one process with two threads on both sides; two ranks of one thread with ddp
and PyTorch's DDP; two ranks with full_shard and PyTorch's FSDP2 (fully_shard). Each round runs all programs one after the
other, so that a change of the machine's speed meets all; a ratio is the median of the rounds' ratios. The same model, batch
and sequence on both sides, in float32, or bf16 (PyTorch: autocast); a step is forward, backward, clipping and AdamW.

With --gemm-bench every round also times the step's matrix products alone, in gxp and in oneDNN (weights packed beforehand).
model_flops_share is the one process' model FLOP/s over the better of both: 6 (N - T C) + 6 L C T a token, which is 6 for every
multiplied parameter (all but the table of positions) and the causal half of attention.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

#          layers hidden heads vocabulary sequence batch steps
CONFIGS = {
    "tiny": (4, 256, 4, 256, 256, 8, 12),
    "small": (6, 384, 6, 256, 256, 8, 8),
    "gpt2-124m": (12, 768, 12, 50257, 256, 4, 4),
}
WARM_UP_STEPS = 2
THREADS = 2  # of all ranks together
#        ranks, parallel.strategy, --parallel of torch_gpt_bench.py
PAIRS = {
    "one": (1, "ddp", "none"),
    "ddp": (2, "ddp", "ddp"),
    "fsdp": (2, "full_shard", "fsdp"),
}

RUN_FILE = """
[model]
layers = {layers}
hidden = {hidden}
heads = {heads}
vocab_size = {vocabulary}
context = {sequence}
[data]
train = ["{tokens}"]
[train]
steps = {steps}
micro_batch = {batch}
"""


def write_tokens(path, vocabulary, sequence, rows):
    """Rows of sequence + 1 random token ids, int32."""
    import random

    random.seed(1)
    ids = [random.randrange(vocabulary) for _ in range(rows * (sequence + 1))]
    with open(path, "wb") as file:
        file.write(b"".join(i.to_bytes(4, "little") for i in ids))


def run_gxp(args, folder, name, ranks, strategy):
    layers, hidden, heads, vocabulary, sequence, batch, steps = CONFIGS[name]
    tokens = os.path.join(folder, name + ".i32")
    if not os.path.exists(tokens):
        write_tokens(tokens, vocabulary, sequence, 8 * batch)
    config = os.path.join(folder, name + ".toml")
    with open(config, "w") as file:
        file.write(RUN_FILE.format(layers=layers, hidden=hidden, heads=heads, vocabulary=vocabulary, sequence=sequence,
                                   batch=batch, steps=steps + WARM_UP_STEPS, tokens=tokens))
    metrics = os.path.join(folder, "metrics.jsonl")
    command = [args.gxp, "train", config, "--overwrite", "--metrics", metrics, "--nproc", str(ranks),
               "--set", f"train.threads={THREADS // ranks}", "--set", f"train.precision={args.precision}",
               "--set", f"parallel.strategy={strategy}"]
    # Its own parent, so that the largest resident size of the children is this run's.
    measured = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL,"
                " stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    kib = int(subprocess.run(["python3", "-c", measured, *command], check=True, capture_output=True, text=True).stdout)
    with open(metrics) as file:
        seconds = [json.loads(line)["step_ms"] / 1e3 for line in file][WARM_UP_STEPS:]
    return ranks * batch * sequence / statistics.median(seconds), kib / 1024


def run_torch(args, name, ranks, parallel):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gpt_bench.py")
    command = [args.python, script, "--dtype", args.precision, "--config", name, "--threads", str(THREADS // ranks),
               "--steps", str(CONFIGS[name][-1]), "--warmup", str(WARM_UP_STEPS), "--ranks", str(ranks),
               "--parallel", parallel]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return result["tokens_per_s"], result["peak_rss_mib"]


def model_flops_per_token(name):
    layers, hidden, _, vocabulary, sequence, _, _ = CONFIGS[name]
    multiplied = layers * (12 * hidden * hidden + 13 * hidden) + 2 * hidden + vocabulary * hidden
    return 6 * multiplied + 6 * layers * hidden * sequence


def run_gemm_bench(args, name):
    """FLOP/s of all the step's products, gxp's and oneDNN's."""
    layers, hidden, _, vocabulary, sequence, batch, _ = CONFIGS[name]
    command = [args.gemm_bench, str(THREADS), "3", "step", *map(str, (layers, hidden, vocabulary, batch * sequence))]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    row = out.splitlines()[-1].split()
    own = -8 + (5 if args.precision == "bf16" else 1)
    return float(row[own]) * 1e9, float(row[own + 1]) * 1e9


def compare(args, folder, name):
    rounds = []
    for _ in range(args.rounds):
        rounds.append({pair: (run_gxp(args, folder, name, ranks, strategy), run_torch(args, name, ranks, parallel))
                       for pair, (ranks, strategy, parallel) in PAIRS.items() if pair in args.pairs})
        if args.gemm_bench:
            rounds[-1]["gemm"] = run_gemm_bench(args, name)
    middle = lambda f: statistics.median(f(r) for r in rounds)
    for pair in args.pairs:
        result = {
            "config": name, "pair": pair, "precision": args.precision, "rounds": args.rounds,
            "gxp_tokens_per_s": round(middle(lambda r: r[pair][0][0])),
            "torch_tokens_per_s": round(middle(lambda r: r[pair][1][0])),
            "speed_ratio": round(middle(lambda r: r[pair][0][0] / r[pair][1][0]), 3),
            "gxp_peak_rss_mib": round(middle(lambda r: r[pair][0][1])),
            "torch_peak_rss_mib": round(middle(lambda r: r[pair][1][1])),
            "memory_ratio": round(middle(lambda r: r[pair][0][1] / r[pair][1][1]), 3),
        }
        for other in ("one", "ddp"):
            if other in rounds[0] and other != pair:
                result[f"gxp_over_{other}"] = round(middle(lambda r: r[pair][0][0] / r[other][0][0]), 3)
        if args.gemm_bench and pair == "one":
            flops = model_flops_per_token(name)
            result["gxp_gemm_gflops"] = round(middle(lambda r: r["gemm"][0] / 1e9))
            result["onednn_gemm_gflops"] = round(middle(lambda r: r["gemm"][1] / 1e9))
            result["gxp_model_gflops"] = round(middle(lambda r: flops * r[pair][0][0] / 1e9))
            result["model_flops_share"] = round(middle(lambda r: flops * r[pair][0][0] / max(r["gemm"])), 3)
        print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", default="build/release/cmd/gxp")
    parser.add_argument("--python", default="python3", help="a Python with torch")
    parser.add_argument("--configs", nargs="+", default=list(CONFIGS), choices=list(CONFIGS))
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gemm-bench", help="gxp_gemm_bench: report the model's FLOP/s beside its products'")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.configs:
            compare(args, folder, name)


if __name__ == "__main__":
    main()
