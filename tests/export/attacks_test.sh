#!/usr/bin/env bash
# attacks_test.sh - kernels that are right when judged and would be something else when exported as source.
#
#     tests/export/attacks_test.sh PATH-TO-CUTEGEN
#
# Each is refused, or what is exported is what was judged: the same hash, right results, nothing compiled or loaded.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/export/common.sh
. "$here/common.sh"

# attack NAME: the base kernel with lines put in its device half and its plan half (stdin: DEVICE, a line of ---, PLAN)
attack()
{
    local name=$1 said code
    awk -v device="$(sed '/^---$/,$d' "$work/lines")" -v plan="$(sed '1,/^---$/d' "$work/lines")" \
        '/DEVICE LINES/ { print device; next } /PLAN LINES/ { print plan; next } { print }' "$here/doubled.cu" >"$work/$name.cu"
    said=$("$program" eval "$here/doubled.py" "$work/$name.cu" --draws 2 2>&1)
    if ! grep -q '^pass' <<<"$said"; then
        ok "$name: not judged right" '^(refused|compile error|bad plan|wrong values|bad launch)' "$said"
        return
    fi
    "$program" export last --output "$work/out/$name" >/dev/null 2>&1
    code=$("$program" show last --attempt 1 --json | sed -n 's/.*"code":"\([0-9a-f]*\)".*/\1/p')
    ok "$name: the exported code is the judged code" "^${code:-none} " "$(sha256sum "$work/out/$name/kernel-0.ptx")"
    said=$("$here/../oracle/run.sh" "$here/attack.py" "$work/out/$name" 2>&1 | tr '\n' ' ')
    ok "$name: it computes what was judged, loads nothing of its folder and starts simt alone" "^right loaded \[\] started \['cutegen'\] " "$said"
    ok "$name: no file of it is host code" '^0$' "$(head -qc4 "$work/out/$name"/* | grep -ac ELF)"
}

lines() { cat >"$work/lines"; }
lines <<<$'---'
attack plain
lines <<<$'#ifdef CUTEGEN_HOST\n    v = 0.0f;\n#endif\n---'
attack host_half_inside_the_device_half
lines <<<$'---\n    if (sizeof(\'a\') == 1)\n        factor = 3.0f;'
attack character_constants
lines <<<$'#if defined(CUTEGEN_EXPORT_H) || defined(CUTEGEN_MAX_EXPORT_TENSORS)\n    v = 0.0f;\n#endif\n---\n#ifdef CUTEGEN_MAX_EXPORT_TENSORS\n    factor = 3.0f;\n#endif'
attack words_of_the_export_mode
lines <<<$'#if __has_include(<cuda_runtime_api.h>)\n    v = 0.0f;\n#endif\n---'
attack headers_that_only_nvcc_has
lines <<<$'#if defined(__CUDACC_VER_BUILD__) && !defined(__CUDACC_RTC_INT128__) && __CUDACC_VER_BUILD__ > 999999\n    v = 0.0f;\n#endif\n---'
attack version_of_the_compiler
lines <<<$'---\n#ifdef __GNUC__\n    factor = 3.0f;\n#endif'
attack the_host_compiler
lines <<<$'---\n    static int calls;\n    if (++calls > 1)\n        factor = 3.0f;'
attack a_plan_that_counts_its_calls

# A constructor: native code that would run when a shared object is loaded.
sed "s|/\* BEFORE THE PLAN \*/|__attribute__((constructor)) static void at_load(void) { *(volatile int *)0 = 1; }|" "$here/doubled.cu" >"$work/constructor.cu"
said=$("$program" eval "$here/doubled.py" "$work/constructor.cu" --draws 2 2>&1)
if grep -q '^pass' <<<"$said"; then
    "$program" export last --output "$work/out/constructor" >/dev/null 2>&1
    ok "a constructor does not run when the export is used" '^right loaded \[\]' \
        "$("$here/../oracle/run.sh" "$here/attack.py" "$work/out/constructor" 2>&1 | tr '\n' ' ')"
else
    ok "a constructor is not judged right" '^(refused|compile error|bad plan)' "$said"
fi
echo "1..$n"
exit $failed
