"""Sweeping a tree for files, counts and lines: the same with ripgrep and without it."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from disk.suite import as_nobody
from search.scenes import ENGINES, Scene, make_scene
from spec.marks import requirement
from surehold.disk.base import DiskReader, StoredFile, Target
from surehold.errors import Cancelled, InvalidArgument, InvalidPattern, SearchTimeout
from surehold.search import content
from surehold.search.engine import positions_of_lines
from surehold.search.query import MatchedLine, ResultWindow, Search, SearchResult, Skipped, Want
from surehold.search.ripgrep import output_format
from surehold.search.ripgrep.engine import find_binary
from surehold.search.ripgrep.program import CompletedRun
from surehold.text.measure import TextRoom
from surehold.workspace.finder import BUILD_DIRECTORIES, VERSION_CONTROL_DIRECTORIES, Finder

WANTS: tuple[Want, ...] = ("files", "counts", "lines")
SEARCH = Search(query="needle")


def sweep(
    scene: Scene, query: str, want: Want = "files", *, window: ResultWindow | None = None, **more: Any
) -> SearchResult:
    search = replace(Search(query=query, mode="regex", hidden=True), **more)
    return scene.finder.grep(search, replace(window or ResultWindow(), want=want))


def plant(scene: Scene) -> None:
    scene.put("a.py", data=b"foo foo\nbar\nfoo\n")
    scene.put("b/c.txt", data="é foo\r\nxfoo\r\n".encode())
    scene.put("b/binary", data=b"foo\n\0\n")
    scene.put("b/late", data=b"foo\n" * 2100 + b"\0foo\n")
    scene.put("b/wide", data="ü foo\n".encode("utf-16"))
    scene.put("b/marked", data=b"\xef\xbb\xbffoo\n")
    scene.put("b/raw", data=b"\xff foo\n")
    scene.put(".hidden/d", data=b"foo")
    scene.put("node_modules/e", data=b"foo\n")
    scene.put("empty", data=b"")


@requirement("claude:grep:modes")
@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("foo", {}),
        ("foo", {"mode": "text"}),
        ("FOO", {"mode": "text", "case_sensitive": False}),
        ("foo", {"types": ("py",)}),
        ("foo", {"include": ("b/*",), "exclude": ("raw",)}),
        ("foo", {"hidden": False}),
        ("foo", {"closed": (*VERSION_CONTROL_DIRECTORIES, *BUILD_DIRECTORIES)}),
        ("bar\nfoo", {"mode": "text"}),
    ],
)
@pytest.mark.parametrize("want", WANTS)
def test_both_engines_find_the_same(
    local: Scene, monkeypatch: pytest.MonkeyPatch, want: Want, query: str, more: dict[str, Any]
) -> None:
    plant(local)

    monkeypatch.delenv("SUREHOLD_RIPGREP", raising=False)
    first = sweep(local, query, want, **more)
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")
    second = sweep(local, query, want, **more)

    assert (first.engine, second.engine) == ENGINES
    assert first.total_files
    scanned = {"engine": "", "files": (), "files_scanned": None}
    assert replace(first, **scanned) == replace(second, **scanned)
    assert [file.sha256 for file in first.files] == [file.sha256 for file in second.files]


@requirement("claude:grep:options")
def test_lines_come_with_their_context_once_each(scene: Scene) -> None:
    scene.put("a", data=b"1\nx\n3\nx\n5\n6\n7\nx")

    rows = sweep(scene, "x", "lines", window=ResultWindow(before=1, after=1)).rows

    assert [(row.line, row.text, row.is_match) for row in rows] == [
        (1, "1", False),
        (2, "x", True),
        (3, "3", False),
        (4, "x", True),
        (5, "5", False),
        (7, "7", False),
        (8, "x", True),
    ]


def test_a_file_whose_lines_end_in_carriage_returns_is_shown_by_our_lines(scene: Scene) -> None:
    scene.put("a", data=b"one\rneedle\rthree")

    assert sweep(scene, "needle", "lines").rows == (MatchedLine(path="a", line=2, text="needle", is_match=True),)


@requirement("claude:grep:totals")
def test_the_order_is_by_path_and_a_page_is_a_part_of_it(scene: Scene) -> None:
    scene.put("b.txt", "b/a", "a-b/x", "a/x", "c")

    whole = [path for path, _ in sweep(scene, "needle").counts]

    assert whole == ["a/x", "a-b/x", "b/a", "b.txt", "c"]
    page = sweep(scene, "needle", window=ResultWindow(offset=1, limit=2))
    assert ([path for path, _ in page.counts], page.total_files, page.truncated) == (["a-b/x", "b/a"], 5, True)
    last = sweep(scene, "needle", window=ResultWindow(offset=3, limit=2))
    assert ([path for path, _ in last.counts], last.truncated) == (["b.txt", "c"], False)
    short = sweep(scene, "needle", window=ResultWindow(room=TextRoom(size=8)))
    assert ([path for path, _ in short.counts], short.truncated) == (["a/x"], True)


@requirement("claude:search:not_looked_at")
@pytest.mark.parametrize("want", WANTS)
def test_denied_files_are_not_read_not_even_when_they_are_globbed_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, want: Want
) -> None:
    scene = make_scene(tmp_path, deny=[".env", "secret/"])
    scene.put(".env", "a.txt", "secret/b.txt")

    for engine in ("", "off"):
        monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
        found = sweep(scene, "needle", want)
        named = sweep(scene, "needle", want, include=(".env",))
        plain = scene.search("needle", include=(".env",))
        assert ([path for path, _ in found.counts], found.files_scanned) == (["a.txt"], 1)
        assert found.skipped.denied == 2
        assert (named.total_files, named.files_scanned, named.elsewhere) == (0, 0, 0)
        assert (plain.total_matches, plain.files_scanned) == (0, 0)


@requirement("claude:search:not_looked_at")
@pytest.mark.parametrize("engine", ["", "off"])
def test_what_cannot_be_read_is_named_and_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
    for directory in (tmp_path, *tmp_path.parents):
        if directory.name.startswith(("pytest", "test_", "popen", "bt")):
            directory.chmod(0o755)
    scene = make_scene(tmp_path)
    scene.put("a", "c")
    (scene.root / "c").chmod(0o600)

    said = as_nobody(
        lambda: repr(
            [
                (found.counts, found.skipped, found.notes)
                for found in (sweep(scene, "needle", w, mode="text") for w in WANTS)
            ]
        )
    )

    assert said == repr([((("a", 1),), Skipped(unreadable=1), ("Could not be read: c.",))] * 3)


@requirement("claude:search:not_looked_at")
@pytest.mark.parametrize("engine", ["", "off"])
def test_what_cannot_be_read_is_named_from_the_root_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
    for directory in (tmp_path, *tmp_path.parents):
        if directory.name.startswith(("pytest", "test_", "popen", "bt")):
            directory.chmod(0o755)
    scene = make_scene(tmp_path)
    scene.put("d/a", "d/c", "d/closed/e")
    (scene.root / "d/c").chmod(0o600)
    (scene.root / "d/closed").chmod(0o700)

    said = as_nobody(
        lambda: repr((sweep(scene, "needle", mode="text", root="d").notes, scene.search("needle", root="d").notes))
    )

    assert said == repr((("Could not be read: d/c, d/closed.",),) * 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_directory_that_vanishes_while_lines_are_shown_is_no_failure(
    local: Scene, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off" if engine == "python" else "")
    local.put("a/x", "b/y")
    read = type(local.bench.workspace.disk).read

    def and_remove(disk: DiskReader, target: Target, *, limit: int) -> StoredFile | None:
        stored = read(disk, target, limit=limit)  # type: ignore[arg-type]
        if target.key == "b/y" and (local.root / "b/y").exists() and engine == "ripgrep":
            shutil.rmtree(local.root / "b")
        return stored

    monkeypatch.setattr(type(local.bench.workspace.disk), "read", and_remove)

    rows = sweep(local, "needle", "lines").rows

    assert [row.path for row in rows] == ["a/x", "b/y"]


def test_a_page_ends_before_it_holds_too_much_of_files(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_MAX_SNAPSHOT_BYTES", 10)
    monkeypatch.setattr(content, "_BATCH_BYTES", 1)
    scene.put("a", "b", "c", data=b"needle\n")

    first = sweep(scene, "needle", "lines", window=ResultWindow(limit=9))
    second = sweep(scene, "needle", "lines", window=ResultWindow(limit=9, offset=2))

    assert ([row.path for row in first.rows], first.truncated, first.total_lines) == (["a", "b"], True, 3)
    assert ([row.path for row in second.rows], second.truncated) == (["c"], False)


def test_a_bad_expression_says_how_to_find_its_characters(local: Scene) -> None:
    local.put("a", data=b"f(x) [\n")

    with pytest.raises(InvalidPattern) as caught:
        sweep(local, "f(x) [")

    assert caught.value.details["as_text"] == r"f\(x\) \["
    assert caught.value.action == r"These characters occur literally in 1 file: send `f\(x\) \[`."
    assert sweep(local, caught.value.details["as_text"]).total_files == 1


@pytest.mark.parametrize("want", [*WANTS, "matches"])
def test_ripgrep_with_one_thread_says_the_same(
    local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, want: Want
) -> None:
    """Its output differs: no empty line precedes a file with NUL bytes."""
    plant(local)
    local.put("a.bin", "b.bin", "c.bin", data=b"foo\n\0\n")
    local.put("late", data=b"foo\n" + b"x" * 99 * 1000 + b"\n\0foo\n")
    local.put("z", data=b"foo\n")
    many = sweep(local, "foo", want)
    one = tmp_path / "rg"
    one.write_text(f'#!/bin/sh\nexec {find_binary()} --threads=1 "$@"\n')
    one.chmod(0o755)

    monkeypatch.setenv("SUREHOLD_RIPGREP", str(one))

    assert sweep(local, "foo", want) == many
    assert (many.total_files, many.skipped) == (10, Skipped(binary=4))


@requirement("claude:grep:look_around")
def test_look_behind_of_any_width_needs_ripgrep_and_says_so_without(
    local: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.put("a", data=b"ab\n")

    assert sweep(local, "(?<=a|xx)b").total_files == 1
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")
    with pytest.raises(InvalidPattern, match="ripgrep is not installed") as caught:
        sweep(local, "(?<=a|xx)b")
    assert (caught.value.reason, "Install ripgrep" in caught.value.action) == ("needs_ripgrep", True)


class SlowDisk:
    """A disk that takes its time after some files."""

    def __init__(self, disk: DiskReader, quick: int) -> None:
        self._disk, self._quick = disk, quick

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        self._quick -= 1
        if self._quick < 0:
            time.sleep(0.4)
        return self._disk.read(target, limit=limit)


@pytest.mark.parametrize("want", WANTS)
def test_time_that_runs_out_leaves_a_part_or_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, want: Want
) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")
    scene = make_scene(tmp_path)
    scene.put("a", "b", "c")
    search, disk = Search(query="needle", hidden=True, ignore=False), scene.bench.workspace.disk
    finder = Finder(scene.bench.workspace.reader, seconds=0.2)

    monkeypatch.setattr(finder, "_disk", SlowDisk(disk, 1))
    found = finder.grep(search, ResultWindow(want=want))
    assert found.counts[0] == ("a", 1)
    assert (found.total_files, found.complete, found.files_scanned) == (2, False, None)
    assert found.notes[0] == "Time was up after 0.2 s: this is what was found until then, not all there is."

    monkeypatch.setattr(finder, "_disk", SlowDisk(disk, 0))
    with pytest.raises(SearchTimeout):
        finder.grep(replace(search, query="nothing"), ResultWindow(want=want))


def test_a_sweep_that_nobody_wants_any_more_ends(scene: Scene) -> None:
    scene.put("a")

    with pytest.raises(Cancelled):
        scene.finder.grep(Search(query="needle"), ResultWindow(want="lines"), cancelled=lambda: True)


def test_a_file_that_changed_meanwhile_is_searched_again_as_it_is_shown(
    local: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.put("a", data=b"needle\n")
    find = output_format.parse_output

    def change(done: CompletedRun, search: Search, want: Want, _deadline: object = None) -> Any:
        local.put("a", data=b"new\n\nneedle\n")
        return find(done, search, want)

    monkeypatch.setattr(output_format, "parse_output", change)

    assert sweep(local, "needle", "lines").rows == (MatchedLine(path="a", line=3, text="needle", is_match=True),)


def test_records_are_read_whatever_the_names_are() -> None:
    blocks = [
        b"./a\x001:2:[Omitted long line with 3 matches]\r\n4:1:x",
        b"./b\n\nc\x009:[Omitted long matching line]\r",
        b'./bin: binary file matches (found "\\0" byte around offset 12)',
        b'./late\x001:1:\n./late: binary file matches (found "\\0" byte around offset 9000)',
    ]
    stats = b"\n\n6 matches\n5 matched lines\n4 files contained matches\n9 files searched\n1 bytes printed\n"
    run = CompletedRun(code=0, output=b"\n\n".join(blocks) + b"\n" + stats, errors="", overflowed=False)

    lines, counts = (output_format.parse_output(run, SEARCH, want) for want in ("lines", "counts"))

    assert (lines.counts, lines.binary, lines.doubtful) == ({"a": 2, "b\n\nc": 1}, ["bin"], ["late"])
    assert counts.counts == {"a": 4, "b\n\nc": 1}
    assert (lines.scanned, output_format.count_matches(lines)) == (9, 5)
    assert {path: lines.positions_in(path) for path in lines.places} == {"a": [(1, 1), (4, 0)], "b\n\nc": [(9, 0)]}
    cut = output_format.parse_output(replace(run, output=blocks[0] + b"\n\n./b", timed_out=True), SEARCH, "files")
    assert (cut.counts, cut.scanned, cut.timed_out) == ({"a": 1}, None, True)


def test_lines_are_found_from_spans() -> None:
    text = b"ab\ncd\n\nef"

    assert positions_of_lines(text, [(0, 1), (1, 2), (4, 5), (6, 6), (8, 9)]) == [(1, 0), (2, 1), (3, 0), (4, 1)]
    assert positions_of_lines(text, [(1, 8)]) == [(1, 1), (2, 0), (3, 0), (4, 0)]
    assert positions_of_lines(text, [(0, 3), (3, 5)]) == [(1, 0), (2, 0)]
    assert positions_of_lines(b"", []) == []


@pytest.mark.parametrize(
    "window",
    [ResultWindow(offset=-1), ResultWindow(limit=0), ResultWindow(before=-1), ResultWindow(after=-1)],
    ids=["offset", "limit", "before", "after"],
)
def test_a_part_that_no_result_has_is_refused(scene: Scene, window: ResultWindow) -> None:
    scene.put("a", data=b"needle\n")

    with pytest.raises(InvalidArgument) as caught:
        sweep(scene, "needle", window=window)
    assert caught.value.reason == "bad_limit"
