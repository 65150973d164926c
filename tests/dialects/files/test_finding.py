from pathlib import Path

import pytest

from dialects.every_tool import EveryTool
from dialects.place import Place, sha256
from spec.marks import requirement


@pytest.fixture
def tree(place: Place) -> Place:
    for name, data in {
        "src/app.py": b"import os\nTOKEN = 'needle'\n",
        "src/deep/util.py": b"# needle here\n# Needle there\n",
        "docs/guide.md": b"a needle\n",
        ".gitignore": b"*.log\nbuild/\n",
        "debug.log": b"needle in a log\n",
        "build/out.txt": b"needle built\n",
        ".hidden/secret.txt": b"needle hidden\n",
        "image.bin": b"needle\0\1\2" * 10,
    }.items():
        place.put(name, data)
    place.file("outside").symlink_to("/etc")
    return place


@requirement("files:list_directory:entries")
def test_a_directory_is_listed_with_facts(tree: Place) -> None:
    data = tree.call("list_directory", path=tree.name).data

    assert [(row["name"], row["type"]) for row in data["entries"]] == [
        ("docs", "directory"),
        ("image.bin", "file"),
        ("outside", "symlink"),
        ("src", "directory"),
    ]
    image = data["entries"][1]
    assert (image["relativePath"], image["size"], image["depth"]) == ("image.bin", 90, 1)
    assert image["mtime"].endswith("Z")
    assert (data["truncated"], "nextCursor" in data) == (False, False)


@requirement("files:list_directory:recursive")
def test_a_recursive_listing_goes_down_to_a_depth_and_never_through_links(tree: Place) -> None:
    shallow = tree.call("list_directory", path=tree.name, recursive=True, maxDepth=2).data["entries"]
    deep = tree.call("list_directory", path=tree.name, recursive=True).data["entries"]

    assert [row["relativePath"] for row in shallow] == [
        "docs",
        "docs/guide.md",
        "image.bin",
        "outside",
        "src",
        "src/app.py",
        "src/deep",
    ]
    assert [row["relativePath"] for row in deep][-1] == "src/deep/util.py"


@requirement("files:list_directory:hidden_and_ignored")
def test_hidden_and_ignored_entries_are_listed_when_asked_for(tree: Place) -> None:
    hidden = tree.call("list_directory", path=tree.name, includeHidden=True).data["entries"]
    ignored = tree.call("list_directory", path=tree.name, respectIgnore=False).data["entries"]

    assert {".gitignore", ".hidden"} <= {row["name"] for row in hidden}
    assert {"build", "debug.log"} <= {row["name"] for row in ignored}
    assert "debug.log" not in {row["name"] for row in hidden}


@requirement("files:list_directory:paging")
def test_a_listing_in_pages_is_complete(place: Place) -> None:
    names = [f"f{n:03}" for n in range(25)]
    for name in names:
        place.put(name, b"")

    found, cursor = list[str](), ""
    while True:
        data = place.call("list_directory", path=place.name, maxEntries=10, cursor=cursor).data
        found += [row["name"] for row in data["entries"]]
        cursor = data.get("nextCursor", "")
        assert data["truncated"] is bool(cursor)
        if not cursor:
            break

    assert found == names


@requirement("host:budget:never_cut")
def test_a_listing_that_does_not_fit_an_answer_goes_on_with_a_cursor(place: Place) -> None:
    for number in range(700):
        place.put(f"{'n' * 90}{number:04}", b"")

    first = place.call("list_directory", path=place.name)
    second = place.call("list_directory", path=place.name, cursor=first.data["nextCursor"])

    assert len(first.text) <= 41_000
    assert f"cursor={first.data['nextCursor']}" in first.text
    assert len(first.data["entries"]) + len(second.data["entries"]) == 700


def test_a_listing_of_what_is_no_directory_is_refused(tree: Place) -> None:
    missing = tree.call("list_directory", path=tree.path("none"))
    file = tree.call("list_directory", path=tree.path("src/app.py"))
    outside = tree.call("list_directory", path=tree.path("outside"))

    assert [a.error["kind"] for a in (missing, file, outside)] == ["not_found", "not_found", "outside_workspace"]


@requirement("files:search_files:text", "files:search_files:hashes", "files:search_files:skipped")
def test_a_text_is_found_with_line_column_and_preview_and_an_edit_needs_no_read(tree: Place) -> None:
    answer = tree.call("search_files", query="needle", root=tree.name)
    data = answer.data

    assert [(row["path"], row["line"], row["column"], row["preview"]) for row in data["matches"]] == [
        (tree.path("docs/guide.md"), 1, 3, "a needle"),
        (tree.path("src/app.py"), 2, 10, "TOKEN = 'needle'"),
        (tree.path("src/deep/util.py"), 1, 3, "# needle here"),
    ]
    assert [(Path(row["path"]).name, row["sha256"], row["matchCount"]) for row in data["files"]] == [
        ("guide.md", sha256(tree.get("docs/guide.md")), 1),
        ("app.py", sha256(tree.get("src/app.py")), 1),
        ("util.py", sha256(tree.get("src/deep/util.py")), 1),
    ]
    assert (data["filesScanned"], data["filesSkipped"]["binary"]) == (4, 1)
    assert data["files"][1]["sha256"] in answer.text
    edited = tree.on(
        "edit_file",
        "src/app.py",
        expectedSha256=data["files"][1]["sha256"],
        edits=[{"oldText": "needle", "newText": "pin"}],
    )
    assert edited.ok


@requirement("files:search_files:regex")
def test_a_regular_expression_is_found_and_a_wrong_one_refused_with_its_cause(tree: Place) -> None:
    found = tree.call("search_files", query=r"^# [Nn]eedle \w+$", mode="regex", root=tree.name).data
    wrong = tree.call("search_files", query="(unclosed", mode="regex", root=tree.name)
    behind = tree.call("search_files", query="(?<=a)b", mode="regex", root=tree.name)

    assert [(row["line"], row["preview"]) for row in found["matches"]] == [(1, "# needle here"), (2, "# Needle there")]
    assert [(a.error["kind"], a.error["reason"]) for a in (wrong, behind)] == [("command_failed", "invalid_regex")] * 2
    assert "unclosed" in wrong.error["message"].lower()


@requirement("files:search_files:regex")
def test_an_explosive_regular_expression_is_harmless(place: Place) -> None:
    place.put("a.txt", b"a" * 100_000 + b"!\n")

    assert place.call("search_files", query=r"(a+)+$", mode="regex", root=place.name).ok
    assert place.call("search_files", query=r"(a|aa)+$", mode="regex", root=place.name).ok


@requirement("files:search_files:path")
def test_names_are_found_by_a_part_or_a_glob(tree: Place) -> None:
    part = tree.call("search_files", query="util", mode="path", root=tree.name).data
    glob = tree.call("search_files", query="**/*.md", mode="path", root=tree.name).data

    assert [row["path"] for row in part["matches"]] == [tree.path("src/deep/util.py")]
    assert [row["path"] for row in glob["matches"]] == [tree.path("docs/guide.md")]


@requirement("files:search_files:filters")
def test_globs_case_context_and_pages_narrow_and_continue_a_search(tree: Place) -> None:
    only = tree.call("search_files", query="needle", root=tree.name, includeGlobs=["*.py"], excludeGlobs=["deep"]).data
    insensitive = tree.call("search_files", query="NEEDLE", root=tree.path("src"), caseSensitive=False).data
    around = tree.call("search_files", query="TOKEN", root=tree.name, contextLines=1).data["matches"][0]
    across = tree.call("search_files", query=r"os\nTOKEN", mode="regex", multiline=True, root=tree.name).data
    first = tree.call("search_files", query="needle", root=tree.name, maxResults=2).data
    second = tree.call("search_files", query="needle", root=tree.name, maxResults=2, cursor=first["nextCursor"]).data
    one_file = tree.call("search_files", query="needle", root=tree.path("src/app.py")).data

    assert [row["path"] for row in only["matches"]] == [tree.path("src/app.py")]
    assert len(insensitive["matches"]) == 3
    assert (around["before"], around["line"]) == (["import os"], 2)
    assert [row["line"] for row in across["matches"]] == [1]
    assert [len(page["matches"]) for page in (first, second)] == [2, 1]
    assert (first["truncated"], first["totalMatches"], "nextCursor" in second) == (True, 3, False)
    assert len(one_file["matches"]) == 1


@requirement("files:search_files:skipped")
def test_a_search_without_hits_says_where_it_did_not_look(tree: Place) -> None:
    answer = tree.call("search_files", query="needle in a log", root=tree.name)

    assert answer.data["matches"] == []
    assert any("debug.log" in note for note in answer.data["notes"])


@requirement("files:glob:matches")
def test_a_glob_returns_facts_up_to_a_limit(tree: Place) -> None:
    data = tree.call("glob", pattern="**/*.py", root=tree.name).data
    limited = tree.call("glob", pattern="**/*", root=tree.name, maxResults=2).data
    hidden = tree.call("glob", pattern="**/*.txt", root=tree.name, includeHidden=True).data
    excluded = tree.call("glob", pattern="**/*.py", root=tree.name, excludeGlobs=["deep"]).data

    assert [(row["path"], row["type"], row["size"]) for row in data["matches"]] == [
        (tree.path("src/app.py"), "file", len(tree.get("src/app.py"))),
        (tree.path("src/deep/util.py"), "file", len(tree.get("src/deep/util.py"))),
    ]
    assert (len(limited["matches"]), limited["truncated"]) == (2, True)
    assert [row["path"] for row in hidden["matches"]] == [tree.path(".hidden/secret.txt")]
    assert [row["path"] for row in excluded["matches"]] == [tree.path("src/app.py")]


@requirement("files:glob:absolute")
def test_an_absolute_pattern_begins_at_its_own_directory(tree: Place) -> None:
    absolute = tree.root / tree.name / "src"

    assert [row["path"] for row in tree.call("glob", pattern=f"{absolute}/*.py").data["matches"]] == [
        tree.path("src/app.py")
    ]
    assert tree.call("glob", pattern="/etc/*").data["matches"] == []
    assert [row["path"] for row in tree.call("glob", pattern="/src/*.py", root=tree.name).data["matches"]] == [
        tree.path("src/app.py")
    ]


def test_a_pattern_that_cannot_be_is_refused(place: Place) -> None:
    for pattern in ("[", "", "{a,b}" * 30):
        assert place.call("glob", pattern=pattern, root=place.name).error["kind"] == "command_failed", pattern


def test_a_listing_says_which_directories_lie_too_deep(place: Place) -> None:
    place.put("1/2/3/4/file", b"")

    data = place.call("list_directory", path=place.name, recursive=True, maxDepth=3).data

    assert [row["relativePath"] for row in data["entries"]] == ["1", "1/2", "1/2/3"]
    assert any("1/2/3" in note and "deep" in note for note in data["notes"])


def test_a_text_of_several_lines_is_found_whichever_way_lines_end(place: Place) -> None:
    place.put("crlf.txt", b"foo (1)\r\nbar\r\n")
    place.put("lf.txt", b"foo (1)\nbar\n")

    found = place.call("search_files", query="foo (1)\nbar", root=place.name).data

    assert [Path(row["path"]).name for row in found["matches"]] == ["crlf.txt", "lf.txt"]


@requirement("files:search_files:utf16", "claude:search:not_looked_at")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_is_left_out_of_a_directory_for_its_encoding_is_said_and_found_by_name(
    every_tool: EveryTool, encoding: str
) -> None:
    every_tool.put({"wide.txt": "one needle in the hay\n".encode(encoding)})
    file, folder = every_tool.path("wide.txt"), str(every_tool.folder)

    named = [
        every_tool.call("search_files", query="needle", mode="text", root=file),
        every_tool.call("Grep", pattern="needle", path=file, output_mode="content"),
    ]
    swept = [
        every_tool.call("search_files", query="needle", mode="text", root=folder),
        every_tool.call("Grep", pattern="needle", path=folder),
    ]

    assert ["one needle in the hay" in said.text for said in named] == [True, True]
    assert ["binary files, UTF-16 without a byte order mark" in said.text for said in swept] == [True, True]
    assert "UTF-16" not in "".join(said.text for said in named)
