# SPDX-License-Identifier: Apache-2.0
"""A copier whose copies answer each line with itself, or say what they are: the test's stand-in for oracle/copier.py."""

import ctypes
import json
import os
import select
import sys

BORN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


class Hooks(ctypes.Structure):
    _fields_ = [("before", ctypes.c_void_p), ("parent", ctypes.c_void_p), ("child", ctypes.c_void_p), ("born", BORN)]


def about(words):
    """What a copy could have of the copier's, and must not."""
    return json.dumps({"descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1], "env": words["env"], "dir": os.getcwd()})


def born(said):
    words = json.loads(said)
    for line in iter(lambda: os.read(0, 65536).decode(), ""):
        for word in line.splitlines():
            if word == "fork":
                word = str(os.fork() or os.execvp("sleep", ["sleep", "1000"]))
            elif word == "about":
                word = about(words)
            os.write(1, (word + "\n").encode())
    return 0


def main():
    library, fd = ctypes.PyDLL(sys.argv[1]), int(sys.argv[2])
    names = ("PyOS_BeforeFork", "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child")
    hooks = Hooks(*(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in names), BORN(born))
    open(os.devnull)  # one more descriptor that no copy may have
    os.write(fd, b"\n")
    while select.select([fd], [], []) and library.cutegen_copier_serve(fd, ctypes.byref(hooks)) > 0:
        pass


main()
