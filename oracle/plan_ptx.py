# SPDX-License-Identifier: Apache-2.0
"""The PTX of several kernels as one module, with lines of the candidate's own file where it has any.

Compilers of Python give a module per kernel. The judge takes one. Names that several modules have get a number; DWARF is left out
(.loc stays), and a line inside of a library counts for the line of the candidate that called it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_ENTRY = re.compile(r"\.visible \.entry ([A-Za-z_$][\w$]*)")
_SYMBOL = re.compile(r"^(?:\.visible |\.weak |\.extern )*\.(?:func|global|const|shared)\b[^;{=]*?([A-Za-z_$][\w$]*)\s*(?:\[[^;]*|\(|;|=|$)", re.M)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)".*$', re.M)
_LOC = re.compile(r"^(\s*)\.loc\s+(\d+) (\d+) (\d+)(.*)$", re.M)
_ASSEMBLY = re.compile(r"^\s*// begin inline asm\n.*?^\s*// end inline asm\n", re.M | re.S)
_SHARED = re.compile(r"^\.extern \.shared \.align (\d+) \.b8 ([\w$]+)\[\];\n", re.M)
_PARAMETER = re.compile(r"\.param\s+(?:\.align \d+ )?\.([a-z])(\d+)\b[^\[,]*(?:\[(\d+)\])?")


def _without_dwarf(ptx: str) -> str:
    """Debug sections stand behind the last function: "\\t.section\\t.debug_info\\n\\t{ ... }"."""
    return re.sub(r"^\s*\.section\s+\.debug_\w+\s*\{[^}]*\}\s*$", "", ptx, flags=re.M)


def _without_inner_lines(ptx: str) -> str:
    """Newer compilers mark every line of an assembly by itself, counted on from the Python line: the mark before it is the true one."""
    return _ASSEMBLY.sub(lambda m: _LOC.sub("", m[0]).replace("\n\n", "\n"), ptx)


def entry_of(ptx: str) -> str:
    return _ENTRY.findall(ptx)[0]


def parameter_count(ptx: str) -> int:
    head = ptx[ptx.index(".entry ") :]
    return head[: head.index(")")].count(".param ")


def parameters(ptx: str, name: str) -> list[tuple[int, str]]:
    """Bytes of a kernel's parameters, and what they are: "int", "float", or "" for a struct."""
    head = ptx[re.search(r"\.entry " + re.escape(name) + r"\s*\(", ptx).end() :]  # type: ignore[union-attr]
    made = []
    for letter, bits, count in _PARAMETER.findall(head[: head.index(")")]):
        made.append((int(bits) // 8 * int(count or 1), "" if count else "float" if letter == "f" else "int"))
    return made


def _lines(ptx: str, own: str) -> str:
    """Lines of `own` are lines of file 1, all others of file 2."""
    files = dict(_FILE.findall(ptx))
    name = own.rsplit("/", 1)[-1]
    caller = re.compile(r"@\[ " + re.escape(name) + r":(\d+):(\d+)")

    def place(m: re.Match[str]) -> str:
        if files.get(m[2]) == own:
            return f"{m[1]}.loc\t1 {m[3]} {m[4]}"
        called = caller.search(m[5])
        return f"{m[1]}.loc\t1 {called[1]} {called[2]}" if called else f"{m[1]}.loc\t2 {m[3]} {m[4]}"

    return _LOC.sub(place, _FILE.sub("", ptx))


def _renamed(body: str, taken: set[str], entries: dict[str, str]) -> str:
    """Entries get the names wanted. Symbols that another module has already get another name."""
    for symbol in [*entries, *sorted(set(_SYMBOL.findall(body)))]:
        wanted = name = entries.get(symbol, symbol)
        number = 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        if name != symbol:
            body = re.sub(r"(?<![\w$.%])" + re.escape(symbol) + r"(?=(_param_\d+)?(?![\w$]))", name, body)
        if symbol in entries:
            entries[symbol] = name
    return body


class Joined:
    """Takes one module after the other."""

    def __init__(self, own: str) -> None:
        self.own, self.taken = own, set[str]()
        self.shared: dict[str, int] = {}  # dynamic shared memory: all modules have the same, by their compiler's name
        self.head, self.bodies = "", list[str]()

    def add(self, ptx: str) -> str:
        """The name its kernel has from now on."""
        return self.add_all(ptx, str)[entry_of(ptx)]

    def add_all(self, ptx: str, name_of: Callable[[str], str]) -> dict[str, str]:
        """The names its kernels have from now on."""
        ptx = _lines(_without_inner_lines(_without_dwarf(ptx)), self.own)
        start = re.search(r"^\.address_size 64\s*$", ptx, re.M)
        if not start:
            raise ValueError("this is not PTX")
        self.head = self.head or ptx[: start.end()]
        body = ptx[start.end() :]
        for align, shared in _SHARED.findall(body):
            self.shared[shared] = max(self.shared.get(shared, 0), int(align))
        names = {entry: name_of(entry) for entry in _ENTRY.findall(body)}
        self.taken |= {*self.shared}
        self.bodies.append(_renamed(_SHARED.sub("", body), self.taken, names).strip("\n"))
        return names

    def text(self) -> str:
        shared = "".join(f".extern .shared .align {align} .b8 {name}[];\n" for name, align in self.shared.items())
        name = self.own.rsplit("/", 1)[-1]
        files = f'\t.file\t1 "{name}"\n\t.file\t2 "library"\n'
        return "\n".join([self.head, shared, *self.bodies, files])
