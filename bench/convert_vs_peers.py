#!/usr/bin/env python3
"""gxp convert-ckpt beside what it replaces, on a GPT-2 of 124M parameters that PyTorch has trained for one step with 2 ranks:

  safetensors to gxp and back     beside `cp` and `sync` of the same file
  DeepSpeed's ZeRO-3 to weights   beside zero_to_fp32.py, which such a checkpoint brings along
  FSDP's DCP to one .pt           beside torch.distributed.checkpoint.format_utils.dcp_to_torch_save

  bench/convert_vs_peers.py --gxp build/release/cmd/gxp --python VENV/bin/python [--work DIR] [--rounds 5]

The Python has torch, deepspeed and safetensors. Programs take turns; medians of whole commands, and for peers also of the call alone,
without Python's start and imports. gxp makes what it writes durable, peers do not. Prints a table in Markdown, with gxp's peak memory.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

MODEL = """
import os, sys
os.environ["DS_ACCELERATOR"] = "cpu"
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.c_fc, self.mlp_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).chunk(3, -1)
        x = x + self.c_proj(torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v)
        return x + self.mlp_proj(torch.relu(self.c_fc(self.ln_2(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.h, self.ln_f = nn.ModuleList(Block(768) for _ in range(12)), nn.LayerNorm(768)
    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return (self.ln_f(x) @ self.wte.weight.T).logsumexp(-1).mean()

torch.manual_seed(1)
model, tokens, out = Model(), torch.randint(0, 50257, (1, 8)), sys.argv[-1]
"""

SAVE_SAFETENSORS = MODEL + """
from safetensors.torch import save_file
save_file({name: tensor.detach() for name, tensor in model.state_dict().items()}, out)
"""

SAVE_DCP = MODEL + """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard
torch.distributed.init_process_group("gloo")
for block in model.h:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
model(tokens).backward()
optimizer.step()
weights, state = get_state_dict(model, optimizer)
dcp.save({"model": weights, "optim": state, "step": 1}, checkpoint_id=out)
"""

SAVE_DEEPSPEED = MODEL + """
import deepspeed
deepspeed.init_distributed("gloo")
settings = {"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": 3}}
engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=settings)
engine.backward(engine(tokens))
engine.step()
engine.save_checkpoint(out, tag="global_step1")
"""

TIMED = "import sys, time\n{setup}\nbegin = time.perf_counter()\n{call}\nprint(time.perf_counter() - begin)"
ZERO_TO_FP32 = TIMED.format(setup="sys.path.insert(0, sys.argv[1])\nfrom zero_to_fp32 import convert_zero_checkpoint_to_fp32_state_dict",
                            call="convert_zero_checkpoint_to_fp32_state_dict(sys.argv[1], sys.argv[2])")
DCP_TO_TORCH = TIMED.format(setup="from torch.distributed.checkpoint.format_utils import dcp_to_torch_save",
                            call="dcp_to_torch_save(sys.argv[1], sys.argv[2])")


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


class Program:
    """A command that makes `out`; what it took."""

    def __init__(self, name, argv, out):
        self.name, self.argv, self.out = name, argv, out
        self.seconds, self.inner, self.peak_mib = [], [], 0

    def run(self):
        remove(self.out)
        begin = time.perf_counter()
        process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{self.name}: failed: {self.argv}")
        self.seconds.append(time.perf_counter() - begin)
        self.peak_mib = max(self.peak_mib, usage.ru_maxrss / 1024)
        last = output.strip().rsplit("\n", 1)[-1]
        try:
            self.inner.append(float(last))
        except ValueError:
            self.inner.append(self.seconds[-1])


def row(title, gxp, peer):
    ours, theirs, inner = (statistics.median(times) for times in (gxp.seconds, peer.seconds, peer.inner))
    print(f"| {title} | {ours:.2f} s | {peer.name} {theirs:.2f} s | {inner:.2f} s | {theirs / ours:.1f} | {inner / ours:.1f} "
          f"| {gxp.peak_mib:.0f} MiB |")


def compare(title, gxp, peer, rounds):
    for _ in range(rounds):
        gxp.run()
        peer.run()
    row(title, gxp, peer)


def make(options, script, path, ranks=1):
    if os.path.exists(path):
        return
    with open(f"{options.work}/make.py", "w") as file:
        file.write(script)
    launch = [] if ranks == 1 else ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks)]
    subprocess.run([options.python, *launch, f"{options.work}/make.py", path], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gxp", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--work", default="convert-vs-peers")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    options.work = work = os.path.abspath(options.work)
    make(options, SAVE_SAFETENSORS, f"{work}/model.safetensors")
    make(options, SAVE_DEEPSPEED, f"{work}/zero3", ranks=2)
    make(options, SAVE_DCP, f"{work}/dcp", ranks=2)

    def gxp(source, out, to):
        return Program("gxp", [options.gxp, "convert-ckpt", source, out, "--to", to], out)

    def python(name, script, source, out):
        return Program(name, [options.python, "-c", script, source, out], out)

    def copy(source, out):
        return Program("cp and sync", ["sh", "-c", f"cp {source} {out} && sync {out}"], out)

    print("| conversion | gxp | peer | its call alone | peer / gxp | call / gxp | gxp's peak memory |\n|---|---|---|---|---|---|---|")
    model = f"{work}/model.safetensors"
    compare("safetensors to gxp, 498 MB", gxp(model, f"{work}/gxp", "gxp"), copy(model, f"{work}/copy"), options.rounds)
    compare("gxp to safetensors, 498 MB", gxp(f"{work}/gxp", f"{work}/back.safetensors", "safetensors"), copy(model, f"{work}/copy"),
            options.rounds)
    compare("ZeRO-3 of 2 ranks to fp32 weights", gxp(f"{work}/zero3", f"{work}/fp32", "safetensors"),
            python("zero_to_fp32.py", ZERO_TO_FP32, f"{work}/zero3", f"{work}/fp32-peer"), options.rounds)
    compare("DCP of 2 ranks, with AdamW, to .pt", gxp(f"{work}/dcp", f"{work}/dcp.pt", "pt"),
            python("dcp_to_torch_save", DCP_TO_TORCH, f"{work}/dcp", f"{work}/dcp-peer.pt"), options.rounds)


if __name__ == "__main__":
    main()
