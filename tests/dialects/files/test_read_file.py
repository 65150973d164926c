import base64
import random

import pytest

from dialects.place import Place, sha256
from spec.marks import requirement

TEN = b"".join(b"line %d\n" % n for n in range(1, 11))


@requirement("files:read_file:slice", "files:path:case", "files:result:shape")
def test_a_slice_comes_with_every_documented_field(place: Place) -> None:
    place.put("a.txt", TEN)

    data = place.on("read_file", "a.txt", startLine=3, endLine=4).data

    assert data == {
        "path": place.path("a.txt"),
        "content": "line 3\nline 4\n",
        "startLine": 3,
        "endLine": 4,
        "lineCount": 10,
        "sizeBytes": len(TEN),
        "sha256": sha256(TEN),
        "truncated": False,
        "encoding": "utf-8",
        "newlineStyle": "lf",
        "hasBom": False,
        "finalNewline": True,
    }


@requirement("files:read_file:max_bytes")
def test_max_bytes_cuts_at_a_whole_line_and_says_how_to_go_on(place: Place) -> None:
    place.put("a.txt", TEN)

    first = place.on("read_file", "a.txt", maxBytes=15).data
    rest = place.on("read_file", "a.txt", startLine=first["nextLine"]).data

    assert (first["content"], first["truncated"], first["nextLine"]) == ("line 1\nline 2\n", True, 3)
    assert (first["content"] + rest["content"]).encode() == TEN
    assert "nextLine" not in rest


@requirement("host:budget:page", "host:budget:never_cut")
def test_a_page_has_at_most_2000_lines_and_what_the_host_takes(place: Place) -> None:
    place.put("many", b"x\n" * 5_000)
    place.put("wide", b"y" * 99 + b"\n" + (b"z" * 99 + b"\n") * 999)

    many, wide = place.on("read_file", "many"), place.on("read_file", "wide")

    assert (many.data["endLine"], many.data["nextLine"]) == (2_000, 2_001)
    assert (wide.data["endLine"], len(wide.data["content"])) == (392, 39_200)
    assert len(wide.text) <= 40_000
    assert "goes on: startLine=393" in wide.text.splitlines()[0]
    assert wide.text.endswith("\n[goes on: startLine=393]")


def test_pages_by_next_line_make_the_whole_file(place: Place) -> None:
    text = b"".join(b"%d %s\n" % (n, b"w" * (n % 97)) for n in range(3_000))
    place.put("a", text)

    pieces, line = list[str](), 1
    while line:
        data = place.on("read_file", "a", startLine=line).data
        pieces.append(data["content"])
        line = data.get("nextLine", 0)

    assert "".join(pieces).encode() == text


def test_a_line_longer_than_a_page_is_shown_in_part_and_said_to_be(place: Place) -> None:
    place.put("a.min.js", b"x" * 100_000 + b"\nsecond\n")

    answer = place.on("read_file", "a.min.js")

    pieces, column = [answer.data["content"]], answer.data["nextColumn"]
    assert (answer.data["truncated"], answer.data["nextLine"], column) == (True, 2, len(pieces[0]) + 1)
    assert "too long" in answer.data["notice"]
    assert f"goes on: startLine=1 startColumn={column}; next line: startLine=2" in answer.text.splitlines()[0]
    while column:
        data = place.on("read_file", "a.min.js", startColumn=column).data
        pieces.append(data["content"])
        column = data.get("nextColumn", 0)
    assert "".join(pieces) == "x" * 100_000 + "\n"
    assert place.on("read_file", "a.min.js", startLine=2).data["content"] == "second\n"


@requirement("files:read_file:hashes")
def test_hashes_print_rows_with_anchors_and_spell_the_quality_of_each(place: Place) -> None:
    place.put("a.py", b"def f():\n    return compute(1)\n}\n}\n")

    data = place.on("read_file", "a.py", hashes=True).data

    rows = data["content"].split("\n")
    anchors = [row.partition("|")[0] for row in rows]
    assert [row.partition("|")[2] for row in rows] == ["def f():", "    return compute(1)", "}", "}"]
    assert [(line["line"], line.get("occurrence"), line["quality"]) for line in data["lines"]] == [
        (1, None, "high"),
        (2, None, "high"),
        (3, 1, "low"),
        (4, 2, "low"),
    ]
    assert anchors == [
        f"1#{data['lines'][0]['hash']}",
        f"2#{data['lines'][1]['hash']}",
        f"3#{data['lines'][2]['hash']}.1!",
        f"4#{data['lines'][2]['hash']}.2!",
    ]
    assert all(len(line["hash"]) == 6 for line in data["lines"])


def test_the_occurrence_in_an_anchor_counts_from_the_top_of_the_file_also_in_a_slice(place: Place) -> None:
    place.put("a", b"}\n" * 5)

    data = place.on("read_file", "a", hashes=True, startLine=4).data

    assert [line["occurrence"] for line in data["lines"]] == [4, 5]


@requirement("files:read_file:binary")
def test_a_binary_file_is_refused_with_its_facts_or_sent_as_base64(place: Place) -> None:
    data = b"\x89PNG\0\1\2\3" * 100
    digest = place.put("a.png", data)

    refused = place.on("read_file", "a.png").error
    sent = place.on("read_file", "a.png", allowBinary=True).data

    assert (refused["kind"], refused["details"]) == ("binary_file", {"sizeBytes": len(data), "sha256": digest})
    assert "allowBinary" in refused["suggestedNextAction"]
    assert (base64.b64decode(sent["contentBase64"]), sent["sha256"], sent["truncated"]) == (data, digest, False)


@requirement("files:read_file:binary_pages")
def test_a_large_binary_file_is_read_in_parts(place: Place) -> None:
    data = random.Random(1).randbytes(100_000) + bytes(1)
    place.put("a.bin", bytes(1) + data)
    parts, sent = list[bytes](), place.on("read_file", "a.bin", allowBinary=True)

    while True:
        parts.append(base64.b64decode(sent.data["contentBase64"]))
        assert (sent.data["sizeBytes"], sent.data["sha256"]) == (len(data) + 1, sha256(bytes(1) + data))
        if not sent.data["truncated"]:
            break
        following = sent.data["nextByte"]
        assert following == sum(map(len, parts))
        assert sent.text.count(f"goes on: startByte={following}") == 2  # above and below
        sent = place.on("read_file", "a.bin", allowBinary=True, startByte=following)

    assert len(parts) > 2
    assert b"".join(parts) == bytes(1) + data
    beyond = place.on("read_file", "a.bin", allowBinary=True, startByte=1 << 40)
    assert (beyond.data["contentBase64"], "the file has only 100,002 bytes" in beyond.text) == ("", True)


@requirement("files:read_file:encoding")
def test_the_encoding_is_the_callers_word_about_the_file(place: Place) -> None:
    place.put("a.txt", "naïve café\n".encode("cp1252"))

    named = place.on("read_file", "a.txt", encoding="cp1252").data
    wrong = place.on("read_file", "a.txt", encoding="utf-8").error
    unknown = place.on("read_file", "a.txt", encoding="klingon").error

    assert (named["content"], named["encoding"]) == ("naïve café\n", "cp1252")
    assert (wrong["kind"], unknown["kind"]) == ("command_failed", "command_failed")
    assert r"na\xefve" in place.on("read_file", "a.txt").data["content"]


@requirement("files:read_file:if_none_match")
def test_a_file_that_is_still_the_same_is_not_sent_again(place: Place) -> None:
    digest = place.put("a.txt", TEN)

    same = place.on("read_file", "a.txt", ifNoneMatch=digest).data
    other = place.on("read_file", "a.txt", ifNoneMatch="0" * 64).data

    assert (same["content"], same["notModified"], same["sha256"]) == ("", True, digest)
    assert other["content"].encode() == TEN


@requirement("files:read_file:facts", "files:read_file:line_count")
@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"", (0, "utf-8", "none", False, False)),
        (b"a", (1, "utf-8", "none", False, False)),
        (b"a\n", (1, "utf-8", "lf", False, True)),
        (b"a\r\nb\r\n", (2, "utf-8", "crlf", False, True)),
        (b"a\rb\r", (2, "utf-8", "cr", False, True)),
        (b"a\r\nb\n", (2, "utf-8", "mixed", False, True)),
        (b"\xef\xbb\xbfa\n", (1, "utf-8", "lf", True, True)),
        ("ä\n".encode("utf-16"), (1, "utf-16-le", "lf", True, True)),
        ("a\u2028b\x0cc\u0085d\n".encode(), (1, "utf-8", "lf", False, True)),
    ],
)
def test_the_facts_about_a_file_are_named(place: Place, data: bytes, facts: tuple[int, str, str, bool, bool]) -> None:
    place.put("a", data)

    found = place.on("read_file", "a").data

    named = tuple(found[key] for key in ("lineCount", "encoding", "newlineStyle", "hasBom", "finalNewline"))
    assert (named, found["sizeBytes"], found["sha256"]) == (facts, len(data), sha256(data))


def test_a_start_behind_the_end_is_an_empty_slice_with_a_notice(place: Place) -> None:
    place.put("a", b"one\n")

    data = place.on("read_file", "a", startLine=5).data

    assert (data["content"], data["notice"]) == ("", "the file has only 1 lines")


@pytest.mark.parametrize(
    "arguments",
    [{"startLine": 0}, {"startLine": -3}, {"startLine": 4, "endLine": 2}, {"maxBytes": 0}, {"startLine": "x"}],
)
def test_lines_that_cannot_be_are_refused(place: Place, arguments: dict[str, object]) -> None:
    place.put("a", b"one\n")

    assert place.on("read_file", "a", **arguments).error["kind"] == "command_failed"


@requirement("files:path:roots")
def test_a_path_is_relative_to_the_root_or_absolute_below_it(place: Place) -> None:
    place.put("a", b"one\n")

    relative, absolute = place.on("read_file", "a"), place.call("read_file", path=str(place.file("a")))
    outside = place.call("read_file", path="/etc/passwd")
    climbing = place.call("read_file", path="../../etc/passwd")

    assert relative.data == absolute.data
    assert (outside.error["kind"], climbing.error["kind"]) == ("outside_workspace", "outside_workspace")


def test_missing_files_and_directories_are_told_apart(place: Place) -> None:
    missing, directory = place.on("read_file", "none").error, place.call("read_file", path=place.name).error

    assert (missing["kind"], missing["reason"]) == ("not_found", "no_such_file")
    assert (directory["kind"], directory["reason"]) == ("not_found", "is_a_directory")


def test_a_large_file_is_paged_with_the_same_facts_as_a_small_one(place: Place) -> None:
    row = b"0123456789abcdef" * 8
    data = b"".join(b"%d %s\n" % (n, row) for n in range(70_000))
    digest = place.put("large.log", data)

    page = place.on("read_file", "large.log", startLine=69_999).data
    anchored = place.on("read_file", "large.log", startLine=69_999, hashes=True).data

    assert (page["content"].encode(), page["sha256"]) == (b"69998 %s\n69999 %s\n" % (row, row), digest)
    assert (page["lineCount"], page["sizeBytes"]) == (70_000, len(data))
    assert [line["quality"] for line in anchored["lines"]] == ["high", "high"]


@requirement("host:result:reading_is_text", "host:result:meta")
def test_a_read_is_text_only_and_the_structured_form_is_in_the_meta(place: Place) -> None:
    digest = place.put("a.txt", b"hello\n")

    answer = place.on("read_file", "a.txt")

    assert "structuredContent" not in answer.raw
    assert answer.text == f"{place.path('a.txt')} · lines 1-1 of 1 · sha256 {digest}\nhello\n"
    assert answer.result["data"]["content"] == "hello\n"


@pytest.mark.parametrize("max_bytes", [1, 3, 7])
def test_the_anchor_of_a_cut_line_is_that_of_the_whole_line(place: Place, max_bytes: int) -> None:
    place.put("a", b"onetwo three\none\nxyz\n")

    whole = place.on("read_file", "a", hashes=True).data["lines"][0]
    cut = place.on("read_file", "a", hashes=True, maxBytes=max_bytes).data

    assert cut["lines"] == [whole]
    assert cut["content"].partition("|")[2] == "onetwo three"[:max_bytes]


def test_a_cut_line_of_a_large_file_is_shown_without_an_anchor(place: Place) -> None:
    place.put("a", b"x" * 9_000_000 + b"\nshort line\n")

    data = place.on("read_file", "a", hashes=True).data

    assert (data["lines"], data["content"][:3], data["nextLine"]) == ([], "xxx", 2)


@pytest.mark.parametrize("data", [b"one\na\0b\n", b"a\0b\0c\0", b"\0\0", b"key\0value\0key\0value\0abc\0defg\0"])
def test_a_few_zero_bytes_do_not_make_text(place: Place, data: bytes) -> None:
    digest = place.put("a", data)

    assert place.on("read_file", "a").error["kind"] == "binary_file"
    assert place.on("write_file", "a", content="hello\n", expectedSha256=digest).error["kind"] == "binary_file"
    assert place.get("a") == data
