#!/usr/bin/env bash
# packages_sweep.sh - the Debian package, twice the same bytes, and the OCI image: a kernel is judged in each. TAP.
# The image needs root (chroot), mmdebstrap and a mirror; without them it is left out, by name.
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
# The image: every blob is what its name says, and a kernel is judged inside.
if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
    setup/image.py >&2
    ok "the image" $?
    mkdir -p "$work/oci" "$work/root"
    tar xf dist/cutegen-*-"$(uname -m)".oci.tar -C "$work/oci"
    (cd "$work/oci/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --quiet -c) >&2
    ok "its blobs are what their names say" $?
    tar xzf "$work/oci/blobs/sha256/$(ls -S "$work/oci/blobs/sha256" | head -1)" -C "$work/root"
    cp examples/swish.py examples/kernels/swish.cu "$work/root/work/"
    chroot "$work/root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/work XDG_CACHE_HOME=/tmp CUTEGEN_SERVER=no \
        sh -c 'cd /work && cutegen eval swish.py swish.cu' >"$work/verdict" 2>&1
    ok "a kernel is judged inside" $?
    head -3 "$work/verdict" >&2
else
    echo "# the image is left out: it needs root and mmdebstrap"
fi
echo "1..$n"
exit $failed
