#!/usr/bin/env python3
"""compare_gguf.py FILE.gguf DIR: whether the gguf library finds in FILE the model of the Hugging Face directory DIR under
llama.cpp's names, with equal values. Needs the packages gguf and numpy; exits with 77 if they are not there."""
import glob
import json
import sys

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ARCHITECTURES = {"gpt2": "gpt2", "gpt_neox": "gptneox", "llama": "llama", "mistral": "llama", "qwen2": "qwen2",
                 "qwen3": "qwen3", "smollm3": "smollm3", "gemma": "gemma", "gemma2": "gemma2", "gemma3_text": "gemma3",
                 "phi": "phi2", "phi3": "phi3", "olmo2": "olmo2", "granite": "granite"}
PAIRS = ("llama", "mistral", "smollm3", "granite")  # RoPE turns neighbours in GGUF
NARROW = {"BF16": lambda words: (words.astype(np.uint32) << 16).view(np.float32),
          "F16": lambda words: words.view(np.float16).astype(np.float32)}


def read_safetensors(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read()
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = data[begin:end]
        values = (np.frombuffer(part, np.float32) if entry["dtype"] == "F32"
                  else NARROW[entry["dtype"]](np.frombuffer(part, np.uint16)))
        yield name, values.reshape(entry["shape"])


def to_gguf(name, values, config):
    """As llama.cpp's converter lays it out."""
    family = config["model_type"]
    if family == "gpt2":
        return values.T if values.ndim == 2 and ".h." in name else values
    if family.startswith("gemma") and name.endswith("norm.weight"):
        return values + np.float32(1)
    if family == "gpt_neox" and "query_key_value" in name:
        heads = config["num_attention_heads"]
        parts = values.reshape(heads, 3, -1, *values.shape[1:])
        return parts.swapaxes(0, 1).reshape(values.shape)
    if family not in PAIRS or not ("q_proj" in name or "k_proj" in name):
        return values
    heads = config["num_attention_heads"]
    if "k_proj" in name:
        heads = config.get("num_key_value_heads") or heads
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def compare(file, directory):
    with open(f"{directory}/config.json") as text:
        config = json.load(text)
    architecture = ARCHITECTURES[config["model_type"]]
    names = gguf.get_tensor_name_map({name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[architecture], 64)
    expected = {}
    for path in glob.glob(f"{directory}/model*.safetensors"):
        for name, values in read_safetensors(path):
            expected[names.get_name(name, (".weight", ".bias"))] = to_gguf(name, values, config)
    if config.get("tie_word_embeddings"):
        head = expected.pop("output.weight", None)
        expected.setdefault("token_embd.weight", head)
    reader = gguf.GGUFReader(file)
    assert reader.fields["general.architecture"].contents() == architecture
    found = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    found.pop("rope_freqs.weight", None)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, values in expected.items():
        assert np.array_equal(found[name].astype(np.float32), values), name
    return reader


if __name__ == "__main__":
    compare(*sys.argv[1:])
