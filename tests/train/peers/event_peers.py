#!/usr/bin/env python3
"""TensorBoard reads a run's event files as metrics.jsonl has its steps: event_peers.py GXP"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: tensorboard is not installed")
    sys.exit(77)

RUN = """
[model]
family = "gpt2"
layers = 1
hidden = 32
heads = 4
vocab_size = 256
context = 32
[data]
train = ["text.txt"]
sequence = 32
[train]
steps = 300
micro_batch = 2
threads = 1
device = "cpu"
tensorboard = true
bad_step = "roll-back"
norm_outlier = 2.5
[checkpoint]
dir = "run"
every = 10
"""
TAGS = {"train/loss": "loss", "train/grad_norm": "grad_norm", "train/lr": "lr", "train/tokens_per_s": "tokens_per_s"}


def main(gxp: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        (folder / "run.toml").write_text(RUN)
        (folder / "text.txt").write_text("".join(f"{i * i} is the square of {i}.\n" for i in range(1000)))

        def train(*more: str) -> str:
            command = [gxp, "train", "run.toml", *more]
            return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr

        assert "rolled back to step" in train(), "this run was to be rolled back"
        train("--resume", "--set", "train.steps=320")
        steps = [json.loads(line) for line in (folder / "run/metrics.jsonl").open()]
        events = EventAccumulator(str(folder / "run"))
        events.Reload()
        assert sorted(events.Tags()["scalars"]) == sorted(TAGS), events.Tags()
        for tag, key in TAGS.items():
            scalars = events.Scalars(tag)
            assert [s.step for s in scalars] == [step["step"] for step in steps], tag
            for scalar, step in zip(scalars, steps):
                assert abs(scalar.value - step[key]) <= 1e-6 * abs(step[key]), (tag, scalar, step)
        print(f"TensorBoard has the {len(steps)} steps of metrics.jsonl")


main(str(pathlib.Path(sys.argv[1]).resolve()))
