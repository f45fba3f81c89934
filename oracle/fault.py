# SPDX-License-Identifier: Apache-2.0
"""Fault: why a request failed, with the text shown to the user.

`use`: the task file or the request is at fault; `memory`: it needs more than there is; `busy`: others hold the device's
memory now, so that the same request may succeed later; `machine`: the machine is at fault.
"""

import contextlib
from collections.abc import Iterator

RESERVED = 1 << 30  # of a device, by its driver and its contexts


class Fault(Exception):
    def __init__(self, kind: str, text: str, hint: str = "", opened: bool = True) -> None:
        super().__init__(text)
        self.kind, self.text, self.hint, self.opened = kind, text, hint, opened

    def answer(self) -> dict:
        said = {"ok": False, "kind": self.kind, "text": self.text, "hint": self.hint}
        return said if self.opened else {**said, "opened": False}


def use(text: str, hint: str = "") -> Fault:
    return Fault("use", text, hint)


def memory(text: str, hint: str = "make the task smaller, for example --set N=512") -> Fault:
    return Fault("memory", text, hint)


def machine(text: str, hint: str = "") -> Fault:
    return Fault("machine", text, hint)


def unopened(text: str, hint: str = "") -> Fault:
    """The device's driver does not start."""
    return Fault("machine", text, hint, opened=False)


def no_memory(text: str, need: int, free: int, total: int) -> Fault:
    """More memory than the device can ever give is a `memory` fault; more than is free now is `busy`, worth waiting for."""
    text += f"; {free / 1e9:.1f} of {total / 1e9:.1f} GB are free on the device"
    if need > total - RESERVED:
        return memory(text)
    return Fault("busy", text, "wait for what holds the rest (nvidia-smi names it), or make the task smaller")


def is_out_of_memory(err: BaseException) -> bool:
    text = str(err).lower()
    return (
        isinstance(err, MemoryError)
        or "out of memory" in text
        or "can't allocate memory" in text
        or "not enough memory" in text
        or "more memory than there is" in text
    )


@contextlib.contextmanager
def memory_is_finite(what: str) -> Iterator[None]:
    """Turns an allocation failure inside into a fault that says what needed the memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as err:
        if not is_out_of_memory(err):
            raise
        raise memory(f"{what} needs more memory than there is: {str(err).splitlines()[0]}") from err
