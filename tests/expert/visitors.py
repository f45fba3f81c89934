"""Modules as other people's repositories hold them: odd arguments, indices and results, and rarer networks and losses.

    python3 tests/expert/visitors.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them; SEED is not used
    python3 tests/expert/visitors.py --count

visitors.txt has a block for each. After its name: lines of __init__, "--" and lines of forward, or a class Model with what it
needs; then the inputs, or get_inputs() itself.
"""
import pathlib
import textwrap

import task_files

HEAD = '''"""Module {number}: {name}."""
import collections
import dataclasses
import functools
import itertools
import math
import typing

import torch
import torch.nn as nn
import torch.nn.functional as F


'''
MODEL = '''class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{body}
'''
INPUTS = '''

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def module(number, block):
    name, _, text = block.partition("\n")
    inputs = []
    if "\n-- " in text:
        text, _, given = text.rpartition("\n-- ")
        inputs = [one.split("=", 1) for one in given.strip().split("; ")]
    if "class Model(" not in text:
        init, _, body = f"\n{text}".partition("\n--\n")
        text = MODEL.format(init=textwrap.indent(init.strip("\n"), " " * 8), body=textwrap.indent(body.strip("\n"), " " * 8),
                            arguments=", ".join(n for n, _ in inputs))
    made = HEAD.format(number=number, name=name.removeprefix("== ")) + text.strip("\n") + "\n"
    return made + INPUTS.format(inputs=", ".join(v for _, v in inputs)) if inputs else made


blocks = pathlib.Path(__file__).with_suffix(".txt").read_text().strip().split("\n== ")
task_files.command(__doc__, [module(number, block) for number, block in enumerate(blocks)])
