import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.claude.read_place import Desk, Said, desk_at
from spec.marks import requirement
from waiting import wait_until

TEN = b"".join(b"line %d\n" % number for number in range(1, 11))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("read")) as found:
        yield found


@requirement("claude:read:text", "claude:read:types")
def test_text_has_numbered_lines_and_every_documented_field(desk: Desk) -> None:
    path = desk.put("ten.txt", TEN)

    said = desk.read(path)

    assert said.data == {
        "type": "text",
        "filePath": path,
        "content": "\n".join(f"{number}→line {number}" for number in range(1, 11)),
        "numLines": 10,
        "startLine": 1,
        "totalLines": 10,
        "sha256": hashlib.sha256(TEN).hexdigest(),
        "encoding": "utf-8",
        "eol": "lf",
        "truncated": False,
    }
    assert said.text == said.data["content"]
    assert "structuredContent" not in said.raw


def test_only_the_path_is_required_and_the_defaults_stand_in_the_schema(desk: Desk) -> None:
    (schema,) = [tool["inputSchema"] for tool in desk.client.request("tools/list")["tools"] if tool["name"] == "Read"]

    assert schema["required"] == ["file_path"]
    assert set(schema["properties"]) >= {"file_path", "offset", "limit", "pages"}
    assert (schema["properties"]["offset"]["default"], schema["properties"]["limit"]["default"]) == (1, 2_000)


@requirement("claude:read:text")
def test_offset_and_limit_name_lines_from_one(desk: Desk) -> None:
    path = desk.put("slice.txt", TEN)

    said = desk.read(path, offset=3, limit=2)

    assert said.data["content"] == "3→line 3\n4→line 4"
    assert (said.data["startLine"], said.data["numLines"], said.data["totalLines"]) == (3, 2, 10)
    assert (said.data["truncated"], said.data["nextOffset"]) == (False, 5)
    assert said.text.splitlines()[-1] == "[lines 3-4 of 10; goes on: offset=5]"
    assert desk.read(path, offset=9).text.splitlines()[-1] == "[lines 9-10 of 10, up to the end]"


@pytest.mark.parametrize(
    ("arguments", "first", "count"),
    [
        ({"offset": "5", "limit": "2"}, 5, 2),
        ({"offset": 0}, 1, 10),
        ({"offset": None, "limit": None, "pages": None}, 1, 10),
        ({"offset": 2.0}, 2, 9),
        ({"pages": ""}, 1, 10),
        ({"limit": 1_000_000}, 1, 10),
    ],
)
def test_numbers_are_taken_as_models_write_them(
    desk: Desk, arguments: dict[str, object], first: int, count: int
) -> None:
    data = desk.read(desk.put("ten.txt", TEN), **arguments).data

    assert (data["startLine"], data["numLines"]) == (first, count)


@pytest.mark.parametrize("arguments", [{"offset": -1}, {"limit": 0}, {"limit": -5}, {"column": -1}, {"offset": "x"}])
def test_numbers_that_name_no_line_are_refused(desk: Desk, arguments: dict[str, object]) -> None:
    error = desk.read(desk.put("ten.txt", TEN), **arguments).error

    assert error["kind"] == "invalid_arguments"
    assert error["suggested_action"]


@requirement("claude:parameters:absolute")
def test_a_relative_path_begins_at_the_root_and_the_absolute_one_is_echoed(desk: Desk) -> None:
    path = desk.put("deep/er.txt", b"x\n")

    assert desk.read("deep/er.txt").data["filePath"] == path


@requirement("claude:read:empty")
def test_an_empty_file_and_an_offset_behind_the_end_are_results_with_a_notice(desk: Desk) -> None:
    empty, past = desk.read(desk.put("empty", b"")), desk.read(desk.put("ten.txt", TEN), offset=99)

    assert (empty.data["numLines"], empty.data["totalLines"], empty.data["content"]) == (0, 0, "")
    assert (empty.text, past.text) == ("[the file is empty]", "[the file has only 10 lines]")
    assert (past.data["numLines"], past.data["totalLines"], "nextOffset" in past.data) == (0, 10, False)


@requirement("claude:read:text")
def test_a_page_has_at_most_2000_lines_or_40000_characters_and_says_how_to_go_on(desk: Desk) -> None:
    many = desk.read(desk.put("many", b"x\n" * 5_000))
    wide = desk.read(desk.put("wide", (b"z" * 999 + b"\n") * 100))

    assert (many.data["numLines"], many.data["truncated"], many.data["nextOffset"]) == (2_000, True, 2_001)
    assert many.text.splitlines()[-1] == "[lines 1-2000 of 5,000; goes on: offset=2001]"
    assert (wide.data["numLines"], wide.data["truncated"], wide.data["nextOffset"]) == (39, True, 40)
    assert len(wide.data["content"]) <= 40_000


def test_pages_by_next_offset_make_the_whole_file(desk: Desk) -> None:
    text = "".join(f"{number} {'w' * (number % 997)}\n" for number in range(300))
    path = desk.put("paged", text.encode())

    rows, offset = list[str](), 1
    while offset:
        data = desk.read(path, offset=offset).data
        rows += data["content"].split("\n")
        offset = data.get("nextOffset", 0)

    assert "".join(row.partition("→")[2] + "\n" for row in rows) == text


@requirement("claude:read:long_line")
def test_the_last_line_is_not_said_to_have_a_next_one(desk: Desk) -> None:
    long = b"x" * 90_000

    said = [desk.read(desk.put("long.txt", data)).text for data in (long, long + b"\nnext\n")]

    assert ["the next line: offset=2" in text for text in said] == [False, True]


def test_a_line_above_2000_characters_goes_on_in_rows_of_its_own_and_counts_once(desk: Desk) -> None:
    said = desk.read(desk.put("long", b"short\n" + b"a" * 2_000 + b"b" * 2_000 + b"c\nend\n"))

    assert said.data["content"].split("\n") == ["1→short", "2→" + "a" * 2_000, "2.2→" + "b" * 2_000, "2.3→c", "3→end"]
    assert (said.data["numLines"], said.data["totalLines"], said.data["truncated"]) == (3, 3, False)


@requirement("claude:read:long_line")
def test_a_line_longer_than_a_page_is_read_on_by_its_column(desk: Desk) -> None:
    line = "".join(f"{number:07}" for number in range(15_000))
    path = desk.put("giant", f"{line}\nend\n".encode())

    found, column = "", 1
    while column:
        data = desk.read(path, column=column).data
        found += "".join(row.partition("→")[2] for row in data["content"].split("\n"))
        assert (data["numLines"], data["startLine"], data["totalLines"]) == (1, 1, 2)
        if column == 1:
            assert (data["truncated"], data["nextOffset"], data["nextColumn"]) == (True, 1, 38_001)
            assert "characters 1 to 38,000 of 105,000" in data["notice"]
        column = data.get("nextColumn", 0)

    assert found == line
    assert desk.read(path, offset=2).data["content"] == "2→end"
    assert desk.read(path, column=999_999).text == "[line 1 has only 105,000 characters]"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_characters_of_several_bytes_are_never_torn(desk: Desk, encoding: str) -> None:
    line = "€ü😀x" * 30_000
    path = desk.put("wide-characters", ("\ufeff" + line + "\n").encode(encoding))

    found, column = "", 1
    while column:
        data = desk.read(path, column=column).data
        found += "".join(row.partition("→")[2] for row in data["content"].split("\n"))
        column = data.get("nextColumn", 0)

    assert found == line


@requirement("text:line:numbers")
def test_only_line_ends_end_lines(desk: Desk) -> None:
    data = desk.read(desk.put("odd", "a\fb\u2028c\u0085d\ve\rf\nsecond\n".encode())).data

    assert data["content"].split("\n") == ["1→a\fb\u2028c\u0085d\ve\rf", "2→second"]
    assert data["totalLines"] == 2


def test_what_the_lines_do_not_show_is_said_below_them(desk: Desk) -> None:
    crlf = desk.read(desk.put("crlf", b"a\r\nb"))
    latin = desk.read(desk.put("latin", "naïve\n".encode("cp1252")), encoding="cp1252")
    marked = desk.read(desk.put("marked", b"\xef\xbb\xbfa\n"))

    assert (crlf.data["content"], crlf.data["eol"]) == ("1→a\n2→b", "crlf")
    assert crlf.text.splitlines()[-1] == "[line ends: crlf; no newline at the end of the file]"
    assert (latin.data["content"], latin.data["encoding"], latin.text) == ("1→naïve", "cp1252", "1→naïve\n[cp1252]")
    assert marked.text == "1→a\n[byte order mark]"
    raw = desk.read(desk.put("raw", b"caf\xe9\n"))
    assert raw.text == "1→caf\\xe9\n[its encoding is unknown, and bytes outside of ASCII are shown as \\xNN]"


def test_an_svg_is_text_and_text_under_the_name_of_an_image_is_said_to_be(desk: Desk) -> None:
    svg = desk.read(desk.put("a.svg", b"<svg/>\n"))
    pointer = desk.read(desk.put("photo.png", b"version https://git-lfs.github.com/spec/v1\n"))

    assert (svg.data["type"], svg.data["content"]) == ("text", "1→<svg/>")
    assert pointer.data["type"] == "text"
    assert pointer.data["notice"] == "its name is that of an image, but it is text"


def test_pages_of_something_else_than_a_document_are_ignored_and_that_is_said(desk: Desk) -> None:
    assert (
        desk.read(desk.put("ten.txt", TEN), pages="1-5").data["notice"]
        == "`pages` is for PDF documents and was ignored"
    )


@requirement("claude:read:devices")
@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "/proc/kcore", "/dev/urandom"]
)
def test_devices_and_endless_files_are_out_of_reach(desk: Desk, path: str) -> None:
    assert desk.read(path).error["kind"] == "outside_roots"


@requirement("claude:read:devices")
def test_nothing_but_regular_files_is_read(desk: Desk) -> None:
    os.mkfifo(desk.root / "fifo")
    (desk.root / "zero").symlink_to("/dev/zero")
    (desk.root / "environ").symlink_to("/proc/self/environ")
    desk.put("folder/x", b"")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(desk.root)  # a socket's path must be short
    listening.bind("socket")
    os.chdir(here)

    kinds = {
        name: desk.read(str(desk.root / name)).error["kind"] for name in ("fifo", "socket", "zero", "environ", "folder")
    }
    listening.close()

    assert kinds == {
        "fifo": "not_regular_file",
        "socket": "not_regular_file",
        "zero": "outside_roots",
        "environ": "outside_roots",
        "folder": "is_directory",
    }


@requirement("claude:read:binary")
def test_a_binary_file_that_is_neither_image_nor_document_is_refused_with_its_kind(desk: Desk) -> None:
    archive = desk.read(desk.put("a.zip", b"PK\x03\x04" + bytes(range(256)))).error
    zeros = desk.read(desk.put("a.bin", b"abc\0\1\2" * 50)).error

    assert (archive["kind"], zeros["kind"]) == ("binary_file", "binary_file")
    assert "ZIP archive" in archive["message"]
    assert (zeros["details"]["size_bytes"], "read_file" in zeros["suggested_action"]) == (300, False)


def test_a_missing_file_comes_with_near_names(desk: Desk) -> None:
    desk.put("near/settings.toml", b"")

    error = desk.read(str(desk.root / "near/setting.toml")).error

    assert (error["kind"], error["details"]["near_names"]) == ("file_not_found", ["settings.toml"])
    assert desk.read("nowhere/at/all").error["kind"] == "file_not_found"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Shot 9.41\u202fPM", "Shot 9.41 PM"),
        ("no\u00a0break", "no break"),
        ("cafe\u0301", "café"),
        ("plain name", "plain\u2009name"),
    ],
)
def test_the_one_name_that_looks_the_same_is_meant(desk: Desk, name: str, asked: str) -> None:
    path = desk.put(f"alike/{name}", b"found\n")

    said = desk.read(str(desk.root / "alike" / asked))

    assert (said.data["filePath"], said.data["content"]) == (path, "1→found")
    assert "the file is named" in said.data["notice"]


def test_two_names_that_look_the_same_are_both_told_and_can_be_copied(desk: Desk) -> None:
    for blank in ("\u202f", "\u00a0"):
        desk.put(f"two/a{blank}b", ascii(blank).encode())

    error = desk.read(str(desk.root / "two/a b")).error
    copied = [desk.read(str(desk.root / "two" / name)).data["content"] for name in error["details"]["look_alikes"]]

    assert error["kind"] == "file_not_found"
    assert error["details"]["look_alikes"] == ["a\\u00a0b", "a\\u202fb"]
    assert copied == ["1→'\\xa0'", "1→'\\u202f'"]


def test_a_name_that_a_rule_hides_is_not_offered(tmp_path: Path) -> None:
    with desk_at(tmp_path, "--deny", "secret*") as desk:
        desk.put("secret.txt", b"x")

        near, alike = desk.read("secret.tx").error, desk.read("secret\u200b.txt").error

    assert "secret.txt" not in str(near)
    assert "near_names" not in alike["details"] or not alike["details"]["near_names"]


def sparse(desk: Desk, name: str, size: int) -> str:
    """Put a file there that begins with lines and goes on with a hole."""
    path = desk.put(name, b"one of many lines\n" * 200_000)
    os.truncate(path, size)
    return path


def test_a_very_large_file_is_read_only_as_far_as_it_is_shown(desk: Desk) -> None:
    path = sparse(desk, "large.log", (1 << 30) + 1)

    said = desk.read(path, offset=1_001)

    assert (said.data["startLine"], said.data["numLines"], said.data["nextOffset"]) == (1_001, 1_708, 2_709)
    assert (said.data["totalLines"], "sha256" in said.data, said.data["truncated"]) == (None, False, True)
    assert "was not read to its end" in said.text
    error = desk.call("Edit", file_path=path, old_string="one of many", new_string="x").error
    assert error["kind"] in {"not_read", "file_too_large"}


@pytest.mark.parametrize("width", [11, 60, 127, 500])
def test_a_page_of_a_very_large_file_is_the_one_of_a_small_file(desk: Desk, width: int) -> None:
    lines = b"".join(b"%06d %s\n" % (number, b"x" * (width - 7)) for number in range(1, 6_001))
    small, large = desk.put("small.log", lines), desk.put("large.log", lines)
    os.truncate(large, 257 << 20)

    pages = [{}, {"offset": 2_500}, {"limit": 3}, {"offset": 5_990, "limit": 5}, {"column": 3}]
    found = [[desk.read(path, **page).data["content"] for page in pages] for path in (small, large)]

    assert found[0] == found[1]
    Path(large).unlink()


def is_shown_only(said: Said) -> bool:
    return "a file that another program is writing" in said.text and "sha256" not in said.data


def test_a_log_that_is_being_written_is_shown_and_not_taken_as_seen(desk: Desk) -> None:
    path, done = desk.put("live.log", b"one of many lines\n" * 1_000_000), threading.Event()

    def write() -> None:
        with Path(path).open("ab", buffering=0) as log:
            while not done.wait(0.001):
                log.write(b"one more\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        said = [desk.read(path, offset=offset, limit=2) for offset in (1, 500_000, 1_000_000)]
        wait_until(lambda: is_shown_only(desk.read(path, offset=1, limit=2)))
        refused = desk.call("Edit", file_path=path, old_string="one of many", new_string="x").error["kind"]
    finally:
        done.set()
        writer.join()

    assert [one.data["content"].split("\n")[0] for one in said] == [
        f"{number}→one of many lines" for number in (1, 500_000, 1_000_000)
    ]
    assert refused in {"not_read", "stale"}
    Path(path).unlink()


def test_a_line_that_no_file_has_is_not_found_in_a_very_large_file_either(desk: Desk) -> None:
    path = sparse(desk, "far.log", 257 << 20)

    said = desk.read(path, offset=10**30)

    assert (said.data["numLines"], said.data["totalLines"]) == (0, 200_001)
    Path(path).unlink()


def test_a_very_large_file_is_read_to_its_end_when_that_is_asked_for(desk: Desk) -> None:
    path = sparse(desk, "whole.log", 300 << 20)

    said = desk.read(path, limit=3, sha256=True)

    assert (said.data["totalLines"], said.data["nextOffset"], len(said.data["sha256"])) == (200_001, 4, 64)


def test_the_end_of_a_very_large_file_is_found_and_known_to_be_the_end(desk: Desk) -> None:
    path = desk.put("tail.log", b"")
    with Path(path).open("wb") as file:
        file.writelines((b"x" * 1_023 + b"\n") * 1_024 for _ in range(270))
        file.write(b"the end\n")

    said = desk.read(path, offset=270 * 1_024 + 1)

    assert said.data["content"] == f"{270 * 1_024 + 1}→the end"
    assert (said.data["totalLines"], len(said.data["sha256"])) == (270 * 1_024 + 1, 64)
    Path(path).unlink()
