#!/usr/bin/env python3
"""moved_runs.py GXP [--keep DIR] [--small]: runs that move between programs, with the real libraries.

A GPT-2 trains for 30 steps on 2 ranks: with PyTorch's FSDP2, once more with one group of parameters
(fsdp2-all), and with DeepSpeed's ZeRO-2 and ZeRO-3.
Each run saves at step 10 and goes on; its losses are what the others are compared with.
  there -> here  gxp converts what was saved, and `gxp train --resume` goes on to step 20, on 3 ranks
                 (FSDP2) and on 1 (DeepSpeed)
  here -> there  what gxp saved at step 20 is converted to dcp (for FSDP2) and universal (for
                 DeepSpeed), and the library goes on to step 30
Every loss must be within 1e-5 of the first run's, relative, in fp32.

What that takes, beyond the checkpoint (run.toml below has the settings):
  data       the same global batch in the same order: gxp's data.order = "sequential", and rank r of
             n has the rows r/n to (r+1)/n of a step's. 12 rows, which 1, 2 and 3 ranks divide. The
             position in the data follows from the step, or from DeepSpeed's global_samples.
  loss       the mean over all tokens. Ranks with equally many tokens average their means, and FSDP2
             and ZeRO divide the sum of gradients by the ranks: the same number.
  decay      gxp decays tensors of two and more dimensions only, embeddings included, so the
             optimizer has two groups. With one group of all parameters, norms and biases decay too:
             optim.decay_vectors = true. A tied head is one parameter.
  clipping   by the global norm, with PyTorch's factor min(1, clip / (norm + 1e-6)), which is also
             DeepSpeed's.
  AdamW      decoupled decay, bias correction by the step: torch.optim.AdamW. DeepSpeed takes it as
             zero_allow_untested_optimizer. When ZeRO-3 (0.19.8) loads a universal checkpoint, all
             its sub-groups share one tensor as their step, which such an optimizer counts up once
             for each of them: it must be copied (Zero.load), or losses differ by 4e-5.
  rate       set before each step, from the number of the step alone.
  precision  fp32 throughout; no dropout.
Sums over ranks are rounded in another order at another number of ranks, which changes losses by
about 1e-7, relative. Adam amplifies that where a gradient is noise (the key part of c_attn.bias), but
such parameters do not change the loss.

--keep DIR leaves there what was saved at step 10, the tokens and the losses (tests/data/ckpt/moved);
--small trains a model whose checkpoints are small. Exit status 77: torch, transformers or deepspeed
are not installed.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

SAVED, RESUMED, STEPS = 10, 20, 30  # saved there, and here; the last step
ROWS = 12  # of a step, on all ranks
RANKS = 2  # there
MODEL = {"vocab_size": 97, "n_positions": 32, "n_embd": 48, "n_layer": 2, "n_head": 4}
SMALL = {"vocab_size": 19, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
OPTIM = {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8}
DECAY, CLIP, WARMUP, MIN_RATE = 0.1, 1.0, 4, 3e-4
TOLERANCE = 1e-5
KEPT = ("fsdp2", "zero2", "zero3")

RUN = """[model]
family = "gpt2"
vocab_size = {vocab_size}
context = {n_positions}
hidden = {n_embd}
layers = {n_layer}
heads = {n_head}
[data]
train = ["{tokens}"]
order = "sequential"
[train]
steps = {steps}
micro_batch = {rows}
device = "cpu"
threads = 1
[optim]
lr = 3e-3
beta1 = 0.9
beta2 = 0.95
eps = 1e-8
weight_decay = 0.1
decay_vectors = {vectors}
clip = 1.0
[lr_schedule]
name = "cosine"
warmup_steps = 4
total_steps = 29
min_lr = 3e-4
[checkpoint]
dir = "{checkpoints}"
"""


def rate(step):
    """The learning rate of step 1, 2, ...: linear warm-up, then a cosine."""
    if step <= WARMUP:
        return OPTIM["lr"] * step / WARMUP
    x = (step - WARMUP) / (STEPS - WARMUP)
    return MIN_RATE + (OPTIM["lr"] - MIN_RATE) / 2 * (1 + math.cos(math.pi * x))


# What one rank of a library's run does. `job`: {"kind": "fsdp2" | ..., "model", "dir",
# "load": a checkpoint or null, "first", "last", "save": true | false, "losses": a file}.


def read_rows(job, step, rank, ranks):
    import numpy

    width = job["model"]["n_positions"] + 1
    tokens = numpy.fromfile(f"{job['dir']}/tokens.i32", dtype="<i4").reshape(STEPS, ROWS, width)
    share = ROWS // ranks
    rows = tokens[step - 1, rank * share : (rank + 1) * share].astype("int64")
    return rows[:, :-1], rows[:, 1:]


def make_model(job):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(7)
    return GPT2LMHeadModel(
        GPT2Config(**job["model"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False,
                   attn_implementation="eager"))


def make_optimizer(model, kind):
    import torch

    parameters = list(model.parameters())
    if kind == "fsdp2-all":
        return torch.optim.AdamW(parameters, weight_decay=DECAY, **OPTIM)
    return torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
         {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}], **OPTIM)


def loss_of(model, job, step):
    import torch
    import torch.distributed as dist

    rows = read_rows(job, step, dist.get_rank(), dist.get_world_size())
    inputs, targets = (torch.from_numpy(part.copy()) for part in rows)
    logits = model(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def mean_of(loss):
    import torch.distributed as dist

    mean = loss.detach().double()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


class Fsdp2:
    def __init__(self, job):
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        torch.distributed.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        self.job = job
        self.model = make_model(job)
        for block in self.model.transformer.h:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = make_optimizer(self.model, job["kind"])

    def load(self, path):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import (
            StateDictOptions, get_state_dict, set_state_dict)

        weights, state = get_state_dict(self.model, self.optimizer)
        weights.pop("lm_head.weight", None)  # the table again
        dcp.load({"model": weights, "optim": state}, checkpoint_id=path)
        set_state_dict(self.model, self.optimizer, model_state_dict=weights,
                       optim_state_dict=state, options=StateDictOptions(strict=False))

    def save(self, path):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_state_dict

        weights, state = get_state_dict(self.model, self.optimizer)
        dcp.save({"model": weights, "optim": state}, checkpoint_id=path)

    def step(self, number):
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = rate(number)
        loss = loss_of(self.model, self.job, number)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return mean_of(loss)


class Zero:
    def __init__(self, job):
        import deepspeed

        deepspeed.init_distributed("gloo")
        self.job = job
        model = make_model(job)
        settings = {
            "train_micro_batch_size_per_gpu": ROWS // RANKS,
            "gradient_clipping": CLIP,
            "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": int(job["kind"][-1]),
                                  "stage3_param_persistence_threshold": 0,
                                  "sub_group_size": 2000},
            "checkpoint": {"load_universal": job["load"] is not None},
            "steps_per_print": 1000000}
        self.engine, self.optimizer, _, _ = deepspeed.initialize(
            model=model, optimizer=make_optimizer(model, job["kind"]),
            config=settings)

    def load(self, path):
        loaded, _ = self.engine.load_checkpoint(path)
        assert loaded, f"{path} is not loaded"
        # Stage 3 gives all sub-groups one tensor, which torch's AdamW would count up for each.
        for state in self.optimizer.optimizer.state.values():
            state["step"] = state["step"].clone()

    def save(self, path):
        self.engine.save_checkpoint(path)

    def step(self, number):
        for group in self.optimizer.param_groups:
            group["lr"] = rate(number)
        loss = loss_of(self.engine, self.job, number)
        self.engine.backward(loss)
        self.engine.step()
        return mean_of(loss)


def work(job):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    run = Fsdp2(job) if job["kind"].startswith("fsdp2") else Zero(job)
    if job["load"]:
        run.load(job["load"])
    losses = []
    for number in range(job["first"], job["last"] + 1):
        losses.append(run.step(number))
        if job["save"] and number == SAVED:
            run.save(f"{job['dir']}/{job['kind']}")
    if dist.get_rank() == 0:
        pathlib.Path(job["losses"]).write_text(json.dumps(losses))
    dist.barrier()
    dist.destroy_process_group()


# What the script itself does.


def call(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600, **options)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed with {done.returncode}: {' '.join(command)}")
    return done.stdout


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def train_there(directory, kind, model, load=None, first=1):
    """The losses from step `first` on."""
    losses = f"{directory}/{kind}-from-{first}.json"
    job = {"kind": kind, "model": model, "dir": str(directory), "load": load, "first": first,
           "last": STEPS, "save": load is None, "losses": losses}
    call([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}",
          "--master-addr=127.0.0.1", f"--master-port={free_port()}", __file__, "--job",
          json.dumps(job)],
         env={**os.environ, "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1",
              "TOKENIZERS_PARALLELISM": "false"})
    return json.loads(pathlib.Path(losses).read_text())


def train_here(gxp, directory, kind, model, ranks):
    """The losses of the steps after SAVED, and where the last step is saved."""
    checkpoints, metrics = f"{directory}/here-{kind}/checkpoints", f"{directory}/{kind}.jsonl"
    run = f"{directory}/{kind}.toml"
    pathlib.Path(run).write_text(
        RUN.format(**model, tokens=f"{directory}/tokens.i32", steps=RESUMED, rows=ROWS // ranks,
                   vectors="true" if kind == "fsdp2-all" else "false", checkpoints=checkpoints))
    call([gxp, "convert-ckpt", f"{directory}/{kind}", checkpoints, "--to", "gxp"])
    log = call([gxp, "train", run, "--resume", "--nproc", str(ranks), "--metrics", metrics])
    print("\n".join(line for line in log.splitlines() if "resume" in line or " warn " in line))
    lines = [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(SAVED + 1, RESUMED + 1))
    return [line["loss"] for line in lines], checkpoints


def compare(what, found, expected):
    """Whether the losses agree; prints a line."""
    assert len(found) == len(expected) and all(math.isfinite(loss) for loss in found)
    largest = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
    print(f"{what}: {len(found)} losses from {expected[0]:.6f} to {expected[-1]:.6f}, "
          f"largest relative difference {largest:.1e}", flush=True)
    return largest <= TOLERANCE


def move(gxp, directory, kind, model, ranks):
    losses = train_there(directory, kind, model)
    found, checkpoints = train_here(gxp, directory, kind, model, ranks)
    fits = compare(f"{kind} on {RANKS} ranks, step {SAVED}, to gxp train on {ranks}", found,
                   losses[SAVED:RESUMED])
    target = "dcp" if kind.startswith("fsdp2") else "universal"
    back = f"{directory}/back-{kind}"
    call([gxp, "convert-ckpt", checkpoints, back, "--to", target])
    found = train_there(directory, kind, model, load=back, first=RESUMED + 1)
    fits &= compare(f"gxp train on {ranks}, step {RESUMED}, by {target} to {kind} on {RANKS}",
                    found, losses[RESUMED:])
    return fits, losses


def keep(directory, target, model, losses):
    for kind in losses:
        shutil.copytree(directory / kind, target / kind, ignore=shutil.ignore_patterns("*.py"))
    shutil.copy(directory / "tokens.i32", target)
    (target / "run.json").write_text(
        json.dumps({"model": model, "losses": losses}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gxp", nargs="?")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--job")
    options = parser.parse_args()
    if options.job:
        return work(json.loads(options.job))
    os.environ["DS_ACCELERATOR"] = "cpu"
    try:
        import deepspeed, numpy, torch, transformers  # noqa: F401, E401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    model = SMALL if options.small else MODEL
    with tempfile.TemporaryDirectory() as top:
        directory = pathlib.Path(top)
        generator = numpy.random.default_rng(11)
        # A skewed distribution, so that there is something to learn.
        size = (STEPS, ROWS, model["n_positions"] + 1)
        tokens = (generator.random(size) ** 2 * model["vocab_size"]).astype("<i4")
        tokens.tofile(directory / "tokens.i32")
        moves = {kind: move(options.gxp, directory, kind, model, ranks)
                 for kind, ranks in (("fsdp2", 3), ("fsdp2-all", 3), ("zero2", 1), ("zero3", 1))}
        if options.keep:
            keep(directory, options.keep, model, {kind: moves[kind][1] for kind in KEPT})
    return 0 if all(fits for fits, _ in moves.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
