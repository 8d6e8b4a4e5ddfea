#!/usr/bin/env python3
"""Step times where gradients travel between two pretended hosts over a slow link: gxp's codecs beside PyTorch's DDP hooks.

  bench/codec_speed.py --gxp build/release/cmd/gxp [--python VENV/bin/python] [--rates 1gbit 10gbit] [--rounds 3] [--zero3]

Two hosts (bench/hosts.sh, which needs root) with one rank of one thread, the same model, batch and optimizer for all. gxp: ddp in
fp32, with gradients sent in bf16 (parallel.reduce_dtype), and with comm.codec int8 and int4. PyTorch, if --python has it: DDP over
gloo, alone, with fp16_compress_hook and with powerSGD_hook. Each round runs all programs one after the other, so that a
change of the machine's speed meets all. A ratio is the median of the rounds' ratios of steps per second. With --zero3 gxp alone, in
zero3, with comm.gather_codec int8, and with comm.codec int8 as well.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

from train_vs_pytorch import RUN_FILE, WARM_UP_STEPS, write_tokens

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOSTS = 2
GXP = {
    "gxp": [],
    "gxp, reduce_dtype bf16": ["parallel.reduce_dtype=bf16"],
    "gxp, codec int8": ["comm.codec=int8"],
    "gxp, codec int4": ["comm.codec=int4"],
}
ZERO3 = {
    "gxp": ["parallel.strategy=zero3"],
    "gxp, gather_codec int8": ["parallel.strategy=zero3", "comm.gather_codec=int8"],
    "gxp, gather_codec and codec int8": ["parallel.strategy=zero3", "comm.gather_codec=int8", "comm.codec=int8"],
}
TORCH = {"DDP": "none", "DDP, fp16 hook": "fp16", "DDP, PowerSGD hook": "powersgd"}


def on_hosts(rate, arguments, command):
    hosts = [os.path.join(TOP, "bench/hosts.sh"), "--hosts", str(HOSTS), "--ranks", "1", "--rate", rate]
    done = subprocess.run([*hosts, *arguments, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def run_gxp(args, folder, rate, settings):
    """Seconds of the median step."""
    layers, hidden, heads, vocabulary, sequence, batch = map(int, args.sizes.split(","))
    tokens, config, metrics = (os.path.join(folder, name) for name in ("tokens.i32", "run.toml", "metrics.jsonl"))
    if not os.path.exists(tokens):
        write_tokens(tokens, vocabulary, sequence, 8 * HOSTS * batch)
    with open(config, "w") as file:
        file.write(RUN_FILE.format(layers=layers, hidden=hidden, heads=heads, vocabulary=vocabulary, sequence=sequence,
                                   batch=batch, steps=args.steps + WARM_UP_STEPS, tokens=tokens))
    command = [args.gxp, "train", config, "--overwrite", "--metrics", metrics, "--set", "train.threads=1"]
    for setting in settings:
        command += ["--set", setting]
    on_hosts(rate, [], command)
    with open(metrics) as file:
        return statistics.median(json.loads(line)["step_ms"] / 1e3 for line in list(file)[WARM_UP_STEPS:])


def run_torch(args, rate, hook):
    script = os.path.join(TOP, "bench/torch_gpt_bench.py")
    options = (f"--sizes {args.sizes} --steps {args.steps} --warmup {WARM_UP_STEPS + 1} --threads 1 --parallel ddp --hook {hook} "
               f"--ranks {HOSTS} --rank $HOST_INDEX --master host0:29500")
    # On each host: gloo takes the address of the interface that it is told.
    command = ["sh", "-c", f"GLOO_SOCKET_IFNAME=eth0 exec '{args.python}' '{script}' {options}"]
    return json.loads(on_hosts(rate, ["--plain"], command).splitlines()[-1])["step_ms_median"] / 1e3


def compare(args, folder, rate):
    rounds = []
    for _ in range(args.rounds):
        seconds = {name: run_gxp(args, folder, rate, settings) for name, settings in (ZERO3 if args.zero3 else GXP).items()}
        if args.python and not args.zero3:
            seconds |= {name: run_torch(args, rate, hook) for name, hook in TORCH.items()}
        rounds.append(seconds)
    for name in rounds[0]:
        ms = [1e3 * seconds[name] for seconds in rounds]
        ratios = [statistics.median(seconds[other] / seconds[name] for seconds in rounds)
                  for other in ("gxp", "DDP") if other in seconds]
        print(f"| {rate} | {name} | {statistics.median(ms):.1f} | {min(ms):.1f} to {max(ms):.1f} | "
              + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", default=os.path.join(TOP, "build/release/cmd/gxp"))
    parser.add_argument("--python", help="a Python with torch; without it PyTorch does not run")
    parser.add_argument("--rates", nargs="+", default=["1gbit", "10gbit"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--zero3", action="store_true", help="gathers of parameters in codecs")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sizes", default="4,512,8,256,32,1",
                        help="layers,hidden,heads,vocabulary,sequence,batch: large gradients beside little arithmetic")
    args = parser.parse_args()
    columns = ["link", "program", "step, ms", "range", "speed / gxp"] + (["speed / DDP"] if args.python and not args.zero3 else [])
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for rate in args.rates:
            compare(args, folder, rate)


if __name__ == "__main__":
    main()
