#!/usr/bin/env python3
"""gguf_peers.py GXP: whether the real libraries open the GGUF files that `gxp convert-ckpt` writes.

  samples    the gguf library reads each of tests/data/models that llama.cpp computes, with equal values
  models     transformers loads a tiny model of each architecture that it reads from GGUF, and the logits are those of
             the directory that the file was made of
  tokenizer  transformers makes a tokenizer of the file, which gives the ids of the directory's
Exit status 77: torch, transformers, tokenizers or gguf are not installed.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
    from transformers import (Gemma2Config, Gemma3TextConfig, GPT2Config, LlamaConfig, MistralConfig, Phi3Config,
                              Qwen2Config, Qwen3Config)
    import compare_gguf
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SAMPLES = ("gemma", "gpt2-tied", "gpt2-untied", "granite", "granite-untied-bias", "llama-attention-bias", "llama-gqa",
           "llama-no-head-dim", "llama-no-kv-heads", "llama-plain", "llama-rope-linear", "llama-rope-llama3",
           "llama-rope-yarn", "llama-tied-head-equal", "llama-tied-head-only", "mistral-full", "neox-parallel", "olmo2",
           "phi", "phi3", "qwen2-tied", "qwen2-yarn", "qwen3")
TEXT = "The cats' 12 hats, 345 mats and what they've sat on:\n\n  naïve  façades, “quotes” — 日本語 and ½.\tEnd"


def convert(gxp, source, target, form):
    done = subprocess.run([gxp, "convert-ckpt", str(source), str(target), "--to", form],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, f"{source} to {form}: {done.stdout}"
    return target


def tiny_configs():
    """Sizes that transformers' loader does not read from GGUF have its classes' defaults."""
    sizes = {"vocab_size": 400, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": None,
             "bos_token_id": None, "eos_token_id": None}
    yield GPT2Config(vocab_size=400, n_embd=48, n_layer=2, n_head=4)
    yield LlamaConfig(**sizes, head_dim=16)
    yield MistralConfig(**sizes, head_dim=12, sliding_window=None)
    yield Qwen2Config(**sizes)
    yield Qwen3Config(**sizes, head_dim=128)
    yield Phi3Config(**sizes)
    yield Gemma2Config(**sizes, head_dim=256)
    yield Gemma3TextConfig(**sizes, head_dim=256)


def train_tokenizer(directory):
    """A byte-level one, in the directory; with the pattern of GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=390, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([pathlib.Path(__file__).read_text()], trainer)
    name = "<|endoftext|>"  # Phi-3 needs a padding token that is in its vocabulary
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=name, eos_token=name, pad_token=name)
    fast.save_pretrained(directory)
    return tokenizer


def load(directory, **options):
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager",
                                                **options).eval()


def check_model(gxp, directory, config):
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(directory / "model")
    tokenizer = train_tokenizer(directory / "model")
    file = convert(gxp, directory / "model", directory / "model.gguf", "gguf")
    reader = compare_gguf.compare(file, directory / "model")
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert tokens[:390] == [tokenizer.id_to_token(i) for i in range(390)], config.model_type
    assert len(tokens) == 400 and tokens[399] == "[PAD399]"
    ids = torch.randint(0, 400, (2, 24))
    with torch.no_grad():
        expected, found = load(directory / "model")(ids).logits, load(directory, gguf_file=file.name)(ids).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    back = convert(gxp, file, directory / "back", "huggingface")
    with torch.no_grad():
        assert torch.equal(load(back)(ids).logits, expected), config.model_type
    assert (back / "tokenizer.json").read_bytes() == (directory / "model/tokenizer.json").read_bytes()
    return file


def check_tokenizer(directory, file):
    there = AutoTokenizer.from_pretrained(directory, gguf_file=file.name)
    here = AutoTokenizer.from_pretrained(directory / "model")
    assert there(TEXT)["input_ids"] == here(TEXT)["input_ids"]


def main(gxp):
    torch.set_num_threads(1)
    data = pathlib.Path(__file__).resolve().parent.parent.parent / "data/models"
    with tempfile.TemporaryDirectory() as top:
        for name in SAMPLES:
            compare_gguf.compare(convert(gxp, data / name, pathlib.Path(top, f"{name}.gguf"), "gguf"), data / name)
        print(f"gguf: {len(SAMPLES)} samples with equal values", flush=True)
        for config in tiny_configs():
            directory = pathlib.Path(top, config.model_type)
            directory.mkdir()
            file = check_model(gxp, directory, config)
            if config.model_type == "gpt2":
                check_tokenizer(directory, file)
            print(f"{config.model_type}: transformers has the logits", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
