#!/usr/bin/env python3
"""compare_gguf.py FILE.gguf DIR: whether the gguf library finds in FILE the model of the Hugging Face directory DIR (gpt2 or
llama) under llama.cpp's names, with equal values. Needs the packages gguf and numpy; exits with 77 if they are not there."""
import glob
import json
import sys

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

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
    if config["model_type"] == "gpt2":
        return values.T if values.ndim == 2 and ".h." in name else values
    if "q_proj" not in name and "k_proj" not in name:
        return values
    heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, values.shape[1])
    return halves.swapaxes(1, 2).reshape(values.shape)


def main(file, directory):
    with open(f"{directory}/config.json") as text:
        config = json.load(text)
    architecture = {"gpt2": gguf.MODEL_ARCH.GPT2, "llama": gguf.MODEL_ARCH.LLAMA}[config["model_type"]]
    names = gguf.get_tensor_name_map(architecture, 64)
    expected = {}
    for path in glob.glob(f"{directory}/model*.safetensors"):
        for name, values in read_safetensors(path):
            expected[names.get_name(name, (".weight", ".bias"))] = to_gguf(name, values, config)
    reader = gguf.GGUFReader(file)
    assert reader.fields["general.architecture"].contents() == config["model_type"]
    found = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, values in expected.items():
        assert np.array_equal(found[name].astype(np.float32), values), name


main(*sys.argv[1:])
