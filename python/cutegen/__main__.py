# SPDX-License-Identifier: Apache-2.0
"""__main__.py - `cutegen` and `python -m cutegen`: the program itself, in this process's place."""

from __future__ import annotations

import os
import sys

from cutegen.program import CutegenError, environment, program


def main() -> None:
    try:
        path = program()
        os.execve(path, [path, *sys.argv[1:]], environment())
    except (CutegenError, OSError) as error:
        print(f"cutegen: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
