# dcp_peer.py DIR: loads the checkpoint of dcp_test.cc's run with torch.distributed.checkpoint, as a
# program that trains goes on, and prints what model and optimizer then hold, a line each. Exit
# status 77: torch is not installed.
import hashlib
import sys

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
except ImportError:
    sys.exit(77)


def show(what, tensor):
    print(what, hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest())


model = torch.nn.Module()
model.w = torch.nn.Parameter(torch.zeros(2, 3))
model.b = torch.nn.Parameter(torch.zeros(3))
groups = [{"params": [model.w]}, {"params": [model.b], "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1.0)
weights, state = get_state_dict(model, optimizer)
loaded = {"model": weights, "optim": state, "step": 0, "gxp": 0}
dcp.load(loaded, checkpoint_id=sys.argv[1])
set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"])
for name, parameter in model.named_parameters():
    show(f"weight {name}", parameter)
    show(f"adam_m {name}", optimizer.state[parameter]["exp_avg"])
    show(f"adam_v {name}", optimizer.state[parameter]["exp_avg_sq"])
    print("step", int(optimizer.state[parameter]["step"]))
for group in optimizer.param_groups:
    print("group", group["lr"], group["weight_decay"], group["betas"])
print("step", loaded["step"])
print("gxp", loaded["gxp"]._metadata["gxp"]["samples_consumed"])
