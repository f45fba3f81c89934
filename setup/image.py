#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py - an OCI image of cutegen, made without pulling one: dist/cutegen-VERSION-ARCH.oci.tar (make image).

    setup/image.py [--suite bookworm] [--mirror URL]

Debian by mmdebstrap, with its own PyTorch and C compiler; then the wheel of setup/wheel.py and what it needs (NVRTC, CUTLASS'
headers), by pip, in /opt/cutegen. One layer. `podman load -i FILE`, or `skopeo copy oci-archive:FILE docker-daemon:cutegen:VERSION`.
The entry point is cutegen; it works in /work, where the user's folder goes (podman run -v "$PWD:/work" cutegen doctor).
The same packages give the same bytes: names are sorted, times are SOURCE_DATE_EPOCH or the last commit's.
"""

import argparse
import glob
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "setup"))
import wheel  # noqa: E402

PACKAGES = "ca-certificates,gcc,libc6-dev,python3,python3-torch"
MIRROR = "http://deb.debian.org/debian"
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
LEFT_OUT = ("./usr/share/doc/", "./usr/share/man/", "./usr/share/locale/", "./var/cache/", "./var/log/", "./dev/")
ENTRY = """#!/bin/sh
# The console script of the wheel in /opt/cutegen.
PYTHONPATH=/opt/cutegen exec /usr/bin/python3 -m cutegen "$@"
"""


def say(text):
    print(f"image: {text}", flush=True)


def the_wheel(arch):
    found = glob.glob(os.path.join(ROOT, "dist", f"cutegen-{wheel.version()}-*_{arch}.whl"))
    return found[0] if found else wheel.make(arch)


def debian(args, arch, work):
    """A tar of Debian. The mirror used here is not the one that the image names."""
    out = os.path.join(work, "debian.tar")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--architectures={DEBIAN_NAMES[arch]}", f"--include={PACKAGES}"]
    command += [f"--customize-hook=echo 'deb {MIRROR} {args.suite} main' >\"$1/etc/apt/sources.list\""]
    command += ["--customize-hook=rm -f \"$1\"/etc/apt/sources.list.d/*", args.suite, out]
    command += [args.mirror] if args.mirror else []
    say(f"Debian {args.suite} by mmdebstrap: {PACKAGES}")
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(wheel.epoch())})
    return out


def ours(arch, work):
    """/opt/cutegen: the wheel, and its dependencies but for PyTorch, which is Debian's."""
    site = os.path.join(work, "site")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-compile", "--no-deps", "--target", site]
    path = the_wheel(arch)
    needs = [line.split(": ", 1)[1] for line in wheel.metadata().splitlines() if line.startswith("Requires-Dist: nvidia")]
    tags = [f"--platform=manylinux_2_{n}_{arch}" for n in range(5, 37)] + ["--only-binary=:all:"]
    say(f"{os.path.relpath(path, ROOT)} and {', '.join(needs)}")
    subprocess.run([*pip, *tags, path, *needs], check=True)
    for name in ("bin", "nvidia_cutlass/cutlass_library"):
        shutil.rmtree(os.path.join(site, name), ignore_errors=True)
    for found in glob.glob(os.path.join(site, "*.dist-info", "RECORD")):
        os.remove(found)  # it names bin/, and pip does not look after this folder
    return site


def entry(name, mode, data=None, link=None):
    item = tarfile.TarInfo(name)
    item.mode, item.mtime = mode, wheel.epoch()
    if link is not None:
        item.type, item.linkname = tarfile.SYMTYPE, link
    elif data is None:
        item.type = tarfile.DIRTYPE
    else:
        item.size = len(data)
    return item, io.BytesIO(data) if data is not None else None


def add_debian(out, path):
    with tarfile.open(path) as given:
        for item in given:
            if item.name.startswith(LEFT_OUT) and not item.isdir():
                continue
            item.mtime = min(item.mtime, wheel.epoch())
            out.addfile(item, given.extractfile(item) if item.isreg() else None)


def add_ours(out, site):
    out.addfile(*entry("./opt/cutegen", 0o755))
    for folder, folders, names in os.walk(site):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        below = os.path.relpath(folder, site)
        for name in folders:
            out.addfile(*entry(os.path.normpath(f"./opt/cutegen/{below}/{name}"), 0o755))
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                out.addfile(*entry(os.path.normpath(f"./opt/cutegen/{below}/{name}"), 0o755 if os.access(path, os.X_OK) else 0o644, file.read()))
    out.addfile(*entry("./usr/local/bin/cutegen", 0o755, ENTRY.encode()))
    out.addfile(*entry("./work", 0o777))


class Hashed(io.RawIOBase):
    """A file that is written once, with the hash of what was written."""

    def __init__(self, file):
        self.file, self.hash, self.size = file, hashlib.sha256(), 0

    def write(self, data):
        self.hash.update(data)
        self.size += len(data)
        return self.file.write(data)

    def writable(self):
        return True


def layer(work, parts):
    """The layer, compressed. Returns its path, its digest and the digest of the plain tar."""
    path = os.path.join(work, "layer.tar.gz")
    with open(path, "wb") as file:
        packed = Hashed(file)
        with gzip.GzipFile("", "wb", 6, packed, 0) as zipped:
            plain = Hashed(zipped)
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as out:
                for add, what in parts:
                    add(out, what)
    return path, packed.hash.hexdigest(), plain.hash.hexdigest()


def blob(value):
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return data, hashlib.sha256(data).hexdigest()


def descriptor(kind, digest, size):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": size}


def archive(path, arch, made):
    """The OCI layout as one tar: index, manifest, configuration, layer."""
    layer_path, packed, plain = made
    config, config_hash = blob({
        "architecture": DEBIAN_NAMES[arch], "os": "linux",
        "config": {
            "Entrypoint": ["/usr/local/bin/cutegen"], "Cmd": ["--help"], "WorkingDir": "/work",
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/work", "XDG_CACHE_HOME=/tmp"],
            "Labels": {"org.opencontainers.image.title": "cutegen", "org.opencontainers.image.version": wheel.version(),
                       "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{plain}"]},
    })
    manifest, manifest_hash = blob({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", config_hash, len(config)),
        "layers": [descriptor("layer.v1.tar+gzip", packed, os.path.getsize(layer_path))],
    })
    named = {**descriptor("manifest.v1+json", manifest_hash, len(manifest)),
             "annotations": {"org.opencontainers.image.ref.name": wheel.version()}}
    index, _ = blob({"schemaVersion": 2, "manifests": [named]})
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
        out.addfile(*entry("oci-layout", 0o644, b'{"imageLayoutVersion":"1.0.0"}'))
        out.addfile(*entry("index.json", 0o644, index))
        out.addfile(*entry(f"blobs/sha256/{config_hash}", 0o644, config))
        out.addfile(*entry(f"blobs/sha256/{manifest_hash}", 0o644, manifest))
        item, _ = entry(f"blobs/sha256/{packed}", 0o644, b"")
        item.size = os.path.getsize(layer_path)
        with open(layer_path, "rb") as file:
            out.addfile(item, file)
    return manifest_hash


def host_mirror():
    """The mirror that this machine itself uses, if it is a Debian."""
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
        try:
            with open(path, encoding="utf-8") as file:
                found = re.search(r"^(?:deb (?:\[.*?\] )?|URIs: )(\S+/debian)/? ", file.read() + " ", re.M)
        except OSError:
            continue
        if found:
            return found.group(1)
    return None


def main():
    flags = argparse.ArgumentParser(description="An OCI image of cutegen, without pulling one.")
    flags.add_argument("--suite", default="bookworm")
    flags.add_argument("--mirror", default=host_mirror())
    args = flags.parse_args()
    arch = platform.machine()
    if not shutil.which("mmdebstrap"):
        sys.exit("image: no mmdebstrap: apt-get install mmdebstrap")
    with tempfile.TemporaryDirectory() as work:
        parts = [(add_debian, debian(args, arch, work)), (add_ours, ours(arch, work))]
        say("one layer, compressed")
        made = layer(work, parts)
        path = os.path.join(ROOT, "dist", f"cutegen-{wheel.version()}-{arch}.oci.tar")
        digest = archive(path + ".new", arch, made)
        os.replace(path + ".new", path)
    say(f"{os.path.relpath(path, ROOT)}  {os.path.getsize(path) / 1e6:.0f} MB, manifest sha256:{digest[:16]}")


if __name__ == "__main__":
    main()
