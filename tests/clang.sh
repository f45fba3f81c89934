#!/usr/bin/env bash
# clang.sh - clang's warnings: every C file as BUILD compiles it, parsed and checked; no code is generated.
#
#     tests/clang.sh BUILD [JOBS]      BUILD: a configured folder
#
# Checked is what `ninja` builds and what tests use.
# A file that several targets compile with the same definitions is checked once. Exit 1: there are warnings or errors.
set -uo pipefail
cd "$1" || exit 3
jobs=${2:-$(nproc)}
clang --version >/dev/null || exit 3

# A line of the shell for each: what is for gcc's code, output and dependencies is dropped.
python3 - >clang.commands <<'END'
import json, os, shlex
used = {target for test in json.load(open("meson-info/intro-tests.json")) for target in test["depends"]}
left_out = tuple(
    os.path.relpath(target["filename"][0]) + ".p/"
    for target in json.load(open("meson-info/intro-targets.json"))
    if not target["build_by_default"] and target["id"] not in used
)
seen = set()
for entry in json.load(open("compile_commands.json")):
    if entry["output"].startswith(left_out):
        continue  # what only benches build
    words = shlex.split(entry["command"])
    while not words[0].startswith("-"):
        words.pop(0)  # the compiler, ccache
    for option in ("-o", "-MF", "-MQ"):
        at = words.index(option)
        del words[at : at + 2]
    words = [w for w in words if w not in ("-c", "-MD", entry["file"]) and not w.startswith(("-O", "-fdiagnostics-color"))]
    key = (entry["file"], *sorted(w for w in words if w.startswith("-D")))
    if key not in seen:
        seen.add(key)
        print(shlex.join(["clang", "-fsyntax-only", *words, entry["file"]]))
END
[ -s clang.commands ] || { echo "clang.sh: no file was found"; exit 3; }
tr '\n' '\0' <clang.commands | xargs -0 -n 1 -P "$jobs" sh -c 'eval "$1"' _ || exit 1
echo "$(wc -l <clang.commands) files"
