"""Detects the kind of a file from its first bytes. Names and extensions are not used."""

from dataclasses import dataclass
from typing import Literal

HEAD_BYTES = 8192
"""How many leading bytes are looked at."""
Family = Literal["image", "pdf", "other"]
_PDF_JUNK_BYTES = 1024
"""A document may begin with this many bytes of junk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file that is not text."""

    family: Family
    name: str
    """Its common name: PNG, ZIP archive."""
    mime: str = "application/octet-stream"
    certain: bool = True
    """Whether no text begins like this."""


def _image_kind(name: str, mime: str) -> FileKind:
    return FileKind(family="image", name=name, mime=f"image/{mime}")


def _other_kind(name: str, *, certain: bool = True) -> FileKind:
    return FileKind(family="other", name=name, certain=certain)


PDF = FileKind(family="pdf", name="PDF", mime="application/pdf")
_KINDS_BY_PREFIX: tuple[tuple[bytes, FileKind], ...] = (
    (b"\x89PNG\r\n\x1a\n", _image_kind("PNG", "png")),
    (b"\xff\xd8\xff", _image_kind("JPEG", "jpeg")),
    (b"GIF87a", _image_kind("GIF", "gif")),
    (b"GIF89a", _image_kind("GIF", "gif")),
    (b"II*\0", _image_kind("TIFF", "tiff")),
    (b"MM\0*", _image_kind("TIFF", "tiff")),
    (b"\0\0\x01\0", _image_kind("ICO", "x-icon")),
    (b"PK\x03\x04", _other_kind("ZIP archive")),
    (b"PK\x05\x06", _other_kind("ZIP archive")),
    (b"\x1f\x8b\x08", _other_kind("gzip archive")),
    (b"BZh", _other_kind("bzip2 archive", certain=False)),
    (b"\xfd7zXZ\0", _other_kind("xz archive")),
    (b"\x28\xb5\x2f\xfd", _other_kind("zstd archive")),
    (b"7z\xbc\xaf\x27\x1c", _other_kind("7-Zip archive")),
    (b"\x7fELF", _other_kind("ELF program")),
    (b"\xcf\xfa\xed\xfe", _other_kind("Mach-O program")),
    (b"\xca\xfe\xba\xbe", _other_kind("Java class or Mach-O program")),
    (b"SQLite format 3\0", _other_kind("SQLite database")),
    (b"\0asm", _other_kind("WebAssembly module")),
    (b"OggS", _other_kind("Ogg audio or video", certain=False)),
    (b"ID3", _other_kind("MP3 audio", certain=False)),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _other_kind("old Office document")),
)
_IMAGE_BRANDS = {b"avif": "AVIF", b"avis": "AVIF", b"heic": "HEIC", b"heix": "HEIC", b"hevc": "HEIC", b"mif1": "HEIC"}
"""Brands of the container that newer images share with videos."""
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})


def kind_of(head: bytes) -> FileKind | None:
    """Return the kind of file that begins like this; None if it may be text."""
    for sign, kind in _KINDS_BY_PREFIX:
        if head.startswith(sign):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _image_kind("WEBP", "webp")
    if head[4:8] == b"ftyp" and head[:1] == b"\0":  # a length; `int ftype` is text
        name = _IMAGE_BRANDS.get(head[8:12])
        return _image_kind(name, name.lower()) if name else _other_kind("MPEG-4 audio or video")
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return _image_kind("BMP", "bmp")
    return PDF if b"%PDF-" in head[:_PDF_JUNK_BYTES] and _is_document(head) else None


def _is_document(head: bytes) -> bool:
    """Tell a document from a text about documents: `%PDF-` comes first, or after bytes that are not text."""
    return head.lstrip().startswith(b"%PDF-") or b"\0" in head[: head.index(b"%PDF-")]
