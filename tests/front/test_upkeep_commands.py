"""verify, recover, gc and version."""

import argparse
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold import __version__
from surehold.app import default_state_dir
from surehold.front.cli.upkeep_commands import parse_duration
from surehold.workspace.recovery import SettledIntent
from surehold.workspace.workspace import Workspace


@requirement("front:cli:verify")
def test_an_intact_history_is_said_to_be_intact(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    assert shell("verify").out == "Intact: 1 entry and 2 stored versions.\n"
    assert shell.json("verify") == {
        "ok": True,
        "entries": 1,
        "blobs": 2,
        "broken_seq": 0,
        "broken_blobs": [],
        "problem": "",
    }


def test_no_history_is_intact_too(shell: Shell) -> None:
    assert shell("verify").code == 0
    assert shell.json("verify")["ok"] is True
    assert shell("recover").out == "There was nothing to recover.\n"
    assert shell("gc", "--keep", "30d").code == 0
    assert not shell.state_home.exists()


@requirement("front:cli:verify")
def test_an_altered_entry_is_found(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    shell.edit("a.txt", "two", "three")
    with sqlite3.connect(default_state_dir(str(shell.root)) / "state.db") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE entries SET body = replace(body, 'ada', 'eve') WHERE seq = 2")
    connection.close()

    said = shell("verify")

    assert said.code == 1
    assert said.out.startswith("Broken: the history is not intact from entry 2 on.\n")
    assert "Next: keep a copy of " in said.out
    assert shell.json("verify", code=1)["broken_seq"] == 2


DYING = """
import os, sys
from surehold import open_workspace

workspace = open_workspace(sys.argv[1])
if sys.argv[2] == "before":
    workspace.disk.apply = lambda *_, **__: os._exit(9)
else:
    workspace.store.finish = lambda *_, **__: os._exit(9)
workspace.session(agent="robot").edit("a.txt", ("one", "two"))
"""


def die(shell: Shell, moment: str) -> Path:
    """Let a process die before or after it changed the file, with its change still open."""
    path = shell.write("a.txt", "one\n")
    command = [sys.executable, "-c", DYING, str(shell.root), moment]
    assert subprocess.run(command, env=shell.environment(), check=False).returncode == 9
    return path


@requirement("front:cli:recover")
@pytest.mark.parametrize(
    ("moment", "word", "text"), [("before", "Rolled back", "one\n"), ("after", "Finished", "two\n")]
)
def test_recover_closes_what_a_dead_process_left_open(shell: Shell, moment: str, word: str, text: str) -> None:
    path = die(shell, moment)

    said = shell("recover")

    assert (said.code, said.out[:-1]) == (0, f"{word} {shell.json('log')['entries'][0]['change_id'][-8:]}: a.txt")
    assert path.read_text() == text
    assert shell("recover").out == "There was nothing to recover.\n"


def test_recover_leaves_a_file_alone_that_is_neither_version(shell: Shell) -> None:
    path = die(shell, "before")
    path.write_text("somebody else\n")

    said = shell("recover")

    assert said.code == 1
    assert said.out.startswith("Conflict ")
    assert path.read_text() == "somebody else\n"


SETTLED = (
    SettledIntent(change_id="01aaaaaaaaaaaaaaaaaaaaaaaa", direction="forward", paths=("a.txt",)),
    SettledIntent(change_id="01bbbbbbbbbbbbbbbbbbbbbbbb", direction="backward", paths=("b.txt", "c.txt")),
    SettledIntent(change_id="01cccccccccccccccccccccccc", direction="gone", paths=("d.txt",)),
)
CONFLICT = SettledIntent(
    change_id="01dddddddddddddddddddddddd", direction="conflict", paths=("e",), conflicts=("e\x1b",)
)
FAILED = SettledIntent(change_id="01eeeeeeeeeeeeeeeeeeeeeeee", direction="failed", paths=("f",), problem="Locked.")


def recovering(shell: Shell, monkeypatch: pytest.MonkeyPatch, *settled: SettledIntent) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    def recover(_: Workspace) -> tuple[SettledIntent, ...]:
        return settled

    monkeypatch.setattr(Workspace, "recover", recover)


def test_recover_says_how_every_open_change_was_closed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    recovering(shell, monkeypatch, *SETTLED)

    assert shell("recover").out == (
        "Finished aaaaaaaa: a.txt\nRolled back bbbbbbbb: b.txt, c.txt\nAlready settled by another process: cccccccc\n"
    )
    assert shell("recover").code == 0
    assert shell.json("recover")["settled"][0] == {
        "change_id": SETTLED[0].change_id,
        "direction": "forward",
        "paths": ["a.txt"],
        "conflicts": [],
        "problem": "",
    }


@pytest.mark.parametrize(
    ("settled", "words"), [(CONFLICT, r"Conflict dddddddd: left unchanged: e\x1b"), (FAILED, "Still open eeeeeeee: f")]
)
def test_recover_with_trouble_ends_in_1(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, settled: SettledIntent, words: str
) -> None:
    recovering(shell, monkeypatch, settled)

    said = shell("recover")

    assert said.code == 1
    assert words in said.out


def test_gc_drops_only_what_is_old_enough(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")

    assert shell("gc", "--keep", "30d").out == "No stored version is that old.\n"
    document = shell.json("gc", "--keep", "12h", "--dry-run")
    assert (document["blobs"], document["dry_run"]) == (0, True)


def test_durations_are_hours_days_and_weeks() -> None:
    assert [parse_duration(text) for text in ("12h", "30d", "8W")] == [
        timedelta(hours=12),
        timedelta(days=30),
        timedelta(weeks=8),
    ]


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "0d", "1.5d", "30 days", "5m", "999999w", "٣d", "nan"])
def test_nonsense_is_not_a_duration(shell: Shell, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_duration(text)

    said = shell("gc", f"--keep={text}")
    assert said.code == 2
    assert "is not a time like 12h, 30d or 8w" in said.err


def test_gc_requires_how_much_to_keep(shell: Shell) -> None:
    assert shell("gc").code == 2


@requirement("front:cli:version")
@pytest.mark.parametrize("word", ["version", "--version"])
def test_version_names_everything_it_runs_on(shell: Shell, word: str) -> None:
    said = shell(word)

    assert said.out.startswith(f"surehold {__version__} (Python 3.")
    assert set(shell.json(word)) == {"surehold", "python", "sqlite", "system"}
