"""Several roots, large files, many rules, and expressions that are rarely written."""

from pathlib import Path

import pytest

from search.scenes import Scene, make_scene, names
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import InvalidPattern, SearchTimeout
from surehold.search.query import Search, Skipped
from surehold.search.result_page import cut_around
from surehold.search.ripgrep import engine as ripgrep
from surehold.workspace import finder


@requirement("files:path:roots")
def test_a_second_root_is_searched_by_its_absolute_path(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d/f.txt").write_text("needle\n")
    with open_workspace(
        tmp_path / "one", tmp_path / "two", settings=Settings(state_dir=tmp_path / "state")
    ) as workspace:
        second = str(tmp_path / "two")

        assert [hit.path for hit in workspace.finder.search(Search(query="needle")).matches] == ["d/f.txt"]
        assert [hit.path for hit in workspace.finder.search(Search(query="needle", root=second)).matches] == [
            f"{second}/d/f.txt"
        ]
        listing = workspace.finder.list(second, recursive=True)
        assert [(entry.key, entry.relative) for entry in listing.entries] == [
            (f"{second}/d", "d"),
            (f"{second}/d/f.txt", "d/f.txt"),
        ]
        assert [entry.key for entry in workspace.finder.glob("**/*.txt", root=f"{second}/d").matches] == [
            f"{second}/d/f.txt"
        ]
        for hit in workspace.finder.search(Search(query="needle", root=second)).matches:
            assert workspace.read(hit.path).text == "needle\n"


def test_a_file_below_two_roots_has_the_name_that_reading_gives_it(tmp_path: Path) -> None:
    (tmp_path / "all/inner").mkdir(parents=True)
    (tmp_path / "all/inner/f").write_text("needle\n")
    roots = tmp_path / "all/inner", tmp_path / "all"
    with open_workspace(*roots, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        outer = str(tmp_path / "all")

        assert [hit.path for hit in workspace.finder.search(Search(query="needle", root=outer)).matches] == ["f"]
        assert workspace.target(f"{outer}/inner/f").key == "f"
        assert [entry.key for entry in workspace.finder.list(f"{outer}/inner").entries] == ["f"]


@pytest.mark.parametrize("engine", ["", "off"])
def test_a_file_that_is_too_large_is_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
    monkeypatch.setattr(finder, "_MAX_FILE_BYTES", 100)
    scene.put("large", data=b"needle" * 100)
    scene.put("small")

    result = scene.search("needle")

    assert (result.counts, result.skipped) == ((("small", 1),), Skipped(too_large=1))


def test_more_denied_files_than_ripgrep_can_be_told_of_are_left_to_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = make_scene(tmp_path, deny=["*.key"])
    scene.put(*(f"{number}.key" for number in range(1100)), "a.txt")

    assert (scene.search("ne+dle", "regex").engine, scene.search("needle").skipped.denied) == ("ripgrep", 1100)

    monkeypatch.setattr(ripgrep, "_MAX_EXCLUSION_CHARS", 1100 * 4)
    result = scene.search("needle")

    assert (result.engine, result.counts, result.skipped.denied) == ("python", (("a.txt", 1),), 1100)
    with pytest.raises(InvalidPattern, match="rules deny more files") as caught:
        scene.search("ne+dle", "regex")
    assert (caught.value.reason, "smaller directory" in caught.value.action) == ("needs_ripgrep", True)


def test_the_state_of_surehold_is_not_searched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("needle")
    with open_workspace(root, settings=Settings(state_dir=root / "state")) as workspace:
        (root / "state/note").write_text("needle")

        assert names(workspace.finder.list()) == ["a"]
        assert workspace.finder.search(Search(query="needle")).counts == (("a", 1),)


def test_a_disk_in_memory_is_searched_by_python(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, "memory")
    scene.put("a/b.txt", data=b"x\nneedle\n")
    scene.put(".gitignore", data=b"*.log\n")
    scene.put("c.log")

    assert scene.search("needle").engine == "python"
    assert scene.places("needle") == [("a/b.txt", 2, 1)]
    assert scene.places("needle", "regex") == [("a/b.txt", 2, 1)]
    assert scene.places("needle", root="a/b.txt") == [("a/b.txt", 2, 1)]
    assert scene.search("missing", "path").notes == ()
    assert scene.search("c.log", "path").notes == ("0 matches; 1 ignored or hidden entry matches: c.log.",)


def test_a_walk_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, seconds=-1)
    scene.put("a/b")

    for ask in (lambda: scene.finder.glob("**"), lambda: scene.search("b", "path")):
        with pytest.raises(SearchTimeout) as caught:
            ask()
        assert (caught.value.kind, caught.value.reason) == ("timeout", "scan_budget")


def test_one_binary_file_has_no_matches_to_show(scene: Scene) -> None:
    scene.put("a.bin", data=b"\0needle")

    result = scene.search("needle", root="a.bin")

    assert (result.matches, result.skipped) == ((), Skipped(binary=1))


def test_pages_within_one_file_continue(scene: Scene) -> None:
    scene.put("a", data=b"needle needle needle")

    first = scene.search("needle", root="a", limit=2)
    rest = scene.search("needle", root="a", limit=2, after=first.next)

    assert [hit.column for hit in (*first.matches, *rest.matches)] == [1, 8, 15]
    assert (first.truncated, rest.truncated, rest.total_matches) == (True, False, 3)


@pytest.mark.parametrize(
    ("query", "text", "columns"),
    [
        (r"\x{e9}\u00e9\u{e9}", "xééé", [2]),
        (r"[\x61-\x63]+", "xabcx", [2]),
        (r"[]a]+", "x]a", [2]),
        (r"[a\-z]+", "x-", [2]),
        (r"[-a]+", "x-a", [2]),
        (r"[a-]+", "x-a", [2]),
        (r"[\]\\]+", r"x]\ ", [2]),
        (r"[^\d\s]", "1 x", [3]),
        (r"[[:upper:][:digit:]]+", "xA1", [2]),
        (r"(?i)ab(?s:c)", "xABC", [2]),
        (r"a{2,}b{0,1}", "xaaab", [2]),
        (r"\$\(\)\ ", "x$() ", [2]),
        (r"(?:)x", "ax", [2]),
        (r"a||b", "xab", [2]),
    ],
)
def test_rare_expressions_are_understood(local: Scene, query: str, text: str, columns: list[int]) -> None:
    local.put("a", data=text.encode() + b"\n")

    found = [column for _, _, column in local.places(query, "regex")]

    assert found == columns


@pytest.mark.parametrize(
    "query", ["a{2,1}", "a{", "a{x}", "a{2000}{2000}", r"\x{110000}", "(?P<n>a)(?P<n>b)", "(?q)a", "a\\"]
)
def test_rare_mistakes_are_refused(local: Scene, query: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        local.search(query, "regex")

    assert caught.value.reason == "invalid_regex"


@pytest.mark.parametrize(("at", "begin"), [(0, 0), (5000, 4750), (9999, 9500)])
def test_a_window_lies_around_its_place(at: int, begin: int) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(10_000))

    shown = cut_around(text, at)

    assert len(shown) == 500
    assert shown.strip("…") == text[begin + bool(begin) : begin + 500 - (begin + 500 < 10_000)]
    assert text[at] in shown
