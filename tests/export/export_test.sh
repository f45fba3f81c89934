#!/usr/bin/env bash
# export_test.sh - the exported module, shared object and header, used without a GPU.
#
#     tests/export/export_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_PROGRAM=$program
n=0
failed=0

# ok SENTENCE PATTERN TEXT
ok()
{
    n=$((n + 1))
    if grep -qE -- "$2" <<<"$3"; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf '%s\n' "# wanted $2 in:" "$3" | head -15 | sed '2,$s/^/# /'
        failed=1
    fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

said=$("$program" eval "$here/two.py" "$here/two.cu" --draws 2 2>&1)
ok "a kernel with two results, a parameter and a scalar passes" '^pass' "$said"
said=$("$program" export last --output "$work/out" 2>&1)
ok "it is exported" 'module .*two_new.py' "$said"

facts=$("$here/../oracle/run.sh" "$here/check.py" "$work/out/two_new.py" 2>&1)
ok "the module can be loaded twice" '^loads-twice' "$facts"
ok "on a CPU it gives the reference's results, arranged as the reference does" '^same-result' "$facts"
ok "keyword arguments and scalars arrive" '^keyword-scalar' "$facts"
ok "another shape is refused" '^shape-refused' "$facts"
ok "another dtype is refused" '^dtype-refused' "$facts"
ok "the kernel is an operator of torch" '^operator' "$facts"
ok "what it is built from stays where it is, so that it is built once" '^headers-stay' "$facts"
if "$here/../torch_at_least.sh" 2.4; then
    ok "with a shape function" '^shape-function' "$facts"
else
    skip "with a shape function" "needs torch 2.4 or newer"
fi

"$program" export last --fallback --no-shared --output "$work/lenient" >/dev/null 2>&1
facts=$("$here/../oracle/run.sh" "$here/check.py" "$work/lenient/two_new.py" 2>&1)
ok "with --fallback the reference does what the kernel was not built for" '^dtype-(taken|left)' "$facts"

verdict=$("$program" eval "$here/two.py" "$work/out/two_new.py" --draws 2 2>&1)
ok "as a foreign candidate it cannot start simt, which is told" '^crash' "$verdict"

if grep -q 'shared .*two.so' <<<"$said"; then
    cat >"$work/use.c" <<'EOF'
#include "two.h"
#include <stdio.h>
int main(void)
{
    char why[200] = "";
    struct cutegen_tensor none[65] = {{0}};

    if (cutegen_abi_version() != CUTEGEN_ABI_VERSION)
        return 1;
    if (cutegen_call_kernel(none, 65, none, 1, NULL, 0, NULL, why, sizeof(why)) != 1)
        return 2;
    puts(why);
    return 0;
}
EOF
    facts=$(cc -Wall -Werror -I "$work/out" "$work/use.c" "$work/out/two.so" -Wl,-rpath,"$work/out" -o "$work/use" 2>&1 && "$work/use")
    ok "C includes the header, links the shared object and is told what is wrong" 'too many tensors' "$facts"
else
    skip "C uses the shared object" "no nvcc"
fi

echo "1..$n"
exit $failed
