#!/usr/bin/env bash
# limits_test.sh - what is read has limits: regular files, sizes, time to import, memory; Python starts isolated.
#
#     tests/cli/limits_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3
export CUTEGEN_TOOLS=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}
python=${CUTEGEN_PYTHON:-$(cat "$CUTEGEN_TOOLS/python" 2>/dev/null || echo /usr/bin/python3)}
export HOME=$work/home XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_SERVER=no
CUTEGEN_CACHE=$work/cache
export CUTEGEN_CACHE
mkdir "$HOME"
n=0
failed=0

# ok SENTENCE PATTERN COMMAND... : the output matches, and the command ended with 2 (wrong use).
ok()
{
    local sentence=$1 pattern=$2 said code
    shift 2
    said=$(timeout 300 "$@" 2>&1)
    code=$?
    n=$((n + 1))
    if grep -qE -- "$pattern" <<<"$said" && [ "$code" = "${want:-2}" ]; then
        echo "ok $n - $sentence"
    else
        echo "not ok $n - $sentence"
        printf '%s\n' "# exit $code; wanted $pattern in:" "$said" | head -15 | sed '2,$s/^/# /'
        failed=1
    fi
}

# task NAME [LINE...] : a good task with these lines in front.
task()
{
    local name=$1
    shift
    printf '%s\n' "$@" 'import torch' 'N = 64' 'class Model(torch.nn.Module):' '    def forward(self, x): return x + 1' \
        'def get_inputs(): return [torch.rand(N, N)]' 'def get_init_inputs(): return []' >"$name"
}

task good.py
mkfifo fifo.py fifo.cu
mkdir folder.py
ln -s /dev/zero zero.py
ln -s /dev/zero zero.cu
ok "a task that is a link to /dev/zero is refused"  '/dev/zero is not a regular file but a device' "$program" describe zero.py
ok "a task that is a FIFO is refused at once"       'fifo.py is not a regular file but a FIFO'   "$program" describe fifo.py
mkdir apart
mkfifo apart/fifo.py
ok "so is one in a folder of its own, which a task may read" 'fifo.py is not a regular file but a FIFO' "$program" describe apart/fifo.py
ok "a task that is a folder is refused"             'folder.py is not a regular file but a folder' "$program" describe folder.py
ok "a candidate that is a FIFO is refused at once"  'fifo.cu is not a regular file but a FIFO'   "$program" eval good.py fifo.cu
ok "a candidate that is a device is refused"        'zero.cu is not a regular file but a device' "$program" eval good.py zero.cu
ok "a ModelNew that is a FIFO is refused at once"   'fifo.py is not a regular file but a FIFO'   "$program" eval good.py fifo.py
head -c 5000000 /dev/zero | tr '\0' '#' >large.cu
cp large.cu large.py
ok "a task has a size limit"                        'large.py has more than 1048576 bytes'       "$program" describe large.py
ok "a candidate has a size limit"                   'large.cu is larger than 4194304 bytes'      "$program" eval good.py large.cu

{ printf '\xef\xbb\xbf' && cat good.py; } >marked.py
want=0 ok "a task that begins with a byte order mark is read" 'class +pointwise' "$program" describe marked.py
{ printf '\xef\xbb\xbf' && cat "$here/../cheats/honest.cu"; } >marked.cu
want=0 ok "and so is a candidate" '^pass' "$program" eval "$here/../cheats/tasks/gate.py" marked.cu --draws 1
task hostile.py 'raise RuntimeError("\x1b]0;owned\x07\x1b[2J")'
ok "control characters of a task are shown, not sent" '\\x1b\]0;owned\\x07\\x1b\[2J' "$program" describe hostile.py

task "$(printf 'not\xfftext.py')"
ok "a name that is not UTF-8 is refused, not a bug"  'is not UTF-8'  "$program" describe "$(printf 'not\xfftext.py')"
cp "$here/../cheats/honest.cu" "$(printf 'not\xfftext.cu')"
ok "and so is a candidate of such a name"            'is not UTF-8'  "$program" eval good.py "$(printf 'not\xfftext.cu')"

task waits.py 'import time' 'time.sleep(100000)'
ok "an import that never returns ends at its deadline, and the task is named" \
    "importing .*/waits.py took more than 2 s" "$program" describe waits.py --task-deadline 2
task insists.py 'import time' 'while True:' '    try:' '        time.sleep(100000)' '    except BaseException:' '        pass'
ok "one that swallows the interruption too" \
    "importing .*/insists.py took more than 2 s" "$program" describe insists.py --task-deadline 2
task grows.py 'kept = []' 'while True:' '    kept.append(bytearray(1 << 26))'
ok "a task without end to its memory is ended, not the machine" \
    'the task needs more memory than there is: .*/grows.py:3' "$program" describe grows.py --task-memory 2000

# ---- isolated Python -------------------------------------------------------------------------------
site=$("$python" -c 'import site; print(site.getusersitepackages())')
mkdir -p "$site"
echo "open('$work/planted', 'w').close()" | tee "$site/usercustomize.py" >"$work/sitecustomize.py"
export PYTHONPATH=$work PYTHONSTARTUP=$work/sitecustomize.py CUTEGEN_PYTHON=$python
n=$((n + 1))
"$python" -c pass
if [ -e planted ]; then echo "ok $n - the plant works where Python is not isolated"; else echo "ok $n - # SKIP this Python has no user site"; fi
rm -f planted
want=0 ok "a task is described all the same" 'class +pointwise' "$program" describe good.py
n=$((n + 1))
if [ -e planted ]; then echo "not ok $n - a planted usercustomize.py has no effect" && failed=1; else echo "ok $n - a planted usercustomize.py has no effect"; fi
echo 'no kernel' >words.cu
# shellcheck disable=SC2016  # $1 is the inner shell's
want=0 ok "a watch that nobody reads any more ends" '^watching' bash -c 'timeout 250 "$1" watch good.py words.cu | head -1; exit "${PIPESTATUS[0]}"' - "$program"
echo "1..$n"
exit $failed
