# SPDX-License-Identifier: Apache-2.0
"""Forbid starting programs and processes permanently: seccomp, entered by the process itself.

The confinement a guest is started in must let Python be executed; this takes that away once Python runs. Threads stay possible.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

_THREAD = 0x10000  # CLONE_THREAD
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _LEAST, _SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16

# name of the machine: (audit architecture, numbers of system calls)
_MACHINES = {
    "x86_64": (
        0xC000003E,
        {"clone": 56, "clone3": 435, "prlimit64": 302, "setrlimit": 160},
        # execve execveat fork vfork ptrace process_vm_readv process_vm_writev pidfd_getfd io_uring_setup
        (59, 322, 57, 58, 101, 310, 311, 438, 425),
    ),
    "aarch64": (
        0xC00000B7,
        {"clone": 220, "clone3": 435, "prlimit64": 261, "setrlimit": 164},
        # execve execveat ptrace process_vm_readv process_vm_writev pidfd_getfd io_uring_setup
        (221, 281, 117, 270, 271, 438, 425),
    ),
}


def _filter(machine: str) -> bytes:
    arch, numbers, denied = _MACHINES[machine]
    code: list[tuple[int, int, int, int]] = []  # (code, jump if true, jump if false, operand)

    def refuse(number: int, why: int) -> None:
        code.append((_EQUAL, 0, 1, number))
        code.append((_RETURN, 0, 0, _ERRNO | why))

    code += [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if machine == "x86_64":
        code += [(_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]  # x32
    for number in (*denied, numbers["setrlimit"]):
        refuse(number, errno.EPERM)
    refuse(numbers["clone3"], errno.ENOSYS)  # its flags cannot be read here; the C library then uses clone
    # clone: threads only
    code += [(_EQUAL, 0, 4, numbers["clone"]), (_LOAD, 0, 0, _ARGUMENTS), (_SET, 0, 1, _THREAD)]
    code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    # prlimit64: reading is allowed, a new limit (third argument) is not
    code += [(_EQUAL, 0, 5, numbers["prlimit64"]), (_LOAD, 0, 0, _ARGUMENTS + 16), (_EQUAL, 0, 2, 0)]
    code += [(_LOAD, 0, 0, _ARGUMENTS + 20), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in code)


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def undumpable() -> None:
    """Other processes of this user can then neither read its memory and environment nor trace it. CUDA does not start in this state."""
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def seal() -> str:
    """Enters it; returns "" or why that is not possible here."""
    machine = platform.machine()
    if machine not in _MACHINES:
        return f"system calls of {machine} are not known"
    libc = ctypes.CDLL(None, use_errno=True)
    code = _filter(machine)
    held = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(held))
    if libc.prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
        return f"no_new_privs: errno {ctypes.get_errno()}"
    # SECCOMP_SET_MODE_FILTER for all threads, which torch has started by now
    if libc.syscall(317 if machine == "x86_64" else 277, 1, 1, ctypes.byref(program)) != 0:
        return f"seccomp: errno {ctypes.get_errno()}"
    return ""
