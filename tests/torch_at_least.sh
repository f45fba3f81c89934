#!/bin/sh
# torch_at_least.sh MAJOR.MINOR - has the Python of the tests such a PyTorch, or a newer one?
#
# A test that needs one skips with the reason "needs torch MAJOR.MINOR or newer"; run.sh takes that reason on an
# older torch only.
exec "$(dirname "$0")/oracle/run.sh" -c '
import importlib.util, os, re, runpy, sys
folder = os.path.dirname(importlib.util.find_spec("torch").origin)
version = runpy.run_path(os.path.join(folder, "version.py"))["__version__"]  # without importing all of torch
have, want = (tuple(map(int, re.match(r"(\d+)\.(\d+)", v).groups())) for v in (version, sys.argv[1]))
sys.exit(have < want)' "$1"
