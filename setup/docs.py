#!/usr/bin/env python3
"""Build the documentation as a site: build/site/index.html.

    setup/docs.py MKDOCS       called by `make docs`, after set-up

Copies the documents, with the folders they are in, to build/site-src, so that links between them hold; writes the
manual page as Markdown beside them; runs `mkdocs build --strict`, in which a broken link is an error; then checks
that no page loads anything from the network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "site-src"
SITE = ROOT / "build" / "site"
DOCUMENTS = ["*.md", "LICENSE", "docs/*.md", "docs/*.png", "docs/*.svg",
             "docs/h200/*.html", "src/**/README.md", "oracle/README.md", "python/cutegen/README.md", "recipes/README.md"]


def version() -> str:
    found = re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)
    if found is None:
        sys.exit("docs.py: meson.build has no version")
    return found.group(1)


def inline(text: str) -> str:
    r"""The escapes of man pages as Markdown: \fBbold\fR, \-."""
    text = re.sub(r"\\fB(.*?)\\f[RP]", r"**\1**", text)
    text = re.sub(r"\\f[IR](.*?)\\f[RP]", r"\1", text)
    return text.replace("\\-", "-").replace("\\fR", "").replace("\\fP", "").replace("<", "&lt;")


def words(text: str) -> list[str]:
    """Arguments of a request: words, or quoted strings."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', text)]


def font(request: str, text: str) -> str:
    """.B and .I set all of a line, .BI and the like alternate from word to word."""
    marks = {"B": "**", "I": "*", "R": ""}
    parts = words(text) if len(request) == 2 else [" ".join(words(text))]
    out = []
    for number, part in enumerate(parts):
        mark = marks[request[number % len(request)]]
        bare = inline(part).strip()
        lead = " " if part.startswith(" ") else ""
        tail = " " if part.endswith(" ") else ""
        out.append(f"{lead}{mark}{bare}{mark}{tail}" if bare else part)
    return "".join(out)


def man_to_markdown(text: str) -> str:
    """The subset of man that data/cutegen.1.in uses: .TH .SH .TP .PP and fonts."""
    out: list[str] = []
    term = False
    for line in text.splitlines():
        request, _, rest = line[1:].partition(" ") if line.startswith(".") else ("", "", line)
        if request == "TH":
            out.append("# " + words(rest)[0].lower() + "(1)")
        elif request == "SH":
            out.append("\n## " + rest.capitalize() + "\n")
        elif request == "TP":
            out.append("")
            term = True
            continue
        elif request == "PP":
            out.append("")
        elif request in ("", "B", "I", "BI", "BR", "RI", "RB", "IR", "IB"):
            shown = font(request, rest) if request else inline(rest)
            out.append(f"- {shown}<br>" if term else shown)
        else:
            sys.exit(f"docs.py: the man page uses .{request}, which is not translated")
        term = False
    return "\n".join(out) + "\n"


def stage() -> None:
    shutil.rmtree(STAGE, ignore_errors=True)
    for pattern in DOCUMENTS:
        found = sorted(ROOT.glob(pattern))
        if not found:
            sys.exit(f"docs.py: no {pattern}")
        for path in found:
            target = STAGE / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    manual = (ROOT / "data" / "cutegen.1.in").read_text().replace("@VERSION@", version())
    (STAGE / "docs" / "cutegen.1.md").write_text(man_to_markdown(manual))


def from_network() -> list[str]:
    """Scripts, styles, fonts and images that a page would fetch."""
    pattern = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    return [f"{page.relative_to(SITE)}: {address}" for page in sorted(SITE.rglob("*.html"))
            for address in pattern.findall(page.read_text()) if "canonical" not in address]


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    stage()
    # Without --quiet, which would hide the warnings from --strict too.
    done = subprocess.run([sys.argv[1], "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("INFO")), file=sys.stderr)
        return done.returncode
    fetched = from_network()
    for line in fetched:
        print(f"docs.py: from the network: {line}", file=sys.stderr)
    if fetched:
        return 1
    print(f"{len(list(SITE.rglob('*.html')))} pages: {SITE.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
