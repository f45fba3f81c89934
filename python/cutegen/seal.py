# SPDX-License-Identifier: Apache-2.0
"""seal.py - a cached export is trusted only if this user's cutegen put it there, because its Python runs in our process.

The digest covers every file of the folder, with the key of the program's own cache (CACHE/seal.key, src/base/seal.c). A file
more (a planted .pyc too), a file less, a link or another byte, and the folder is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat

KEY_BYTES = 32
NAME = "seal"


def _key(root: str) -> bytes | None:
    """The key in this cache folder: a private file of this user, made where there is none."""
    path = os.path.join(root, "seal.key")
    with contextlib.suppress(OSError):
        _make(path)
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        about = os.fstat(file)
        ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        key = os.read(file, KEY_BYTES) if ours else b""
    finally:
        os.close(file)
    return key if len(key) == KEY_BYTES else None


def _make(path: str) -> None:
    """Atomic, and the first of several writers wins: link() does not replace a file."""
    if os.path.lexists(path):
        return
    temp = f"{path}.{secrets.token_hex(8)}"
    with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    try:
        os.link(temp, path)
    finally:
        os.unlink(temp)


def _digest(root: str, name: str, folder: str) -> str | None:
    key = _key(root)
    if key is None:
        return None
    sealed = hmac.new(key, f"python {name}\n".encode(), hashlib.sha256)
    for here, folders, files in os.walk(folder):
        folders.sort()
        for one in sorted([*files, *(f for f in folders if os.path.islink(os.path.join(here, f)))]):
            path = os.path.join(here, one)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return None
            with open(path, "rb") as file:
                text = file.read()
            sealed.update(f"{os.path.relpath(path, folder)}\0{len(text)}\0".encode() + text)
    return sealed.hexdigest()


def put(root: str, name: str, folder: str) -> None:
    """Beside `folder`, once all of it is there."""
    digest = _digest(root, name, folder)
    if digest is not None:
        with open(os.path.join(os.path.dirname(folder), NAME), "w", encoding="ascii") as file:
            file.write(digest)


def holds(root: str, name: str, folder: str) -> bool:
    try:
        with open(os.path.join(os.path.dirname(folder), NAME), encoding="ascii") as file:
            known = file.read(2 * hashlib.sha256().digest_size)
        digest = _digest(root, name, folder)
    except (OSError, ValueError):
        return False
    return digest is not None and hmac.compare_digest(known, digest)
