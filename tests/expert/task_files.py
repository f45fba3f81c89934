"""The command of a generator that has a fixed list of tasks (strangers.py, styles.py, visitors.py).

    GENERATOR OUT_DIR [COUNT [SEED]]        COUNT 0: all of them; SEED is not used
    GENERATOR --count
"""
import pathlib
import sys


def command(doc, texts):
    """Writes the first of `texts` to OUT_DIR/taskNNN.py. A call without arguments gets `doc`."""
    if sys.argv[1:2] == ["--count"]:
        print(len(texts))
        return
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(doc)
    out, count = pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["0"])[0])
    out.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts[: count or len(texts)]):
        (out / f"task{number:03d}.py").write_text(text)
