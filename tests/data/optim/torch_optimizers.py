# Makes torch_optimizers.json: weights after a few steps of torch.optim's optimizers in float64.
#   python3 torch_optimizers.py > torch_optimizers.json      (made with PyTorch 2.15.0, CPU)
# Weight i starts at sin(i) and has the gradient sin(0.7 i + t) / 4 in step t = 1, 2, ...
import json
import math

import torch

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


def train(make, settings, torch_settings):
    weights = torch.tensor([math.sin(i) for i in range(COUNT)], dtype=torch.float64)
    weights.requires_grad_()
    optimizer = make([weights], lr=settings["lr"], **torch_settings)
    for t in range(1, STEPS + 1):
        weights.grad = torch.tensor([math.sin(0.7 * i + t) / 4 for i in range(COUNT)],
                                    dtype=torch.float64)
        optimizer.step()
    return weights.tolist()


rows = [{"name": name, "steps": STEPS, "settings": settings,
         "weights": train(make, settings, torch_settings)}
        for name, settings, make, torch_settings in CASES]
print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
