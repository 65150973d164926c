"""A workspace in which the tests run commands."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surehold import Settings


class RunDesk:
    """A workspace, and `surehold run` in it."""

    def __init__(self, base: Path) -> None:
        self.root, self.state, self.report = base / "root", base / "state", base / "report.json"
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\n")
        (self.root / "sub").mkdir()
        (self.root / "sub/b.txt").write_text("two\n")

    def words(self, *options: str) -> list[str]:
        where = ["--root", str(self.root), "--state-dir", str(self.state), "--report", str(self.report)]
        return [sys.executable, "-m", "surehold", "run", *where, *options, "--"]

    def run(self, script: str, *options: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [*self.words(*options), "bash", "-c", script]
        return subprocess.run(command, cwd=self.root, input=stdin, capture_output=True, check=False)

    def read_report(self) -> dict[str, Any]:
        return json.loads(self.report.read_text())

    def settings(self) -> Settings:
        return Settings(state_dir=self.state)

    def start(self, script: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a command that waits for the gates of the test."""
        command = [*self.words(*options), "bash", "-c", script]
        return subprocess.Popen(command, cwd=self.root, stdin=subprocess.DEVNULL)

    def make_gates(self, *names: str) -> Sequence[Path]:
        """Make FIFOs, at which a command and a test wait for each other."""
        gates = [self.root.parent / name for name in names]
        for gate in gates:
            os.mkfifo(gate)
        return gates
