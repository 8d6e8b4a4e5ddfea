#!/usr/bin/env python3
"""How fast the update of offloaded optimizer state is, beside the bare file or memory.

    bench/offload_bandwidth.py --gxp build/release/cmd/gxp --directory /scratch [--where file|memory] [--steps N]

Trains GPT-2 124M in float32 on one rank, on a device that cannot hold its optimizer state, which is offloaded. Between rounds
it measures what the place does by itself: for a file dd, which writes and reads as many bytes in the same directory, through
O_DIRECT; for memory memmove between a tile of 4 MiB and as many bytes. Prints, for each round and as medians, the seconds that
both take for the bytes of an update, and their ratio. An update is timed from the decision on clipping to the end of the step.
Steps 1 and 2 do not count: they are the first to write the file's blocks.
"""
import argparse
import array
import ctypes
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

RUN = """
[model]
vocab_size = 50257
context = 64
hidden = 768
layers = 12
heads = 12
[data]
train = ["{work}/tokens.i32"]
[train]
steps = {steps}
micro_batch = 1
device_memory_bytes = "{limit}"
log_every = 1
[offload]
optimizer = "{where}"
{path}
"""


def make_tokens(path, rows=64):
    random.seed(1)
    with open(path, "wb") as file:
        array.array("i", (random.randrange(50257) for _ in range(rows * 65))).tofile(file)


def train(args, work):
    path = f'path = "{work}"' if args.where == "file" else ""
    limit = args.limit
    (work / "run.toml").write_text(RUN.format(work=work, steps=args.steps, where=args.where, path=path, limit=limit))
    command = [args.gxp, "train", str(work / "run.toml"), "--overwrite", "--metrics", str(work / "metrics.jsonl")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = (work / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines][2:]


def seconds_of_dd(work, half):
    """To write and to read so many bytes, as dd does in 4 MiB blocks."""
    blocks = half // (4 << 20)
    file = work / "dd"
    start = time.monotonic()
    for extra in ([f"if=/dev/zero", f"of={file}", "oflag=direct", "conv=notrunc"], [f"if={file}", "of=/dev/null", "iflag=direct"]):
        subprocess.run(["dd", "bs=4M", f"count={blocks}", *extra], check=True, stderr=subprocess.DEVNULL)
    return (time.monotonic() - start) * half / (blocks * (4 << 20))


def seconds_of_memmove(half):
    """To copy so many bytes into a tile and back, one thread."""
    tile_bytes = 4 << 20
    store = ctypes.create_string_buffer(half)
    tile = ctypes.create_string_buffer(tile_bytes)
    address = ctypes.addressof(store)
    ctypes.memset(address, 1, half)
    start = time.monotonic()
    for offset in range(0, half - tile_bytes + 1, tile_bytes):
        ctypes.memmove(tile, address + offset, tile_bytes)
        ctypes.memmove(address + offset, tile, tile_bytes)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", required=True)
    parser.add_argument("--directory", required=True, type=pathlib.Path)
    parser.add_argument("--where", choices=["file", "memory"], default="file")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", default="1300MiB")
    args = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        work = pathlib.Path(directory)
        make_tokens(work / "tokens.i32")
        for number in range(1, args.rounds + 1):
            half = 995_000_000
            bare = seconds_of_dd if args.where == "file" else lambda _, size: seconds_of_memmove(size)
            if args.where == "file":
                bare(work, half)  # the file's blocks are taken
            before = bare(work, half)
            steps = train(args, work)
            after = bare(work, half)
            moved = statistics.median(step["offload_bytes"] for step in steps)
            update = statistics.median(step["update_ms"] for step in steps) / 1e3
            busy = statistics.median(step["offload_ms"] for step in steps) / 1e3
            alone = (before + after) / 2 * moved / (2 * half)
            ratios.append(alone / update)
            print(f"round {number}: {moved / 1e9:.3f} GB moved; bare {args.where} {alone:.3f} s "
                  f"({moved / alone / 1e9:.2f} GB/s; {before:.3f} before, {after:.3f} after); update {update:.3f} s "
                  f"({moved / update / 1e9:.2f} GB/s), offload lane busy {busy:.3f} s; ratio {ratios[-1]:.2f}; "
                  f"peak {steps[-1]['peak_bytes'] / 2**20:.0f} MiB on the device, "
                  f"{(steps[-1]['file_bytes'] + steps[-1]['host_bytes']) / 2**20:.0f} MiB beside it", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
