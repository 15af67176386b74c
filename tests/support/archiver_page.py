# SPDX-License-Identifier: Apache-2.0
"""The archiver's page in a browser, as the tests read it: a view is opened, and what it says is taken as values."""

import contextlib
import json
import os
import time
import urllib.parse

from support import metrics
from support.archiver_api import ZONES, OnSqlite
from support.cases import SKIPPED, Skipped
from support.chromium import Chromium
from support.place import ROOT, Place, free_port, until
from support.run_local import Run
from support.traffic import line, sliding, zone

SHOTS = os.path.join(os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release")), "page")

# A cell: its instant, else its number (which must be written as the locale has it), else its text.
_ROWS = """((caption) => {
  const found = [...document.querySelectorAll("table")].find((one) => one.caption.textContent.startsWith(caption));
  if (!found) throw Error(`no table ${caption}`);
  return [...found.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.classList.contains("group")).map((row) => [...row.cells].map((cell) => {
    const [time, data] = [cell.querySelector("time"), cell.querySelector("data")];
    if (time) {
      if (time.title !== `${time.dateTime} (UTC)`) throw Error(`a title: ${time.title}`);
      return Date.parse(time.dateTime);
    }
    if (!data || data.parentNode !== cell) return cell.textContent;
    if (data.textContent !== Number(data.value).toLocaleString()) throw Error(`a number: ${data.outerHTML}`);
    return Number(data.value);
  }));
})"""
_FIGURES = """((within) => Object.fromEntries([...document.querySelectorAll(`${within} .figures > div`)].map((one) =>
  [one.querySelector("dt").textContent, one.querySelector("data") ? Number(one.querySelector("data").value) :
    one.querySelector("dd").textContent])))"""


class View:
    """A page of the browser's on an API, and what it shows."""

    def __init__(self, page, api):
        self.page, self.origin = page, f"http://127.0.0.1:{api.port}/"

    def address(self, name="", **parameters):
        """Where a view is."""
        query = urllib.parse.urlencode(parameters)
        return self.origin + (f"#/{name}" if name else "") + (f"?{query}" if query else "")

    def open(self, name="", **parameters):
        """Opens a view and waits until it shows what it has: itself."""
        self.page.run("delete document.querySelector('.results')?.dataset.shown")
        self.page.open(self.address(name, **parameters))
        return self.shown(**parameters)

    def shown(self, **parameters):
        """Waits until results with these parameters are there: itself."""
        wanted = json.dumps(parameters)
        self.page.until(f"""(() => {{
            const results = document.querySelector(".results");
            if (!results?.dataset.shown || results.hasAttribute("aria-busy")) return false;
            const shown = JSON.parse(results.dataset.shown);
            return Object.entries({wanted}).every(([name, value]) => shown[name] === value);
        }})()""")
        # What follows a size is done before it is painted.
        self.page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self

    def rows(self, caption):
        """The cells of the table whose caption begins so."""
        return self.page.run(f"{_ROWS}({json.dumps(caption)})")

    def figures(self, within="#content"):
        """The headline figures: {name: number or text}."""
        return self.page.run(f"{_FIGURES}({json.dumps(within)})")

    def text(self, selector="#content"):
        """What an element says."""
        return self.page.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def choose(self, field, value):
        """Chooses in a field as a reader does."""
        self.page.run(f"""(() => {{
            const field = document.getElementById("field-{field}");
            field.value = {json.dumps(value)};
            field.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()""")
        return self.shown(**{field: value})

    def press(self, selector):
        """Presses a link or button by the keyboard."""
        self.page.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.page.press("Enter", 13, "\r")

    def asked(self, resource):
        """What the page asked the API's resource for last: {parameter: value}."""
        prefix = f"{self.origin}api/v1/{resource}?"
        (*_, last) = [one for one in self.page.requests if one.startswith(prefix)]
        return dict(urllib.parse.parse_qsl(last[len(prefix):], keep_blank_values=True))

    def wide(self):
        """How wide it is: a phone's window grows with what does not fit, so that this is held against its screen."""
        return self.page.run("Math.max(innerWidth, document.documentElement.scrollWidth)")

    def shot(self, name):
        """Leaves a picture for a person to look at."""
        self.page.screenshot(os.path.join(SHOTS, f"{name}.png"))


@contextlib.contextmanager
def looking(browser, api, allowed=(), **window):
    """A View; at its end nothing must have gone wrong in the browser but what is allowed, and no other host asked."""
    view = View(browser.page(**window), api)
    yield view
    view.page.run("1")
    view.page.close()
    errors = [error for error in view.page.errors if not any(words in error for words in allowed)]
    assert not errors, (errors, api.program.said()[-500:])
    # Pictures that the browser itself draws controls with are data.
    others = [one for one in view.page.requests if not one.startswith((view.origin, "data:", "about:", "blob:"))]
    assert not others, others


def filled(place, rows, **archiver):
    """An API on SQLite that has the rows."""
    api = OnSqlite(place, {"zones": ZONES}, archiver)
    for table, some in rows.tables().items():
        api.insert(table, some)
    return api


class Explained:
    """A `weir run` that has blocked ann, of an hour ago, with its API: what View and looking() need."""

    TOKEN = "a-secret-of-16-letters"

    def __init__(self, place, **archiver):
        self.port = free_port()
        begin = int(time.time() * 1000) - 3600_000
        self.run = Run(place, archiver={"enabled": True, "api": f"127.0.0.1:{self.port}", "interval": "100ms", **archiver},
                       zones=[zone("login", [sliding(4, "1h")], id=1, history={"fields": ["method", "path", "agent"]})]).start()
        agents = ("curl/8.5", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
                  "<img src=x onerror=alert(1)>", "\u202egnihton\x1b[2J", "curl/8.5")
        self.run.append("".join(line(begin + 1000 * i, "ann", method="POST", path=f"/login?next={i}", agent=agent)
                                for i, agent in enumerate(agents)))
        self.decision = self.run.published(key=["ann"])
        self.program = self.run.weir
        asked = {"Authorization": f"Bearer {self.TOKEN}"}
        until(lambda: json.loads(metrics.get(self.port, "/api/v1/decisions", asked)[2])["decisions"], "it is archived")

    @contextlib.contextmanager
    def told(self, browser, allowed=(), **window):
        """A View of ann's story with the dialog that says why."""
        with looking(browser, self, allowed=[*allowed, "favicon.ico"], **window) as view:
            view.page.open(f"{view.origin}page/icon.svg")
            view.page.run(f"sessionStorage.setItem('weir-token', {json.dumps(self.TOKEN)})")
            view.open("user", zone="login", key="ann", span="24h")
            view.press(".why-button")
            view.page.until("document.querySelector('.why-results')?.hasAttribute('aria-busy') === false")
            yield view


def shared(rows, test):
    """Calls test(browser, api) with an API that has the rows: what a script's tests share."""
    with Place(None) as place:
        try:
            browser = Chromium(place)
        except Skipped as why:
            print(f"skipped: {why}\n0 passed, 0 failed")
            return SKIPPED
        with browser:
            test(browser, filled(place, rows))
    return 0
