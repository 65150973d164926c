"""Makes docs/pictures/terminal.gif: real commands in a real terminal, drawn by a real browser (`make pictures`)."""

import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.text import Text

_INTO = Path(__file__).parent.parent / "docs" / "pictures" / "terminal.gif"
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
_COLUMNS, _ROWS = 88, 18
_PROMPT = "\x1b[32m~/calendar $\x1b[0m "
_FILES = {
    "src/dates.py": "from datetime import date\n\n\ndef parse(text):\n    return date.fromisoformat(text)\n",
    "src/weeks.py": "def week_of(day):\n    return day.isocalendar().week\n",
    "notes.md": "# Calendar\n",
}
_SCENES = (
    "# An agent cleans up with its shell, and takes too much.",
    "surehold run -- sh -c 'rm -rf src; echo done >> notes.md'",
    "ls",
    "surehold log",
    "surehold undo",
    "ls src; cat notes.md",
)
_STYLE = f"""
body {{ margin: 0; background: #16181d; }}
pre {{ margin: 0; padding: 18px 22px; box-sizing: border-box; color: #d9dce3; background: #16181d;
  width: calc({_COLUMNS}ch + 44px); height: calc({_ROWS} * 1.35em + 36px); overflow: hidden;
  font: 15px/1.35 "DejaVu Sans Mono", monospace; }}
"""
_TYPED_MILLISECONDS, _SHOWN_MILLISECONDS, _LAST_MILLISECONDS = 90, 1800, 4000


def main() -> int:
    if _BROWSER is None:
        print("Chromium is not installed.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        root = Path(directory) / "calendar"
        for name, text in _FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        browser = playwright.chromium.launch(executable_path=_BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 860, "height": 560})
        frames = [(_draw(page, text), duration) for text, duration in _play(root, Path(directory) / "state")]
    pictures = [picture for picture, _ in frames]
    durations = [duration for _, duration in frames]
    pictures[0].save(_INTO, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)
    print(f"{_INTO.name}: {len(frames)} pictures, {_INTO.stat().st_size:,} bytes")
    return 0


def _play(root: Path, state: Path) -> Iterator[tuple[str, int]]:
    """Yield what the terminal shows, each time with how long."""
    shown = ""
    for command in _SCENES:
        for end in range(3, len(command), 3):
            yield f"{shown}{_PROMPT}{command[:end]}█", _TYPED_MILLISECONDS
        shown += f"{_PROMPT}{command}\n"
        yield shown, _SHOWN_MILLISECONDS // 4
        shown += _run(command, root, state)
        yield f"{shown}{_PROMPT}█", _SHOWN_MILLISECONDS
    yield f"{shown}{_PROMPT}█", _LAST_MILLISECONDS


def _run(command: str, root: Path, state: Path) -> str:
    """Run a command in a terminal of its own; return what it shows."""
    if command.startswith("#"):
        return ""
    surehold = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{surehold}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(_COLUMNS),
        "TERM": "xterm-256color",
        "XDG_STATE_HOME": str(state),
    }
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", command], cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
        process.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # its last program ended
        return b""


def _draw(page: Page, text: str) -> Image.Image:
    lines = text.split("\n")
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.from_ansi("\n".join(lines[-_ROWS:])), end="")
    html = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    page.set_content(f"<style>{_STYLE}</style>{html}")
    taken = Image.open(io.BytesIO(page.locator("pre").first.screenshot()))
    return taken.convert("RGB").quantize(32)


if __name__ == "__main__":
    sys.exit(main())
