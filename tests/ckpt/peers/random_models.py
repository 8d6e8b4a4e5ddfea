#!/usr/bin/env python3
"""Models of every family with settings drawn at random: the loss that gxp finds is transformers'.

  tests/ckpt/peers/random_models.py GXP [SEED [MODELS]]

Ends with 77 where torch or transformers is missing."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

POSITIONS = 24
SCALINGS = {
    "default": [{}],
    "linear": [{"factor": 2.0}, {"factor": 4.0}],
    "llama3": [{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}],
    "yarn": [{"factor": 4.0, "original_max_position_embeddings": 16, **more}
             for more in ({}, {"beta_fast": 16.0, "beta_slow": 2.0}, {"attention_factor": 1.3})],
}
BOTH = [True, False]
BIASES = {"attention_bias": BOTH, "mlp_bias": BOTH}
QWEN_WINDOW = {"use_sliding_window": BOTH, "sliding_window": [7, None], "max_window_layers": [0, 1, 9]}
GEMMA2 = {"query_pre_attn_scalar": [8, 30], "sliding_window": [4, 9], "final_logit_softcapping": [None, 3.0], "pad_token_id": [0]}
# Of each family, besides common(): the values of its settings, and the scalings of its rotary positions.
FAMILIES = {
    "llama": ({"head_dim": [8, 16, None], "hidden_act": ["silu", "gelu", "gelu_pytorch_tanh", "relu"], "rms_norm_eps": [1e-6, 1e-2], **BIASES}, SCALINGS),
    "mistral": ({"head_dim": [8, 16, None], "sliding_window": [None, 5, 13, 100]}, SCALINGS),
    "qwen2": (QWEN_WINDOW, SCALINGS),
    "qwen3": ({"head_dim": [8, 16], "attention_bias": BOTH, **QWEN_WINDOW}, SCALINGS),
    "smollm3": ({"no_rope_layer_interval": [2, 3, 4], "use_sliding_window": BOTH, "sliding_window": [6, None], "pad_token_id": [None, 3], **BIASES},
                SCALINGS),
    "gemma": ({"head_dim": [8, 16], "attention_bias": BOTH, "pad_token_id": [0]}, ["default", "linear"]),
    "gemma2": ({"head_dim": [8, 16], "attn_logit_softcapping": [None, 2.0], **GEMMA2}, ["default"]),
    "gemma3_text": ({"head_dim": [8, 16], "attention_bias": BOTH, **GEMMA2}, ["default", "linear"]),
    "phi": ({"partial_rotary_factor": [0.25, 0.5, 1.0], "qk_layernorm": BOTH, "hidden_act": ["gelu_new", "gelu", "relu"],
             "layer_norm_eps": [1e-5, 1e-2]}, []),
    "phi3": ({"partial_rotary_factor": [0.5, 1.0], "sliding_window": [None, 6], "pad_token_id": [None, 3],
              "original_max_position_embeddings": [64]}, ["default"]),
    "olmo2": ({"attention_bias": BOTH, "pad_token_id": [1, None]}, SCALINGS),
    "granite": ({"embedding_multiplier": [1.0, 12.0], "logits_scaling": [1.0, 8.0], "residual_multiplier": [1.0, 0.22],
                 "attention_multiplier": [1.0, 0.1], **BIASES}, SCALINGS),
    "gpt_neox": ({"rotary_pct": [0.25, 0.5, 1.0], "use_parallel_residual": BOTH, "attention_bias": BOTH, "hidden_act": ["gelu", "gelu_new", "relu"]}, []),
    "gpt2": ({"n_inner": [None, 40], "activation_function": ["gelu_new", "gelu", "relu", "silu", "gelu_pytorch_tanh"],
              "layer_norm_epsilon": [1e-5, 1e-2], "scale_attn_weights": BOTH, "scale_attn_by_inverse_layer_idx": BOTH}, []),
}


def common(draw, family):
    heads, layers, vocabulary = draw([2, 4]), draw([1, 2, 3]), draw([50, 97, 128])
    hidden = heads * draw([8, 16])
    if family == "gpt2":
        return {"vocab_size": vocabulary, "n_positions": 64, "n_embd": hidden, "n_layer": layers, "n_head": heads, "tie_word_embeddings": draw(BOTH)}
    sizes = {"vocab_size": vocabulary, "max_position_embeddings": 64, "num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": hidden,
             "intermediate_size": draw([24, 40]), "tie_word_embeddings": draw(BOTH)}
    return sizes if family == "gpt_neox" else {**sizes, "num_key_value_heads": draw([1, 2, heads])}


def rope(draw, scalings):
    kind = draw(list(scalings))
    return {"rope_type": kind, "rope_theta": draw([100.0, 10000.0, 500000.0]), **draw(SCALINGS[kind])}


def settings(draw, family):
    values, scalings = FAMILIES[family]
    drawn = {**common(draw, family), **{key: draw(choices) for key, choices in values.items()}}
    if family == "gemma3_text":
        drawn["rope_parameters"] = {"full_attention": rope(draw, scalings), "sliding_attention": rope(draw, ["default"])}
    elif scalings:
        drawn["rope_parameters"] = rope(draw, scalings)
    return drawn


def save_model(directory, family, drawn):
    """Returns the loss on the rows that it writes beside the model."""
    config = transformers.CONFIG_MAPPING[family](**drawn)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.dim() == 1))
    model.save_pretrained(directory)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).eval()
    rows = torch.randint(0, config.vocab_size, (3, POSITIONS))
    rows.numpy().astype(numpy.int32).tofile(os.path.join(directory, "rows.i32"))
    with torch.no_grad():
        return model(input_ids=rows, labels=rows).loss.item()


def loss_of(gxp, directory):
    run = os.path.join(directory, "run.toml")
    with open(run, "w", encoding="utf-8") as file:
        file.write(f'[model]\ninit = "{directory}"\n[data]\nvalid = ["{directory}/rows.i32"]\nsequence = {POSITIONS - 1}\n[train]\nprecision = "fp32"\n')
    done = subprocess.run([gxp, "train", run, "--evaluate", "--format", "json"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return done.stderr.strip()
    return json.loads(done.stdout)["valid_loss"]


def main():
    gxp = sys.argv[1]
    seed, models = (int(word) for word in (sys.argv[2:] + ["1", "56"][len(sys.argv[2:]):])[:2])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    draw = random.Random(seed).choice
    wrong = 0
    for number in range(models):
        family = list(FAMILIES)[number % len(FAMILIES)]
        drawn = settings(draw, family)
        with tempfile.TemporaryDirectory(prefix="gxp-random-model-") as directory:
            expected = save_model(directory, family, drawn)
            found = loss_of(gxp, directory)
        if isinstance(found, str) or abs(found - expected) > 3e-5 * max(1, expected):
            wrong += 1
            print(f"{family}: transformers' loss is {expected}, gxp's {found}; settings: {drawn}")
    print(f"random_models: seed {seed}, {models} models, {wrong} wrong")
    sys.exit(wrong > 0)


main()
