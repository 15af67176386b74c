# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its own protocol through a pair of pipes: no port, no driver, no Python package.

    with Chromium(place) as browser:
        page = browser.page(width=1280, height=800)
        page.open("http://127.0.0.1:1234/")
        page.until("document.title === 'weir'")
        page.errors == []            # the console's, exceptions, what the page was forbidden
        page.requests                # every address that was asked for

Skipped where there is none (deploy/packages browser).
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

from support.cases import Skipped
from support.place import PATIENCE_S

# Its own sandbox needs rights that a test's container seldom has; it meets no page but ours.
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--disable-default-apps", "--no-default-browser-check", "--hide-scrollbars", "--lang=en-US",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe")


# A shell knows no descriptors above 9, and a test may have more open.
_BEGIN = """import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])"""


def find():
    """The program; Skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise Skipped("no Chromium here (deploy/packages browser)")


class Chromium:
    """One browser with a profile of its own."""

    def __init__(self, place):
        program = find()
        self._profile = place.path("chromium")
        os.makedirs(self._profile)
        out, self._to = os.pipe()
        self._from, into = os.pipe()
        self._log = open(place.path("chromium.log"), "wb")  # pylint: disable=consider-using-with
        # Descriptors 3 and 4 are where it listens and answers.
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-c", _BEGIN, str(out), str(into), program, *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(out, into), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
            env={**os.environ, "HOME": self._profile, "TZ": "UTC", "LANGUAGE": "en_US"})
        os.close(out)
        os.close(into)
        self._left, self._number, self._pages = b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)
        os.close(self._from)
        # It is a family of processes, which has a group of its own.
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(PATIENCE_S)
        self._log.close()

    def call(self, method, session=None, **parameters):
        """Asks for something: its result."""
        self._number += 1
        number, message = self._number, {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        answers = []
        self.pump(lambda: answers, lambda one: answers.append(one) if one.get("id") == number else None)
        assert "error" not in answers[0], f"{method}: {answers[0]['error']}"
        return answers[0]["result"]

    def pump(self, done, see=lambda _: None, patience_s=2 * PATIENCE_S):
        """Takes what the browser says until done()."""
        end = time.monotonic() + patience_s
        while not done():
            assert time.monotonic() < end, f"Chromium said nothing of it within {patience_s} s"
            assert self._process.poll() is None, f"Chromium exited with status {self._process.returncode}"
            if not select.select([self._from], [], [], 0.1)[0]:
                continue
            data = os.read(self._from, 1 << 20)
            assert data, "Chromium has closed its pipe"
            *messages, self._left = (self._left + data).split(b"\0")
            for message in map(json.loads, messages):
                see(message)
                if (page := self._pages.get(message.get("sessionId"))) and "method" in message:
                    page.notice(message["method"], message["params"])

    def page(self, width=1280, height=800, dark=False, locale=None, zone=None):
        """A new page in a context of its own, with nothing stored; locale: "de-DE"; zone: "Europe/Berlin"."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, context)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.look(width, height, dark)
        if locale is not None:
            page.call("Emulation.setLocaleOverride", locale=locale)
        if zone is not None:
            page.call("Emulation.setTimezoneOverride", timezoneId=zone)
        return page


class Page:
    """A page as a reader has it."""

    def __init__(self, browser, session, context):
        self._browser, self._session, self._context = browser, session, context
        self.errors, self.requests = [], []

    def call(self, method, **parameters):
        """Asks for something of the page."""
        return self._browser.call(method, self._session, **parameters)

    def close(self):
        """Closes it, and what it has stored."""
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def notice(self, method, event):
        """Takes an event of the page."""
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")

    def look(self, width, height, dark=False):
        """Sets the window's size and the system's colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address):
        """Goes to an address; it may not be there yet when this returns."""
        self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, f"{script}: {json.dumps(done['exceptionDetails'])}"
        return done["result"].get("value")

    def until(self, script, patience_s=2 * PATIENCE_S):
        """Waits for an expression to be true: its value."""
        end = time.monotonic() + patience_s
        while True:
            try:
                value = self.run(script)
            except AssertionError as why:  # a page that is on its way
                value, error = None, why
            else:
                error = None
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"not within {patience_s} s: {script}; {self.errors}") from error
            time.sleep(0.02)

    def press(self, key, code, text=None, **more):
        """Presses a key and lets it go."""
        event = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {}), **more}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def point(self, x, y):
        """Moves the mouse there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, x, y, to_x, to_y):
        """Presses the mouse's button at one place, and lets it go at another."""
        self.point(x, y)
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
        for part in (0.3, 0.7, 1):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + part * (to_x - x), y=y + part * (to_y - y),
                      button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, button="left", clickCount=1)

    def type(self, text):
        """Types into what has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, path, whole=True):
        """Writes what is to be seen, or the whole length of it, as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
