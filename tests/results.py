#!/usr/bin/env python3
"""results.py LOG NEW_TORCH - Meson's testlog.json as lines `RESULT<tab>NAME`, for run.sh.

A skip, of a test or of one line of its TAP, whose reason is "needs torch 2.4 or newer" becomes OLD TORCH when NEW_TORCH is
"no", and SKIP (which run.sh counts as a failure) when it is "yes". One whose reason is "needs Triton" becomes NO TRITON: it does
not come with every PyTorch. One that needs the CuTe DSL, which set-up does not install, becomes NO DSL. Every other skip of a test
stays SKIP.
"""

import json
import re
import sys

REASON = re.compile(r"needs torch 2\.4 or newer")
LANGUAGES = {"NO TRITON": re.compile(r"needs Triton 3\.5 or newer"), "NO DSL": re.compile(r"needs nvidia-cutlass-dsl")}
TAP_SKIP = re.compile(r"^ok \d+ -? ?(.*?) # SKIP (.*)$", re.MULTILINE)


def rows(test: dict, new_torch: bool) -> list[tuple[str, str]]:
    result, name = test["result"], test["name"]
    said = (test.get("stdout") or "") + (test.get("stderr") or "")
    word = "SKIP" if new_torch else "OLD TORCH"
    for missing, reason in LANGUAGES.items():
        if result == "SKIP" and reason.search(said):
            return [(missing, name)]
    if result == "SKIP":
        return [(word if REASON.search(said) else "SKIP", name)]
    lines = [(word, f"{name}: {what}") for what, why in TAP_SKIP.findall(said) if REASON.search(why)]
    return [(result, name), *lines]


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            for row in rows(json.loads(line), sys.argv[2] == "yes"):
                print(*row, sep="\t")


if __name__ == "__main__":
    main()
