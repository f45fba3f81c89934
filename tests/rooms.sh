#!/usr/bin/env bash
# rooms.sh - keeps the walls of docs/architecture.md: who may include whom.
#
#     tests/rooms.sh [ROOT]          reads the #include lines of ROOT/src
#     tests/rooms.sh --self-test     breaks each wall in a copy and sees it caught
#
# To move a wall: change the table in docs/architecture.md and the one below.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

# shellcheck disable=SC2016  # the program below is awk's
check()
{
    (cd "$1" && find src -name '*.[ch]' | sort | xargs awk '
    BEGIN {
        # room -> what it may include of ours, beside its own files
        may["base"]      = "^base/"
        may["model"]     = "^(base/|model\\.h$)"
        for (i = split("llm expert toolchain eval server store report", r, " "); i; i--)
            may[r[i]] = "^(base/|model\\.h$|" r[i] "/)"
        may["report"]    = "^(base/|model\\.h$|report/|store/record\\.h$)"
        may["server"]    = "^(base/|server/)"
        may["simt"]      = "^(base/|simt/|cutegen/kernel\\.h$)"
        may["runner"]    = "^(base/|runner/|simt/|cutegen/kernel\\.h$)"
        may["stage"]     = "^(base/|model\\.h$|settings\\.h$|llm/|expert/|toolchain/|eval/|server/warm\\.h$|stage/(stage|workshop)\\.h$)"
        may["pipeline"]  = "^(base/|model\\.h$|settings\\.h$|store/|stage/stage\\.h$|pipeline\\.h$)"
        may["cmd"]       = "^(base/|model\\.h$|settings\\.h$|store/|report/|stage/stage\\.h$|pipeline\\.h$|cmd\\.h$|config\\.h$)"
        # library -> the only rooms that may use it (llm: the index of CuTe passages)
        only["curl/curl.h"] = "llm"; only["sqlite3.h"] = "store llm"; only["ini.h"] = "cmd"
    }
    FNR == 1 {
        n = split(FILENAME, part, "/")          # src/ROOM/file or src/file
        room = n > 2 ? part[2] : part[2] ~ /^pipeline/ ? "pipeline" : part[2] ~ /^(model|settings)\./ ? "model" : "cmd"
        own = n > 2 ? part[2] "/" part[n] : part[n]
        sub(/\.[ch]$/, ".h", own)
    }
    function complain(why) { printf "%s:%d: %s\n", FILENAME, FNR, why; bad++ }
    /^[ \t]*#[ \t]*include/ {
        if (!match($0, /[<"][^>"]*[>"]/)) next
        what = substr($0, RSTART + 1, RLENGTH - 2)
        ours = substr($0, RSTART, 1) == "\"" || what ~ /^cutegen\//
        if (what ~ /\.\./) complain("\"" what "\": includes are written from src/, without ..")
        else if (!(room in may)) complain("room " room " is not in the table of docs/architecture.md")
        else if (ours && what != own && what !~ may[room]) complain("room " room " may not include \"" what "\"")
        else if (!ours && what in only && index(" " only[what] " ", " " room " ") == 0) complain("<" what "> belongs to room " only[what] " alone")
    }
    END { if (bad) { printf "rooms: %d forbidden includes; the walls are in docs/architecture.md\n", bad; exit 1 } }')
}

# Each row: a file, and an include that must not be there.
self_test()
{
    local copy file line failed=0
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' RETURN
    while IFS='|' read -r file line; do
        rm -rf "$copy/src"
        cp -r "$here/src" "$copy/src"
        mkdir -p "$(dirname "$copy/$file")"
        echo "$line" >>"$copy/$file"
        if check "$copy" >/dev/null; then
            echo "rooms: not caught: $line in $file"
            failed=1
        fi
    done <<'ROWS'
src/base/fs.c|#include "model.h"
src/base/fs.c|#include <sqlite3.h>
src/llm/llm.c|#include "store/store.h"
src/llm/llm.c|  #  include "toolchain/tools.h"
src/store/store.c|#include "llm/llm.h"
src/report/report.c|#include "store/store.h"
src/eval/judge.c|#include "stage/stage.h"
src/eval/oracle.c|#include "server/warm.h"
src/server/pool.c|#include "model.h"
src/stage/build.c|#include "server/pool.h"
src/cmd_server.c|#include "server/warm.h"
src/simt/run.c|#include "model.h"
src/runner/runner.c|#include "eval/judge.h"
src/stage/build.c|#include "stage/test.h"
src/stage/build.c|#include "store/store.h"
src/stage/build.c|#include "pipeline.h"
src/pipeline.c|#include "llm/llm.h"
src/pipeline.c|#include "simt/simt.h"
src/cmd_run.c|#include "toolchain/tools.h"
src/main.c|#include "stage/build.h"
src/cmd_run.c|#include <curl/curl.h>
src/eval/judge.c|#include "../llm/llm.h"
src/attic/new.c|#include "base/mem.h"
ROWS
    check "$here" >/dev/null || { echo "rooms: the tree itself does not pass"; failed=1; }
    [ $failed = 0 ] && echo "rooms: every broken wall is noticed"
    return $failed
}

case ${1:-} in
--self-test) self_test ;;
*) check "${1:-$here}" ;;
esac
