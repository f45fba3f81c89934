#!/usr/bin/env bash
# dist_test.sh - a tarball of `make dist`, unpacked elsewhere, runs from there.
#
#     tests/e2e/dist_test.sh [TARBALL...]     default: all in dist/
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# != 0 ] || set -- "$root"/dist/cutegen-*.tar.gz
[ -e "$1" ] || { echo "1..0 # SKIP no tarball in dist/; make dist makes one"; exit 0; }
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}

for tarball in "$@"; do
    name=$(basename "$tarball" .tar.gz)
    arch=${name##*-}
    mkdir -p "$work/some where"
    tar -C "$work/some where" -xzf "$tarball"
    tree="$work/some where/$name"
    emulate=()
    if [ "$arch" != "$(uname -m)" ]; then
        command -v "qemu-$arch" >/dev/null || { n=$((n + 1)); echo "ok $n - $name # SKIP no qemu-$arch"; continue; }
        emulate=("qemu-$arch")
    fi
    [ "$(stat -c %s "$tarball")" -lt 40000000 ]
    ok "$name: under 40 MB" $?
    "${emulate[@]}" "$tree/bin/cutegen" --version | grep -q '^cutegen '
    ok "$name: --version" $?
    cd / || exit 3
    # Nothing of this machine's libraries is used, glibc aside.
    trace=(env LD_TRACE_LOADED_OBJECTS=1)
    [ ${#emulate[@]} = 0 ] || trace=("${emulate[@]}" -E LD_TRACE_LOADED_OBJECTS=1)
    "${trace[@]}" "$tree/bin/cutegen" | grep '=>' |
        grep -vE 'libc\.so|libm\.so|libdl|libpthread|libresolv|librt|ld-linux' | grep -qv "some where"
    [ $? = 1 ]
    ok "$name: all its libraries are its own" $?
    "${emulate[@]}" "$tree/bin/cutegen" config --json | grep -q '"model"'
    ok "$name: config" $?
    [ ${#emulate[@]} != 0 ] || {
        "$tree/bin/cutegen" doctor --json | grep -q '"name":"CuTe","state":"ok"'
        ok "$name: doctor finds the bundled CuTe" $?
    }
done
echo "1..$n"
exit $failed
