# Makes trace.json: gpt2-accum's model and tokens with labels, in float64, as transformers and PyTorch
# train it: the loss is cross_entropy() with its ignore_index, -100, over all 24 rows of a step.
#   python3 trace.py > trace.json      (made with PyTorch 2.15.0, transformers 5.24.0, CPU)
import json
import os

import numpy
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

STEPS, ROWS, LENGTH = 5, 24, 21
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpt2-accum")


def is_predicted(row, i):
    return row % 6 < 4 and i >= 7 * row % 20 and (row + i) % 6 != 0


def load_model():
    spec = json.load(open(os.path.join(FOLDER, "spec.json")))["model"]
    config = GPT2Config(**spec, attn_implementation="eager", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = GPT2LMHeadModel(config).double()
    weights = load_file(os.path.join(FOLDER, "init.safetensors"))
    prefix = "" if any(name.startswith("transformer.") for name in weights) else "transformer."
    lost = model.load_state_dict({prefix + name: w.double() for name, w in weights.items()}, strict=False)
    assert not lost.unexpected_keys and set(lost.missing_keys) <= {"lm_head.weight"}, lost
    model.tie_weights()
    return model


tokens = numpy.fromfile(os.path.join(FOLDER, "tokens.i32"), dtype="<i4").reshape(-1, LENGTH)
predicted = [[is_predicted(row, i) for i in range(LENGTH)] for row in range(len(tokens))]
labels = numpy.where(predicted, tokens, -100)
data = numpy.stack([tokens, labels], axis=1)

model = load_model()
groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.01},
          {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
trace = []
for step in range(STEPS):
    batch = torch.from_numpy(data[step * ROWS:(step + 1) * ROWS]).long()
    logits = model(batch[:, 0]).logits
    targets = batch[:, 1, 1:]
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    trace.append({"loss": loss.item(), "grad_norm": norm.item(), "targets": int((targets != -100).sum())})
print(json.dumps({"float64": trace}, indent=1))
