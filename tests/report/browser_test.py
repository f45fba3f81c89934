#!/usr/bin/env python3
"""browser_test.py - a suite's page in a real browser: at 1400 and at 400 pixels no column is clipped.

    browser_test.py PAGE_TEST      the program that writes the sample page (SUITE_PAGE says where)

Skipped where there is no chromium.
"""
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1400, 400)
LOOK = """<script>
onload = () => {
  const out = [];
  for (const f of document.querySelectorAll("iframe")) {
    const d = f.contentDocument, box = d.querySelector(".scroll"), last = d.querySelector(".tasks tbody td:last-child");
    out.push([f.width, d.documentElement.scrollWidth, box.scrollWidth - box.clientWidth,
              Math.round(last.getBoundingClientRect().right), last.offsetWidth].join(" "));
  }
  document.getElementById("out").textContent = out.join(";");
};
</script>"""


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("1..0 # SKIP no chromium")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "suite.html"
        subprocess.run([sys.argv[1]], env={**os.environ, "SUITE_PAGE": str(page)}, check=True, capture_output=True)
        frames = "".join(f'<iframe src="suite.html" width="{w}" height="900"></iframe>' for w in WIDTHS)
        look = pathlib.Path(folder) / "look.html"
        look.write_text(f"<body>{frames}<pre id=out></pre>{LOOK}</body>")
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                               f"--user-data-dir={folder}/profile", "--window-size=1600,1000", "--dump-dom",
                               look.as_uri()], capture_output=True, text=True, check=False, timeout=3600)
    said = re.search(r'<pre id="out">([^<]*)</pre>', done.stdout)
    rows = [[int(n) for n in row.split()] for row in html.unescape(said.group(1)).split(";")] if said and said[1] else []
    print(f"1..{len(WIDTHS)}")
    bad = 0
    for number, width in enumerate(WIDTHS, 1):
        row = next((r for r in rows if r[0] == width), None)
        good = row is not None and row[1] <= width and row[2] <= 0 and row[3] <= width and row[4] > 40
        print(f"{'ok' if good else 'not ok'} {number} - at {width} pixels every column of a suite's page is seen")
        if not good:
            print(f"# page, hidden by the box, right edge and width of the last column: {row}; {done.stderr[-300:]!r}")
        bad += not good
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
