"""Edits of files in every encoding: only the bytes of the edit change."""

import pytest

from dialects.claude.desk import Desk
from spec.marks import requirement

_JAPANESE = "# coding: cp932\n表示\n".encode("cp932") + b"\xfa\x54 kept\nold value\n"


@requirement("claude:edit:tiers")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(
            b"# coding: latin-1\ncaf\xe9 old\n", "old", "new", b"# coding: latin-1\ncaf\xe9 new\n", id="latin-1"
        ),
        pytest.param(b"caf\xe9 old\n", "old", "new", b"caf\xe9 new\n", id="undeclared latin-1"),
        pytest.param(
            "# coding: gbk\n中文 old\n".encode("gbk"),
            "old",
            "new 你",
            "# coding: gbk\n中文 new 你\n".encode("gbk"),
            id="gbk",
        ),
        pytest.param(_JAPANESE, "old", "new", _JAPANESE.replace(b"old", b"new"), id="cp932"),
        pytest.param(
            "\ufeffone\r\nold\r\n".encode("utf-16-le"),
            "one\nold",
            "one\nnew\nmore",
            "\ufeffone\r\nnew\r\nmore\r\n".encode("utf-16-le"),
            id="utf-16-le with a mark",
        ),
        pytest.param(
            "some plain text and the old value\n".encode("utf-16-be"),
            "old",
            "new",
            "some plain text and the new value\n".encode("utf-16-be"),
            id="utf-16-be without a mark",
        ),
        pytest.param(
            "é fine\n".encode() + b"\xff stray old\n",
            "old",
            "new",
            "é fine\n".encode() + b"\xff stray new\n",
            id="stray byte",
        ),
        pytest.param(b"\xef\xbb\xbfold\r\n", "old", "new", b"\xef\xbb\xbfnew\r\n", id="utf-8 with a mark"),
    ],
)
def test_15_16_18_only_the_bytes_of_the_edit_change(
    desk: Desk, before: bytes, old: str, new: str, after: bytes
) -> None:
    assert desk.edited(before, old, new) == after


@requirement("claude:refusal:shape")
def test_17_japanese_goes_into_shift_jis_and_an_emoji_does_not(desk: Desk) -> None:
    desk.put("file.txt", _JAPANESE)
    desk.read("file.txt")

    assert desk.edit("file.txt", "value", "日本").ok
    after = _JAPANESE.replace(b"value", "日本".encode("shift_jis"))
    assert desk.get("file.txt") == after
    told = desk.edit("file.txt", "kept", "😀")
    assert told.kind == "encoding_unencodable"
    assert told.error["details"]["characters"] == ["U+1F600"]
    assert desk.get("file.txt") == after


@requirement("claude:edit:tiers", "claude:edit:style_kept")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\nb\r\nc\nd\r\n", "b\nc", "b\nnew\nc", b"a\nb\r\nnew\r\nc\nd\r\n"),
        (b"a\rb\rc\r", "a\nb", "x\ny", b"x\ry\rc\r"),
        (b"keep  \nold\n", "old", "new", b"keep  \nnew\n"),
        (b"no end", "end", "END", b"no END"),
    ],
)
def test_19_20_21_every_other_line_keeps_its_ending(
    desk: Desk, before: bytes, old: str, new: str, after: bytes
) -> None:
    desk.put("file.txt", before)
    desk.read("file.txt")

    told = desk.edit("file.txt", old, new)

    assert told.data["matchTier"] == ("line_endings" if "\n" in old else "exact")
    assert desk.get("file.txt") == after


@requirement("claude:edit:tiers", "claude:edit:style_kept")
@pytest.mark.parametrize("codec", ["utf-8", "gbk", "shift_jis", "cp1252", "utf-16-le"])
def test_curly_quotes_are_kept_in_every_encoding(desk: Desk, codec: str) -> None:
    head = "" if codec == "utf-8" else "\ufeff" if codec == "utf-16-le" else f"# coding: {codec}\n"
    before = f"{head}first ’\r\nHe said “yes, it’s so” then.\r\n".encode(codec)

    after = desk.edited(before, 'said "yes, it\'s so" then.', 'said "no, it\'s not" then.\nAnd "x".')

    assert after == f'{head}first ’\r\nHe said “no, it’s not” then.\r\nAnd "x".\r\n'.encode(codec)
