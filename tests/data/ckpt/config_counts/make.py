#!/usr/bin/env python3
"""Writes counts.json: config.json files and how many parameters transformers makes of them.

Needs torch and transformers; made with transformers 5.24.0. The models are made on torch's device
"meta", which has no memory.
"""
import json
import pathlib
import tempfile

import torch
import transformers

GPT2 = dict(n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=32)
LLAMA = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=16, vocab_size=100, intermediate_size=96)
STEMS = dict(gpt2="GPT2", llama="Llama", mistral="Mistral", qwen2="Qwen2", qwen3="Qwen3",
             gemma="Gemma")


def configs():
    for model_type, stem in STEMS.items():
        is_gpt2 = model_type == "gpt2"
        sizes = dict(model_type=model_type, **(GPT2 if is_gpt2 else LLAMA))
        yield dict(model_type=model_type)
        yield sizes
        yield dict(sizes, tie_word_embeddings=True)
        yield dict(sizes, tie_word_embeddings=False)
        yield dict(sizes, attention_bias=True, mlp_bias=True)
        for head in ("Model", "LMHeadModel" if is_gpt2 else "ForCausalLM",
                     "ForSequenceClassification", "ForTokenClassification"):
            yield dict(sizes, architectures=[stem + head], num_labels=3)
        yield dict(sizes, architectures=[stem + "ForSequenceClassification"])
        yield dict(sizes, architectures=[stem + "ForTokenClassification"],
                   id2label={str(i): str(i) for i in range(5)})
        if model_type != "gemma":
            yield dict(sizes, architectures=[stem + "ForQuestionAnswering"], num_labels=3)
        for key in () if is_gpt2 else ("num_key_value_heads", "head_dim"):
            without = {name: value for name, value in sizes.items() if name != key}
            heads = dict(num_attention_heads=64) if key == "num_key_value_heads" else {}
            yield dict(without, **heads)
    yield dict(GPT2, model_type="gpt2", n_inner=100)
    yield dict(model_type="gpt2", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=32)


def count(config):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        read = transformers.AutoConfig.from_pretrained(folder)
    head = "LMHeadModel" if config["model_type"] == "gpt2" else "ForCausalLM"
    name = config.get("architectures", [STEMS[config["model_type"]] + head])[0]
    with torch.device("meta"):
        model = getattr(transformers, name)(read)
    model.tie_weights()
    return sum({id(p): p.numel() for p in model.parameters()}.values())


def main():
    rows = [json.dumps(dict(config=config, parameters=count(config))) for config in configs()]
    here = pathlib.Path(__file__).parent
    (here / "counts.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


main()
