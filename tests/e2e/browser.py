"""browser.py - a real browser for tests: Chromium, driven over a pipe by its own protocol; nothing to install but Chromium.

    with Browser() as b:
        page = b.open("http://127.0.0.1:1234/")
        page.value("document.title")
        page.wait("document.querySelector('table') != null")
        page.shot("picture.png", width=400, dark=True)
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def found():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cutegen-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def as_three_and_four():
            """The protocol's places: it reads from 3 and writes to 4."""
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [found(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", "--user-data-dir=" + self.folder, "about:blank"],
            close_fds=False, preexec_fn=as_three_and_four, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer, self.number = os.fdopen(ours_in, "rb", buffering=0), ours_out, 0
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.close()
        os.close(self.writer)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            data = self.reader.read(1 << 16)
            if not data:
                raise RuntimeError("the browser has ended")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\0")
        return json.loads(line)

    def ask(self, method, session=None, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params}
        if session:
            question["sessionId"] = session
        os.write(self.writer, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def open(self, url):
        target = self.ask("Target.createTarget", url=url)["targetId"]
        return Page(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def ask(self, method, **params):
        return self.browser.ask(method, session=self.session, **params)

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression, seconds=1800):
        """Until it is true. The limit only ends a test that would never end."""
        end = time.time() + seconds
        while time.time() < end:
            if self.value(expression):
                return True
            time.sleep(0.1)
        return False

    def shot(self, path, width, height=None, dark=False):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height or 900, deviceScaleFactor=1, mobile=width < 600)
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
