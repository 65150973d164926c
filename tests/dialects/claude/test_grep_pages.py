"""Grep through a real server: pages, totals, what was not looked at, and what counts as seen."""

import os
from pathlib import Path

import pytest

from dialects.claude.searcher import Heard, Searcher, Server, searcher_of
from front.mcp.client import StdioClient
from spec.marks import requirement


@pytest.fixture
def there(server: Server) -> Searcher:
    return searcher_of(server)


@requirement("claude:grep:totals")
@pytest.mark.parametrize("mode", ["files_with_matches", "count", "content"])
def test_pages_are_one_answer_in_pieces_whatever_is_touched_meanwhile(there: Searcher, mode: str) -> None:
    for number in range(40):
        there.put(f"d{number % 3}/f{number:02}.txt", b"a\nneedle\nb\n", age=number)
    whole = there.grep("needle", output_mode=mode, head_limit=0).data
    key = "filenames" if mode == "files_with_matches" else "content"

    pages = list[str]()
    offset = 0
    while True:
        page = there.grep("needle", output_mode=mode, head_limit=7, offset=offset).data
        pages += page[key] if mode == "files_with_matches" else page[key].split("\n")
        assert page["totalFiles"] == 40
        for each in there.home.rglob("*5.txt"):
            os.utime(each)
        if not page["truncated"]:
            break
        assert page["appliedLimit"] == 7
        assert page["nextOffset"] == offset + 7
        offset = page["nextOffset"]

    assert pages == (whole[key] if mode == "files_with_matches" else whole[key].split("\n"))
    assert page["appliedOffset"] == 35


@requirement("claude:grep:totals")
def test_pages_with_context_join_without_a_gap(there: Searcher) -> None:
    there.put("a.txt", b"".join(b"needle\n" if number % 4 == 0 else b"line\n" for number in range(40)))
    whole = there.grep("needle", output_mode="content", _C=1, head_limit=0)

    pages = [there.grep("needle", output_mode="content", _C=1, head_limit=8, offset=at) for at in range(0, 40, 8)]

    rows = [row for page in pages for row in page.rows if row != "--"]
    assert rows == [row for row in whole.rows if row != "--"]
    assert [page.data["numLines"] for page in pages] == [8, 8, 8, len(rows) - 24, 0]
    assert {page.data["totalLines"] for page in pages} == {10}


def test_an_offset_past_the_end_is_said(there: Searcher) -> None:
    there.put("a.txt")

    found = there.grep("needle", offset=5)

    assert (found.data["filenames"], found.data["totalFiles"]) == ([], 1)
    assert "[offset=5 is past the end: there are 1 files with matches.]" in found.text


def test_more_than_the_budget_goes_on_where_it_ended(there: Searcher) -> None:
    there.put("a.txt", b"".join(b"needle %05d %s\n" % (number, b"x" * 80) for number in range(3000)))

    first = there.grep("needle", output_mode="content", head_limit=0)
    second = there.grep("needle", output_mode="content", head_limit=0, offset=first.data["nextOffset"])

    assert len(first.text) <= 40_000
    assert first.data["totalLines"] == 3000
    assert f"goes on: offset={first.data['nextOffset']}" in first.text
    last, following = first.rows[-1], second.rows[0]
    assert int(following.split(":")[1]) == int(last.split(":")[1]) + 1


@requirement("claude:search:not_looked_at")
def test_zero_hits_say_what_was_left_out_and_would_have_matched(there: Searcher) -> None:
    there.put(".gitignore", b"scripts/*\n")
    there.put("scripts/deploy.sh")
    there.put("node_modules/dep/index.js")
    there.put("a.txt", b"nothing\n")

    found, inside = there.grep("needle"), there.grep("needle", "scripts")

    assert (found.data["filenames"], found.data["ignoredMatches"]) == ([], 2)
    assert found.text.startswith("No matches · 2 files searched · left out: ignored files, node_modules, target")
    assert "[0 matches; 2 ignored or build-directory files match: " in found.text
    assert there.own("scripts/deploy.sh")[0] in found.text
    assert inside.data["ignoredMatches"] == 1
    assert there.files("needle", "scripts", include_ignored=True) == ["scripts/deploy.sh"]
    assert there.grep("nowhere at all").data["ignoredMatches"] == 0


@requirement("claude:search:not_looked_at")
def test_binary_files_are_counted_and_late_zero_bytes_hide_nothing(there: Searcher) -> None:
    there.put("bin.dat", b"needle\0\n")
    there.put("late.txt", b"needle\n" * 3000 + b"\0\nneedle\n")
    there.put("later.txt", b"needle\n" + b"x" * 99 * 1000 + b"\n\0needle\n")
    there.put("wide.txt", "é needle\n".encode("utf-16"))

    files, counts = there.grep("needle"), there.grep("needle", output_mode="count")
    lines = there.grep("needle", output_mode="content", head_limit=1)

    for found in (files, counts, lines):
        assert (found.data["totalFiles"], found.data["notLookedAt"]) == (3, {"binary": 1})
    assert "not looked at: 1 binary" in files.text
    assert there.without(counts.rows) == ["late.txt:3001", "later.txt:2", "wide.txt:1"]
    assert (lines.data["totalLines"], lines.data["totalMatches"]) == (3004, 3004)
    assert there.grep("needle", "bin.dat").error["kind"] == "binary_file"


@pytest.mark.parametrize("mode", ["files_with_matches", "count", "content"])
def test_odd_names_are_shown_escaped_and_links_are_no_trap(there: Searcher, mode: str) -> None:
    there.put(b"bad\xff.txt")
    there.put("two\n\nlines.txt")
    there.put('path: binary file matches (found "\\0" byte around offset 3)')
    (there.home / "loop").symlink_to(there.home)
    (there.home / "link.txt").symlink_to("two\n\nlines.txt")

    assert there.without(there.grep("needle", output_mode=mode).data["filenames"]) == [
        "bad\\xff.txt",
        'path: binary file matches (found "\\0" byte around offset 3)',
        "two\\n\\nlines.txt",
    ]


@requirement("claude:search:sightings")
def test_lines_that_were_shown_count_as_seen_so_that_they_can_be_edited(there: Searcher) -> None:
    there.put("a.txt", b"one\nneedle\nthree\n")
    edit = {"file_path": str(there.home / "a.txt"), "old_string": "needle", "new_string": "thread"}

    named = there.grep("needle")
    unseen = Heard(there.client.call("Edit", edit))
    shown = there.grep("needle", output_mode="content")
    seen = Heard(there.client.call("Edit", edit))

    assert len(named.data["filenames"]) == len(shown.data["filenames"]) == 1
    assert unseen.raw["isError"] is True
    assert seen.raw.get("isError", False) is False, seen.text
    assert (there.home / "a.txt").read_bytes() == b"one\nthread\nthree\n"


@pytest.mark.parametrize("finds", [True, False])
@requirement("claude:search:not_looked_at")
def test_what_takes_too_long_is_a_part_that_says_so_or_an_error(tmp_path: Path, *, finds: bool) -> None:
    """A server with little time, and a stand-in for ripgrep that finds one file, or none, and then sleeps."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(b"needle\n")
    stand_in = tmp_path / "rg"
    record = "printf './a.txt\\0000:[Omitted long line with 1 matches]\\n'" if finds else "true"
    stand_in.write_text(f"#!/bin/sh\n{record}; exec sleep 60\n")
    stand_in.chmod(0o755)
    script = (
        "import surehold.workspace.finder as f, sys;"
        "f.Finder.__init__.__kwdefaults__['seconds'] = 0.5;"
        "from surehold.front.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )
    command = ["-c", script, "mcp", str(root), "--state-dir", str(tmp_path / "state"), "--tools", "claude", "--meta"]
    with StdioClient(command, environment={"SUREHOLD_RIPGREP": str(stand_in)}) as client:
        heard = Heard(client.call("Grep", {"pattern": "needle"}))

    if not finds:
        assert heard.error["kind"] == "timeout_partial"
        assert heard.error["suggested_action"]
    else:
        assert (heard.data["filenames"], heard.data["complete"]) == (["a.txt"], False)
        assert "1 file so far with matches" in heard.text
        assert "Time was up after 0.5 s: this is what was found until then, not all there is." in heard.text
