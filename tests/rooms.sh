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
        may["caller"]    = "^(base/|model\\.h$|llm/llm\\.h$|store/store\\.h$)"
        may["live"]      = "^(base/|live/)"
        may["mcp"]       = "^(base/|live/live\\.h$|mcp/)"
        may["confine"]   = "^(base/|confine/)"
        may["server"]    = "^(base/|server/|confine/confine\\.h$)"
        for (i = split("toolchain eval", r, " "); i; i--)
            may[r[i]] = "^(base/|model\\.h$|confine/confine\\.h$|" r[i] "/)"
        may["simt"]      = "^(base/|confine/confine\\.h$|simt/|cutegen/kernel\\.h$)"
        may["runner"]    = "^(base/|confine/(confine|seccomp)\\.h$|runner/|simt/|cutegen/kernel\\.h$)"
        may["loader"]    = "^loader/"
        may["stage"]     = "^(base/|model\\.h$|llm/|expert/|toolchain/|eval/|server/warm\\.h$|stage/(stage|workshop|settings|exported)\\.h$)"
        may["loop"]      = "^(base/|model\\.h$|store/|stage/(stage|settings)\\.h$|loop/)"
        may["cli"]       = "^(base/|model\\.h$|store/|report/|live/live\\.h$|mcp/mcp\\.h$|stage/(stage|settings)\\.h$|loop/loop\\.h$|cli/)"
        # room inside a room -> what it may include of that room, beside its own files; a room without a row here is open
        inner["simt/ptx"]     = "^ptx/"
        inner["simt/ir"]      = "^ptx/"
        inner["simt/emit"]    = "^(ptx/|ir/|device/convert\\.h$|hopper/(hopper|wgmma)\\.h$|blackwell/blackwell\\.h$)"
        inner["simt/device"]  = "^(simt\\.h$|ptx/|emit/abi\\.h$|check/|hopper/|blackwell/)"
        inner["simt/check"]   = "^(simt\\.h$|emit/abi\\.h$|device/|hopper/)"
        inner["simt/count"]   = "^(simt\\.h$|emit/abi\\.h$|device/|hopper/)"
        inner["simt/blackwell"] = "^(simt\\.h$|ptx/|emit/abi\\.h$|device/|check/|hopper/)"
        inner["simt/hopper"]  = "^(simt\\.h$|ptx/|emit/abi\\.h$|device/|check/)"
        inner["llm/edit"]     = "^utf8\\.h$"
        inner["llm/prompt"]   = "^(utf8\\.h$|edit/edit\\.h$)"
        inner["llm/provider"] = "^(utf8|llm|budget|price)\\.h$"
        inner["expert/graph"]   = "^compose/recipe\\.h$"
        inner["expert/match"]   = "^(graph|compose)/"
        inner["expert/generic"] = "^(graph/|match/match\\.h$)"
        inner["expert/compose"] = "^match/(partition|size_constants)\\.h$"
        inner["runner/plan"]    = "^$"
        # library -> the only rooms that may use it (llm: the index of CuTe passages)
        only["curl/curl.h"] = "llm"; only["sqlite3.h"] = "store llm"; only["ini.h"] = "cli"; only["microhttpd.h"] = "live"
    }
    FNR == 1 {
        n = split(FILENAME, part, "/")          # src/file, src/ROOM/file or src/ROOM/INNER/file
        room = n > 2 ? part[2] : part[2] ~ /^model\./ ? "model" : "cli"
        within = n > 3 ? part[2] "/" part[3] : ""
        own = FILENAME
        sub(/^src\//, "", own)
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
        else if (ours && within in inner && index(what, part[2] "/") == 1 && index(what, within "/") != 1 &&
                 substr(what, length(part[2]) + 2) !~ inner[within]) complain("room " within " may not include \"" what "\"")
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
src/cli/cmd_server.c|#include "server/warm.h"
src/simt/run.c|#include "model.h"
src/simt/ptx/ptx_lex.c|#include "simt/ir/ir.h"
src/simt/ptx/ptx_lex.c|#include "simt/simt.h"
src/simt/ir/ir.c|#include "simt/emit/emit.h"
src/simt/device/launch.c|#include "simt/emit/emit.h"
src/llm/edit/edit.c|#include "llm/llm.h"
src/expert/graph/graph.c|#include "expert/match/match.h"
src/runner/runner.c|#include "eval/judge.h"
src/runner/plan/planner_api.c|#include "runner/device.h"
src/stage/build.c|#include "stage/test.h"
src/stage/build.c|#include "store/store.h"
src/stage/build.c|#include "loop/loop.h"
src/loop/loop.c|#include "llm/llm.h"
src/loop/loop.c|#include "simt/simt.h"
src/cli/cmd_run.c|#include "toolchain/tools.h"
src/main.c|#include "stage/build.h"
src/cli/cmd_run.c|#include <curl/curl.h>
src/eval/judge.c|#include "../llm/llm.h"
src/confine/roles.c|#include "model.h"
src/base/supervise.c|#include "confine/confine.h"
src/server/pool.c|#include "confine/layers.h"
src/mcp/tools.c|#include "store/store.h"
src/mcp/http.c|#include <microhttpd.h>
src/cli/cmd_mcp.c|#include "mcp/server.h"
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
