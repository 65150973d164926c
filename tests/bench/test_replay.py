"""The replay harness on changes that are made here: it must tell exact from refused from wrong."""

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from waiting import HANG_SECONDS

BENCH = Path(__file__).parents[2] / "bench"
NOTATIONS = ("anchored", "edit_file", "multi_edit", "unified", "envelope")
_LATIN = "# coding: latin-1\n# caf\u00e9\none = 1\n"
CARELESS = """
import sys
import replay.fresh as fresh
from replay.__main__ import main

real = fresh.Bench.edit

def careless(bench, arguments):
    answer = real(bench, arguments)
    file = bench.file(arguments["path"])
    file.write_bytes(file.read_bytes().replace(b"value 7 ", b"value 8 "))
    return answer

fresh.Bench.edit = careless
sys.exit(main())
"""


def _source(*, edited: bool, newline: str = "\n") -> bytes:
    """A file with repeated lines, whose every fifth function changes."""
    rows = list[str]()
    for number in range(60):
        step = number + 1000 * (edited and number % 5 == 0)
        rows += [f"def work_{number}():", "    if ready:", f"        return {step}  # value {number} ", "", ""]
    return newline.join(rows).encode()


def _versions() -> dict[str, tuple[bytes, bytes]]:
    """Return files before and after, one for each thing that edits tend to damage."""
    return {
        "plain.py": (_source(edited=False), _source(edited=True)),
        "windows.py": (_source(edited=False, newline="\r\n"), _source(edited=True, newline="\r\n")),
        "marked.txt": (b"\xef\xbb\xbffirst\nsecond\nthird\n", b"\xef\xbb\xbfFirst\nsecond\n3rd\n"),
        "open.txt": (b"one\ntwo\nthree", b"one\n2\nthree"),
        "closed.txt": (b"one\ntwo\nthree", b"one\ntwo\nthree\n"),
        "shorter.txt": (b"same\nsame\nsame\nsame\nlast\n", b"same\nsame\nlast\n"),
        "grown.txt": (b"", b"now\nthere\nis text\n"),
        "blank.txt": (b"a\n\n\nb\n", b"a\n\n\n\nb\n"),
        "old-mac.txt": (b"one\rtwo\rthree\r", b"one\r2\rthree\r"),
        "latin.py": (_LATIN.encode("latin-1"), _LATIN.replace("one", "\u00e9t\u00e9").encode("latin-1")),
    }


def _repository(folder: Path, versions: Mapping[str, tuple[bytes, bytes]]) -> Path:
    """Make a git repository whose newest commit changes every file."""
    subprocess.run(("git", "init", "--quiet", folder), check=True)
    for index in (0, 1):
        for name, pair in versions.items():
            (folder / name).write_bytes(pair[index])
        who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "core.autocrlf=false")
        subprocess.run(("git", "-C", folder, *who, "add", "--all"), check=True)
        subprocess.run(("git", "-C", folder, *who, "commit", "--quiet", "--message", f"{index}"), check=True)
    return folder


def _replayed(tmp_path: Path, *options: str, script: str = "") -> tuple[int, dict[str, Any], str]:
    """Run the harness as a process; return its exit code, the sum of all figures and what it printed."""
    figures = tmp_path / "figures.json"
    start = ["-c", script] if script else ["-m", "replay"]
    done = subprocess.run(
        [sys.executable, *start, *options, "--json", figures, "--cache", tmp_path / "cache"],
        env={**os.environ, "PYTHONPATH": str(BENCH), "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert figures.exists(), done.stderr
    return done.returncode, json.loads(figures.read_text())[-1], done.stdout


@pytest.fixture(name="repository")
def _a_repository(tmp_path: Path) -> Path:
    return _repository(tmp_path / "repository", _versions())


def test_every_change_is_made_to_the_byte_in_every_notation(tmp_path: Path, repository: Path) -> None:
    code, total, printed = _replayed(tmp_path, "--git", str(repository))
    assert (total["files"], total["unaddressed"], total["incidents"]) == (len(_versions()), 0, [])
    left_out = {"anchored": 0, "edit_file": 1, "multi_edit": 1, "unified": 1, "envelope": 2}
    assert total["verdicts"] == {
        name: {"exact": len(_versions()) - left_out[name]} | ({"left out": left_out[name]} if left_out[name] else {})
        for name in NOTATIONS
    }
    assert "100.00 %" in printed
    assert code == 0


def test_batches_for_a_file_that_moved_on_are_counted_in_both_modes(tmp_path: Path, repository: Path) -> None:
    code, total, _ = _replayed(tmp_path, "--git", str(repository), "--stale", "--deals", "2")
    assert total["files"] == 0
    assert total["not_begun"] == 0
    for mode in ("single", "chained"):
        assert total["stale"][mode].keys() == {"applied"}
        assert total["stale"][mode]["applied"] >= 2
    assert code == 0


def test_a_tool_that_damages_a_file_is_found_out(tmp_path: Path, repository: Path) -> None:
    code, total, printed = _replayed(tmp_path, "--git", str(repository), script=CARELESS)
    assert total["verdicts"]["anchored"]["wrong"] == 2
    assert total["verdicts"]["edit_file"].keys() == {"exact", "left out"}
    assert {incident["path"][13:] for incident in total["incidents"] if incident["where"] == "anchored"} == {
        "plain.py",
        "windows.py",
    }
    assert "above" in printed
    assert code == 1


def test_what_no_operation_can_say_is_neither_exact_nor_wrong(tmp_path: Path) -> None:
    versions = {"opened.txt": (b"one\ntwo\n", b"one\ntwo"), "unix.txt": (b"one\r\ntwo\r\n", b"one\ntwo\n")}
    repository = _repository(tmp_path / "repository", versions)
    code, total, _ = _replayed(tmp_path, "--git", str(repository))
    assert total["verdicts"]["anchored"] == {"unsayable": 2}
    assert total["verdicts"]["unified"] == {"exact": 2}
    assert code == 1


@pytest.mark.parametrize("index", ["pypi", "sdist", "npm"])
def test_two_releases_are_compared_file_by_file(tmp_path: Path, index: str) -> None:
    for version, edited in (("1.0", False), ("1.1", True)):
        files = {"demo/work.py": _source(edited=edited), "demo/same.py": b"same = 1\n", f"demo/only-{version}.py": b""}
        _archive(tmp_path / "cache" / f"{index}-demo-{version}", index, version, files)
    code, total, printed = _replayed(tmp_path, "--packages", f"{index}:demo==1.0..1.1")
    assert (total["files"], total["hunks"], total["kinds"]) == (1, 12, {".py": 1})
    assert total["incidents"] == []
    assert "demo 1.0..1.1" in printed
    assert code == 0


def _archive(folder: Path, index: str, version: str, files: Mapping[str, bytes]) -> None:
    """Put a release where one that was fetched would be."""
    folder.mkdir(parents=True)
    if index == "pypi":
        with zipfile.ZipFile(folder / f"demo-{version}-py3-none-any.whl", "w") as packed:
            for name, data in files.items():
                packed.writestr(name, data)
        return
    top = f"demo-{version}" if index == "sdist" else "package"
    with tarfile.open(folder / f"demo-{version}.tar.gz", "w:gz") as packed:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
