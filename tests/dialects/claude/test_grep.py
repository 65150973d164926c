"""Grep through a real server: modes, options, and what a pattern may be."""

import os
from typing import Any

import pytest

from dialects.claude.searcher import Heard, Searcher, Server, searcher_of
from spec.marks import requirement


@pytest.fixture
def there(server: Server) -> Searcher:
    return searcher_of(server)


@requirement("claude:grep:options", "claude:parameters:names")
def test_the_parameters_are_spelled_as_models_know_them(there: Searcher) -> None:
    tools = {tool["name"]: tool for tool in there.client.request("tools/list")["tools"]}
    properties = tools["Grep"]["inputSchema"]["properties"]

    assert list(properties) == [
        *("pattern", "path", "glob", "output_mode", "-i", "-n", "-A", "-B", "-C", "context", "type"),
        *("head_limit", "offset", "multiline", "include_ignored", "include_hidden"),
    ]
    assert tools["Grep"]["inputSchema"]["required"] == ["pattern"]
    assert properties["output_mode"]["enum"] == ["files_with_matches", "content", "count"]
    assert properties["output_mode"]["default"] == "files_with_matches"
    assert properties["head_limit"]["default"] == 250
    assert tools["Grep"]["annotations"]["readOnlyHint"] is True
    assert "outputSchema" not in tools["Grep"]


@requirement("claude:grep:modes")
def test_by_default_the_files_are_named_in_path_order(there: Searcher) -> None:
    there.put("b.txt")
    there.put("a/z.txt", b"needle\nneedle\n")
    there.put("no.txt", b"nothing\n")

    found = there.grep("needle")

    assert found.data["mode"] == "files_with_matches"
    assert found.data["filenames"] == there.own("a/z.txt", "b.txt")
    assert (found.data["numFiles"], found.data["totalFiles"], found.data["filesSearched"]) == (2, 2, 3)
    assert found.text == "\n".join(["2 files with matches · 3 files searched", *there.own("a/z.txt", "b.txt")])


@requirement("claude:grep:modes")
def test_content_shows_the_matching_lines(there: Searcher) -> None:
    there.put("a.txt", b"one\nneedle needle\nthree\nneedle\n")

    found = there.grep("needle", output_mode="content")

    (name,) = there.own("a.txt")
    assert found.rows == [f"{name}:2:needle needle", f"{name}:4:needle"]
    assert (found.data["numLines"], found.data["totalLines"], found.data["totalMatches"]) == (2, 2, 3)
    assert found.text == f"2 matching lines in 1 file · 1 file searched\n{found.data['content']}"
    assert there.grep("three", output_mode="content", _n=False).rows == [f"{name}:three"]


@requirement("claude:grep:modes", "claude:grep:totals")
def test_count_counts_matches_per_file_and_the_totals_are_those_of_everything(there: Searcher) -> None:
    there.put("a.txt", b"needle needle\nneedle\n")
    there.put("b.txt", b"needle\n")
    there.put("c.txt", b"xneedle needlex\n")

    found = there.grep("needle", output_mode="count", head_limit=1)

    assert found.rows == [f"{there.own('a.txt')[0]}:3"]
    assert (found.data["numMatches"], found.data["totalMatches"], found.data["totalFiles"]) == (6, 6, 3)
    assert (found.data["appliedLimit"], found.data["nextOffset"]) == (1, 1)
    assert found.text.startswith("6 matches in 3 files · 3 files searched · goes on: offset=1")


@requirement("claude:grep:options")
@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"_A": 1}, [":3:needle", "-4-four", "--", ":7:needle", "-8-eight"]),
        ({"_B": 1}, ["-2-two", ":3:needle", "--", "-6-six", ":7:needle"]),
        ({"_C": 1}, ["-2-two", ":3:needle", "-4-four", "--", "-6-six", ":7:needle", "-8-eight"]),
        ({"context": 1, "_A": 0}, ["-2-two", ":3:needle", "--", "-6-six", ":7:needle"]),
        ({"_C": 2}, ["-1-one", "-2-two", ":3:needle", "-4-four", "-5-five", "-6-six", ":7:needle", "-8-eight"]),
    ],
)
def test_context_is_merged_and_groups_are_set_apart(there: Searcher, options: dict[str, Any], lines: list[str]) -> None:
    there.put("a.txt", b"one\ntwo\nneedle\nfour\nfive\nsix\nneedle\neight\n")

    rows = there.grep("needle", output_mode="content", **options).rows

    assert rows == [line if line == "--" else there.own("a.txt")[0] + line for line in lines]


@requirement("claude:grep:options")
def test_case_and_lines_are_matched_as_asked(there: Searcher) -> None:
    there.put("a.txt", b"Needle\nbegin\n  end\n")

    assert there.files("needle") == []
    assert there.files("needle", _i=True) == ["a.txt"]
    assert there.files("begin.*end") == []
    found = there.grep("begin.*end", output_mode="content", multiline=True)
    assert [row.split(":", 1)[1] for row in found.rows] == ["2:begin", "3:  end"]
    assert there.grep("begin.*end", output_mode="count", multiline=True).data["totalMatches"] == 1


@requirement("claude:grep:options")
def test_globs_are_read_from_the_path_on(there: Searcher) -> None:
    there.put("pkg/src/deep/a.ts")
    there.put("pkg/src/b.tsx")
    there.put("pkg/c.ts")
    there.put("src/d.ts")

    assert there.files("needle", "pkg", glob="src/**/*.ts") == ["pkg/src/deep/a.ts"]
    assert there.files("needle", glob="*.ts") == ["pkg/c.ts", "pkg/src/deep/a.ts", "src/d.ts"]
    assert there.files("needle", glob="*.{ts,tsx}", path="pkg") == ["pkg/c.ts", "pkg/src/b.tsx", "pkg/src/deep/a.ts"]
    assert there.files("needle", glob="!*.ts") == ["pkg/src/b.tsx"]
    assert there.files("needle", glob="*.tsx c.*") == ["pkg/c.ts", "pkg/src/b.tsx"]
    nothing = there.grep("needle", glob="*.nope")
    assert "[No file was searched: none has a name that fits the glob and type.]" in nothing.text


@requirement("claude:grep:type_aliases")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("rs", "a.rs"),
        ("tsx", "a.tsx"),
        ("yml", "a.yaml"),
        ("py", "a.py"),
        ("bash", "a.sh"),
        ("golang", "a.go"),
        ("js", "a.mjs"),
    ],
)
def test_types_are_known_by_the_names_that_people_guess(there: Searcher, kind: str, name: str) -> None:
    for each in ("a.rs", "a.tsx", "a.yaml", "a.py", "a.sh", "a.go", "a.mjs"):
        there.put(each)

    assert there.files("needle", type=kind) == [name]


@requirement("claude:grep:bad_input")
def test_an_unknown_type_is_an_error_with_near_names(there: Searcher) -> None:
    error = there.grep("needle", type="pyton").error

    assert (error["kind"], error["message"]) == ("bad_type", "Unknown file type `pyton`.")
    assert error["details"]["near"][0] == "python"
    assert error["suggested_action"].startswith("Did you mean `python`")


@requirement("claude:grep:bad_input")
def test_a_bad_expression_is_an_error_with_its_cause_and_a_way_to_find_the_text(there: Searcher) -> None:
    there.put("a.txt", b"call(x\n")

    error = there.grep("call(").error
    plain = there.grep("nowhere(").error

    assert (error["kind"], error["details"]["cause"]) == ("bad_pattern", "unclosed group")
    assert error["suggested_action"] == "These characters occur literally in 1 file: send `call\\(`."
    assert there.files(error["details"]["as_text"]) == ["a.txt"]
    assert plain["suggested_action"] == "Correct the pattern and search again."
    assert there.grep("needle", glob="a[").error["kind"] == "bad_pattern"
    assert there.grep("").error["kind"] == "invalid_arguments"
    assert there.grep("x", head_limit=-1).error["kind"] == "invalid_arguments"


@requirement("claude:grep:look_around")
def test_look_around_and_backreferences_are_matched_with_pcre2_and_that_is_said(there: Searcher) -> None:
    there.put("a.txt", b"foobar\nfoobaz\nabab\r\nfoo\r\n")

    ahead = there.grep("foo(?!bar)", output_mode="content")
    behind = there.grep("(?<=foo)ba.", output_mode="content")
    back = there.grep(r"^(ab)\1$", output_mode="count")

    assert [row.split(":", 1)[1] for row in ahead.rows] == ["2:foobaz", "4:foo"]
    assert [row.split(":", 1)[1] for row in behind.rows] == ["1:foobar", "2:foobaz"]
    assert back.data["totalMatches"] == 1
    assert ahead.data["engine"] == "ripgrep with PCRE2"
    assert "[The pattern needs look-around or backreferences: it was matched with PCRE2.]" in ahead.text
    assert there.grep("(?=a").error["details"]["cause"] != ""


def test_the_end_of_a_line_is_found_before_a_carriage_return(there: Searcher) -> None:
    there.put("a.txt", b"foo\r\nfoo bar\r\n")

    found = there.grep("foo$", output_mode="content")

    assert found.rows == [f"{there.own('a.txt')[0]}:1:foo"]


@requirement("claude:grep:excluded")
def test_version_control_and_build_directories_are_left_out_unless_named(there: Searcher) -> None:
    for name in (".git", ".svn", ".hg", ".jj", ".bzr", ".sl", "node_modules", "target", "__pycache__"):
        there.put(f"deep/{name}/a.txt")
    there.put("target")
    there.put(".github/b.txt")

    assert there.files("needle") == [".github/b.txt", "target"]
    assert there.files("needle", "deep/node_modules") == ["deep/node_modules/a.txt"]
    assert there.files("needle", "deep/target/a.txt") == ["deep/target/a.txt"]
    assert there.files("needle", include_ignored=True, glob="*.txt") == [
        *(".github/b.txt", "deep/__pycache__/a.txt", "deep/node_modules/a.txt", "deep/target/a.txt")
    ]


def test_one_file_is_searched_also_inside_an_ignored_directory(there: Searcher) -> None:
    there.put(".gitignore", b"out/\n")
    there.put("out/a.txt", b"x\nneedle\n")

    found = there.grep("needle", "out/a.txt", output_mode="content")

    assert found.rows == [f"{there.own('out/a.txt')[0]}:2:needle"]
    assert there.files("needle", "out") == ["out/a.txt"]


@requirement("claude:grep:long_lines")
def test_a_very_long_line_is_shown_around_the_match(there: Searcher) -> None:
    there.put("a.txt", b"x" * 1_000_000 + b"needle" + b"y" * 500_000 + b"\n")

    (row,) = there.grep("needle", output_mode="content").rows

    shown = row.removeprefix(f"{there.own('a.txt')[0]}:1:")
    assert len(shown) == 500
    assert shown[0] == shown[-1] == "…"
    assert 240 <= shown.index("needle") <= 260


def test_a_bare_path_or_none_means_the_first_root(there: Searcher) -> None:
    there.put("unmistakable.txt", b"only_in_this_file_of_all\n")

    found = Heard(there.client.call("Grep", {"pattern": "only_in_this_file_of_all", "path": None}))
    absolute = Heard(there.client.call("Grep", {"pattern": "only_in_this_file_of_all", "path": os.fspath(there.home)}))

    assert found.data["filenames"] == absolute.data["filenames"] == there.own("unmistakable.txt")
    assert Heard(there.client.call("Grep", {"pattern": "x", "path": "/etc"})).error["kind"] == "outside_roots"
    assert there.grep("x", "missing").error["kind"] == "file_not_found"
