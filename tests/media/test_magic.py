import gzip
import sqlite3
from pathlib import Path

import pytest

from media.samples import image, pdf
from surehold.media.magic import HEAD_BYTES, kind_of


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
        ("BMP", "image/bmp"),
        ("TIFF", "image/tiff"),
        ("ICO", "image/x-icon"),
        ("AVIF", "image/avif"),
    ],
)
def test_an_image_is_known_by_its_first_bytes(name: str, mime: str) -> None:
    kind = kind_of(image(name)[:HEAD_BYTES])

    assert kind is not None
    assert (kind.family, kind.name, kind.mime) == ("image", name, mime)


@pytest.mark.parametrize("before", [b"", b"\n\n", b"\x00\x01junk"])
def test_a_document_is_known_also_behind_some_junk(before: bytes) -> None:
    kind = kind_of(before + pdf(["x"]))

    assert kind is not None
    assert kind.family == "pdf"


def test_other_binary_files_have_a_name(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    files = [gzip.compress(b"x"), (tmp_path / "a.db").read_bytes(), Path("/proc/self/exe").read_bytes()[:HEAD_BYTES]]

    found = [kind_of(data) for data in files]

    assert [kind and kind.name for kind in found] == ["gzip archive", "SQLite database", "ELF program"]
    assert [kind and kind.family for kind in found] == ["other", "other", "other"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"BM is not always a bitmap, whatever the first two letters say.",
        b"A text about %PDF-1.7 documents.",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"RIFF is a container",
        b"int ftype = 3;",
        "ÿþ text that begins with odd letters".encode(),
    ],
)
def test_text_is_nothing_of_this(text: bytes) -> None:
    assert kind_of(text) is None


def test_letters_that_a_text_may_begin_with_are_no_certain_sign() -> None:
    kind = kind_of(b"ID3 tags are explained here")

    assert kind is not None
    assert not kind.certain
