"""Makes the pictures of the review page in docs/pictures: a real server, a real question, a real browser (`make pictures`)."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from surehold import Settings, open_workspace

_INTO = Path(__file__).parent.parent / "docs" / "pictures"
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
_NAME = "src/dates.py"
_FIRST = '''import re
from datetime import date


def parse(text):
    """Read a date."""
    return date.fromisoformat(text)


def week_of(day):
    # Weeks begin on Monday.
    return day.isocalendar().week


def format_day(day):
    return day.isoformat()


def is_weekend(day):
    return day.weekday() > 5
'''
_LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1100, "height": 900}},
    "dark": {"viewport": {"width": 1100, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 900}},
}


def main() -> int:
    if _BROWSER is None:
        print("Chromium is not installed.", file=sys.stderr)
        return 1
    _INTO.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        root, state = Path(directory) / "calendar", Path(directory) / "state"
        root.mkdir()
        _do_some_work(root, state)
        browser = playwright.chromium.launch(executable_path=_BROWSER, args=["--no-sandbox"])
        command = ["-m", "surehold", "mcp", str(root), "--state-dir", str(state), "--review", "--mode", "default"]
        with subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as server:
            _ask(server, root)
            _take_pictures(browser, _read_link(server))
            server.terminate()
    return 0


def _do_some_work(root: Path, state: Path) -> None:
    with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
        session = workspace.session(agent="claude-code")
        with session.turn("Read dates with blanks around them"):
            session.create(_NAME, _FIRST)
            session.edit(_NAME, ("fromisoformat(text)", "fromisoformat(text.strip())"), reason="users paste blanks")
        with session.turn("Saturday is a weekend too"):
            session.edit(_NAME, ("> 5", ">= 5"), reason="Saturday is day 5")


def _ask(server: "subprocess.Popen[bytes]", root: Path) -> None:
    """Be an agent that wants to change something, and waits."""
    edits = [
        {"oldText": "import re\n", "newText": "import re\nimport time\n"},
        {"oldText": "return day.isoformat()", "newText": 'return day.strftime("%d %b %Y")'},
    ]
    sha256 = hashlib.sha256((root / _NAME).read_bytes()).hexdigest()
    arguments = {"path": _NAME, "edits": edits, "expectedSha256": sha256, "reason": "days as people write them"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "1"}}
    messages = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "edit_file", "arguments": arguments}},
    )
    assert server.stdin
    for one in messages:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n")
    server.stdin.flush()


def _read_link(server: "subprocess.Popen[bytes]") -> str:
    assert server.stderr
    for line in server.stderr:
        if found := re.search(r"http://\S+", os.fsdecode(line)):
            return found[0]
    raise SystemExit("The server printed no link.")


def _take_pictures(browser: Browser, link: str) -> None:
    for name, look in _LOOKS.items():
        with browser.new_context(**look) as person:
            page = person.new_page()
            page.goto(link)
            page.locator("article.question .diff").wait_for()
            page.locator("article.question button.yes:enabled").wait_for()
            page.screenshot(path=_INTO / f"question-{name}.png")
            if name != "phone":
                page.locator("#conversation-rows a").first.click()
                page.locator("article.file .diff").wait_for()
                page.screenshot(path=_INTO / f"conversation-{name}.png", full_page=True)


if __name__ == "__main__":
    sys.exit(main())
