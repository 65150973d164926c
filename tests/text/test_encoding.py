from dataclasses import replace

import pytest

from spec.marks import requirement
from surehold.errors import BinaryFile, InvalidArgument, NotEncodable
from surehold.text.encoding import (
    RAW,
    UTF8,
    Encoding,
    declaration_warnings,
    detect_encoding,
    encoding_for_new_text,
    encoding_named,
)


@requirement(
    "text:encoding:bom", "text:encoding:in_file", "text:encoding:utf8", "text:encoding:utf16", "text:encoding:raw"
)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", UTF8),
        (b"plain\n", UTF8),
        ("é\n".encode(), UTF8),
        (b"\xef\xbb\xbfx", Encoding(name="utf-8", bom=b"\xef\xbb\xbf")),
        ("\ufeffx".encode("utf-16-le"), Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)),
        ("\ufeffx".encode("utf-16-be"), Encoding(name="utf-16-be", bom=b"\xfe\xff", width=2)),
        ("\ufeffx".encode("utf-32-le"), Encoding(name="utf-32-le", bom=b"\xff\xfe\0\0", width=4)),
        ("plain text\n".encode("utf-16-le"), Encoding(name="utf-16-le", width=2)),
        ("plain text\n".encode("utf-16-be"), Encoding(name="utf-16-be", width=2)),
        (b"# -*- coding: latin-1 -*-\ns = '\xe9'\n", Encoding(name="iso8859-1")),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\x93\n", Encoding(name="cp1252")),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?>\n<a>\xe9</a>', Encoding(name="iso8859-1")),
        (b'<html><meta charset="windows-1252">\x80</html>', Encoding(name="cp1252")),
        (b"caf\xe9\n", RAW),
        (b"# coding: nonsense\ncaf\xe9\n", RAW),
        (b"# coding: utf-8\ncaf\xe9\n", RAW),
        (b"\xef\xbb\xbf\xff\xff", RAW),
    ],
)
def test_the_encoding_is_decided_in_the_documented_order(data: bytes, expected: Encoding) -> None:
    assert detect_encoding(data) == expected


@requirement("text:encoding:bom")
def test_a_byte_order_mark_outranks_the_callers_word() -> None:
    assert detect_encoding(b"\xef\xbb\xbfx", requested="latin-1").name == "utf-8"


@requirement("text:encoding:caller")
def test_the_callers_word_outranks_a_declaration() -> None:
    assert detect_encoding(b"# coding: latin-1\n\xe9\n", requested="cp1252").name == "cp1252"


@requirement("text:encoding:editorconfig")
def test_the_configured_charset_outranks_what_the_file_declares() -> None:
    assert detect_encoding(b"# coding: cp1252\n\xe9\n", configured=lambda: "latin-1").name == "iso8859-1"


def test_a_configured_charset_counts_also_while_the_file_is_plain_ascii() -> None:
    assert detect_encoding(b"x\n", configured=lambda: "latin-1").name == "iso8859-1"


def test_a_configured_charset_that_does_not_fit_is_passed_over() -> None:
    assert detect_encoding("中".encode(), configured=lambda: "ascii") == UTF8


@requirement("text:encoding:detector")
def test_a_detector_is_asked_last() -> None:
    assert detect_encoding(b"caf\xe9", detector=lambda _: "cp1252").name == "cp1252"
    assert detect_encoding(b"caf\xe9", detector=lambda _: None) == RAW
    assert detect_encoding("é".encode(), detector=lambda _: "cp1252") == UTF8


@requirement("text:binary:nul")
@pytest.mark.parametrize("data", [b"a\0b", b"\x7fELF\x02\x01\0\0\0\0", b"\0" * 100, b"abc\n" * 1000 + b"\0"])
def test_zero_bytes_near_the_start_without_utf16_are_binary(data: bytes) -> None:
    with pytest.raises(BinaryFile):
        detect_encoding(data)


@requirement("text:encoding:utf16")
@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("text", "is_text"),
    [
        ("a中" * 9, True),
        ("a中" * 9 + "中", False),
        ("a" * 20 + "Ā", True),
        ("a" * 19 + "Ā", False),
        ("aĀ" * 20, False),
        ("a\x07", False),
    ],
    ids=[
        "a quarter are zeros",
        "fewer are",
        "one of 20 on the other side",
        "one of 19",
        "as many",
        "a control character",
    ],
)
def test_utf16_has_many_zeros_on_one_side_and_hardly_any_on_the_other(name: str, text: str, is_text: bool) -> None:
    data = text.encode(name)
    if is_text:
        assert detect_encoding(data).name == name
    else:
        with pytest.raises(BinaryFile):
            detect_encoding(data)


@requirement("text:binary:later_nul")
def test_a_zero_byte_behind_the_first_8_kib_does_not_make_a_file_binary() -> None:
    assert detect_encoding(b"a" * 8192 + b"\0") == UTF8


@requirement("text:encoding:caller")
def test_an_encoding_that_does_not_fit_the_bytes_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        detect_encoding(b"\xff", requested="utf-8")


@requirement("text:encoding:not_spliceable")
@pytest.mark.parametrize(
    "name", ["nonsense", "utf-7", "iso2022_jp", "hz", "cp037", "rot13", "unicode_escape", "base64", "idna"]
)
def test_encodings_that_cannot_be_spliced_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encoding_named(name)

    assert f"`{name}`" in refused.value.message


@requirement("text:encoding:unencodable")
def test_new_characters_that_do_not_fit_are_named() -> None:
    with pytest.raises(NotEncodable) as refused:
        Encoding(name="iso8859-1").encode("a€中€")

    assert refused.value.details == {"characters": ["U+20AC", "U+4E2D"], "encoding": "iso8859-1"}
    assert refused.value.message == "The file's encoding (iso8859-1) cannot hold € (U+20AC), 中 (U+4E2D)."
    with pytest.raises(NotEncodable, match=r"cannot hold U\+202E\."):
        Encoding(name="iso8859-1").encode("\u202e")


@requirement("text:encoding:raw")
def test_bytes_that_fit_nothing_are_shown_with_escapes_and_take_only_ascii() -> None:
    assert RAW.decode(b"caf\xe9") == r"caf\xe9"
    assert RAW.encode("plain") == b"plain"
    with pytest.raises(NotEncodable):
        RAW.encode("é")


@requirement("text:encoding:editorconfig")
def test_zero_bytes_do_not_outrank_a_configured_utf16() -> None:
    data = "日本語\n中文\n".encode("utf-16-le")

    assert detect_encoding(data, configured=lambda: "utf-16-le").name == "utf-16-le"


@requirement("text:binary:nul")
@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "utf-16-le"])
def test_a_configured_charset_does_not_make_binary_data_text(charset: str) -> None:
    with pytest.raises(BinaryFile):
        detect_encoding(b"\x7fELF\x02\x01\0\0\xff", configured=lambda: charset)


def test_a_declaration_that_is_legible_as_ascii_does_not_stand_in_utf16() -> None:
    assert detect_encoding(b'<?xml version="1.0" encoding="UTF-16"?> ') == UTF8


@requirement("text:encoding:unencodable")
@pytest.mark.parametrize(
    ("name", "character"), [("shift_jis", "¥"), ("shift_jis", "‾"), ("cp932", "〜"), ("euc_jp", "¥")]
)
def test_a_character_that_would_come_back_as_another_is_refused(name: str, character: str) -> None:
    with pytest.raises(NotEncodable) as refused:
        encoding_named(name).encode(f"日本 {character}\\")

    assert refused.value.details == {"characters": [f"U+{ord(character):04X}"], "encoding": name}


def test_utf8_may_be_asked_for_by_the_name_that_has_a_byte_order_mark() -> None:
    assert detect_encoding(b"x", requested="utf-8-sig") == UTF8


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        ("x", UTF8, UTF8),
        ("\ufeffx", UTF8, Encoding(name="utf-8", bom=b"\xef\xbb\xbf")),
        ("x", replace(UTF8, chosen="utf-8-sig"), Encoding(name="utf-8", bom=b"\xef\xbb\xbf")),
        ("x", replace(UTF8, chosen="utf-8"), UTF8),
        ("\ufeffx", encoding_named("utf-16-le"), Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)),
        ("x", encoding_named("utf-16-le"), Encoding(name="utf-16-le", width=2)),
        ("\ufeffx", encoding_named("latin-1"), Encoding(name="iso8859-1")),
        ("# coding: latin-1\né", UTF8, Encoding(name="iso8859-1")),
        ("# coding: latin-1\né", replace(UTF8, chosen="utf-8"), UTF8),
        ("# coding: latin-1\né", encoding_named("cp1252"), Encoding(name="cp1252")),
        ("# coding: ascii\né", UTF8, UTF8),
        ("# coding: cp1252\n中", UTF8, Encoding(name="cp1252")),
        ("# coding: nonsense\né", UTF8, UTF8),
        ("# coding: utf-16\né", UTF8, UTF8),
    ],
)
def test_new_text_is_spelled_as_asked_for_or_as_it_declares(text: str, asked: Encoding, expected: Encoding) -> None:
    found = encoding_for_new_text(text, asked)

    assert found == expected
    assert found.chosen == asked.chosen


LATIN = encoding_named("latin-1")


@pytest.mark.parametrize(
    ("before", "after", "encoding", "warns"),
    [
        (b"# coding: latin-1\n\xe9", b"# coding: cp1251\n\xe9", LATIN, True),
        (b"# coding: latin-1\n\xe9", b"# coding: cp1252\n\xe9", LATIN, False),
        (b"# coding: latin-1\n\xe9", b"# coding: latin-1 \n\xe9", LATIN, False),
        (b"# coding: latin-1\n\xe9", b"# coding: nonsense\n\xe9", LATIN, False),
        (b"# coding: latin-1\n\xe9", b"#\n\xe9", LATIN, True),
        (b"# coding: latin-1\ne", b"#\ne", LATIN, False),
        (b"# coding: latin-1\n\xe9", b"# coding: cp1251\n\xe9", replace(LATIN, chosen="latin-1"), False),
        (
            b"\xef\xbb\xbf#\n\xc3\xa9",
            b"\xef\xbb\xbf# coding: cp1251\n\xc3\xa9",
            Encoding(name="utf-8", bom=b"\xef\xbb\xbf"),
            False,
        ),
        (b"# coding: ascii\n\xe9", b"# coding: cp1251\n\xe9", RAW, False),
        (b"#" * 1024 + b"\n# coding: latin-1", b"#" * 1024 + b"\n# coding: cp1251\xe9", LATIN, False),
    ],
)
def test_a_declaration_that_an_edit_makes_untrue_is_warned_of(
    before: bytes, after: bytes, encoding: Encoding, warns: bool
) -> None:
    name = "cp1251" if b"cp1251" in after else "no encoding"
    wanted = (f"The file now declares {name}, but its bytes are iso8859-1; convert it.",) if warns else ()

    assert declaration_warnings(before, after, encoding) == wanted


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"#\n# coding=latin-1\n\xe9", "iso8859-1"),
        (b"#\n#\n# coding=latin-1\n\xe9", "bytes"),
        (b"#" + b" " * 1012 + b"coding:cp1252\n\xe9", "bytes"),
        (b"#" + b" " * 1000 + b"coding:cp1252\n\xe9", "cp1252"),
        (b'<META http-equiv="x" CHARSET=cp1252>\xe9', "cp1252"),
        ("é".encode() * 40_000, "utf-8"),
        (b"a" * 65_535 + "é".encode(), "utf-8"),
        (b"a" * 65_535 + b"\xc3", "bytes"),
        (b"a" * 70_000 + b"\xff", "bytes"),
        (b"\xfe\xff\xd8\x00", "bytes"),
        (b"\0\0\xfe\xff\0\0\0a", "utf-32-be"),
        ("ab" * 7, "utf-8"),
        (("ab" * 4).encode("utf-16-le"), "utf-16-le"),
    ],
)
def test_the_encoding_is_found_up_to_the_edges_of_what_is_looked_at(data: bytes | str, name: str) -> None:
    assert detect_encoding(data if isinstance(data, bytes) else data.encode()).name == name


@pytest.mark.parametrize("data", [("ab" * 3 + "a").encode("utf-16-le"), ("ab" * 9).encode("utf-16-le") + b"a"])
def test_too_few_bytes_or_an_odd_number_of_them_are_no_utf16(data: bytes) -> None:
    with pytest.raises(BinaryFile):
        detect_encoding(data)


@pytest.mark.parametrize(
    ("name", "found", "width"),
    [
        (" Latin-1 ", "iso8859-1", 1),
        ("utf-16", "utf-16-le", 2),
        ("UTF-16-BE", "utf-16-be", 2),
        ("utf-32", "utf-32-le", 4),
        ("utf_8_sig", "utf-8", 1),
        ("shift_jis", "shift_jis", 1),
    ],
)
def test_encodings_have_one_name(name: str, found: str, width: int) -> None:
    assert encoding_named(name) == Encoding(name=found, width=width)


def test_the_name_that_was_asked_for_is_kept_beside_the_one_that_python_uses() -> None:
    assert detect_encoding(b"x", requested="Latin-1").chosen == "Latin-1"
    assert detect_encoding(b"x", configured=lambda: "latin1").chosen == "latin1"
    assert detect_encoding(b"x").chosen == ""
    assert detect_encoding(b"x", configured=lambda: None) == UTF8
    assert repr(replace(UTF8, chosen="x")) == repr(UTF8)


def test_no_more_than_eight_characters_are_named() -> None:
    with pytest.raises(NotEncodable) as refused:
        LATIN.encode("".join(map(chr, range(0x4E00, 0x4E0A))))

    assert refused.value.message.count("U+") == 8
    assert len(refused.value.details["characters"]) == 10


def test_whether_a_text_can_be_spelled_is_told_without_a_refusal() -> None:
    assert [LATIN.can_encode(text) for text in ("é", "中", "")] == [True, False, True]
    assert [RAW.can_encode(text) for text in ("e", "é")] == [True, False]
    assert [(one.is_raw, one.encode_newline("\n")) for one in (RAW, encoding_named("utf-16-be"))] == [
        (True, b"\n"),
        (False, b"\0\n"),
    ]
