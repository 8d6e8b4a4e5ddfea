"""Writes huggingface_classes.json: the fields of the config classes of the families that gxp trains, with
their defaults, as transformers 5.24.0 has them (no torch is needed). Lists with an entry per layer,
which the classes make from other fields, are null, as in the class.

    python3 huggingface_classes.py > huggingface_classes.json
"""

import dataclasses
import json

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

FAMILIES = ("gpt2 gpt_neox llama mistral qwen2 qwen3 smollm3 gemma gemma2 gemma3_text phi phi3 olmo2"
            " granite").split()


def fields_of(name):
    config_class = CONFIG_MAPPING[name]
    values = config_class().to_dict()
    names = {field.name for field in dataclasses.fields(config_class)} | set(values)
    per_layer = {"layer_types", "no_rope_layers"}
    return {key: None if key in per_layer else values.get(key) for key in sorted(names)}


rows = [f"{json.dumps(name)}: {json.dumps(fields_of(name))}" for name in FAMILIES]
print("{\n" + ",\n".join(rows) + "\n}")
