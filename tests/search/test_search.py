"""What a search finds and shows, with ripgrep and without it."""

import hashlib
import os
from pathlib import Path

import pytest

from search.scenes import Scene, make_scene
from spec.marks import requirement
from surehold.errors import InvalidArgument, InvalidPattern, NotFound, OutsideWorkspace
from surehold.search.query import Hit, Search, Skipped


@requirement("files:search_files:text")
def test_a_literal_is_found_with_line_column_and_preview(scene: Scene) -> None:
    scene.put("b.txt", data=b"one\na.b needle, needle\n")
    scene.put("a/x.txt", data="é needle\n".encode())

    assert scene.search("needle").matches == (
        Hit(path="a/x.txt", line=1, column=3, preview="é needle", whole_lines=(1,)),
        Hit(path="b.txt", line=2, column=5, preview="a.b needle, needle", whole_lines=(2,)),
        Hit(path="b.txt", line=2, column=13, preview="a.b needle, needle", whole_lines=(2,)),
    )
    assert scene.places("a.b") == [("b.txt", 2, 1)]
    assert scene.places("aXb") == []


@requirement("files:search_files:hashes", "files:search_files:skipped")
def test_files_come_with_their_sha256_and_count_and_the_snapshot_that_is_shown(scene: Scene) -> None:
    scene.put("a.txt", data=b"needle needle\nneedle\n")
    scene.put("b.txt", data=b"nothing\n")

    result = scene.search("needle", limit=1)

    assert [(file.path, file.sha256, file.match_count) for file in result.files] == [
        ("a.txt", hashlib.sha256(b"needle needle\nneedle\n").hexdigest(), 3)
    ]
    assert result.files[0].snapshot.data == b"needle needle\nneedle\n"
    assert (result.total_matches, result.files_scanned, result.truncated) == (3, 2, True)


@requirement("files:search_files:regex")
def test_a_regular_expression_is_found_in_lines(local: Scene) -> None:
    local.put("a.txt", data=b"foo1\nfoo22 foo\r\nbar\r\n")

    assert local.places(r"foo\d+$", "regex") == [("a.txt", 1, 1)]
    assert local.places(r"foo$", "regex") == [("a.txt", 2, 7)]
    assert local.places(r"^bar$", "regex") == [("a.txt", 3, 1)]
    assert local.places(r"(?i)FOO\b", "regex") == [("a.txt", 2, 7)]
    assert local.places(r"22 foo\s+bar", "regex", multiline=True) == [("a.txt", 2, 4)]
    assert local.places(r"22 foo\s+bar", "regex") == []


def test_a_pattern_that_cannot_be_read_is_refused_also_where_there_is_no_file(local: Scene) -> None:
    with pytest.raises(InvalidPattern, match="is not closed"):
        local.search("needle", include=("[",))
    with pytest.raises(InvalidPattern, match="is not closed"):
        local.search("needle", exclude=("[",))


@requirement("files:search_files:regex")
@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "backreferences are not supported"),
        ("(a", "unclosed group"),
        ("a)", "unopened group"),
        ("[z-a]", "the start must be <= the end"),
        ("[a", "unclosed character class"),
        ("*a", "repetition operator missing expression"),
        (r"\y", "unrecognized escape sequence"),
        (r"a\nb", "lines are searched one by one"),
    ],
)
def test_a_bad_regular_expression_is_an_error_with_its_cause(local: Scene, query: str, cause: str) -> None:
    local.put("a.txt")

    with pytest.raises(InvalidPattern, match=cause) as caught:
        local.search(query, "regex")

    assert (caught.value.kind, caught.value.reason) == ("command_failed", "invalid_regex")


@requirement("files:search_files:regex")
@pytest.mark.parametrize("query", ["", "a\0b", "a\ud800", "x" * 20_000])
def test_a_query_that_no_text_can_hold_is_refused(scene: Scene, query: str) -> None:
    with pytest.raises(InvalidArgument):
        scene.search(query)


@requirement("files:search_files:filters")
def test_globs_narrow_a_search(scene: Scene) -> None:
    scene.put("a.py", "src/b.py", "src/gen/c.py", "src/d.ts", "docs/e.md")

    assert scene.found(include=("*.py",)) == ["a.py", "src/b.py", "src/gen/c.py"]
    assert scene.found(include=("src/*.py",)) == ["src/b.py"]
    assert scene.found(include=("src/**/*.py", "*.md")) == ["docs/e.md", "src/b.py", "src/gen/c.py"]
    assert scene.found(include=("*.{ts,md}",)) == ["docs/e.md", "src/d.ts"]
    assert scene.found(include=("src/",)) == ["src/b.py", "src/d.ts", "src/gen/c.py"]
    assert scene.found(include=("*.py",), exclude=("gen",)) == ["a.py", "src/b.py"]
    assert scene.found(exclude=("src/gen", "*.ts", "*.md")) == ["a.py", "src/b.py"]
    assert scene.found(root="src", include=("/*.py",)) == ["src/b.py"]
    assert scene.found(types=("py",)) == ["a.py", "src/b.py", "src/gen/c.py"]
    assert scene.found(types=("tsx",)) == ["src/d.ts"]


def test_an_included_file_is_still_ignored_when_an_ignore_file_says_so(scene: Scene) -> None:
    scene.put(".gitignore", data=b"*.log\n")
    scene.put("a.log", ".b.log", "c.txt")

    assert scene.found(include=("*.log",)) == []
    assert scene.found(include=("*.log",), ignore=False) == ["a.log"]
    assert scene.found(include=("*.log",), ignore=False, hidden=True) == [".b.log", "a.log"]


@pytest.mark.parametrize("name", ["nope", "py rust", "--pre=x", ""])
def test_an_unknown_type_is_an_error_and_never_an_empty_result(scene: Scene, name: str) -> None:
    scene.put("a.py")

    with pytest.raises(InvalidPattern) as caught:
        scene.search("needle", types=(name,))

    assert caught.value.reason == "unknown_type"


@pytest.mark.parametrize("glob", ["[a", "{a", "a}", "{a,b}" * 12, "x" * 5000, "../a", "\\"])
def test_a_bad_glob_is_an_error(scene: Scene, glob: str) -> None:
    scene.put("a.py")

    for search in (Search(query="needle", include=(glob,)), Search(query="needle", exclude=(glob,))):
        with pytest.raises(InvalidPattern) as caught:
            scene.finder.search(search)
        assert caught.value.reason == "invalid_glob"


@requirement("files:search_files:filters")
def test_case_context_and_root_are_respected(scene: Scene) -> None:
    scene.put("a.txt", data=b"1\n2\nNeedle\n4\n5\n")
    scene.put("d/b.txt", data=b"needle")

    assert scene.places("needle") == [("d/b.txt", 1, 1)]
    assert scene.places("NEEDLE", case_sensitive=False) == [("a.txt", 3, 1), ("d/b.txt", 1, 1)]
    assert scene.search("Needle", context=2).matches == (
        Hit(
            path="a.txt",
            line=3,
            column=1,
            preview="Needle",
            before=("1", "2"),
            after=("4", "5"),
            whole_lines=(1, 2, 3, 4, 5),
        ),
    )
    assert scene.places("needle", root="d") == [("d/b.txt", 1, 1)]
    assert scene.places("needle", root="d/b.txt") == [("d/b.txt", 1, 1)]
    with pytest.raises(NotFound):
        scene.search("needle", root="missing")
    with pytest.raises(OutsideWorkspace):
        scene.search("needle", root="../..")


@requirement("files:search_files:filters")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_continue_and_together_are_everything(scene: Scene, size: int) -> None:
    for name in ("c", "a", "b/y", "b/x"):
        scene.put(name, data=b"needle x needle\nneedle\n")
    whole = scene.search("needle")
    pages, after = list[Hit](), ""
    while True:
        page = scene.search("needle", limit=size, after=after)
        assert page.total_matches == 12
        pages += page.matches
        after = page.next
        assert bool(after) == page.truncated
        if not page.truncated:
            break

    assert tuple(pages) == whole.matches
    assert [(hit.path, hit.line, hit.column) for hit in pages[:3]] == [("a", 1, 1), ("a", 1, 10), ("a", 2, 1)]
    assert scene.search("needle") == whole


def test_a_cursor_of_another_search_is_refused(scene: Scene) -> None:
    scene.put("a", data=b"needle needle other other")
    cursor = scene.search("needle", limit=1).next

    for query, after in (("other", cursor), ("needle", "rubbish"), ("needle", "!")):
        with pytest.raises(InvalidArgument) as caught:
            scene.search(query, after=after)
        assert caught.value.reason == "bad_cursor"


@requirement("files:search_files:path")
def test_mode_path_finds_names_and_globs(scene: Scene) -> None:
    scene.put("src/Main.py", "src/main_test.py", "docs/main.md", ".hidden/main")

    assert [hit.path for hit in scene.search("main", "path").matches] == ["docs/main.md", "src/main_test.py"]
    assert [hit.path for hit in scene.search("MAIN", "path", case_sensitive=False).matches] == [
        "docs/main.md",
        "src/Main.py",
        "src/main_test.py",
    ]
    assert [hit.path for hit in scene.search("src/m", "path").matches] == ["src/main_test.py"]
    assert [hit.path for hit in scene.search("*.py", "path").matches] == ["src/Main.py", "src/main_test.py"]
    first = scene.search("m", "path", limit=1)
    assert first.matches == (Hit(path="docs/main.md", preview="docs/main.md"),)
    assert (first.files, first.total_matches, first.truncated) == ((), 2, True)
    rest = scene.search("m", "path", limit=5, after=first.next)
    assert [hit.path for hit in rest.matches] == ["src/main_test.py"]


def test_a_long_line_is_cut_around_the_match(scene: Scene) -> None:
    scene.put("a.js", data=b"a" * 5000 + b"needle" + b"b" * 5000)

    (hit,) = scene.search("needle").matches

    assert (hit.line, hit.column, len(hit.preview)) == (1, 5001, 500)
    assert hit.preview.startswith("…a")
    assert hit.preview.endswith("b…")
    assert abs(hit.preview.index("needle") - 250) < 10


@requirement("files:search_files:skipped")
def test_a_late_zero_byte_hides_nothing_and_an_early_one_makes_the_file_binary(scene: Scene) -> None:
    scene.put("late.txt", data=b"x" * 9000 + b"\n\0\nneedle\n")
    scene.put("early.bin", data=b"\0\1needle")

    result = scene.search("needle")

    assert [(hit.path, hit.line) for hit in result.matches] == [("late.txt", 3)]
    assert (result.skipped, result.total_matches) == (Skipped(binary=1), 1)


def test_every_encoding_is_shown_in_its_own_characters(scene: Scene) -> None:
    scene.put("16le.txt", data="\ufeffé needle\nü\nx needle".encode("utf-16-le"))
    scene.put("16be.txt", data="\ufeffé needle\r\n".encode("utf-16-be"))
    scene.put("bom.txt", data="\ufeffneedle\n".encode())
    scene.put("latin.py", data="# coding: latin-1\n# é needle\n".encode("latin-1"))
    scene.put("raw.txt", data=b"\xff needle\n")
    scene.put("cr.txt", data=b"one\rtwo needle\rthree\r")

    shown = {(hit.path, hit.line, hit.column): hit.preview for hit in scene.search("needle").matches}

    assert shown == {
        ("16be.txt", 1, 3): "é needle",
        ("16le.txt", 1, 3): "é needle",
        ("16le.txt", 3, 3): "x needle",
        ("bom.txt", 1, 1): "needle",
        ("cr.txt", 2, 5): "two needle",
        ("latin.py", 2, 5): "# é needle",
        ("raw.txt", 1, 6): "\\xff needle",
    }


def test_a_carriage_return_ends_a_line_of_a_file_without_line_feeds(local: Scene) -> None:
    local.put("cr.txt", data=b"one\rtwo needle\rthree\r")

    assert local.places("^two", "regex") == [("cr.txt", 2, 1)]


def test_odd_names_are_inert(scene: Scene) -> None:
    odd = ["-rf", "--pre=x", "new\nline", "a:1:2", "sp ace", "[x]", "{a,b}", "!bang", "#hash", "back\\slash", "*"]
    scene.put(*odd)
    (Path(os.fsdecode(os.fsencode(scene.root) + b"/bad\xff"))).write_bytes(b"needle\n")

    assert scene.found() == sorted([*odd, "bad\udcff"])
    assert scene.places("needle", root="-rf") == [("-rf", 1, 1)]


@pytest.mark.parametrize("query", ["-e", "--files", "--", "-rf", "$(id)", "`x`", "a b"])
def test_a_query_that_looks_like_an_option_is_text(scene: Scene, query: str) -> None:
    scene.put("a", data=f"x {query} y\n".encode())

    assert scene.places(query) == [("a", 1, 3)]


def test_a_text_of_several_lines_is_found(scene: Scene) -> None:
    scene.put("a", data=b"1\n2\n3\n1\n2\n")
    scene.put("b", data=b"1\r\n2\r\n")

    both = [("a", 1, 1), ("a", 4, 1), ("b", 1, 1)]
    assert scene.places("1\n2") == both
    assert scene.places("1\r\n2") == both


@pytest.mark.parametrize("multiline", [False, True])
def test_blank_lines_are_found_and_an_empty_match_counts_once_per_line(local: Scene, multiline: bool) -> None:
    local.put("a", data=b"x\n\ny\r\n\r\nz")

    assert local.places("^$", "regex", multiline=multiline) == [("a", 2, 1), ("a", 4, 1)]
    assert local.places("q*", "regex", multiline=multiline) == [("a", line, 1) for line in (1, 2, 3, 4, 5)]
    assert local.places("y*", "regex", multiline=multiline) == [("a", line, 1) for line in (1, 2, 3, 4, 5)]
    assert local.search("y*", "regex", multiline=multiline).total_matches == 5


def test_links_are_not_followed(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"needle")
    scene.put("real/in.txt")
    (scene.root / "out").symlink_to(tmp_path / "outside")
    (scene.root / "file").symlink_to(tmp_path / "outside/secret")
    (scene.root / "inner").symlink_to("real")

    assert scene.found() == ["real/in.txt"]
    assert scene.found(root="inner") == ["real/in.txt"]
    with pytest.raises(OutsideWorkspace):
        scene.search("needle", root="out")


@requirement("files:search_files:skipped")
def test_nothing_found_says_whether_ignored_or_hidden_files_have_it(scene: Scene) -> None:
    scene.put(".gitignore", data=b"build/\n")
    scene.put("build/a", "build/b", ".env", ".git/config")
    scene.put("other", data=b"x")

    assert scene.search("needle").notes == ("0 matches; 3 ignored or hidden files match: .env, build/a, build/b.",)
    assert scene.search("nowhere").notes == ()
    assert scene.found(hidden=True, ignore=False) == [".env", "build/a", "build/b"]


@pytest.mark.parametrize("engine", ["", "off"])
def test_denied_files_do_not_exist_for_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
    scene = make_scene(tmp_path, deny=["secrets/", "*.key", "!open.key", "odd name *"])
    scene.put("a.txt", "secrets/x", "secrets/deep/y", "b.KEY", "open.key", "odd name [1]", ".gitignore")

    result = scene.search("needle")

    assert [path for path, _ in result.counts] == ["a.txt", "open.key"]
    assert (result.total_matches, result.skipped.denied) == (2, 3)
    assert scene.search("nowhere").skipped.denied == 3
    with pytest.raises(Exception, match="denies"):
        scene.search("needle", root="secrets")


def test_a_denied_file_is_not_even_opened(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, deny=["*.key"])
    scene.put("a.txt", "b.key")
    os.mkfifo(scene.root / "pipe")
    before = (scene.root / "b.key").stat().st_atime_ns
    os.utime(scene.root / "b.key", ns=(1, before))  # older than the last change: the next read would be recorded

    assert scene.found() == ["a.txt"]
    assert (scene.root / "b.key").stat().st_atime_ns == 1
