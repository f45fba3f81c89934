# cutedsl: says that the machine is at fault, to get no verdict
# verdict: bad plan
# flags: --target cutedsl

import json
import os

SAID = json.dumps({"ok": False, "kind": "machine", "text": "no seccomp here"})
for fd in range(3, 64):
    try:
        os.write(fd, SAID.encode() + b"\n")
    except OSError:
        pass
os._exit(0)


def plan(p):
    pass
