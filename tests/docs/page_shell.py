"""A project in which the commands of a page are run, line by line, as a person would type them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from surehold import Settings, open_workspace
from surehold.front.cli.main import build_parser

SUREHOLD = str(Path(sys.executable).with_name("surehold"))
NOT_RUN = re.compile(
    r"(?:uv|pipx?|claude|make) |surehold (?:serve|mcp|acp|review)\b|surehold log --follow|surehold \w+ /path/to/"
)
"""Lines that install something, need a program of others, or do not end; of ours it is checked that they are understood."""
_ASSIGNMENT = re.compile(r"(\w+)=(\$\(.*\))")


class PageShell:
    """A git repository where two agents have worked, and a home of its own."""

    def __init__(self, place: Path) -> None:
        self.work, home = place / "work", place / "home"
        (self.work / "src").mkdir(parents=True)
        (home / ".config").mkdir(parents=True)
        (self.work / "src/app.py").write_text("def total(items):\n    return sum(items)\n")
        (self.work / "notes.txt").write_text("notes\n")
        (self.work / "Makefile").write_text("format:\n\techo formatted >> notes.txt\n")
        self.environment = {
            "PATH": f"{Path(SUREHOLD).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{name: os.environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE") if name in os.environ},
            **{f"GIT_{who}_{what}": "test@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        self.run("git init -q . && git add -A && git commit -qm Begin")
        self._let_agents_work(home)

    def _let_agents_work(self, home: Path) -> None:
        from surehold.app import default_state_dir

        name = default_state_dir(str(self.work)).name
        settings = Settings(state_dir=home / ".local/state/surehold" / name, durability="none")
        with open_workspace(self.work, settings=settings) as workspace:
            codex, claude = workspace.session(agent="codex"), workspace.session(agent="claude-code")
            with codex.turn("Say hello in the notes"):
                seen = codex.read_file("notes.txt")
                codex.edit_file("notes.txt", [("notes", "hello")], expected_sha256=seen.sha256)
            with claude.turn("Round the total"):
                seen = claude.read_file("src/app.py")
                edits = [("sum(items)", "round(sum(items), 2)")]
                claude.edit_file("src/app.py", edits, expected_sha256=seen.sha256, reason="prices")
            with claude.turn("Add a test"):
                claude.create_file("tests/test_app.py", "def test_total():\n    assert True\n")

    def run_block(self, text: str) -> str:
        """Run the lines of a block, one after the other, and return what they print."""
        return "".join(self.type(line) for line in text.splitlines() if line.strip())

    def type(self, line: str) -> str:
        """Run one line; those that cannot be run here are parsed, if they are ours."""
        words = shlex.split(line, comments=True)
        if NOT_RUN.match(line):
            if words[0] == "surehold":
                build_parser().parse_args(words[1:])
            return ""
        if assigned := _ASSIGNMENT.match(line):
            self.environment[assigned[1]] = self.run(f'printf %s "{assigned[2]}"')
            return ""
        return self.run(line, words if self._is_plain(line, words) else None)

    def run(self, line: str, words: list[str] | None = None) -> str:
        """Run a line in a shell; a plain command of ours is started without one, which is quicker."""
        expanded = [re.sub(r"\$(\w+)", lambda name: self.environment[name[1]], word) for word in words or ()]
        command = [sys.executable, "-m", "surehold", *expanded[1:]] if words else ["sh", "-euc", line]
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    @staticmethod
    def _is_plain(line: str, words: list[str]) -> bool:
        return words[:1] == ["surehold"] and not {">", "|", "||", "&&"}.intersection(words)
