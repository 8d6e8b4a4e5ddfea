#!/usr/bin/env python3
"""opened_models.py GXP: whether transformers and peft compute of what gxp writes what they compute of the original.

Each directory of tests/data/models, and what comes of it, has the same logits, to the bit, for its weights have not changed:
  converted    by `gxp convert-ckpt` to gxp's format and back, and to safetensors and back
  exported     by checkpoint.export of a run whose learning rate is below the resolution of every weight
Adapters are opened by peft, converted and exported; the model with an adapter merged by gxp has its logits up to rounding.
After the journey of examples/finetune.sh, whose weights have changed, the libraries have the loss that gxp computes.
Exit status 77: torch, transformers or peft are not installed.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, logging
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent.parent
DATA = SOURCE / "tests/data/models"
# gxp does not train them, but converts them.
NOT_TRAINED = {"llama-rope-dynamic", "phi3-longrope"}
REFUSED = "llama-tied-head-differs"  # its config.json contradicts its weights
BASES = {"gpt2-lora-qkv": "gpt2-tied", "llama-lora-all": "llama-gqa", "llama-lora-qv": "llama-gqa",
         "phi3-lora-fused": "phi3", "qwen3-lora-all": "qwen3", "qwen3-lora-qv": "qwen3", "qwen3-lora-rs": "qwen3"}
JOURNEYS = ("gpt2-tied", "qwen3", "phi3", "gemma2", "neox-parallel", "granite-untied-bias")


def call(command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, **options)
    assert done.returncode == 0, f"exit status {done.returncode}: {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def convert(gxp, source, target, form, *options):
    call([gxp, "convert-ckpt", source, target, "--to", form, *options])
    return target


def load(directory):
    model, report = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, output_loading_info=True,
                                                         attn_implementation="eager")
    assert not any(report.values()), (directory, report)
    return model.eval()


def logits_of(model, ids):
    with torch.no_grad():
        return model(ids).logits


def export(gxp, directory, ids, *settings):
    """What a run that leaves the weights as they are exports."""
    ids.to(torch.int32).numpy().tofile(directory / "rows.i32")
    run = directory / "run.toml"
    run.write_text(f'[data]\ntrain = ["{directory}/rows.i32"]\nsequence = {ids.shape[1] - 1}\n'
                   '[train]\nsteps = 1\nmicro_batch = 1\ndevice = "cpu"\n[optim]\nlr = 1e-30\n'
                   f'[checkpoint]\ndir = "{directory}/saved"\nexport = "fp32"\n[parallel]\nstrategy = "zero3"\n')
    sets = [part for setting in settings for part in ("--set", setting)]
    call([gxp, "train", run, "--nproc", "2", *sets])
    return directory / "saved/step-00000001/huggingface"


def check_model(gxp, directory, name):
    source = DATA / name
    recorded = load_file(source / "reference.safetensors")
    ids = recorded["input_ids"]
    expected = logits_of(load(source), ids)
    torch.testing.assert_close(expected, recorded["logits"], atol=1e-5, rtol=1e-4)
    ways = [convert(gxp, convert(gxp, source, directory / form, form), directory / f"{form}-back", "huggingface")
            for form in ("gxp", "safetensors")]
    if name not in NOT_TRAINED:
        ways.append(export(gxp, directory, ids, f"model.init={source}"))
    for way in ways:
        assert torch.equal(logits_of(load(way), ids), expected), way


def check_adapter(gxp, directory, name, base):
    ids = load_file(DATA / name / "reference.safetensors")["input_ids"]
    expected = logits_of(PeftModel.from_pretrained(load(base), DATA / name), ids)
    exported = export(gxp, directory, ids, f"model.init={base}", f"lora.init={DATA / name}")
    ways = (exported, convert(gxp, DATA / name, directory / "converted", "peft"),
            convert(gxp, directory / "saved", directory / "back", "peft"))
    for way in ways:
        assert torch.equal(logits_of(PeftModel.from_pretrained(load(base), way), ids), expected), way
    check_merged(gxp, directory, base, exported, ids, expected)


def check_merged(gxp, directory, base, adapter, ids, expected):
    merged = convert(gxp, base, directory / "merged-here", "huggingface", "--merge", adapter)
    torch.testing.assert_close(logits_of(load(merged), ids), expected, atol=1e-5, rtol=1e-4)


def rows_of(path, positions):
    """Inputs and targets of all whole rows of a text."""
    text = torch.tensor(list(path.read_bytes()))
    count = (len(text) - 1) // positions
    return tuple(text[first : first + count * positions].view(count, positions) for first in (0, 1))


def check_loss(gxp, directory, model, rows, *options):
    """Whether a model has the loss that gxp computes of a run's."""
    printed = call([gxp, "train", "run/finetune/run.toml", "--evaluate", "--format", "json", *options], cwd=directory,
                   env={**os.environ, "GXP_DATA_TOKENIZER": "byte", "GXP_TRAIN_DEVICE": "cpu", "GXP_TRAIN_THREADS": "1"})
    logits = logits_of(model, rows[0]).flatten(0, 1).double()
    loss = torch.nn.functional.cross_entropy(logits, rows[1].flatten()).item()
    expected = json.loads(printed)["valid_loss"]
    assert abs(loss - expected) < 1e-5 * expected, (options, loss, expected)


def check_journey(gxp, directory, name):
    call([SOURCE / "tests/docs/run_finetune.sh", gxp, SOURCE, name, directory])
    top = directory / "run/finetune"
    rows = rows_of(directory / "text.txt", 32)
    adapter = top / "lora/step-00000040/huggingface"
    adapted = PeftModel.from_pretrained(load(directory / "model"), adapter)
    check_loss(gxp, directory, adapted, rows, "--resume", "--set", f"checkpoint.dir={top}/lora", "--set", "lora.rank=8")
    check_loss(gxp, directory, load(top / "full/step-00000040/huggingface"), rows, "--resume")
    check_merged(gxp, directory, directory / "model", adapter, rows[0], logits_of(adapted, rows[0]))


def main(gxp):
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for source in sorted(DATA.iterdir()):
        if not source.is_dir() or source.name == REFUSED:
            continue
        with tempfile.TemporaryDirectory() as top:
            if source.name in BASES:
                check_adapter(gxp, pathlib.Path(top), source.name, DATA / BASES[source.name])
            else:
                check_model(gxp, pathlib.Path(top), source.name)
        print(f"{source.name}: the libraries compute the same", flush=True)
    for name in JOURNEYS:
        with tempfile.TemporaryDirectory() as top:
            check_journey(gxp, pathlib.Path(top), name)
        print(f"{name}: the libraries compute what gxp has trained", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
