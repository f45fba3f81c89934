#!/usr/bin/env bash
# task_cage_test.sh - a task sees its own folder and Python, writes into its own TMPDIR, and reaches nobody.
#
#     tests/eval/task_cage_test.sh PATH-TO-CUTEGEN PATH-TO-CUTEGEN-CONFINE
#
# Each thing a task must not do is first done by plain Python, or the test would prove nothing.
set -u
program=$(readlink -f "$1")
confine=$(readlink -f "$2")
export CUTEGEN_TOOLS=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}
python=${CUTEGEN_PYTHON:-$(cat "$CUTEGEN_TOOLS/python" 2>/dev/null || echo /usr/bin/python3)}
export CUTEGEN_PYTHON=$python
work=$(mktemp -d)
listener=
cleanup()
{
    "$program" server stop >/dev/null 2>&1
    [ -n "$listener" ] && kill "$listener"
    rm -rf "$work"
}
trap cleanup EXIT
n=0
failed=0

ok() # ok SENTENCE STATUS [SAID]
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        head -8 <<<"${3:-}" | sed 's/^/# /'
        failed=1
    fi
}

"$python" -c 'import torch' 2>/dev/null || { echo "1..0 # SKIP no torch"; exit 0; }
layers=$("$confine" --report)
grep -q '"files": 1' <<<"$layers" || { echo "1..0 # SKIP neither Landlock nor namespaces"; exit 0; }

export HOME=$work/home CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_CACHE=$work/cache CUTEGEN_RUNTIME=$work/rt CUTEGEN_SERVER=no
export PLANTED_WORD=swordfish
mkdir -p "$HOME/.ssh" "$work/tasks/one" "$work/tasks/two" "$work/other"
echo swordfish | tee "$HOME/.ssh/id" "$work/other/secret" >"$work/tasks/two/data"
echo 'ONE = 1' | tee "$work/tasks/one/beside.py" >"$HOME/beside.py"

# task FILE LINE... : a good task with these lines in front.
task()
{
    local file=$1
    shift
    printf '%s\n' "$@" 'import torch' 'N = 64' 'class Model(torch.nn.Module):' '    def forward(self, x): return x + 1' \
        'def get_inputs(): return [torch.rand(N, N)]' 'def get_init_inputs(): return []' >"$file"
}

# A server of this machine that anybody may connect to.
"$python" -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(50)
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
import os; os.rename(sys.argv[1] + ".new", sys.argv[1]); time.sleep(3000)' "$work/port" &
listener=$!
while [ ! -e "$work/port" ]; do kill -0 "$listener" || exit 3; sleep 0.1; done
port=$(cat "$work/port")

# refused SENTENCE LINE... : works in plain Python; as a task it is wrong use, and the task and its line are named.
refused()
{
    local sentence=$1 said code file=$work/tasks/one/task.py
    shift
    task "$file" "$@"
    head -n $# "$file" | "$python" -I - >/dev/null 2>&1
    ok "in plain Python: $sentence" $?
    said=$("$program" describe "$file" 2>&1)
    code=$?
    [ "$code" = 2 ] && grep -q "the task does not load: $file:$#: " <<<"$said" && ! grep -q swordfish <<<"$said"
    ok "refused as a task: $sentence" $? "exit $code: $said"
}

allowed() # allowed SENTENCE FILE FLAG... : the task is described
{
    local sentence=$1 said
    shift
    said=$("$program" describe "$@" 2>&1)
    grep -q '^class *pointwise' <<<"$said"
    ok "$sentence" $? "$said"
}

# tried SENTENCE LINE... : works in plain Python; refused_all then has one task try all of them.
attempts=()
tried()
{
    local sentence=$1 file=$work/tasks/one/attempt${#attempts[@]}.py
    shift
    printf '%s\n' "$@" >"$file"
    "$python" -I "$file" >/dev/null 2>&1
    ok "in plain Python: $sentence" $?
    attempts+=("$sentence")
}

refused_all()
{
    local k said file=$work/tasks/one/task.py
    task "$file" "import os" "here, did = os.path.dirname(__file__), ''" "for k in range(${#attempts[@]}):" \
        "    with open(f'{here}/attempt{k}.py') as f: code = f.read()" "    try: exec(code); did += f'<{k}>'" \
        "    except Exception: pass" "raise ValueError(f'these were done: {did}, no others')"
    said=$("$program" describe "$file" 2>&1)
    for k in "${!attempts[@]}"; do
        grep -q "these were done: .*, no others" <<<"$said" && ! grep -q "<$k>" <<<"$said" && ! grep -q swordfish <<<"$said"
        ok "refused as a task: ${attempts[k]}" $? "$said"
    done
}

refused "reads a key in the home"         "open('$HOME/.ssh/id').read()"
refused "writes outside"                  "open('$work/other/new', 'w').write('x')"
refused "reads another process's environment" "import os" "open(f'/proc/{os.getppid()}/environ').read(1)"
refused "opens a TCP connection"          "import socket" "socket.create_connection(('127.0.0.1', $port), 5)"
refused "signals another process"         "import os" "os.kill($listener, 0)"
refused "finds a word of the environment" "import os" "os.environ['PLANTED_WORD']"
tried "lists the home"                  "import os" "os.listdir('$HOME')"
tried "reads a file beside its folder"  "open('$work/other/secret').read()"
tried "reads the folder of another task" "open('$work/tasks/two/data').read()"
tried "reads the machine's users"       "open('/etc/passwd').read()"
tried "writes into the home"            "open('$HOME/.profile', 'a').write('x')"
tried "writes into its own folder"      "open('$work/tasks/one/made', 'w').write('x')"
tried "changes itself"                  "import os" "os.open('$work/tasks/one/task.py', os.O_RDWR)"
tried "reads another process's memory map"  "import os" "open(f'/proc/{os.getppid()}/maps').read(1)"
tried "opens a datagram socket"         "import socket" "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
tried "opens a Unix socket"             "import socket" "socket.socket(socket.AF_UNIX)"
tried "starts a program that reads for it" "import subprocess" "subprocess.run(['cat', '$HOME/.ssh/id'], check=True)"
refused_all
rm -f "$work/tasks/one/made"

task "$work/tasks/one/task.py" "import beside, os, tempfile" "assert beside.ONE == 1" "here = os.path.dirname(__file__)" \
    "assert os.listdir(here) and open(os.path.join(here, 'beside.py')).read()" "tempfile.TemporaryFile().write(b'x')" \
    "assert os.path.expanduser('~') != '$HOME'"
allowed "a task imports and reads what lies beside it, and has temporary files" "$work/tasks/one/task.py"
task "$HOME/task.py" "import beside" "try: open('$HOME/.ssh/id'); raise SystemExit('read')" "except OSError: pass"
allowed "a task in the home itself sees modules beside it, not the home" "$HOME/task.py"
task "$work/tasks/one/task.py" "import socket" "socket.create_connection(('127.0.0.1', $port), 5)"
allowed "with --task-network a task connects" "$work/tasks/one/task.py" --task-network

# ---- Pythons that are not where they seem ---------------------------------------------------------
printf '#!/bin/sh\nexec "$(dirname "$0")/real" "$@"\n' >"$work/other/python"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$work/other/real"
chmod +x "$work/other/python" "$work/other/real"
task "$work/tasks/one/task.py"
printf '%s\n' 'import torch' 'class ModelNew(torch.nn.Module):' '    def forward(self, x): return x + 1' >"$work/tasks/one/new.py"
said=$("$program" eval "$work/tasks/one/task.py" "$work/tasks/one/new.py" --allow-torch --draws 1 --python "$work/other/python" 2>&1)
grep -q '^pass, unattested' <<<"$said"
ok "a script that starts a Python stands for it, also for a module" $? "$said"
site=$work/venv/$("$python" -I -c 'import sys; print("lib/python%d.%d/site-packages" % sys.version_info[:2])')
mkdir -p "$work/venv/bin" "$site" "$work/far/torch"
ln -s "$(readlink -f "$python")" "$work/venv/bin/python"
printf 'home = %s\ninclude-system-site-packages = false\n' "$(dirname "$(readlink -f "$python")")" >"$work/venv/pyvenv.cfg"
touch "$work/far/torch/__init__.py"
echo "$work/far" >"$site/far.pth"
said=$("$program" describe "$work/tasks/one/task.py" --python "$work/venv/bin/python" 2>&1)
grep -q "has torch in $work/far, which confined tasks cannot read" <<<"$said"
ok "torch outside of Python's own folders is said to be out of reach" $? "$said"

# ---- lent by the warm server ---------------------------------------------------------------------
export CUTEGEN_SERVER=yes
task "$work/tasks/two/task.py" "assert open('$work/tasks/two/data').read()"
allowed "a task of one folder, by an oracle of the warm server" "$work/tasks/two/task.py"
task "$work/tasks/one/task.py" "open('$work/tasks/two/data').read()"
said=$("$program" describe "$work/tasks/one/task.py" 2>&1)
grep -q "$work/tasks/one/task.py:1: " <<<"$said" && ! grep -q swordfish <<<"$said"
ok "an oracle that was lent for one folder does not serve a task of another" $? "$said"
task "$work/tasks/one/task.py" "import socket" "socket.create_connection(('127.0.0.1', $port), 5)"
allowed "one that was started with the network" "$work/tasks/one/task.py" --task-network
said=$("$program" describe "$work/tasks/one/task.py" --set N=32 2>&1)
grep -q "$work/tasks/one/task.py:2: " <<<"$said"
ok "is not lent to a task without it" $? "$said"
"$program" server status --json | grep -q '"oracle"'
ok "these came from the warm server" $?

# ---- copies of a process that has imported PyTorch (oracle/copier.py) ---------------------------
for i in $(seq 1200); do
    "$program" server status --json | grep -q '"copier", *"state": *"waiting"' && break
    sleep 0.5
done
ok "the server keeps a copier" $((i == 1200)) "$("$program" server status --json)"
uses() { "$program" server status --json | sed -n 's/.*"copier"[^}]*"uses": *\([0-9]*\).*/\1/p'; }
before=$(uses)
refused_all
task "$work/tasks/one/task.py" "import beside, os, tempfile" "assert beside.ONE == 1" "here = os.path.dirname(__file__)" \
    "assert os.listdir(here) and open(os.path.join(here, 'beside.py')).read()" "tempfile.TemporaryFile().write(b'x')" \
    "assert os.path.expanduser('~') != '$HOME' and 'PLANTED_WORD' not in os.environ"
allowed "a task that a copy loads has what any task has" "$work/tasks/one/task.py"
[ "$(uses)" -gt "$before" ]
ok "these were copies" $? "$before, $(uses)"

echo "1..$n"
exit $failed
