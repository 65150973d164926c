"""The review page in Chromium: first paint, against that of a workspace without changes, and how late it shows news.

It needs Chromium, so it runs only when it is named: `python bench/run.py review_page`.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright
from sample import scratch
from table import Row

from surehold import Settings, open_workspace

_CHANGES = 2000
_FILES = 40
_DIFF_LINES = 50_000
_REPEAT = 9
_GOAL = 2.0
_NEWS = 20
_MAX_DELAY_SECONDS = 1.0
_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"

_WATCH = """() => {
  window.shown = {};
  window.shift = 0;
  const rows = document.getElementById("change-rows");
  const look = () => {
    for (const [name] of rows.textContent.matchAll(/news-\\d+\\.txt/g)) window.shown[name] ??= Date.now();
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  new PerformanceObserver((list) => { for (const one of list.getEntries()) window.shift += one.value; })
    .observe({ type: "layout-shift" });
}"""
"""Notes when each file is first named in the list of changes, and how much of the view has moved by itself."""


def rows() -> list[Row]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        return []
    with scratch() as folder, sync_playwright() as playwright:
        change, session = _fill(folder / "full")
        (folder / "empty/root").mkdir(parents=True)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with _serve(folder / "empty") as empty, _serve(folder / "full") as full:
            one, other = (_sign_in(browser.new_context().new_page(), link) for link in (empty, full))
            pages = {
                f"page: first paint of {_CHANGES:,} changes": "/",
                f"page: first paint of a conversation of {_CHANGES:,} changes": f"/review/session/{session}",
                f"page: first paint of a diff of {_DIFF_LINES:,} lines": f"/review/change/{change}",
            }
            found = [_compare(name, (one, empty), (other, full), path) for name, path in pages.items()]
            found += _watch_news(other, full, folder / "full")
        browser.close()
    return found


def _compare(name: str, empty: tuple[Page, str], full: tuple[Page, str], path: str) -> Row:
    times: list[list[float]] = [[], []]
    for _ in range(_REPEAT + 1):
        for side, (page, link) in enumerate((empty, full)):
            page.goto(_origin(link) + (path if side else "/"), wait_until="load")
            page.wait_for_function(_PAINT)
            times[side].append(page.evaluate(_PAINT))
    base, measured = (median(one[1:]) for one in times)
    nodes = full[0].evaluate("() => document.querySelectorAll('*').length")
    note = f"of an empty page: {base:.0f} → {measured:.0f} ms, {nodes:,} nodes, median of {_REPEAT}"
    return Row(name=name, measured=measured / base, goal=_GOAL, note=note)


def _watch_news(page: Page, link: str, place: Path) -> list[Row]:
    """Read at the end of the list of changes, while another process makes new ones."""
    page.goto(_origin(link), wait_until="load")
    page.wait_for_selector("#change-rows a")
    read = page.locator("#change-rows a").last
    read.focus()
    read.scroll_into_view_if_needed()
    page.evaluate(_WATCH)
    delays = list[float]()
    settings = Settings(state_dir=place / "state", durability="none")
    with open_workspace(place / "root", settings=settings) as workspace:
        session = workspace.session(agent="news")
        for number in range(_NEWS):
            name = f"news-{number}.txt"
            session.create(name, "x\n")
            made = time.time()
            page.wait_for_function("name => window.shown[name]", arg=name)
            delays.append(page.evaluate("name => window.shown[name]", name) / 1e3 - made)
    shift = page.evaluate("() => new Promise(done => setTimeout(() => done(window.shift), 500))")
    note = f"median {median(delays):.2f} s of {_NEWS}, from when the change is made until the list of changes shows it"
    return [
        Row(name="page: latest news", measured=max(delays), unit="s", goal=_MAX_DELAY_SECONDS, note=note),
        Row(name="page: layout shift while reading", measured=shift, unit="", goal=0, note=f"during {_NEWS} news"),
    ]


def _fill(place: Path) -> tuple[str, str]:
    """Make a conversation of many changes, and one long change; return the id of the long one, and of the session."""
    (place / "root").mkdir(parents=True)
    settings = Settings(state_dir=place / "state", durability="none")
    with open_workspace(place / "root", settings=settings) as workspace:
        session = workspace.session(agent="bench")
        for file in range(_FILES):
            session.create(f"{file}.txt", "".join(f"line {number}\n" for number in range(_CHANGES // _FILES)))
        for number in range(_CHANGES - _FILES):
            line = number // _FILES
            session.edit(f"{number % _FILES}.txt", (f"line {line}\n", f"row {number} of {line}\n"), reason="a reason")
        other = workspace.session(agent="long")
        made = other.create("long.txt", "".join(f"value {number} = {number * 7}\n" for number in range(_DIFF_LINES)))
        return made.change_id, session.id


@contextmanager
def _serve(place: Path) -> Iterator[str]:
    words = ["serve", str(place / "root"), "--state-dir", str(place / "state"), "--port", "0"]
    command = [sys.executable, "-m", "surehold", *words]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline() + process.stderr.readline()
        port, token = re.search(r":(\d+)/mcp", said), re.search(r"Bearer ([\w-]+)", said)
        assert port, said
        assert token, said
        try:
            yield f"http://127.0.0.1:{port[1]}/#{token[1]}"
        finally:
            process.terminate()


def _sign_in(page: Page, link: str) -> Page:
    page.goto(link)
    page.wait_for_selector("#questions")
    return page


def _origin(link: str) -> str:
    return link.partition("/#")[0]
