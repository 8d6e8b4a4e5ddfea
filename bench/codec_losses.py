#!/usr/bin/env python3
"""Losses of runs with a codec between two pretended hosts, of gradients (`comm.codec`) or of gathered parameters, beside runs without.

  bench/codec_losses.py --gxp build/release/cmd/gxp [--gathers] [--text FILE] [--codecs none int8 int4] [--seeds 1 2 3] [--steps 2000]

Two hosts (bench/hosts.sh, which needs root) with one rank of one thread train examples/demo.toml's model on nine tenths of the
text and validate on the last tenth, all of it; with --gathers in zero3, where the codecs are comm.gather_codec's. Without
--text: the sayings of Debian's package fortunes. Prints a table, the mean of the seeds, and how far a codec is from none with
the same seed beside how far the seeds of none are from each other.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MICRO_BATCH, CONTEXT, HOSTS = 4, 128, 2
VALIDATIONS = 4


def read_text(path):
    paths = [path] if path else sorted(p for p in glob.glob("/usr/share/games/fortunes/**", recursive=True)
                                       if os.path.isfile(p) and not p.endswith((".dat", ".u8")))
    return b"".join(open(p, "rb").read() for p in paths)


def split_text(text, folder):
    """Returns the settings that name both parts."""
    cut = len(text) * 9 // 10
    parts = {"train": text[:cut], "valid": text[cut:]}
    settings = [f"train.valid_batches={len(parts['valid']) // (MICRO_BATCH * (CONTEXT + 1) * HOSTS)}"]
    for name, part in parts.items():
        path = os.path.join(folder, name + ".txt")
        with open(path, "wb") as file:
            file.write(part)
        settings.append(f'data.{name}=["{path}"]')
    return settings


def validation_losses(args, settings, codec, seed):
    """By step."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.jsonl")
        command = [os.path.join(TOP, "bench/hosts.sh"), "--hosts", str(HOSTS), "--ranks", "1", args.gxp, "train",
                   os.path.join(TOP, "examples/demo.toml"), "--metrics", metrics]
        codec_settings = ["parallel.strategy=zero3", f"comm.gather_codec={codec}"] if args.gathers else [f"comm.codec={codec}"]
        for setting in (*settings, *codec_settings, f"train.seed={seed}", f"train.steps={args.steps}",
                        f"train.valid_every={args.steps // VALIDATIONS}", f"train.micro_batch={MICRO_BATCH}", "train.threads=1",
                        f"model.context={CONTEXT}", f"optim.lr={args.lr}", "checkpoint.dir="):
            command += ["--set", setting]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=None if args.verbose else subprocess.DEVNULL)
        with open(metrics) as file:
            return {line["step"]: line["valid_loss"] for line in map(json.loads, file) if "valid_loss" in line}


def summary(losses, codecs, seeds):
    """Of the last validation; losses[codec, seed]."""
    none = [losses["none", seed] for seed in seeds]
    for codec in codecs:
        own = [losses[codec, seed] for seed in seeds]
        line = f"{codec}: mean {statistics.mean(own):.4f}, seeds differ by {max(own) - min(own):.4f}"
        if codec != "none":
            far = max(abs(a - b) for a, b in zip(own, none))
            line += f", mean {statistics.mean(own) - statistics.mean(none):+.4f} and at most {far:.4f} from none with the same seed"
        yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", default=os.path.join(TOP, "build/release/cmd/gxp"))
    parser.add_argument("--text", help="a file of at least 400 kB")
    parser.add_argument("--codecs", nargs="+", default=["none", "int8", "int4"])
    parser.add_argument("--gathers", action="store_true", help="of gathered parameters")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-3, help="with the demo's 4e-3, runs diverge from each other by rounding")
    parser.add_argument("--verbose", action="store_true", help="show the runs' logs")
    args = parser.parse_args()
    if "none" not in args.codecs:
        parser.error("--codecs: none is what the others are compared with")
    text = read_text(args.text)
    if len(text) < 400_000:
        parser.error(f"the text has {len(text)} bytes; 400000 are needed (--text, or Debian's package fortunes)")
    last = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = split_text(text, folder)
        for seed in args.seeds:
            for codec in args.codecs:
                losses = validation_losses(args, settings, codec, seed)
                if not last:
                    print("| seed | codec | " + " | ".join(map(str, losses)) + " |\n" + "|---" * (2 + len(losses)) + "|")
                print(f"| {seed} | {codec} | " + " | ".join(f"{loss:.4f}" for loss in losses.values()) + " |", flush=True)
                last[codec, seed] = losses[max(losses)]
    print("\n" + "\n".join(summary(last, args.codecs, args.seeds)))


if __name__ == "__main__":
    main()
