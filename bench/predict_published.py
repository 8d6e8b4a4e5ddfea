#!/usr/bin/env python3
"""Published step times beside what gxp shard-plan predicts: the error of each table's rows.

  bench/predict_published.py --gxp build/release/cmd/gxp [--tables DIR] [--rows]

DIR holds tables such as those in tests/data/plan (the default); also read: megatron-papers.csv (arXiv:2104.04473 tables 1
and 2, arXiv:2205.05198 table 5) and nemo-24.12-h100-fp8.csv. What a row does not tell is assumed: without a micro-batch 4
sequences, 1 where there are pipeline stages; without pieces of the model on each stage 5 (Llama 3 in Megatron-Bridge).
Error: predicted time over measured, minus 1. Rows that no plan says are counted with their reason.
"""
import argparse
import collections
import csv
import json
import os
import subprocess
import tempfile

SHAPES = {"GPT3-5B": (24, 4096, 32, 51200), "Nemotron-22B": (40, 6144, 48, 256000)}  # layers, hidden, heads, vocabulary
NAMES = {"GPT3-175B": "gpt3-175b", "LLAMA2-7B": "llama2-7b", "LLAMA2-13B": "llama2-13b", "LLAMA2-70B": "llama2-70b",
         "LLAMA3-8B": "llama3-8b", "LLAMA3-70B": "llama3-70b", "LLAMA3_8B": "llama3-8b", "LLAMA3_70B": "llama3-70b",
         "LLAMA3.1_405B": "llama3.1-405b"}


class OutOfScope(Exception):
    pass


class Row:
    """A row as options of gxp shard-plan, and the tokens per second and GPU that were measured."""

    def __init__(self, name, model, cluster, software, measured, **options):
        self.name, self.model, self.cluster, self.software, self.measured = name, model, cluster, software, measured
        self.options = {key.replace("_", "-"): value for key, value in options.items() if value}


def number(text, absent=0):
    return int(text) if text.strip().isdigit() else absent


def write_config(folder, layers, hidden, heads, vocabulary, sequence):
    path = os.path.join(folder, f"gpt-{layers}-{hidden}-{heads}-{vocabulary}-{sequence}.json")
    with open(path, "w") as file:
        json.dump({"model_type": "gpt2", "n_layer": layers, "n_embd": hidden, "n_head": heads, "vocab_size": vocabulary,
                   "n_positions": sequence}, file)
    return path


def llm_foundry(row, folder):
    cluster = {"a100_40gb": "a100-40gb-roce", "a100_80gb": "dgx-a100", "h100_80gb": "dgx-h100"}[row["gpu"]]
    model = write_config(folder, int(row["n_layers"]), int(row["d_model"]), int(row["n_heads"]), int(row["vocab"]),
                         int(row["seq_len"]))
    yield Row(f"{row['table'][:9]} {row['model']} {row['seq_len']}", model, cluster, "llm-foundry",
              float(row["tokens_per_s_gpu"]), sequence=row["seq_len"], micro_batch=row["microbatch"],
              accumulate=row["grad_accum"], gpus=row["gpus"], stage=2 if row["sharding"] == "SHARD_GRAD_OP" else 3,
              recompute="full" if row["act_ckpt"] == "True" else None,
              precision="fp8" if "fp8" in row["precision"] else None)


def torchtitan(row, folder):
    size = row["model"].split("-")[-1].lower()
    staged = "PP8" in row["parallelism"]
    batch = int(row["local_batch"])
    software = "fsdp-eager" if row["compile"] == "no" else "fsdp-async-tp" if row["async_tp"] == "yes" else "fsdp"
    others = [part for part in row["parallelism"].split("+") if not part.startswith(("FSDP", "TP8", "PP8"))]
    if others:
        raise OutOfScope("parallelism " + "+".join(others))
    yield Row(f"{row['model']} {row['parallelism']} {row['float8']}", "llama3.1-405b" if size == "405b" else "llama3-" + size,
              "h100-96gb-500w", software, float(row["tokens_per_s_gpu"]), sequence=row["seq_len"], gpus=row["gpus"],
              micro_batch=batch // 8 if staged else batch, accumulate=8 if staged else 1,
              tensor_parallel=8 if "TP8" in row["parallelism"] else None, pipeline_parallel=8 if staged else None,
              interleave=2 if "Interleaved" in row["schedule"] else None,
              recompute="full" if row["act_ckpt"] == "full" else "selective" if "selective" in row["act_ckpt"] else None,
              precision="fp8" if row["float8"] != "no" else None)


def fms_fsdp(row, folder):
    """Hosts with the GPUs of a DGX and slower networks."""
    gpu, nvlink = {"a100_80gb": ("a100-80gb", 300), "h100_80gb": ("h100", 450)}[row["gpu"]]
    cluster = os.path.join(folder, gpu + ".toml")
    with open(cluster, "w") as file:
        file.write(f"""message_overhead_us = 0.2\nfold_gb_per_s = 400.0\n[hosts]\nname = "{gpu}"\ncount = {int(row["gpus"]) // 8}\ngpus = 8\nnics = 8\nnuma_nodes = 2
nic_gb_per_s = {int(row["gbit_per_host"]) / 64}\npcie_gb_per_s = 48.0\npcie_latency_us = 0.5\nnvlink_gb_per_s = {nvlink}.0
nvlink_latency_us = 0.5\ninter_numa_gb_per_s = 22.0\ninter_numa_latency_us = 0.5
[network]\nkind = "fat-tree"\nlatency_us = 0.5\nhosts_per_leaf = 16\noversubscription = 1.0\n""")
    compiled = row["compile"] == "yes"
    yield Row(f"{row['model']} {'compiled' if compiled else 'eager'}", "llama2-" + row["model"], cluster,
              "fsdp" if compiled else "fsdp-eager", float(row["tokens_per_s_gpu"]), gpu=gpu, sequence=row["seq_len"],
              micro_batch=row["batch"], gpus=row["gpus"], shard=8 if row["sharding"] == "HSDP" else None,
              recompute=row["act_ckpt"] if row["act_ckpt"] != "no" else None)


def megatron_papers(row, folder):
    layers, hidden, sequence, vocabulary = (int(row[key]) for key in ("layers", "hidden", "seq_len", "vocab"))
    model = write_config(folder, layers, hidden, int(row["heads"]), vocabulary, sequence)
    tensor, pipeline, ranks, batch = (int(row[key]) for key in ("tp", "pp", "dp", "global_batch"))
    micro_batch = number(row["microbatch"], 4 if pipeline == 1 else 1)
    zero3 = row["zero3"] == "1"
    if row["iter_s"]:
        seconds = float(row["iter_s"])
    elif row["tflops_gpu"]:
        flops = 96 * batch * sequence * layers * hidden**2 * (1 + sequence / 6 / hidden + vocabulary / 16 / layers / hidden)
        seconds = flops / int(row["gpus"]) / float(row["tflops_gpu"]) / 1e12
    else:
        raise OutOfScope("no time")
    yield Row(f"{row['source']} {row['params_b']}B {row['recompute']}{' ZeRO-3' if zero3 else ''} {row['gpus']}", model,
              "dgx-a100", "deepspeed-2021" if zero3 else "megatron-2021", batch * sequence / int(row["gpus"]) / seconds,
              sequence=sequence, gpus=row["gpus"], micro_batch=micro_batch,
              accumulate=max(1, batch // ranks // micro_batch), stage="3" if zero3 else "0", tensor_parallel=tensor,
              pipeline_parallel=pipeline, interleave=number(row["interleave"], 1),
              no_sequence_parallel=tensor > 1 and "SP" not in row["recompute"],
              recompute="full" if row["recompute"] == "full" else "selective" if "selective" in row["recompute"] else None)


def find_nvidia_model(name, folder, sequence):
    if name in SHAPES:
        return write_config(folder, *SHAPES[name], sequence)
    if name not in NAMES:
        raise OutOfScope("mixture of experts, state space or not published")
    return NAMES[name]


def nvidia_plan(row, format_name, measured, folder, cluster, name):
    """Rows of NeMo and Megatron-Bridge have the same columns."""
    sequence, gpus, batch, micro_batch = (int(row[key]) for key in ("seq_len", "gpus", "gbs", "mbs"))
    tensor, pipeline, context = (number(row[key], 1) for key in ("tp", "pp", "cp"))
    copies = gpus // (tensor * pipeline * context)
    pieces = number(row["vp"], 5 if pipeline > 1 and cluster != "dgx-h100" else 1)
    return Row(f"{name} {row['task']} {row['model']} {format_name}", find_nvidia_model(row["model"], folder, sequence),
               cluster, "megatron", float(measured), sequence=sequence, gpus=gpus, micro_batch=micro_batch,
               accumulate=max(1, batch // copies // micro_batch), stage="3" if number(row.get("fsdp") or "") > 1 else "1",
               tensor_parallel=tensor, pipeline_parallel=pipeline, context_parallel=context,
               interleave=pieces if pipeline > 1 else None,
               precision="mxfp8" if "MX" in format_name else "fp8" if "FP8" in format_name else None)


def nemo(row, folder):
    if row["task"] == "lora":
        raise OutOfScope("frozen weights")
    yield nvidia_plan(row, row["precision"].upper(), row["tokens_per_s_gpu"], folder, "dgx-h100", "24.12")


def megatron_bridge(row, folder):
    if row["task"] == "LoRA":
        raise OutOfScope("frozen weights")
    if "FP4" in row["precision"]:
        raise OutOfScope("fp4")
    clean = str.maketrans("", "", "()")
    formats = row["precision"].translate(clean).split() or ["FP8-CS", "FP8-MX"]
    for format_name, measured in zip(formats, row["tokens_per_s_gpu"].translate(clean).split()):
        yield nvidia_plan(row, format_name, measured, folder, row["system"].lower(), row["release"])


TABLES = {"mpt-llm-foundry.csv": llm_foundry, "torchtitan-llama3.csv": torchtitan, "fms-fsdp.csv": fms_fsdp, "megatron-papers.csv": megatron_papers,
          "nemo-24.12-h100-fp8.csv": nemo, "megatron-bridge-summary.csv": megatron_bridge}


def predict(gxp, row):
    command = [gxp, "shard-plan", row.model, "--cluster", row.cluster, "--software", row.software, "--format", "json"]
    for key, value in row.options.items():
        command += ["--" + key] if value is True else ["--" + key, str(value)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise OutOfScope(result.stderr.strip().splitlines()[0])
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", required=True)
    parser.add_argument("--tables", default=os.path.join(os.path.dirname(__file__), "../tests/data/plan"))
    parser.add_argument("--rows", action="store_true", help="show each row")
    arguments = parser.parse_args()
    errors, skipped = collections.defaultdict(list), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for table, read in TABLES.items():
            path = os.path.join(arguments.tables, table)
            if not os.path.exists(path):
                continue
            with open(path) as file:
                for line in csv.DictReader(file):
                    try:
                        for row in read(line, folder):
                            plan = predict(arguments.gxp, row)
                            error = row.measured / plan["tokens_per_s_gpu"] - 1
                            precision = row.options.get("precision", "bf16")
                            errors[f"{table} | {plan['gpu']} {precision}"].append((error, row.name))
                    except OutOfScope as reason:
                        skipped[f"{table}: {reason}"] += 1
    print("| table | hardware | rows | mean error | worst | of |\n|---|---|---|---|---|---|")
    for name, found in errors.items():
        worst = max(found, key=lambda item: abs(item[0]))
        mean = sum(abs(error) for error, _ in found) / len(found)
        print(f"| {name} | {len(found)} | {100 * mean:.1f}% | {100 * worst[0]:+.1f}% | {worst[1]} |")
        for error, row in found if arguments.rows else []:
            print(f"    {100 * error:+6.1f}% {row}")
    print()
    for reason, count in skipped.items():
        print(f"out of scope, {count} rows of {reason}")


if __name__ == "__main__":
    main()
