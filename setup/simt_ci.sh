#!/usr/bin/env bash
# simt_ci.sh - run a test command without a GPU and annotate the lines of its findings.
#
#     setup/simt_ci.sh [--cutegen PATH] [--sarif FILE] [--simt-as GPU] [--check WHAT] -- COMMAND...
#
# The command runs under `cutegen simt exec`. Findings are printed as GitHub's workflow commands
# (::error file=...), which show at the lines of a change; elsewhere they are plain lines. The
# SARIF file (default: simt.sarif) is for whoever uploads it. Exit code: that of `simt exec`.
set -uo pipefail
cutegen=cutegen
sarif=simt.sarif
options=()
while [ $# -gt 0 ]; do
    case $1 in
    --cutegen) cutegen=$2 && shift 2 ;;
    --sarif) sarif=$2 && shift 2 ;;
    --simt-as | --check) options+=("$1" "$2") && shift 2 ;;
    --) shift && break ;;
    *) echo "simt_ci.sh: unknown option $1" >&2 && exit 2 ;;
    esac
done
[ $# -gt 0 ] || { echo "use: simt_ci.sh [OPTIONS] -- COMMAND..." >&2; exit 2; }

"$cutegen" simt exec "${options[@]}" --format sarif --output "$sarif" -- "$@"
code=$?
[ -s "$sarif" ] || exit $code
python3 - "$sarif" <<'P'
import json
import os
import sys

def escape(text, more=""):
    for c in "%\r\n" + more:
        text = text.replace(c, f"%{ord(c):02X}")
    return text

github = os.environ.get("GITHUB_ACTIONS") == "true"
for run in json.load(open(sys.argv[1]))["runs"]:
    for result in run["results"]:
        text, rule = result["message"]["text"], result["ruleId"]
        places = [p["physicalLocation"] for p in result["locations"]]
        file = places[0]["artifactLocation"]["uri"] if places else ""
        line = places[0]["region"]["startLine"] if places else 0
        if github:
            where = f"file={escape(file, ',:')},line={line}," if places else ""
            print(f"::error {where}title=simt {escape(rule, ',:')}::{escape(text)}")
        else:
            print(f"{file}:{line}: {text}" if places else text)
P
exit $code
