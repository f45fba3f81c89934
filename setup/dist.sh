#!/usr/bin/env bash
# dist.sh - relocatable tarballs: dist/cutegen-VERSION-ARCH.tar.gz.
#
#     setup/dist.sh [ARCH...]      x86_64, aarch64; default: this machine's, then the other one
#
# A tree runs from any folder on a machine that has glibc, a driver and NVRTC:
#     bin/cutegen  libexec/cutegen/*  share/cutegen/*  lib/*.so
# Programs find lib/ by $ORIGIN, in DT_RPATH so that the libraries there find each other too.
# glibc itself is the machine's own; everything else that the programs need is in lib/.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}
MESON=${MESON:-meson}
HOST=$(uname -m)
VERSION=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -1)

say() { printf 'dist: %s\n' "$*"; }
fail() { printf 'dist: %s\n' "$*" >&2; exit 3; }

debian_arch() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) fail "no architecture $1" ;; esac; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# The cross compiler and the other architecture's -dev packages, side by side with ours.
cross_setup()
{
    local arch=$1 deb
    deb=$(debian_arch "$arch")
    local packages=("gcc-${arch//_/-}-linux-gnu" "libc6-dev:$deb" "libjansson-dev:$deb" "libsqlite3-dev:$deb"
                    "libcurl4-openssl-dev:$deb" "libinih-dev:$deb" "libmicrohttpd-dev:$deb")
    if command -v "$arch-linux-gnu-gcc" >/dev/null &&
        [ -e "/usr/lib/$arch-linux-gnu/pkgconfig/libcurl.pc" ] &&
        [ -e "/usr/lib/$arch-linux-gnu/pkgconfig/inih.pc" ] &&
        [ -e "/usr/lib/$arch-linux-gnu/pkgconfig/libmicrohttpd.pc" ]; then
        return 0
    fi
    say "apt, for $arch: ${packages[*]}"
    dpkg --print-foreign-architectures | grep -qx "$deb" || as_root dpkg --add-architecture "$deb" || return 1
    as_root apt-get -q -o Dpkg::Use-Pty=0 update >/dev/null || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 install \
        --no-install-recommends "${packages[@]}" >/dev/null
}

cross_file()
{
    local arch=$1
    cat <<END
[binaries]
c = '$arch-linux-gnu-gcc'
ar = '$arch-linux-gnu-ar'
strip = '$arch-linux-gnu-strip'
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = '/usr/lib/$arch-linux-gnu/pkgconfig:/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '$arch'
cpu = '$arch'
endian = 'little'
END
}

build()
{
    local arch=$1 tree=$2 dir=build/dist-$1 cross=()
    mkdir -p build
    if [ "$arch" != "$HOST" ]; then
        cross_file "$arch" >"build/cross-$arch.ini"
        cross=(--cross-file "build/cross-$arch.ini")
    fi
    [ -f "$dir/build.ninja" ] || "$MESON" setup "$dir" --prefix=/ --libexecdir=libexec --buildtype=release -Dtests=false \
        "-Dc_link_args=-Wl,--disable-new-dtags,-rpath,\$ORIGIN/../lib:\$ORIGIN/../../lib" \
        "${cross[@]}" >"build/dist-$arch.log" 2>&1 || { tail -20 "build/dist-$arch.log"; return 1; }
    ninja -j "$(nproc)" -C "$dir" >"build/dist-$arch.log" 2>&1 || { tail -20 "build/dist-$arch.log"; return 1; }
    DESTDIR=$tree "$MESON" install -C "$dir" --no-rebuild --strip --quiet
}

# ---- shared libraries -------------------------------------------------------

needed() { readelf -d "$@" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

is_glibc() { case $1 in libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | ld-linux*) ;; *) return 1 ;; esac; }

# Copies what these files need, and what that needs, into a folder.
copy_libraries()
{
    local arch=$1 lib=$2 todo name path
    shift 2
    mkdir -p "$lib"
    todo=$(needed "$@" | sort -u)
    while [ -n "$todo" ]; do
        local next=
        for name in $todo; do
            if is_glibc "$name" || [ -e "$lib/$name" ]; then continue; fi
            path=$(readlink -f "/usr/lib/$arch-linux-gnu/$name" || true)
            [ -f "$path" ] || path=$(readlink -f "/lib/$arch-linux-gnu/$name" || true)
            [ -f "$path" ] || fail "no $name for $arch"
            cp "$path" "$lib/$name"
            chmod 644 "$lib/$name"
            next="$next $(needed "$path")"
        done
        todo=$(tr ' ' '\n' <<<"$next" | sort -u)
    done
}

# The licences of what was copied stay with it.
add_licences()
{
    local arch=$1 tree=$2 name package
    mkdir -p "$tree/share/cutegen/licences"
    for name in "$tree"/lib/*; do
        package=$(dpkg -S "*/$arch-linux-gnu/$(basename "$name")" 2>/dev/null | head -1 | cut -d: -f1)
        [ -z "$package" ] || cp -L "/usr/share/doc/$package/copyright" "$tree/share/cutegen/licences/$package"
    done
}

# The newest glibc symbol that anything in the tree asks for.
glibc_needed()
{
    find "$1/bin" "$1/libexec" "$1/lib" -type f -print0 | xargs -0 readelf -V 2>/dev/null |
        grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1
}

# ---- parts that we do not build ---------------------------------------------

add_cutlass()
{
    local from
    from=$(compgen -G "$TOOLS/venv/lib/python3*/site-packages/cutlass_library/source/include" | head -1)
    [ -d "$from/cute" ] || fail "no CUTLASS headers; run setup/setup.sh"
    mkdir -p "$1/share/cutegen/cutlass/include"
    cp -r "$from/cute" "$from/cutlass" "$1/share/cutegen/cutlass/include/"
    cp "$(dirname "$from")/LICENSE.txt" "$1/share/cutegen/cutlass/" 2>/dev/null || true
}

# cuda/std, which CuTe includes and a torch installation does not bring. (Apache-2.0 with LLVM exception)
add_cccl()
{
    local from
    for from in "${CUDA_HOME:-/usr/local/cuda}/include/cccl" \
        "$TOOLS"/venv/lib/python3*/site-packages/nvidia/cu13/include/cccl; do
        [ -d "$from/cuda/std" ] || continue
        mkdir -p "$1/share/cutegen/cccl/include"
        cp -r "$from/cuda" "$from/nv" "$1/share/cutegen/cccl/include/"
        return
    done
    say "no CCCL headers found: the target needs its own"
}

# ---- the whole --------------------------------------------------------------

pack()
{
    local arch=$1 name=cutegen-$VERSION-$1 tree
    tree=$PWD/build/tree/$name
    rm -rf "$tree"
    build "$arch" "$tree" || fail "the build for $arch failed"
    add_cutlass "$tree"
    add_cccl "$tree"
    copy_libraries "$arch" "$tree/lib" "$tree"/bin/cutegen "$tree"/libexec/cutegen/cutegen-*
    add_licences "$arch" "$tree"
    cp LICENSE README.md "$tree/"
    mkdir -p dist
    tar -C build/tree --owner=0 --group=0 --sort=name --mtime=@0 -cf - "$name" | gzip -9n >"dist/$name.tar.gz.new"
    mv "dist/$name.tar.gz.new" "dist/$name.tar.gz"
    say "dist/$name.tar.gz  $(du -h "dist/$name.tar.gz" | cut -f1), needs $(glibc_needed "$tree" | tr _ ' ') or newer"
}

if [ $# = 0 ]; then
    other=aarch64
    [ "$HOST" = x86_64 ] || other=x86_64
    pack "$HOST"
    if cross_setup "$other"; then pack "$other"; else say "no cross toolchain for $other: left out"; fi
else
    for arch in "$@"; do
        [ "$arch" = "$HOST" ] || cross_setup "$arch" || fail "no cross toolchain for $arch"
        pack "$arch"
    done
fi
