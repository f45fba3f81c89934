#!/usr/bin/env bash
# deb.sh - a Debian package of the relocatable tree: dist/cutegen_VERSION_ARCH.deb (make deb).
#
#     setup/deb.sh [ARCH...]      x86_64, aarch64; default: this machine's
#
# The tree of setup/dist.sh lies in /usr/lib/cutegen, with its own libraries, so that one package fits every Debian and
# Ubuntu with glibc 2.34. /usr/bin/cutegen is a link into it. NVRTC is the machine's own (a CUDA toolkit, or a wheel).
# The same tree gives the same bytes: dpkg-deb sorts, and takes its times from SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

control()
{
    local deb=$1 kib=$2
    cat <<END
Package: cutegen
Version: $VERSION
Architecture: $deb
Maintainer: cutegen project <cutegen@example.invalid>
Installed-Size: $kib
Depends: libc6 (>= 2.34), python3
Recommends: python3-torch, gcc, libc6-dev
Section: devel
Priority: optional
Description: from a PyTorch module to a faster, verified CuTe kernel
 A model, or the built-in engineer, proposes GPU kernels; the machine builds,
 runs and compares them. Without a GPU they run on simt, a CUDA device on the
 CPU that checks memory bounds and races.
END
}

pack()
{
    local arch=$1 root=$work/$1 deb name=cutegen-$VERSION-$1
    case $arch in x86_64) deb=amd64 ;; aarch64) deb=arm64 ;; *) echo "deb: no architecture $arch" >&2; exit 3 ;; esac
    setup/dist.sh "$arch"
    mkdir -p "$root/DEBIAN" "$root/usr/lib" "$root/usr/bin" "$root/usr/share/doc/cutegen"
    cp -r "build/tree/$name" "$root/usr/lib/cutegen"
    for part in man bash-completion zsh fish; do
        [ ! -d "$root/usr/lib/cutegen/share/$part" ] || mv "$root/usr/lib/cutegen/share/$part" "$root/usr/share/"
    done
    mv "$root/usr/lib/cutegen/LICENSE" "$root/usr/share/doc/cutegen/copyright"
    mv "$root/usr/lib/cutegen/README.md" "$root/usr/share/doc/cutegen/"
    gzip -9n "$root"/usr/share/man/man1/cutegen.1
    ln -s ../lib/cutegen/bin/cutegen "$root/usr/bin/cutegen"
    control "$deb" "$(du -sk --apparent-size "$root/usr" | cut -f1)" >"$root/DEBIAN/control"
    find "$root" -type d -exec chmod 755 {} +
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    mkdir -p dist
    dpkg-deb --root-owner-group -Zxz --build "$root" "dist/cutegen_${VERSION}_$deb.deb" >/dev/null
    echo "deb: dist/cutegen_${VERSION}_$deb.deb  $(du -h "dist/cutegen_${VERSION}_$deb.deb" | cut -f1)"
}

[ $# != 0 ] || set -- "$(uname -m)"
for arch in "$@"; do pack "$arch"; done
