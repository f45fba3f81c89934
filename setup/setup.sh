#!/usr/bin/env bash
# setup.sh - bring a Debian or Ubuntu machine to where cutegen builds and runs.
#
#     setup/setup.sh [run|test|dist|docs]     what `make`, `make test`, `make dist`, `make docs` need
#     setup/setup.sh torch                   a current PyTorch in the venv, and that one is used (make torch)
#     setup/setup.sh download DIR             gather the packages for a machine without network
#
# Package managers do all the work: apt for the system, pip for a venv of our
# own in the user's data folder. Nothing that is already there is installed.
#
# Invariants
# 1. Looking costs no network and no package manager: when all is there, it
#    ends within a second and has changed nothing.
# 2. Everything missing is known, and shown, before anything is installed.
# 3. A CUDA toolkit or a PyTorch that is already there wins over ours.
# 4. With CUTEGEN_PACKAGES=DIR only packages in DIR are used, never the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=setup/versions
. setup/versions

TOOLS=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}
VENV=$TOOLS/venv
PACKAGES=${CUTEGEN_PACKAGES:-}
[ -z "$PACKAGES" ] || PACKAGES=$(cd "$PACKAGES" && pwd)

apt_missing=()   # Debian packages to install
pip_missing=()   # wheels to install, with their dependencies
pip_alone=()     # wheels to install without
reasons=()       # one line per thing that is missing

say() { printf 'set-up: %s\n' "$*"; }
fail()
{
    printf 'set-up: %s\n' "$1" >&2
    shift
    [ $# = 0 ] || printf '  %s\n' "$@" >&2
    exit 3
}

# ---- what is there --------------------------------------------------------

# want WHAT PACKAGE... : this is missing, and these Debian packages bring it.
want()
{
    reasons+=("$1")
    shift
    apt_missing+=("$@")
}

want_wheel()
{
    reasons+=("$1")
    pip_missing+=("$2")
}

has() { command -v "$1" >/dev/null 2>&1; }

# venv_has NAME VERSION-PATTERN : that wheel is in the venv.
venv_has()
{
    local name=${1//-/_}
    compgen -G "$VENV/lib/python3*/site-packages/$name-$2.dist-info" >/dev/null
}

version_at_least() { printf '%s\n%s\n' "$2" "$1" | sort -VC; }

look_for_build_tools()
{
    if has cc; then
        echo '#include <stdio.h>' | cc -E -o /dev/null - 2>/dev/null || want "C headers" libc6-dev
    else
        want "a C compiler" gcc libc6-dev
    fi
    has pkg-config || want pkg-config pkg-config
    local row
    for row in jansson:libjansson-dev sqlite3:libsqlite3-dev libcurl:libcurl4-openssl-dev \
               cmocka:libcmocka-dev inih:libinih-dev libmicrohttpd:libmicrohttpd-dev; do
        pkg-config --exists "${row%%:*}" 2>/dev/null || want "${row%%:*}" "${row##*:}"
    done
    has git || want git git
}

# Meson comes from apt where that is new enough, else as a wheel; the Makefile prefers the latter.
look_for_meson()
{
    has ninja || want ninja ninja-build
    if has meson; then look_at_meson_age; else want meson meson; fi
}

look_at_meson_age()
{
    [ -x "$VENV/bin/meson" ] || version_at_least "$(meson --version)" "$MESON_MIN" ||
        want_wheel "meson >= $MESON_MIN" "meson==$MESON"
}

# Which toolkit there is: a folder with NVRTC and the headers that it needs, of a
# version that CUTLASS goes with.
cuda_toolkit()
{
    local root nvcc version
    nvcc=$(command -v nvcc 2>/dev/null || true)
    for root in "${CUDA_HOME:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda; do
        if [ -z "$root" ] || [ ! -f "$root/include/cuda_runtime.h" ]; then continue; fi
        compgen -G "$root/lib64/libnvrtc.so*" >/dev/null ||
            compgen -G "$root/targets/*/lib/libnvrtc.so*" >/dev/null ||
            compgen -G "$root/lib/*/libnvrtc.so*" >/dev/null || continue
        version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$root/include/cuda.h")
        if [ "${version:-0}" -ge "$CUDA_MIN" ] && [ "${version:-0}" -le "$CUDA_MAX" ]; then
            echo "$root"
            return 0
        fi
    done
    return 1
}

look_for_cuda()
{
    venv_has nvidia-cutlass "$CUTLASS" || {
        reasons+=("CUTLASS $CUTLASS (headers)")
        pip_alone+=("nvidia-cutlass==$CUTLASS")
    }
    cuda_toolkit >/dev/null && return
    local wheel
    for wheel in nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl; do
        venv_has "$wheel" "$CUDA_WHEELS" || want_wheel "$wheel" "$wheel==$CUDA_WHEELS"
    done
}

# python_has_torch PYTHON [import] : cheap look, or a real import. Isolated, as cutegen starts it: what
# lies in a user site does not count.
python_has_torch()
{
    local code='import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'
    [ "${2:-}" != import ] || code='import torch; torch.zeros(1)'
    has "$1" && "$1" -I -c "$code" >/dev/null 2>&1
}

# Names the Python to use in $TOOLS/python, where cutegen reads it.
remember_python()
{
    local path
    path=$("$1" -c 'import sys; print(sys.executable)')
    [ "$(cat "$TOOLS/python" 2>/dev/null)" = "$path" ] && return
    mkdir -p "$TOOLS"
    echo "$path" >"$TOOLS/python.new"
    mv "$TOOLS/python.new" "$TOOLS/python"
    say "PyTorch: $path ($("$1" -c 'import importlib.metadata as m; print(m.version("torch"))'))"
}

find_torch()
{
    local python
    for python in "${CUTEGEN_PYTHON:-}" python3 /usr/bin/python3 "$VENV/bin/python"; do
        if [ -n "$python" ] && python_has_torch "$python" && python_has_torch "$python" import; then
            remember_python "$python"
            return 0
        fi
    done
    return 1
}

look_for_torch()
{
    local known
    known=$(cat "$TOOLS/python" 2>/dev/null || true)
    if [ -z "${CUTEGEN_PYTHON:-}" ] || [ "$CUTEGEN_PYTHON" = "$known" ]; then
        [ -z "$known" ] || ! python_has_torch "$known" || return 0
    fi
    find_torch && return
    if [ "$(uname -m)" = aarch64 ]; then
        want_wheel "PyTorch" "torch==$TORCH"
    else
        want "PyTorch" python3-torch
    fi
}

# A Python that can make a venv; only looked for when there is none yet.
venv_python()
{
    local python
    for python in /usr/bin/python3 python3; do
        has "$python" && "$python" -c 'import venv, ensurepip' 2>/dev/null && echo "$python" && return
    done
    return 1
}

look_for_venv()
{
    [ ${#pip_missing[@]} != 0 ] || [ ${#pip_alone[@]} != 0 ] || return 0
    [ -x "$VENV/bin/pip" ] || venv_python >/dev/null || want "a Python with venv" python3-venv
}

look_for_test_tools()
{
    has clang || want "clang" clang
    has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ||
        want "PostgreSQL (tests start one of their own)" postgresql
    [ -x /usr/sbin/slurmctld ] || has slurmctld ||
        want "Slurm (tests start one of their own)" slurmctld slurmd slurm-client
    # Where it is a package like any other; elsewhere the test of the live page is skipped without one.
    has chromium || has chromium-browser || has google-chrome || ! grep -qsx 'ID=debian' /etc/os-release ||
        want "Chromium (tests open the live page in it)" chromium
    has clang-format-14 || { has clang-format && clang-format --version | grep -q "version 14\."; } ||
        [ -x "$VENV/bin/clang-format" ] || want_wheel "clang-format 14" "clang-format==$CLANG_FORMAT"
    venv_has ruff "$RUFF" || want_wheel "ruff (lints Python)" "ruff==$RUFF"
    venv_has mypy "$MYPY" || want_wheel "mypy (checks Python types)" "mypy==$MYPY"
}

look_for_docs_tools()
{
    venv_has mkdocs "$MKDOCS" || want_wheel "mkdocs (builds the documentation)" "mkdocs==$MKDOCS"
}

look_for_dist_tools()
{
    has readelf || want readelf binutils
}

# ---- installing -----------------------------------------------------------

as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_install()
{
    [ $# != 0 ] || return 0
    has apt-get || fail "this is not Debian or Ubuntu: install these yourself, by their Debian names:" "$*"
    [ "$(id -u)" = 0 ] || has sudo ||
        fail "needs Debian packages, and neither is this root nor is there sudo. As root:" \
            "apt-get install --no-install-recommends $*"
    say "apt: $*"
    if [ -n "$PACKAGES" ]; then
        apt_install_offline
        return
    fi
    as_root apt-get -q -o Dpkg::Use-Pty=0 update >/dev/null ||
        say "apt-get update failed; going on with the package lists that are there"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 install \
        --no-install-recommends "$@" | progress_lines ||
        fail "apt-get could not install: $*" "see above; then run the same command again"
}

# All that is in the folder and not installed yet: dependencies are among it. apt knows of no
# other source, so it cannot go to the network.
apt_install_offline()
{
    local deb debs=() nothing
    for deb in "$PACKAGES"/*.deb; do
        [ -e "$deb" ] || fail "no .deb in $PACKAGES" "make it on a like machine: setup/setup.sh download DIR"
        dpkg-query -W -f '${Status}' "$(dpkg-deb -f "$deb" Package)" 2>/dev/null | grep -q 'ok installed' ||
            debs+=("$deb")
    done
    nothing=$(mktemp -d)
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
        -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$nothing" \
        -o APT::Sandbox::User=root install --no-install-recommends "${debs[@]}" | progress_lines ||
        fail "the packages in $PACKAGES do not suffice" "make it on a like machine: setup/setup.sh download DIR"
    rm -rf "$nothing"
}

# apt's many lines become one every so often, so that a person sees that it goes on.
progress_lines() { awk '/^(E|W|dpkg): /{print "  " $0} /^Setting up/{n++} END{if (n) print "  " n " packages"}'; }

pip_install()
{
    local from=()
    [ -z "$PACKAGES" ] || from=(--no-index --find-links "$PACKAGES")
    say "pip, into $VENV: ${*/#--no-deps/}"
    "$VENV/bin/pip" -q --disable-pip-version-check install "${from[@]}" "$@" ||
        fail "pip could not install: $*" "is there a network? If not: CUTEGEN_PACKAGES=DIR, see README"
}

install_wheels()
{
    [ ${#pip_missing[@]} != 0 ] || [ ${#pip_alone[@]} != 0 ] || return 0
    if [ ! -x "$VENV/bin/pip" ]; then
        say "venv: $VENV"
        mkdir -p "$TOOLS"
        "$(venv_python)" -m venv --clear "$VENV" || fail "cannot make a venv in $VENV"
    fi
    [ ${#pip_alone[@]} = 0 ] || pip_install --no-deps "${pip_alone[@]}"
    [ ${#pip_missing[@]} = 0 ] || pip_install "${pip_missing[@]}"
}

# The reference client that tests of `cutegen mcp` use, in a venv of its own. Where it cannot be had, those lines of the
# tests are skipped.
try_mcp_client()
{
    local from=() python=$TOOLS/mcp/bin/python
    [ -z "$PACKAGES" ] || from=(--no-index --find-links "$PACKAGES")
    "$python" -c 'import mcp.client.client' 2>/dev/null && return
    say "pip, into $TOOLS/mcp: mcp==$MCP"
    { "$(venv_python)" -m venv --clear "$TOOLS/mcp" &&
        "$TOOLS/mcp/bin/pip" -q --disable-pip-version-check install --retries 1 "${from[@]}" "mcp==$MCP"; } >/dev/null 2>&1 ||
        say "  not to be had (it needs Python 3.10): what it would test is skipped"
}

# ---- the whole ------------------------------------------------------------

set_up()
{
    local reason
    look_for_build_tools
    look_for_meson
    look_for_cuda
    look_for_torch
    case $1 in
    test) look_for_test_tools ;;
    dist) look_for_dist_tools ;;
    docs) look_for_docs_tools ;;
    esac
    look_for_venv
    [ ${#reasons[@]} != 0 ] || return 0
    for reason in "${reasons[@]}"; do say "missing: $reason"; done
    apt_install "${apt_missing[@]}"
    look_at_meson_age
    install_wheels
    [ -n "$(cat "$TOOLS/python" 2>/dev/null)" ] || find_torch ||
        fail "no Python here can import torch" "name one that can: CUTEGEN_PYTHON=PATH"
    say "done"
}

# Debian's PyTorch is old but small; a current one brings gigabytes of CUDA libraries, so it comes when asked for.
current_torch()
{
    venv_has torch "$TORCH*" || want_wheel "PyTorch $TORCH" "torch==$TORCH"
    look_for_venv
    apt_install "${apt_missing[@]}"
    install_wheels
    python_has_torch "$VENV/bin/python" import ||
        fail "$VENV/bin/python cannot import the torch that was installed" "see why: $VENV/bin/python -c 'import torch'"
    remember_python "$VENV/bin/python"
    [ -z "${CUTEGEN_PYTHON:-}" ] || say "CUTEGEN_PYTHON=$CUTEGEN_PYTHON goes before it: unset that"
}

# The same packages as files, with everything they depend on: a like machine that is bare needs
# no more. Run set-up here first; it brings the pip that fetches the wheels.
download()
{
    mkdir -p "$1/partial"
    local dir debs wheels
    dir=$(cd "$1" && pwd)
    debs=(make gcc libc6-dev pkg-config git meson ninja-build python3-venv libjansson-dev libsqlite3-dev
          libcurl4-openssl-dev libcmocka-dev libinih-dev libmicrohttpd-dev clang postgresql slurmctld slurmd slurm-client
          chromium)
    wheels=("nvidia-cuda-nvrtc==$CUDA_WHEELS" "nvidia-cuda-runtime==$CUDA_WHEELS"
            "nvidia-cuda-crt==$CUDA_WHEELS" "nvidia-cuda-cccl==$CUDA_WHEELS" "clang-format==$CLANG_FORMAT"
            "ruff==$RUFF" "mypy==$MYPY" "mkdocs==$MKDOCS")
    if [ "$(uname -m)" = aarch64 ]; then wheels+=("torch==$TORCH"); else debs+=(python3-torch); fi
    say "fetching packages into $dir"
    # As if nothing were installed, so that all dependencies come along.
    : >"$dir/status"
    apt-get -q -y --download-only --no-install-recommends -o Dir::State::status="$dir/status" \
        -o Dir::Cache::archives="$dir" -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
        -o Dpkg::Use-Pty=0 install "${debs[@]}" >/dev/null || fail "apt-get could not fetch all packages"
    rm -rf "$dir/partial" "$dir/lock" "$dir/status"
    "$VENV/bin/pip" -q --disable-pip-version-check download --no-deps -d "$dir" "nvidia-cutlass==$CUTLASS"
    "$VENV/bin/pip" -q --disable-pip-version-check download -d "$dir" "${wheels[@]}"
    say "$(find "$dir" -name '*.deb' | wc -l) debs, $(find "$dir" -name '*.whl' | wc -l) wheels, $(du -sh "$dir" | cut -f1)"
}

case ${1:-run} in
test)
    set_up test
    try_mcp_client
    ;;
run | dist | docs) set_up "${1:-run}" ;;
torch) current_torch ;;
download)
    set_up run
    download "${2:?setup/setup.sh download DIR}"
    ;;
*) fail "setup/setup.sh [run|test|dist|docs|torch] or setup/setup.sh download DIR" ;;
esac
