# SPDX-License-Identifier: Apache-2.0
"""A network of exported layers, trained: its loss follows that of the same network in PyTorch, within rounding.

    train.py FOLDER STEPS        FOLDER has exports of layers (linear1, norm, gelu, linear2, as far as they are there) and
                                 of the loss, each with a judged backward

The same network is trained in float64 too. Ours may be as far from that as PyTorch's own float32, times four.
"""
import json
import os
import sys

import torch

LAYERS = ("linear1", "norm", "gelu", "linear2")
sys.dont_write_bytecode = True


def load(folder, name):
    sys.path.insert(0, folder)
    return __import__(name)


def kernel_calls(module):
    """Counts the calls of its backward kernel."""
    kernel = sys.modules[f"{module.__name__}.{module.Model.__module__.rpartition('.')[2].rpartition('__')[0]}"]._export.gradients.kernel
    calls = []
    judged = kernel.judged_gradients
    kernel.judged_gradients = lambda *args: calls.append(1) or judged(*args)
    return calls


def network(modules, kind, device, states, double):
    made = []
    for m, state in zip(modules, states):
        one = getattr(m, kind)(*m.get_init_inputs()).to(device)
        one.load_state_dict(state)
        made.append(one.double() if double else one)
    return made


def trained(layers, x, target, steps):
    """The loss of each step of plain gradient descent."""
    parameters = [p for layer in layers for p in layer.parameters()]
    losses = []
    for _ in range(steps):
        y = x
        for layer in layers[:-1]:
            y = layer(y)
        loss = layers[-1](y, target)
        losses.append(loss.item())
        grads = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, g in zip(parameters, grads):
                p -= 0.2 * g
    return losses


def main():
    folder, steps = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    names = [n for n in LAYERS if os.path.isdir(os.path.join(folder, n))] + ["loss"]
    modules = [load(folder, n) for n in names]
    with open(os.path.join(folder, names[0], "launches.json")) as file:
        device = "cuda" if json.load(file)["device"]["kind"] == "cuda" else "cpu"
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
    calls = [kernel_calls(m) for m in modules]
    torch.manual_seed(1)
    x = modules[0].get_inputs()[0].to(device)
    target = modules[-1].get_inputs()[1].to(device)
    states = [m.Model(*m.get_init_inputs()).state_dict() for m in modules]
    ours = trained(network(modules, "ModelNew", device, states, False), x, target, steps)
    theirs = trained(network(modules, "Model", device, states, False), x, target, steps)
    truth = trained(network(modules, "Model", device, states, True), x.double(), target, steps)
    far, own = (max(abs(a - b) / abs(b) for a, b in zip(losses, truth)) for losses in (ours, theirs))
    print(f"{' '.join(names)}: {steps} steps, loss {ours[0]:.6f} -> {ours[-1]:.6f}; from float64 at most {far:.1e}, PyTorch's {own:.1e}")
    print("kernels", "of every step" if all(len(c) == steps for c in calls) else f"called {[len(c) for c in calls]} times")
    print("learns" if steps < 20 or ours[-1] < 0.9 * ours[0] else "does not learn")
    print("follows" if far <= 4 * own + 1e-6 else "leaves")
    sys.exit(far > 4 * own + 1e-6)


main()
