"""Files by a pattern, newest first, on every disk."""

import os
from pathlib import Path

import pytest

from search.scenes import Scene, make_scene
from spec.marks import requirement
from surehold.errors import OutsideWorkspace, SearchTimeout
from surehold.search.engine import Deadline
from surehold.search.query import NewestResult
from surehold.workspace.finder import Finder


def keys(found: NewestResult) -> list[str]:
    return [file.key for file in found.files]


@requirement("claude:glob:order")
def test_newest_first_and_ties_by_path(local: Scene) -> None:
    for at, name in enumerate(("b", "d/a", "c", "a")):
        local.put(name)
        os.utime(local.root / name, ns=(0, 10**9 * (at // 2)))

    assert keys(local.finder.glob_newest("**/*")) == ["a", "c", "b", "d/a"]
    assert keys(local.finder.glob_newest("**/*", limit=1)) == ["a"]
    assert local.finder.glob_newest("**/*", limit=1).total == 4


@requirement("claude:glob:syntax")
def test_every_disk_gives_the_same_files(shelf: Scene) -> None:
    shelf.put("a.py", "b/c.py", "b/d.txt", ".e.py")

    assert sorted(keys(shelf.finder.glob_newest("**/*.py"))) == [".e.py", "a.py", "b/c.py"]
    assert sorted(keys(shelf.finder.glob_newest("**/*.py", hidden=False))) == ["a.py", "b/c.py"]
    assert sorted(keys(shelf.finder.glob_newest("{a,b/c}.p?"))) == ["a.py", "b/c.py"]
    assert sorted(keys(shelf.finder.glob_newest("**/[ab].py"))) == ["a.py"]


@requirement("claude:search:not_looked_at")
def test_nothing_found_says_what_else_there_is(local: Scene) -> None:
    local.put(".gitignore", data=b"*.log\n")
    local.put("a.log", "sub/b.txt")

    logs, texts, both = (local.finder.glob_newest(pattern) for pattern in ("*.log", "*.txt", "sub/*.md"))

    assert (logs.elsewhere, logs.below) == (1, 0)
    assert (texts.elsewhere, texts.below) == (0, 1)
    assert (both.elsewhere, both.below, both.notes) == (0, None, ())


def test_an_absolute_pattern_stays_inside_the_roots(local: Scene) -> None:
    local.put("a/b.py", "a/c[1].py")

    assert keys(local.finder.glob_newest(f"{local.root}/a/*.py")) in (["a/b.py", "a/c[1].py"], ["a/c[1].py", "a/b.py"])
    assert keys(local.finder.glob_newest(f"{local.root}/a/b.py")) == ["a/b.py"]
    with pytest.raises(OutsideWorkspace):
        local.finder.glob_newest("/etc/pass*")


def test_a_denied_file_is_not_found(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, deny=["secret*"])
    scene.put("secret.py", "a.py")

    found = scene.finder.glob_newest("*.py")

    assert (keys(found), found.skipped.denied) == (["a.py"], 1)


@requirement("claude:glob:cap")
def test_when_time_is_up_there_is_a_part_or_an_error(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a/x.py", "b/x.py")
    seen = list[int]()

    def late(*_: object) -> None:
        seen.append(1)
        if len(seen) > allowed:
            raise SearchTimeout("Time is up.")

    monkeypatch.setattr(Deadline, "check", late)
    allowed = 2

    found = Finder(local.bench.workspace.reader).glob_newest("**/*.py")
    assert (keys(found), found.complete) == (["a/x.py"], False)
    assert found.notes == ("Time was up after 20 s: this is what was found until then, not all there is.",)

    seen.clear()
    allowed = 0
    with pytest.raises(SearchTimeout):
        Finder(local.bench.workspace.reader).glob_newest("**/*.py")
