# SPDX-License-Identifier: Apache-2.0
"""Gives kept exports the loader of this tree; what was judged (code, launch list, verdict) stays as it is.

    python3 bench/gpu/renew.py LOADER.so FOLDER...       as `cutegen export` would write them today

For measuring a loader without judging again. record.json gets the new files' hashes.
"""

import hashlib
import json
import pathlib
import platform
import re
import sys

EXPORTED = pathlib.Path(__file__).resolve().parent.parent.parent / "oracle" / "exported"
SAME = ("loader.py", "native.py", "launcher.py", "gradients.py")


def renew(folder: pathlib.Path, library: bytes) -> None:
    record = json.loads((folder / "record.json").read_text())
    new = {name: (EXPORTED / name).read_bytes() for name in SAME}
    new[f"loader-{platform.machine()}.so"] = library
    (module,) = folder.glob("*_new.py")
    new[module.name] = re.sub(rb'_part\("gradients"\)\)', b'_part("gradients"), _part("native"))', module.read_bytes())
    for name, data in new.items():
        (folder / name).write_bytes(data)
        record["files"][name] = hashlib.sha256(data).hexdigest()
    if (folder / "backward").is_dir():
        renew(folder / "backward", library)
        for name in record["files"]:
            if name.startswith("backward/"):
                record["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")


for name in sys.argv[2:]:
    renew(pathlib.Path(name), pathlib.Path(sys.argv[1]).read_bytes())
