#!/usr/bin/env bash
# packages_sweep.sh - the Debian package, twice the same bytes; its program runs from where it is unpacked. TAP.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}

for turn in first second; do
    setup/deb.sh >&2
    ok "the package, $turn time" $?
    sha256sum dist/cutegen_*.deb >"$work/$turn"
done
cmp "$work/first" "$work/second" >&2
ok "the same bytes" $?
dpkg-deb -x "$(echo dist/cutegen_*_"$(dpkg --print-architecture)".deb)" "$work/deb"
"$work/deb/usr/bin/cutegen" --version | grep -q '^cutegen '
ok "its program runs" $?
[ -s "$work/deb/usr/share/doc/cutegen/copyright" ]
ok "its licence is there" $?
echo "1..$n"
exit $failed
