"""A person at a shell: runs commands in a scratch workspace, inside this process or as a real one."""

import io
import json
import os
import pty
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from surehold.front.cli.main import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Runs `surehold` with `root` as the current directory."""

    root: Path
    state_home: Path
    capsys: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *argv: str, stdin: bytes = b"") -> Said:
        """Run a command inside this process."""
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        self.capsys.readouterr()
        code = run(argv)
        said = self.capsys.readouterr()
        return Said(code=code, out=said.out, err=said.err)

    def json(self, *argv: str, stdin: bytes = b"", code: int = 0) -> Any:
        """Run a command with `--json` and return its document."""
        said = self(*argv, "--json", stdin=stdin)
        assert (said.code, said.err) == (code, ""), said
        return said.document

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a real process."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "XDG_STATE_HOME": str(self.state_home),
            "USER": "ada",
            "LANG": "C.UTF-8",
            "PAGER": "cat",
            **more,
        }

    def process(self, *argv: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command as a real process."""
        return subprocess.run(
            [sys.executable, "-m", "surehold", *argv],
            cwd=self.root,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            check=False,
        )

    def terminal(self, *argv: str, typed: str = "", **environment: str) -> tuple[int, str]:
        """Run a command on a terminal of its own; return its exit code and everything it showed."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "surehold", *argv],
            cwd=self.root,
            env=self.environment(**{"TERM": "xterm-256color", "COLUMNS": "80", **environment}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = _everything(ours)
        os.close(ours)
        return process.wait(), shown.decode().replace("\r\n", "\n")

    def write(self, name: str, text: str) -> Path:
        """Put a file there without Surehold."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def edit(self, name: str, old: str, new: str) -> str:
        """Edit a file; return the id of the change."""
        return self.json("edit", name, "--old", old, "--new", new)["change_id"]


def _everything(fd: int) -> bytes:
    shown = b""
    while select.select([fd], [], [])[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the other side is gone
            break
        if not part:
            break
        shown += part
    return shown
