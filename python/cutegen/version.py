# SPDX-License-Identifier: Apache-2.0
"""version.py - the version, from where it is written: a wheel's metadata, or the checkout's meson.build."""

from __future__ import annotations

import os
import re
from importlib import metadata


def _version() -> str:
    build = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "meson.build")
    if os.path.exists(build):
        with open(build, encoding="utf-8") as file:
            found = re.search(r"^ *version: '(.*)',", file.read(), re.M)
        if found:
            return found.group(1)
    try:
        return metadata.version("cutegen")
    except metadata.PackageNotFoundError:
        return "unknown"


__version__ = _version()
