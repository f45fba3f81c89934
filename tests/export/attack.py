# SPDX-License-Identifier: Apache-2.0
"""Runs an export and says what it did on the way: what was loaded as a library, started as a program, and whether its result is right.

    attack.py FOLDER"""
import os
import sys

import torch

seen = []
folder = os.path.abspath(sys.argv[1])
sys.addaudithook(lambda event, args: seen.append((event, str(args[0]))) if event in ("ctypes.dlopen", "subprocess.Popen", "os.exec", "os.system") else None)
sys.path.insert(0, os.path.dirname(folder))
m = __import__(os.path.basename(folder))
x = m.get_inputs()
got, want = m.ModelNew(*m.get_init_inputs())(*x), m.Model(*m.get_init_inputs())(*x)
print("right" if torch.allclose(got, want, atol=1e-5) else "WRONG")
print("loaded", [a for e, a in seen if e == "ctypes.dlopen" and folder in a])
print("started", sorted({os.path.basename(a) for e, a in seen if e != "ctypes.dlopen" and os.path.basename(a) not in ("uname", "lsb_release", "ldconfig")}))
