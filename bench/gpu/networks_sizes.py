"""A recurrent network's description at 512 steps, made from one at 7: describing 512 steps on a CPU takes minutes.

    cutegen describe TASK.py --device simt --no-scale --set STEPS=7 --json | python3 bench/gpu/networks_sizes.py > NAME.json
"""
import json
import sys

FROM, TO = 7, 512


def turn(value, key=""):
    if isinstance(value, dict):
        return {k: turn(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [turn(v, key) for v in value]
    sized = key in ("shape", "strides", "ints", "value")
    return value // FROM * TO if sized and type(value) is int and value and value % FROM == 0 else value


json.dump(turn(json.load(sys.stdin)), sys.stdout)
