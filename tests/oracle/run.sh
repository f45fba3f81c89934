#!/bin/sh
# Run a Python test with a Python that has torch; 77 (skipped) where there is none.
# torch is looked for, not imported: that takes a second of CPU, and the test pays it itself.
for python in "${CUTEGEN_PYTHON:-}" /usr/bin/python3 python3; do
    [ -n "$python" ] && "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null && exec "$python" "$@"
done
echo "no Python with torch: set CUTEGEN_PYTHON" >&2
exit 77
