# Makes torch_optimizers.json: weights after a few steps of torch.optim's optimizers in float64,
# Muon's Newton-Schulz iteration too, which PyTorch has in bfloat16.
#   python3 torch_optimizers.py > torch_optimizers.json      (made with PyTorch 2.15.0, CPU)
# Weight i of a vector, or of a matrix row by row, starts at sin(i) and has the gradient sin(0.7 i + t) / 4 in step t = 1, 2, ...
import json
import math

import torch
from torch.optim import _muon

COUNT, STEPS = 6, 5
CASES = [
    ("adam", {"lr": 0.01}, torch.optim.Adam, {"betas": (0.9, 0.999), "eps": 1e-8}),
    ("adam", {"lr": 0.01, "beta1": 0.8, "weight_decay": 0.1}, torch.optim.Adam,
     {"betas": (0.8, 0.999), "weight_decay": 0.1}),
    ("adamw", {"lr": 0.01, "weight_decay": 0.1}, torch.optim.AdamW,
     {"betas": (0.9, 0.95), "weight_decay": 0.1}),
    ("sgd", {"lr": 0.1}, torch.optim.SGD, {}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.2}, torch.optim.SGD, {"weight_decay": 0.2}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.2}, torch.optim.SGD,
     {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.2}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, torch.optim.SGD,
     {"momentum": 0.9, "nesterov": True}),
]
# eps2 = 1: lr is not scaled, since no weight's magnitude is above 1.
ADAFACTOR = {"beta2_decay": -0.8, "eps": (1e-30, 1.0), "d": 1.0}
WHOLE = [(name, shape, settings, make, torch_settings)
         for shape in [(6, 4), (4, 6), (5, 5)]
         for name, settings, make, torch_settings in [
             ("muon", {"lr": 0.02, "weight_decay": 0.1}, torch.optim.Muon,
              {"momentum": 0.95, "weight_decay": 0.1}),
             ("muon", {"lr": 0.02, "nesterov": False, "adjust_lr": "match_rms_adamw",
                       "weight_decay": 0.0}, torch.optim.Muon,
              {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0}),
             ("adafactor", {"lr": 0.01, "weight_decay": 0.1}, torch.optim.Adafactor,
              dict(ADAFACTOR, weight_decay=0.1)),
         ]] + [("adafactor", (6,), {"lr": 0.01, "clip_threshold": 1.1}, torch.optim.Adafactor,
                dict(ADAFACTOR, d=1.1))]


def newton_schulz(gradient, coefficients, steps, eps):
    a, b, c = coefficients
    x = gradient.T if gradient.size(0) > gradient.size(1) else gradient
    x = x / (x.norm() + eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if gradient.size(0) > gradient.size(1) else x


_muon._zeropower_via_newtonschulz = newton_schulz


def train(make, settings, torch_settings, shape=(COUNT,)):
    count = math.prod(shape)
    weights = torch.tensor([math.sin(i) for i in range(count)], dtype=torch.float64).view(shape)
    weights.requires_grad_()
    optimizer = make([weights], lr=settings["lr"], **torch_settings)
    for t in range(1, STEPS + 1):
        weights.grad = torch.tensor([math.sin(0.7 * i + t) / 4 for i in range(count)],
                                    dtype=torch.float64).view(shape)
        optimizer.step()
    return weights.flatten().tolist()


rows = [{"name": name, "steps": STEPS, "settings": settings,
         "weights": train(make, settings, torch_settings)}
        for name, settings, make, torch_settings in CASES]
rows += [{"name": name, "steps": STEPS, "settings": settings, "shape": shape,
          "weights": train(make, settings, torch_settings, shape)}
         for name, shape, settings, make, torch_settings in WHOLE]
print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
