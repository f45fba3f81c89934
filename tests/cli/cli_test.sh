#!/usr/bin/env bash
# cli_test.sh - the command line: exit codes, messages that say what to do, nothing half-written.
#
#     tests/cli/cli_test.sh PATH-TO-CUTEGEN
#
# A row is: what it proves | exit code | pattern in what is printed | command line.
# In a command, @ is the program; each row runs in a folder of its own.
# shellcheck disable=SC2016,SC2034,SC2053  # rows are evaluated later; an exit code may be a pattern
set -u
program=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OPENAI_API_KEY ANTHROPIC_API_KEY
unset CUTEGEN_BUILD_DEADLINE CUTEGEN_RUN_DEADLINE CUTEGEN_TASK_DEADLINE CUTEGEN_CALL_DEADLINE # defaults are tested here
export HOME=$work/home XDG_CONFIG_HOME=$work/config
mkdir -p "$HOME" "$XDG_CONFIG_HOME/cutegen"
n=0
failed=0

row()
{
    local name=$1 want=$2 pattern=$3 command=$4 out code dir
    n=$((n + 1))
    dir=$work/$n
    mkdir -p "$dir"
    out=$(cd "$dir" && printf 'class Model: pass\n' >task.py && eval "${command//@/\"\$program\"}" 2>&1)
    code=$?
    if [[ $code == $want ]] && grep -qE -- "$pattern" <<<"$out"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        echo "# $command"
        echo "# exit $code, wanted $want; no match for: $pattern"
        head -5 <<<"$out" | sed 's/^/# /'
        failed=1
    fi
}

row "no command prints the list and is wrong use"         2 'cutegen run TASK.py' '@'
row "help prints the list"                                0 'cutegen run TASK.py' '@ help'
row "--help does too"                                     0 'cutegen run TASK.py' '@ --help'
row "help of a command lists its flags"                   0 '--budget-usd USD' '@ help run'
row "help of a two-word command"                          0 'cutegen edit apply SRC REPLY' '@ help edit apply'
row "help of its first word alone"                        0 'cutegen simt run FILE.cu' '@ help simt'
row "a command answers --help"                            0 'cutegen eval TASK.py FILE' '@ eval --help'
row "help of what is not there"                           2 "no command 'zzz'" '@ help zzz'
row "--version"                                           0 '^cutegen [0-9]+\.[0-9]+\.[0-9]+$' '@ --version'
row "version as JSON"                                     0 '^\{"version":"[0-9.]+"\}$' '@ version --json'

row "an unknown command names the nearest"                2 'did you mean `cutegen doctor`' '@ docter'
row "an unknown command that is near to none"             2 '`cutegen help` lists them all' '@ qqqqqqqq'
row "half of a two-word command"                          2 'use: cutegen edit apply SRC REPLY' '@ edit'
row "an unknown flag names the nearest"                   2 'did you mean --model\?' '@ run --modle x task.py'
row "an unknown flag with a value"                        2 'did you mean --depth\?' '@ run --depht=3 task.py'
row "a flag of before names what has taken its place"     2 '--baseline tf32 allows TF32 everywhere' '@ run --allow-tf32 task.py'
row "so does such a key in cutegen.ini"                   2 '--baseline tf32 allows TF32 everywhere' 'printf "allow-tf32 = yes\n" >cutegen.ini; @ config'
row "a setting of the baseline is one of three"           2 'defaults\|strict\|tf32' '@ run --baseline fast task.py'
row "an unknown letter"                                   2 'no flag -z' '@ run -z task.py'
row "a flag without its value"                            2 '--model wants a value' '@ run task.py --model'
row "a word too many"                                     2 "unexpected argument 'b'" '@ run task.py b'
row "a word too few"                                      2 'cutegen watch wants TASK.py FILE' '@ watch task.py'
row "a task without a kernel"                              2 'which kernel is to be judged' '@ eval task.py'
row "a kind of job that there is not"                      2 "'frobnicate' is not a kind of job" '@ queue add frobnicate task.py'
row "a flag that only runs have, for a single judgement"   2 'is for runs, not for a single judgement' '@ queue add eval task.py k.cu --depth 3'
row "a flag that a worker takes from nobody"               2 'a worker does not accept --python from the queue' '@ queue add run task.py --python /bin/sh'
row "a job that is not a number"                           2 "'x' is not the number of a job" '@ queue wait x'
row "an architecture that there is not"                    2 "'sm_x' is not an architecture" '@ compile task.py --arch sm_x'
row "builders without workers"                             2 'compile for workers, but there are no workers' '@ suite . --builders local:1'
row "work that a worker does not take"                     2 'is not a kind of work' '@ worker --take tea'
row "an error is JSON too when JSON was asked for"        2 '\{"error":\{"kind":"use","text":.*"exit":2\}\}' '@ eval --json task.py'

row "a value that is not a number"                        2 "'many' is not a value for depth" '@ run task.py --depth many'
row "a value that is not a choice"                        2 "best\|last" '@ run task.py --advance first'
row "a value out of nowhere in the environment"           2 'CUTEGEN_DRAWS' 'CUTEGEN_DRAWS=-1 @ config'
row "an unknown key in cutegen.ini, with its line"        2 'cutegen.ini:2: unknown key .colour' 'printf "depth = 3\ncolour = red\n" >cutegen.ini; @ config'
row "an unknown section"                                  2 'cutegen.ini:2: unknown section' 'printf "[other]\nx = 1\n" >cutegen.ini; @ config'
row "a line that is none"                                 2 'cutegen.ini:1: neither' 'echo "what is this" >cutegen.ini; @ config'
row "a broken cutegen.ini does not hide help"             0 'cutegen run TASK.py' 'echo "x" >cutegen.ini; @ help'

row "defaults say so"                                     0 '^model .*= builtin .*; default' '@ config'
row "the project file wins over defaults"                 0 '^depth .*= 3 .*; cutegen.ini' 'echo "depth = 3" >cutegen.ini; @ config'
row "the environment wins over the project file"          0 '^depth .*= 4 .*; CUTEGEN_DEPTH' 'echo "depth = 3" >cutegen.ini; CUTEGEN_DEPTH=4 @ config'
row "a flag wins over the environment"                    0 '^depth .*= 5 .*; --depth' 'CUTEGEN_DEPTH=4 @ config --depth 5'
row "a yes-or-no flag can be turned off"                  0 '^scale .*= no .*; --no-scale' '@ config --no-scale'
row "--set adds up"                                       0 '^set .*= N=1 M=2 .*; --set' '@ config --set N=1 --set M=2'
row "config as JSON"                                      0 '"depth":\{"value":"5","from":"--depth"\}' '@ config --json --depth 5'
row "underscores are as good as dashes in a file"         0 '^build-deadline .*= 9 ' 'echo "build_deadline = 9" >cutegen.ini; @ config'
echo 'depth = 7' >"$XDG_CONFIG_HOME/cutegen/cutegen.ini"
row "the user's file wins over defaults"                  0 '^depth .*= 7 .*; .*/cutegen/cutegen.ini' '@ config'
row "the project's file wins over the user's"             0 '^depth .*= 3 .*; cutegen.ini' 'echo "depth = 3" >cutegen.ini; @ config'
rm "$XDG_CONFIG_HOME/cutegen/cutegen.ini"
row "a key is never printed, only where it comes from"    0 '^key-env .*= MY_KEY' 'MY_KEY=sk-secret-123 @ config --key-env MY_KEY | tee out; ! grep -q sk-secret out'

row "a kernel in the task's place"                         2 'is a kernel; the task comes first' 'touch a.cu a.py; @ eval a.cu a.py'
row "no draws are no test"                                 2 'at least one draw' '@ run nowhere.py --draws 0'
row "no task file"                                        2 'there is no task file nowhere.py' '@ run nowhere.py'
row "no task file leaves no store behind"                 0 '^clean$' '@ run nowhere.py; [ ! -e runs ] && echo clean'
row "a start that fails leaves no store: run"             3 '^none$' '@ run task.py --cc /nowhere/cc; code=$?; [ -e runs ] || echo none; exit $code'
row "a start that fails leaves no store: eval"            3 '^none$' 'echo ModelNew = 1 >k.py; @ eval task.py k.py --cc /nowhere/cc; code=$?; [ -e runs ] || echo none; exit $code'
row "without a server, status says so"                    0 'no server runs' 'CUTEGEN_RUNTIME=$work/rt @ server status'
row "and stop is not an error"                            0 '"stopped":false' 'CUTEGEN_RUNTIME=$work/rt @ server stop --json'
row "a Python file that is no candidate"                  2 'defines neither ModelNew nor plan' '@ eval task.py task.py'
row "it says what to write"                               2 'def plan\(p\): kernel\[grid\]' '@ eval task.py task.py'
row "CUDA C++ is not Triton"                              2 'judges a .py file' 'touch a.cu; @ eval task.py a.cu --target triton'
row "the built-in engineer writes no Triton"              2 'writes CuTe, not Triton' '@ run task.py --target triton'
row "CUDA C++ is not the CuTe DSL"                        2 'target cutedsl judges a .py' 'touch a.cu; @ eval task.py a.cu --target cutedsl'
row "the built-in engineer writes no CuTe DSL"            2 'not the CuTe DSL' '@ run task.py --target cutedsl'
row "no kernel"                                           2 'there is no kernel nowhere.cu' '@ eval task.py nowhere.cu'
row "a store that is not there"                           2 '--runs DIR' '@ show last'
row "a folder that cannot be written"                     3 'cutegen: .*/proc/nowhere' '@ run task.py --runs /proc/nowhere'
row "a full disk under stdout"                            3 'cannot write to stdout' '@ help >/dev/full'

row "edits are applied to stdout"                         0 '^B$' 'printf "a\nb\n" >s; printf "\140\140\140json\n[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"b\",\"new_code\":\"B\"}]\n\140\140\140\n" >r; @ edit apply s r'
row "edits are written in place"                          0 '^B$' 'printf "a\nb\n" >s; printf "\140\140\140json\n[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"b\",\"new_code\":\"B\"}]\n\140\140\140\n" >r; @ edit apply --write s r >/dev/null; cat s'
row "edits that do not fit change nothing and exit 1"     1 'nothing was changed' 'printf "a\n" >s; printf "\140\140\140json\n[{\"action\":\"delete\",\"line_number\":9}]\n\140\140\140\n" >r; @ edit apply --write s r; code=$?; [ "$(cat s)" = a ] && exit $code; exit 99'
row "a reply without edits exits 5"                       5 'no edit' 'echo a >s; echo hello >r; @ edit apply s r'
row "a reply from stdin"                                  5 'no edit' 'echo a >s; echo hello | @ edit apply s -'
documented=$(tr '\n' ' ' <"$(dirname "$0")/../../docs/edits.md" | grep -oE 'exit [0-9]+ if applied, [0-9]+ if rejected, [0-9]+ if the reply has no edit' | grep -oE '[0-9]+' | xargs)
row "docs/edits.md has the codes that edit apply exits with" 0 "^$documented\$" 'echo a >s; echo hello >none; printf "\140\140\140json\n[{\"action\":\"delete\",\"line_number\":9}]\n\140\140\140\n" >bad; printf "\140\140\140json\n[{\"action\":\"insert\",\"line_number\":1,\"new_code\":\"b\"}]\n\140\140\140\n" >good; for r in good bad none; do @ edit apply s $r >/dev/null 2>&1; codes="${codes:-}${codes:+ }$?"; done; echo "$codes"'
row "an empty folder for runs stays when a run cannot begin" 0 '^stays$' 'mkdir r; @ run task.py --runs r --device simt --no-server >/dev/null 2>&1; [ -d r ] && echo stays'
row "a source that is not there"                          2 'reading the source: cannot open nowhere' '@ edit apply nowhere r'

row "models say whether a key is there, and not which"    0 'key present' 'OPENAI_API_KEY=sk-secret-123 @ models | tee out; ! grep -q sk-secret out'
row "models as JSON"                                      0 '^\{.*"providers":\[' '@ models --json'
row "ask without a model that can be asked"               2 'the built-in engineer' 'echo hi | @ ask'
row "an unknown provider"                                 2 'nobody' 'echo hi | @ ask --model nobody:x'
row "ask from an exec: model"                             0 'hello from exec' 'echo hi | @ ask --model "exec:echo hello from exec"'

row "doctor finds the C compiler"                         '[03]' 'ok +C compiler' '@ doctor'
row "doctor says that runs cannot be written"              3 'broken +disk +cannot write runs to task.py/runs: Not a dir' '@ doctor --runs task.py/runs'
row "doctor says where buffers will lie"                      '[03]' 'for buffers in /.*/here$' 'mkdir here; TMPDIR=$PWD/here @ doctor'
row "a soft limit of open files is raised"            '[03]' 'ok +C compiler' 'ulimit -S -n 10; @ doctor'
row "a low limit of open files is an error"                3 'limit of open files is 100; at least 256.*|ulimit -n 1024' 'ulimit -n 100; @ doctor'
row "a low limit of the stack is an error"                 3 'limit of a stack is 300 KiB; at least 1024' 'ulimit -s 300; @ doctor'
row "a closed stdout is not the next file that is opened"  0 '^/dev/null$' 'mkfifo f; @ mcp >&- <f & p=$!
exec 9>f; for i in $(seq 6000); do now=$(readlink /proc/$p/fd/1); [ "$now" = /dev/null ] && break; sleep 0.01; done
echo $now; exec 9>&-; wait $p; true'
row "doctor as JSON"                                      0 '"checks":\[\{"name":"C compiler"' '@ doctor --json || true'
row "doctor says what a wrong compiler is"                3 'missing +C compiler' '@ doctor --cc /nowhere/cc'
row "doctor says why a compiler does not work"             3 'broken +C compiler .*cc --version fails: no licence' 'printf "#!/bin/sh\necho no licence; exit 1\n" >cc; chmod +x cc; @ doctor --cc ./cc'
row "doctor says which layers hold here"                 '[03]' '(ok|missing) +confinement +seccomp' '@ doctor'
row "doctor says where a key is"                           0 'ok +models +openai .key in .OPENAI_API_KEY' 'OPENAI_API_KEY=sk-secret-123 @ doctor || true'
row "doctor never shows a key"                            0 '^hidden$' 'OPENAI_API_KEY=sk-secret-123 @ doctor >out; grep -q sk-secret out || echo hidden'

echo "1..$n"
exit $failed
