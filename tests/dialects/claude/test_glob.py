"""Glob through a real server: newest first, honest about what it left out."""

import os
from pathlib import Path

import pytest

from dialects.claude.searcher import Heard, Searcher, Server, searcher_of
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement


@pytest.fixture
def there(server: Server) -> Searcher:
    return searcher_of(server)


@requirement("claude:glob:order", "claude:parameters:names")
def test_the_newest_come_first_and_ties_by_path_relative_to_the_root(there: Searcher) -> None:
    there.put("b.py", age=5)
    there.put("a/old.py", age=90)
    there.put("c.py", age=5)
    there.put("new.py", age=1)
    there.put("other.txt", age=0)

    found = there.glob("**/*.py").data

    assert found["filenames"] == there.own("new.py", "b.py", "c.py", "a/old.py")
    assert (found["numFiles"], found["totalMatches"], found["truncated"]) == (4, 4, False)
    assert found["countIsComplete"] is True
    assert found["durationMs"] >= 0


def test_without_a_path_it_looks_from_the_first_root_on(there: Searcher) -> None:
    there.put("deep/only_here.py")

    found = Heard(there.client.call("Glob", {"pattern": "**/only_here.py"}))

    assert found.data["filenames"] == there.own("deep/only_here.py")


@requirement("claude:glob:syntax")
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.toml", ["a.toml"]),
        ("**/*.toml", ["a.toml", "sub/b.toml"]),
        ("sub/*", ["sub/b.toml", "sub/c1.rs"]),
        ("sub/**/*.rs", ["sub/c1.rs", "sub/deep/c2.rs"]),
        ("**/c?.rs", ["sub/c1.rs", "sub/deep/c2.rs"]),
        ("**/c[2-9].rs", ["sub/deep/c2.rs"]),
        ("{a,sub/b}.toml", ["a.toml", "sub/b.toml"]),
        ("**/.hid*", [".hidden"]),
    ],
)
def test_the_whole_syntax_works_on_files_only(there: Searcher, pattern: str, names: list[str]) -> None:
    for name in ("a.toml", "sub/b.toml", "sub/c1.rs", "sub/deep/c2.rs", ".hidden"):
        there.put(name, age=1)

    assert sorted(there.without(there.glob(pattern).data["filenames"])) == names


@requirement("claude:glob:cap")
def test_at_most_250_are_returned_and_the_rest_is_counted(there: Searcher) -> None:
    for number in range(260):
        there.put(f"f{number:03}.txt", b"", age=number)

    found = there.glob("*.txt")

    assert found.data["filenames"] == there.own(*(f"f{number:03}.txt" for number in range(250)))
    assert (found.data["numFiles"], found.data["truncated"], found.data["totalMatches"]) == (250, True, 260)
    assert found.text.startswith("260 files, newest first · 250 shown; narrow the pattern or path, or raise limit")
    assert there.glob("*.txt", limit=260).data["truncated"] is False


def test_the_last_page_is_not_truncated_and_a_page_behind_it_is_said_to_be_past_the_end(there: Searcher) -> None:
    for number in range(5):
        there.put(f"{number}.txt")

    first, last, past = (there.glob("*.txt", limit=3, offset=offset) for offset in (0, 3, 9))

    assert [page.data.get("nextOffset") for page in (first, last, past)] == [3, None, None]
    assert [page.data["truncated"] for page in (first, last, past)] == [True, False, False]
    assert "narrow" not in last.text
    assert "offset=9 is past the end: 5 files in all." in past.text


def test_a_pattern_without_a_slash_that_finds_nothing_counts_what_is_below(there: Searcher) -> None:
    there.put("src/a.toml")
    there.put("src/b.toml")

    found = there.glob("*.toml")

    assert (found.data["filenames"], found.data["matchesBelow"]) == ([], 2)
    assert "`*.toml` looks only in the directory itself; `**/*.toml` matches 2." in found.text


def test_an_absolute_pattern_says_itself_where_to_begin(there: Searcher) -> None:
    there.put("src/a.py", age=1)
    there.put("src/sub/b.py", age=2)

    found = Heard(there.client.call("Glob", {"pattern": f"{there.home}/src/**/*.py"}))
    one = Heard(there.client.call("Glob", {"pattern": f"{there.home}/src/a.py"}))
    outside = Heard(there.client.call("Glob", {"pattern": "/etc/*"}))

    assert found.data["filenames"] == there.own("src/a.py", "src/sub/b.py")
    assert one.data["filenames"] == there.own("src/a.py")
    assert outside.error["kind"] == "outside_roots"


@requirement("claude:search:not_looked_at")
def test_ignored_files_are_counted_and_on_zero_hits_said_to_match(there: Searcher) -> None:
    there.put(".gitignore", b"build/\n*.log\n")
    there.put("a.log")
    there.put("build/x.bin")
    there.put("a.txt")

    some, none = there.glob("*.txt"), there.glob("**/*.log")

    assert some.data["notLookedAt"] == {"ignored": 2}
    assert "not looked at: 2 ignored" in some.text
    assert (none.data["filenames"], none.data["ignoredMatches"]) == ([], 1)
    assert "[0 matches; 1 ignored or hidden file matches.]" in none.text
    assert there.without(there.glob("**/*.log", include_ignored=True).data["filenames"]) == ["a.log"]


def test_hidden_files_are_seen_unless_they_are_not_wanted(there: Searcher) -> None:
    there.put(".env", age=1)
    there.put("a", age=2)

    assert there.without(there.glob("*").data["filenames"]) == [".env", "a"]
    hidden = there.glob("*", include_hidden=False).data
    assert (there.without(hidden["filenames"]), hidden["notLookedAt"]) == (["a"], {"hidden": 1})


def test_version_control_directories_are_never_entered(there: Searcher) -> None:
    for name in (".git", ".svn", ".hg", ".jj", ".bzr", ".sl"):
        there.put(f"{name}/x.py")
    there.put("node_modules/y.py")

    assert there.without(there.glob("**/*.py", include_ignored=True).data["filenames"]) == ["node_modules/y.py"]


def test_directory_links_are_not_followed_and_loops_are_no_trap(there: Searcher) -> None:
    there.put("real/a.py")
    (there.home / "loop").symlink_to(there.home)
    (there.home / "out").symlink_to("/etc")

    assert there.without(there.glob("**/*").data["filenames"]) == ["real/a.py"]


def test_names_that_are_no_text_are_shown_escaped(there: Searcher) -> None:
    there.put(b"bad\xff.py", age=1)
    there.put("two\nlines.py", age=2)

    assert there.without(there.glob("*.py").data["filenames"]) == ["bad\\xff.py", "two\\nlines.py"]


@pytest.mark.parametrize(("pattern", "cause"), [("a[b", "a `[` is not closed"), ("{a", "a `{` is not closed")])
def test_a_pattern_that_cannot_be_read_is_refused_with_its_cause(there: Searcher, pattern: str, cause: str) -> None:
    error = there.glob(pattern).error

    assert error["kind"] == "bad_pattern"
    assert cause in error["message"]
    assert error["suggested_action"]


def test_a_path_that_is_no_directory_is_refused(there: Searcher) -> None:
    there.put("a.txt")

    assert there.glob("*", "missing").error["kind"] == "file_not_found"
    assert there.glob("*", "a.txt").error["kind"] == "file_not_found"


def test_a_file_below_a_second_root_is_named_by_its_absolute_path(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        root.mkdir()
        (root / "a.py").write_bytes(b"")
    command = surehold("mcp", str(first), str(second), "--state-dir", str(tmp_path / "state"), "--tools", "claude")
    with StdioClient(command) as client:
        found = Heard(client.call("Glob", {"pattern": "*.py", "path": str(second)}))
        named = Heard(client.call("Glob", {"pattern": "*.py", "path": os.fspath(first)}))

    assert found.data["filenames"] == [f"{second}/a.py"]
    assert named.data["filenames"] == ["a.py"]
