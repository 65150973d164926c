"""Grep through a real server: it counts what it was asked for and nothing else, and no match is lost on the way."""

import os

import pytest

from dialects.claude.searcher import Heard, Searcher, Server, searcher_of
from spec.marks import requirement


@pytest.fixture
def there(server: Server) -> Searcher:
    return searcher_of(server)


@requirement("claude:search:not_looked_at")
@pytest.mark.parametrize("glob", ["src/**/*.nope", "*.ts,*.py", "[x].ts", "src/a b.ts"])
def test_files_that_no_glob_names_are_not_said_to_be_searched(there: Searcher, glob: str) -> None:
    there.put("src/a.ts")
    there.put("b.py")
    there.put("c.bin", b"needle\0\n")

    found = there.grep("needle", glob=glob)

    assert (found.data["filesSearched"], found.data["notLookedAt"]) == (0, {})
    assert "[No file was searched: none has a name that fits the glob and type.]" in found.text


def test_with_matches_only_what_a_glob_names_is_counted(there: Searcher) -> None:
    there.put("src/a.ts")
    there.put("src/b.bin", b"needle\0\n")
    there.put("c.bin", b"needle\0\n")
    there.put("d.ts")

    found = there.grep("needle", glob="src/*")

    assert there.without(found.data["filenames"]) == ["src/a.ts"]
    assert found.data["notLookedAt"] == {"binary": 1}
    assert "filesSearched" not in found.data
    assert there.grep("needle", glob="*.ts").data["filesSearched"] == 2


@requirement("claude:grep:options")
def test_an_absolute_glob_is_read_from_the_directory_that_it_names(there: Searcher) -> None:
    there.put("src/a.ts")
    there.put("src/b.py")
    there.put("c.ts")
    home = os.fspath(there.home)

    assert there.files("needle", glob=f"{home}/src/*.ts") == ["src/a.ts"]
    assert there.files("needle", glob=f"{home}/*.ts") == ["c.ts"]
    assert there.files("needle", glob=f"!{home}/src/**") == ["c.ts"]
    assert there.files("needle", glob="/src/*.ts") == ["src/a.ts"]


@requirement("claude:grep:bad_input")
def test_a_glob_is_refused_as_it_was_written(there: Searcher) -> None:
    there.put("a.txt")

    unclosed, empty = there.grep("needle", glob="{*.ts"), there.grep("needle", glob="!")

    assert unclosed.error["message"] == "The glob `{*.ts` cannot be used: a `{` is not closed."
    assert (empty.error["kind"], empty.error["message"]) == ("bad_pattern", "The glob `` cannot be used: it is empty.")


def test_a_path_that_is_no_place_to_search_is_called_what_it_is(there: Searcher) -> None:
    os.mkfifo(there.home / "pipe")
    there.put("a.bin", b"needle\0\n")

    pipe, missing = there.grep("needle", "pipe").error, there.grep("needle", "missing").error
    binary = there.grep("needle", "a.bin").error

    (name,) = there.own("pipe")
    assert (pipe["kind"], pipe["message"]) == ("not_regular_file", f"`{name}` is neither a file nor a directory.")
    assert missing["message"] == f"There is no file or directory `{there.own('missing')[0]}`."
    assert (missing["kind"], "create" in missing["suggested_action"]) == ("file_not_found", False)
    assert "read_file" not in binary["suggested_action"]


@requirement("claude:grep:totals")
def test_all_matches_of_one_file_are_counted_however_many_there_are(there: Searcher) -> None:
    there.put("long.txt", b"needle\n" * 300_000)
    there.put("wide.txt", b"needle " * 120_000 + b"\n")

    long = there.grep("needle", "long.txt", output_mode="count").data
    wide = there.grep("n|e|d|l", "wide.txt", output_mode="count").data
    last = there.grep("needle", "long.txt", output_mode="content", offset=299_999)

    assert (long["totalMatches"], long["complete"]) == (300_000, True)
    assert (wide["totalMatches"], wide["complete"]) == (720_000, True)
    assert there.without(last.rows) == ["long.txt:300000:needle"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("wide.txt", "a café of things\nsome other line\n".encode("utf-16-le")),
        ("wider.txt", "a café of things\n".encode("utf-32")),
        ("old.latin", "a café of things\n".encode("latin-1")),
    ],
)
def test_one_file_is_searched_as_it_is_read_whatever_its_encoding(there: Searcher, name: str, data: bytes) -> None:
    there.put(".editorconfig", b"root = true\n[*.latin]\ncharset = latin1\n")
    there.put(name, data)
    path = os.fspath(there.home / name)

    found = there.grep("café", name, output_mode="content")
    edited = Heard(there.client.call("Edit", {"file_path": path, "old_string": "café", "new_string": "bar"}))

    assert there.without(found.rows) == [f"{name}:1:a café of things"]
    assert edited.raw.get("isError", False) is False, edited.text


def test_an_expression_that_takes_too_many_steps_says_so(there: Searcher) -> None:
    there.put("a.txt", b"a" * 60 + b"!\n")

    error = there.grep("(a+)+$(?<!b)").error

    assert error["kind"] == "bad_pattern"
    assert error["message"] == "The regular expression cannot be used: it takes too many steps in some line."
    assert error["suggested_action"] == "Write it without repetitions inside repetitions."
