# SPDX-License-Identifier: Apache-2.0
"""Gradients of an exported kernel, by autograd. The same file in every export.

1. A gradient is the reference's, computed anew from the inputs, or the judged backward kernel's where the export has
   one (the folder backward/, an export of its own) and it was judged for these shapes. No gradient is ever left out.
2. Derivatives of gradients are the reference's, always.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import torch


def leaves_of(value: Any, out: list[Any]) -> None:
    """The tensors, and everything else, of nested arguments, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            leaves_of(item, out)
    else:
        out.append(value)


def _replaced(value: Any, tensors: Any) -> Any:
    """The same nesting with every tensor replaced by the next of `tensors`."""
    if isinstance(value, dict):
        return {key: _replaced(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_replaced(item, tensors) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return next(tensors) if isinstance(value, torch.Tensor) else value


def _decoded(data: dict[str, Any], tensors: list[Any]) -> Any:
    """An argument of the judged call, its tensors by number."""
    ((kind, value),) = data.items()
    if kind == "tensor":
        return tensors[value]
    if kind in ("list", "tuple"):
        items = [_decoded(item, tensors) for item in value]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _decoded(item, tensors) for key, item in value.items()}
    plain: dict[str, Callable[[Any], Any]] = {"int": int, "float": float.fromhex, "dtype": lambda v: getattr(torch, v), "none": lambda v: None}
    if kind == "device":
        return tensors[0].device if tensors else torch.device("cpu")
    return plain.get(kind, lambda v: v)(value)


class Gradients:
    """Of one export. `kernel`: the export of its backward, or None. Inputs are arguments, then what the model holds."""

    def __init__(self, export: Any, kernel: Any) -> None:
        self.export, self.kernel, self.template = export, kernel, None

    # ---- the reference with other tensors -------------------------------------------------------------

    def model(self) -> torch.nn.Module:
        """A Model made as the judged one; its tensors are replaced before it is used."""
        with self.export.lock:
            if self.template is None:
                reference = self.export.reference
                init: Any = getattr(reference, "get_init_inputs", list)

                def make() -> torch.nn.Module:
                    made = self.export.about.init_by_name(reference.Model, init())
                    return reference.Model(**made) if isinstance(made, dict) else reference.Model(*made)

                with torch.random.fork_rng(devices=[]):
                    model = None
                    if hasattr(torch.device("meta"), "__enter__"):
                        with contextlib.suppress(Exception), torch.device("meta"):
                            model = make()  # without memory; a constructor that computes fails here
                    self.template = (model or make()).train(self.export.training)
            return self.template

    @contextlib.contextmanager
    def _filled(self, tensors: list[torch.Tensor]):
        """The template with these tensors in place of its own."""
        with self.export.lock:
            model, before = self.model(), []
            try:
                for path, tensor in zip(self.export.held, tensors):
                    owner: Any = model
                    for name in path[:-1]:
                        owner = getattr(owner, name)
                    store = next((s for s in (owner._parameters, owner._buffers) if path[-1] in s), owner.__dict__)
                    before.append((store, path[-1], store.get(path[-1])))
                    store[path[-1]] = tensor
                yield model
            finally:
                for store, name, value in reversed(before):
                    store[name] = value

    def results(self, ins: list[torch.Tensor]) -> Any:
        """What Model.forward returns for these."""
        count = self.export.argument_tensors
        with self._filled(ins[count:]) as model:
            args, kwargs = _decoded(self.export.call_of(ins), ins[:count])
            return self.export.reference.Model.forward(model, *args, **kwargs)

    # ---- backward -------------------------------------------------------------------------------------

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """The gradients of the operator's inputs."""
        ins = list(ctx.saved_tensors)
        found = self.of(ins, list(grads), list(ctx.needs_input_grad[-len(ins) :]))
        return tuple(found) if len(found) > 1 else found[0]

    def of(self, ins: list[torch.Tensor], grads: list[Any], needed: list[bool]) -> list[Any]:
        again = torch.is_grad_enabled()  # derivatives of the gradients are wanted too
        found = None if self.kernel is None or again else self.kernel.judged_gradients(ins, grads, self.export.call_of(ins))
        if found is None:
            found = self._of_reference(ins, grads, needed, again)
        return [None if not n else torch.zeros_like(t) if g is None else g for t, g, n in zip(ins, found, needed)]

    def _of_reference(self, ins: list[torch.Tensor], grads: list[Any], needed: list[bool], again: bool) -> list[Any]:
        wanted = [k for k, n in enumerate(needed) if n]
        leaves = ins if again else [t.detach().requires_grad_(k in wanted) for k, t in enumerate(ins)]
        with torch.enable_grad():
            outs: list[Any] = []
            leaves_of(self.results(leaves), outs)
            outs = [o for o in outs if isinstance(o, torch.Tensor)]
            pairs = [(o, g) for o, g in zip(outs, grads) if o.requires_grad and g is not None]
            made = torch.autograd.grad(
                [o for o, _ in pairs], [leaves[k] for k in wanted], [g for _, g in pairs], allow_unused=True, create_graph=again
            )
        found: list[Any] = [None] * len(ins)
        for k, grad in zip(wanted, made):
            found[k] = grad
        return found

    # ---- a kernel that is a backward: the forward is the reference's -----------------------------------

    def forward(self, ins: list[torch.Tensor]) -> Any:
        """What Model.forward returns; its gradients are the kernel's."""
        nesting: list[Any] = []
        made = _OfReference.apply(self, nesting, *ins)
        return _replaced(nesting[0], iter(made if isinstance(made, tuple) else (made,)))


class Run(torch.autograd.Function):
    """The operator with its gradients."""

    @staticmethod
    def forward(ctx: Any, export: Any, *ins: torch.Tensor) -> Any:
        ctx.export = export
        ctx.save_for_backward(*ins)
        made = export.below_autograd(*ins)
        ctx.mark_non_differentiable(*(t for t in ([made] if export.output_count == 1 else made) if not t.is_floating_point()))
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = ctx.export.gradients.backward(ctx, *grads)
        return (None, *(found if isinstance(found, tuple) else (found,)))


class _OfReference(torch.autograd.Function):
    """Model's forward with the judged kernel as its backward."""

    @staticmethod
    def forward(ctx: Any, gradients: Gradients, nesting: list[Any], *ins: torch.Tensor) -> Any:
        ctx.gradients = gradients
        ctx.save_for_backward(*ins)
        made = gradients.results(list(ins))
        nesting.append(made)
        outs: list[Any] = []
        leaves_of(made, outs)
        outs = [o for o in outs if isinstance(o, torch.Tensor)]
        ctx.mark_non_differentiable(*(o for o in outs if not o.is_floating_point()))
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ins = list(ctx.saved_tensors)
        return (None, None, *ctx.gradients.of(ins, list(grads), list(ctx.needs_input_grad[2:])))
