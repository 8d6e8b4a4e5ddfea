#!/usr/bin/env python3
"""opened_there.py GXP: whether the real libraries open what `gxp convert-ckpt` writes, with equal values.

  huggingface  transformers loads each model after a way through gxp's format, and computes the logits that the
               fixture has recorded in fp32; and the model as f32 in two shards
  safetensors  safetensors reads a file, and the shards of an index, of every element type that torch has
  pt           torch.load(weights_only=True), also of shared, strided, empty and scalar tensors
  dcp          torch.distributed.checkpoint, as its dcp_to_torch_save() does
dcp_peer.py, moved_runs.py and gguf_peers.py open optimizer state, DeepSpeed's universal checkpoints and GGUF.
Exit status 77: torch, safetensors or transformers are not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    from transformers import AutoModelForCausalLM
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MODELS = ("hf_gpt2", "hf_llama_tied_gqa", "hf_llama_untied_bf16_sharded", "hf_gpt_neox", "hf_qwen2")
TYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32",
         "uint16", "uint8", "bool", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")


def convert(gxp, source, target, form, *options):
    done = subprocess.run([gxp, "convert-ckpt", str(source), str(target), "--to", form, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, f"{source} to {form}: {done.stdout}"
    return target


def check_equal(what, found, expected):
    assert found.keys() == expected.keys(), (what, found.keys() ^ expected.keys())
    for name, tensor in expected.items():
        other = found[name]
        assert other.dtype == tensor.dtype and other.shape == tensor.shape, (what, name, other.dtype, other.shape)
        bits = [one.contiguous().reshape(-1).view(torch.uint8) for one in (other, tensor)]
        assert torch.equal(*bits), (what, name)


def load_model(directory, dtype):
    model, report = AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype, output_loading_info=True, attn_implementation="eager")
    assert not any(report.values()), (directory, report)
    return model.eval()


def check_model(gxp, directory, name, data):
    source = data / name
    recorded = load_file(source / "reference_io.safetensors")
    convert(gxp, source, directory / "gxp", "gxp")
    convert(gxp, directory / "gxp", directory / "back", "huggingface")
    tokens = recorded["input_ids"]
    weights, original = (load_model(path, "auto").state_dict() for path in (directory / "back", source))
    check_equal(name, weights, original)
    with torch.no_grad():
        logits = load_model(directory / "back", torch.float32)(tokens).logits
    torch.testing.assert_close(logits, recorded["logits"], atol=1e-5, rtol=1e-4)
    convert(gxp, source, directory / "wide", "huggingface", "--dtype", "f32", "--shards", "2")
    check_equal(name, load_model(directory / "wide", "auto").state_dict(),
                {key: tensor.float() for key, tensor in original.items()})


def tensors_of_all_types():
    torch.manual_seed(3)
    bits = torch.randint(0, 256, (6, 8), dtype=torch.uint8)
    tensors = {}
    for name in TYPES:
        dtype = getattr(torch, name)
        plain = bits % 2 == 0 if name == "bool" else bits.clone().view(dtype)
        tensors |= {name: plain, f"{name}.empty": plain[:0].clone(), f"{name}.scalar": plain[0, 0].clone()}
    return tensors


def check_safetensors(gxp, directory, sources):
    for number, source in enumerate(sources):
        one = convert(gxp, source, directory / f"{number}.safetensors", "safetensors")
        several = convert(gxp, source, directory / f"several-{number}", "safetensors", "--shards", "3")
        index = json.loads((several / "model.safetensors.index.json").read_text())["weight_map"]
        shards = {file: load_file(several / file) for file in set(index.values())}
        check_equal(source, {name: shards[file][name] for name, file in index.items()}, load_file(one))
        check_equal(source, load_file(one), load_file(source))


def check_torch(gxp, directory, source, expected):
    made = convert(gxp, source, directory / "made.pt", "pt")
    check_equal("pt", torch.load(made, weights_only=True), expected)
    convert(gxp, source, directory / "dcp", "dcp", "--shards", "3")
    dcp_to_torch_save(str(directory / "dcp"), str(directory / "joined.pt"))
    joined = torch.load(directory / "joined.pt", weights_only=True)
    check_equal("dcp", joined.get("model", joined), expected)


def main(gxp):
    torch.set_num_threads(1)
    data = pathlib.Path(__file__).resolve().parent.parent.parent / "data/ckpt"
    with tempfile.TemporaryDirectory() as top:
        for name in MODELS:
            directory = pathlib.Path(top, name)
            directory.mkdir()
            check_model(gxp, directory, name, data)
            print(f"{name}: transformers has the weights and the recorded logits", flush=True)
        directory = pathlib.Path(top)
        tensors = tensors_of_all_types()
        save_file(tensors, directory / "types.safetensors")
        check_safetensors(gxp, directory, (data / "safetensors_single/model.safetensors",
                                           directory / "types.safetensors"))
        print(f"safetensors: {len(tensors)} tensors of {len(TYPES)} types", flush=True)
        odd = tensors | {"strided": tensors["float32"].t()[1:, ::2], "shared": tensors["bfloat16"][2:4],
                         "expanded": tensors["float16"][:, :1].expand(6, 5)}
        torch.save(odd, directory / "odd.pt")
        check_torch(gxp, directory, directory / "odd.pt", odd)
        print(f"pt, dcp: {len(odd)} tensors", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
