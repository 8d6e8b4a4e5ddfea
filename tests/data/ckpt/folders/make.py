#!/usr/bin/env python3
"""make.py DIR: writes the folders of training programs beside this file, with the real libraries.

    trainer/      transformers' Trainer, a Llama: checkpoint-2 and checkpoint-10
    accelerate/   accelerate's save_state() of a GPT-2, whose configuration is in gpt2/
    fsdp/         of a GPT-2 with one block, by two ranks with FSDP2, sharded
    fsdp-full/    the same in one file
    torchtitan/   step-12 with torchtitan's names, of a Llama whose configuration is in llama/
    meta-llama/   the same Llama as Meta's files
    nanogpt/      ckpt.pt of the GPT-2, with the names that torch.compile gives
Each has an expected.json: the SHA-256 of the bytes of each tensor of the model, and of what the
optimizer keeps of it, under the names of Hugging Face's class, and the step. Made with torch 2.15.0,
transformers 5.24.0 and accelerate 1.15.0.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import torch
import torch.distributed.checkpoint as dcp
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainingArguments)

LLAMA = dict(vocab_size=11, hidden_size=8, intermediate_size=12, num_hidden_layers=2,
             num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=16,
             tie_word_embeddings=False, bos_token_id=0, eos_token_id=1)
GPT2 = dict(vocab_size=13, n_positions=6, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
ROLES = {"exp_avg": "adam_m", "exp_avg_sq": "adam_v"}


def digest(tensor):
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def expect(path, weights, state, step):
    """`state`: by name, what the optimizer keeps."""
    rows = {f"weight {name}": digest(tensor) for name, tensor in weights.items()}
    for name, kept in state.items():
        rows |= {f"{ROLES[key]} {name}": digest(kept[key]) for key in ROLES}
    text = json.dumps({"step": step, "tensors": rows}, indent=1)
    (path / "expected.json").write_text(text + "\n")


def weights_of(model):
    """Without a head that is the token table."""
    tied = model.config.tie_word_embeddings
    return {name: tensor for name, tensor in model.state_dict().items()
            if not (tied and name == "lm_head.weight")}


def state_of(model, optimizer):
    return {name: optimizer.state[parameter] for name, parameter in model.named_parameters()}


def train(model, optimizer, steps):
    """Every parameter's moments become different ones."""
    for step in range(steps):
        ids = (torch.arange(12).reshape(2, 6) * (step + 2)) % model.config.vocab_size
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def adamw(model):
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))


def make_trainer(path):
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**LLAMA))
    rows = [{"input_ids": [i % 11, 3, 5, 7], "labels": [i % 11, 3, 5, 7]} for i in range(20)]
    settings = TrainingArguments(output_dir=str(path), max_steps=10, save_steps=8, logging_steps=5,
                                 weight_decay=0.1, learning_rate=1e-2, use_cpu=True,
                                 per_device_train_batch_size=2, report_to=[], disable_tqdm=True)
    trainer = Trainer(model=model, args=settings, train_dataset=rows)
    trainer.train()
    expect(path, weights_of(model), state_of(model, trainer.optimizer.optimizer), 10)
    shutil.move(path / "checkpoint-8", path / "checkpoint-2")
    # What gxp reads nothing of is kept in one folder only, for its size.
    for name in ("rng_state.pth", "training_args.bin", "scheduler.pt", "optimizer.pt"):
        os.remove(path / "checkpoint-2" / name)


def make_accelerate(path):
    from accelerate import Accelerator
    torch.manual_seed(2)
    model = GPT2LMHeadModel(GPT2Config(**GPT2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, adamw(model))
    train(model, optimizer, 3)
    accelerator.save_state(str(path))
    expect(path, weights_of(model), state_of(model, optimizer.optimizer), 3)
    return model, optimizer.optimizer


def make_fsdp(path, kind):
    """On one of two ranks, what accelerate's save_state() calls for FSDP2."""
    from types import SimpleNamespace

    import torch.distributed as dist
    from accelerate import FullyShardedDataParallelPlugin, PartialState
    from accelerate.utils.fsdp_utils import save_fsdp_model, save_fsdp_optimizer
    from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                         get_optimizer_state_dict)
    from torch.distributed.fsdp import fully_shard
    PartialState(cpu=True)
    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(**GPT2 | {"n_layer": 1}, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    mesh = dist.init_device_mesh("cpu", (2,))
    for block in model.transformer.h:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = adamw(model)
    train(model, optimizer, 3)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type=kind)
    accelerator = SimpleNamespace(process_index=dist.get_rank(), num_processes=2,
                                  wait_for_everyone=dist.barrier)
    save_fsdp_model(plugin, accelerator, model, str(path))
    save_fsdp_optimizer(plugin, accelerator, optimizer, model, str(path))
    full = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=full)
    state = get_optimizer_state_dict(model, optimizer, options=full)
    if dist.get_rank() == 0:
        weights.pop("lm_head.weight", None)
        state["state"].pop("lm_head.weight", None)
        expect(path, weights, state["state"], 3)
    dist.barrier()
    dist.destroy_process_group()


def run_fsdp(path, kind):
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                           MASTER_ADDR="127.0.0.1", MASTER_PORT="29611", OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, __file__, str(path), kind], env=environment))
    if any([rank.wait() for rank in ranks]):
        sys.exit(f"fsdp {kind} failed")


def to_pairs(tensor, heads):
    """Rows of heads from two halves, as Hugging Face's, to neighbouring pairs, as Meta's."""
    size = tensor.shape[0] // heads
    order = [head * size + channel // 2 + (channel % 2) * (size // 2)
             for head in range(heads) for channel in range(size)]
    return tensor[order].contiguous()


META = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk",
        "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
        "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm", "embed_tokens": "tok_embeddings",
        "lm_head": "output"}


def meta_name(name):
    name = name.removeprefix("model.")
    for ours, theirs in META.items():
        name = name.replace(ours, theirs)
    return name


def meta_rows(name, tensor):
    if "q_proj" in name:
        return to_pairs(tensor, LLAMA["num_attention_heads"])
    return to_pairs(tensor, LLAMA["num_key_value_heads"]) if "k_proj" in name else tensor.clone()


def make_torchtitan(path):
    """The state dict that torchtitan gives to DCP: the model's and the optimizer's names flat."""
    torch.manual_seed(4)
    model = LlamaForCausalLM(LlamaConfig(**LLAMA | {"num_hidden_layers": 1}))
    optimizer = adamw(model)
    train(model, optimizer, 3)
    weights = {meta_name(name): meta_rows(name, tensor.detach())
               for name, tensor in model.state_dict().items()}
    flat = {}
    for name, kept in state_of(model, optimizer).items():
        begin = f"state.{meta_name(name)}"
        flat |= {f"{begin}.{key}": meta_rows(name, kept[key]) for key in ROLES}
        flat[f"{begin}.step"] = kept["step"].clone()
        flat[f"param_groups.{meta_name(name)}.lr"] = 1e-2
    parts = {"optimizer": flat, "lr_scheduler": {"last_epoch": 12},
             "train_state": {"step": torch.tensor(12, dtype=torch.int32),
                             "ntokens_seen": torch.tensor(96)}}
    dcp.save(weights | parts, checkpoint_id=str(path / "step-12"))
    expect(path, weights_of(model), state_of(model, optimizer), 12)
    return model


def make_meta(path, model):
    path.mkdir()
    weights = {meta_name(name): meta_rows(name, tensor.detach()).to(torch.bfloat16)
               for name, tensor in model.state_dict().items()}
    weights["rope.freqs"] = torch.ones(2)
    torch.save(weights, path / "consolidated.00.pth")
    parameters = {"dim": 8, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "vocab_size": 11,
                  "multiple_of": 4, "norm_eps": 1e-6}
    (path / "params.json").write_text(json.dumps(parameters))
    rows = {f"weight {name}": hashlib.sha256(
        tensor.detach().to(torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes()).hexdigest()
        for name, tensor in model.state_dict().items()}
    (path / "expected.json").write_text(json.dumps({"step": None, "tensors": rows}, indent=1) + "\n")


def make_nanogpt(path, model, optimizer):
    path.mkdir()
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")

    def of_nanogpt(name, tensor):
        return tensor.t().contiguous() if name.endswith(turned) else tensor.clone()

    weights = {f"_orig_mod.{name}": of_nanogpt(name, tensor.detach())
               for name, tensor in model.state_dict().items()}
    weights["_orig_mod.lm_head.weight"] = weights["_orig_mod.transformer.wte.weight"]
    groups = [[n for n, p in model.named_parameters() if (p.dim() >= 2) == decays] for decays in (True, False)]
    names = groups[0] + groups[1]
    state = state_of(model, optimizer)
    saved = {"model": weights,
             "optimizer": {"state": {i: {"step": state[name]["step"].clone()} |
                                     {key: of_nanogpt(name, state[name][key]) for key in ROLES}
                                     for i, name in enumerate(names)},
                           "param_groups": [
                               {"lr": 6e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": decay,
                                "amsgrad": False, "params": [names.index(name) for name in group]}
                               for group, decay in zip(groups, (0.1, 0.0))]},
             "model_args": {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 6, "bias": True,
                            "vocab_size": 13, "dropout": 0.0},
             "iter_num": 3, "best_val_loss": torch.tensor(2.5), "config": {"batch_size": 12}}
    torch.save(saved, path / "ckpt.pt")
    expect(path, weights_of(model), state, 3)


def main():
    if len(sys.argv) == 3:
        return make_fsdp(pathlib.Path(sys.argv[1]), sys.argv[2])
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    make_trainer(out / "trainer")
    gpt2, gpt2_optimizer = make_accelerate(out / "accelerate")
    run_fsdp(out / "fsdp", "SHARDED_STATE_DICT")
    run_fsdp(out / "fsdp-full", "FULL_STATE_DICT")
    llama = make_torchtitan(out / "torchtitan")
    make_meta(out / "meta-llama", llama)
    for name, model in {"gpt2": gpt2, "llama": llama}.items():
        (out / name).mkdir()
        (out / name / "config.json").write_text(model.config.to_json_string())
    make_nanogpt(out / "nanogpt", gpt2, gpt2_optimizer)


if __name__ == "__main__":
    main()
