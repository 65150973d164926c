"""The encoding of a file: detecting it, and turning bytes into characters and back.

The first of these that fits the bytes is used: the byte order mark, the encoding that the caller requested, a
declaration (.editorconfig, PEP 263, XML, HTML), strict UTF-8, UTF-16 recognised by its zero bytes, a detector if
one was given. If none fits, the file is raw bytes: non-ASCII bytes are shown as escapes and only ASCII can be written.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from surehold.errors import BinaryFile, InvalidArgument, NotEncodable

SNIFF_BYTES = 8192
"""How many leading bytes decide whether a file is binary."""

_SLICE_BYTES = 1 << 16
_DECLARATION_BYTES = 1024
"""How many leading bytes may declare the encoding."""

EncodingDetector = Callable[[bytes], str | None]
EncodingHint = Callable[[], str | None]
"""Looks up what is configured for the file, when that is needed."""

_BOMS = (  # the longer ones first: UTF-32-LE begins like UTF-16-LE
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BOM_OF = {name: bom for bom, name in _BOMS}
_EXACT_CODECS = frozenset({"utf-8", "ascii", "iso8859-1", "bytes", *_BOM_OF})
"""What these codecs encode, they decode to the same characters."""
_UNIT_BYTES = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_STATEFUL = re.compile(r"utf[-_]?7|hz|iso-?2022|escape|punycode|idna|cp65000|unicode_internal|undefined|mbcs|oem")
_MIN_UTF16_BYTES = 16
"""Fewer bytes are not evidence of UTF-16."""
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_PEP263 = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
_XML = re.compile(rb"\A\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([-\w.:]+)[\"']")
_HTML = re.compile(rb"<meta[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([-\w.:]+)", re.IGNORECASE)


NAME_THE_ENCODING = (
    "Read the file with its `encoding` named, such as cp1252 or shift_jis, and send the call again; or write those "
    "characters differently."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one file spells characters as bytes."""

    name: str
    """Python's name of the codec, without a byte order mark; `bytes` when no encoding fits."""
    bom: bytes = b""
    width: int = 1
    """Bytes per code unit: 2 for UTF-16, 4 for UTF-32."""
    chosen: str = field(default="", compare=False, repr=False)
    """By which name the caller or .editorconfig asked for it; empty when the file itself decided."""

    @property
    def is_raw(self) -> bool:
        """Whether the bytes fit no encoding and are shown with escapes."""
        return self.name == "bytes"

    def decode(self, data: bytes) -> str:
        r"""Return the characters; bytes that spell none are shown as `\xNN`."""
        return data.decode("ascii" if self.name == "bytes" else self.name, "backslashreplace")

    def encode(self, text: str) -> bytes:
        """Return the bytes, or refuse with `NotEncodable` naming the characters."""
        data = self._encode_exactly(text)
        if data is not None:
            return data
        alien = [sign for sign in sorted(set(text)) if self._encode_exactly(sign) is None]
        named = ", ".join(f"{sign} ({_code_of(sign)})" if sign.isprintable() else _code_of(sign) for sign in alien[:8])
        message = f"The file's encoding ({self.name}) cannot hold {named}."
        codes = [_code_of(sign) for sign in alien]
        raise NotEncodable(
            message, characters=codes, encoding=self.name, action=NAME_THE_ENCODING if self.is_raw else None
        )

    def can_encode(self, text: str) -> bool:
        return self._encode_exactly(text) is not None

    def encode_newline(self, sign: str) -> bytes:
        return sign.encode("ascii" if self.width == 1 else self.name)

    def _encode_exactly(self, text: str) -> bytes | None:
        """Return the bytes if they spell this text: some codecs write a look-alike, as Shift-JIS does for a yen."""
        try:
            data = text.encode("ascii" if self.is_raw else self.name)
        except UnicodeEncodeError:
            return None
        return data if self.name in _EXACT_CODECS or text.isascii() or self.decode(data) == text else None


UTF8 = Encoding(name="utf-8")
RAW = Encoding(name="bytes")


def _code_of(sign: str) -> str:
    return f"U+{ord(sign):04X}"


def encoding_named(name: str) -> Encoding:
    """Return the encoding of that name, or refuse one that cannot be edited by splicing bytes."""
    try:
        info = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        raise InvalidArgument(f"No encoding is called `{name}`.", action="Name one such as utf-8 or cp1252.") from None
    canonical = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}.get(info.name, info.name)
    if canonical in _UNIT_BYTES:
        return Encoding(name=canonical, width=_UNIT_BYTES[canonical])
    if _STATEFUL.search(canonical) or not _extends_ascii(codecs.lookup(canonical)):
        message = f"Text in `{name}` cannot be edited byte by byte."
        raise InvalidArgument(message, action="Convert the file to UTF-8 first.")
    return Encoding(name=canonical)


def detect_encoding(
    data: bytes,
    *,
    requested: str | None = None,
    configured: EncodingHint | None = None,
    detector: EncodingDetector | None = None,
) -> Encoding:
    """Decide the encoding of a file's bytes; `BinaryFile` when they are not text."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            found = Encoding(name=name, bom=bom, width=_UNIT_BYTES.get(name, 1))
            return found if _can_decode(data[len(bom) :], name) else RAW
    if requested is not None:
        encoding = encoding_named(requested)
        if not _can_decode(data, encoding.name):
            message = f"The file's bytes are not valid {encoding.name}."
            raise InvalidArgument(message, action="Leave the encoding out, or name another one.")
        return replace(encoding, chosen=requested)
    has_zeros = b"\0" in data[:SNIFF_BYTES]
    encoding = _configured_encoding(data, configured)
    if encoding is not None and (encoding.width > 1 or not has_zeros):
        return encoding
    if has_zeros:
        return _utf16_by_zeros(data)
    declared = _declared_name(data)
    return (_usable_ascii_superset(data, declared) if declared else None) or _guessed_encoding(data, detector)


def encoding_for_new_text(text: str, asked: Encoding) -> Encoding:
    """Choose for a file without content: as asked for, else as the text itself declares, else UTF-8."""
    if asked.chosen == "utf-8-sig" or (text.startswith("\ufeff") and asked.name in _BOM_OF):
        return replace(asked, bom=_BOM_OF[asked.name])
    if asked.chosen or asked != UTF8:
        return asked
    declared = _usable_ascii_superset(b"", _declared_name(text[:_DECLARATION_BYTES].encode("utf-8", "replace")))
    if declared is None:
        return asked
    # Where the declaration cannot hold the text and its UTF-8 bytes would not be taken for it, it is only a heading.
    is_heading = not declared.can_encode(text) and not _can_decode(text.encode("utf-8", "replace"), declared.name)
    return asked if is_heading else declared


def declaration_warnings(before: bytes, after: bytes, encoding: Encoding) -> tuple[str, ...]:
    """Warn when an edit changed what the file declares, and its bytes are not that."""
    if before[:_DECLARATION_BYTES] == after[:_DECLARATION_BYTES] or encoding.chosen or encoding.bom or encoding.is_raw:
        return ()
    name = _declared_name(after)
    if name == _declared_name(before):
        return ()
    claimed = _usable_encoding(b"", name) if name else UTF8
    if claimed is None or claimed.decode(after) == encoding.decode(after):
        return ()
    return (f"The file now declares {name or 'no encoding'}, but its bytes are {encoding.name}; convert it.",)


def _configured_encoding(data: bytes, configured: EncodingHint | None) -> Encoding | None:
    name = configured and configured()
    encoding = _usable_encoding(data, name) if name else None
    return replace(encoding, chosen=name) if name and encoding else None


def _guessed_encoding(data: bytes, detector: EncodingDetector | None) -> Encoding:
    if _can_decode(data, "utf-8"):
        return UTF8
    return _usable_encoding(data, detector and detector(data)) or RAW


def _declared_name(data: bytes) -> str | None:
    head = data[:_DECLARATION_BYTES]
    match = _PEP263.search(head) or _XML.search(head) or _HTML.search(head)
    return match[1].decode("ascii") if match else None


def _usable_encoding(data: bytes, name: str | None) -> Encoding | None:
    try:
        encoding = encoding_named(name) if name else None
    except InvalidArgument:
        return None
    return encoding if encoding and _can_decode(data, encoding.name) else None


def _usable_ascii_superset(data: bytes, name: str | None) -> Encoding | None:
    """Take a declaration at its word; one that is legible as ASCII is not in UTF-16."""
    encoding = _usable_encoding(data, name)
    return encoding if encoding and encoding.width == 1 else None


def _utf16_by_zeros(data: bytes) -> Encoding:
    sample = data[:SNIFF_BYTES]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        mostly_ascii = len(sample) >= _MIN_UTF16_BYTES and zeros * 4 >= len(sample) and others * 20 <= zeros
        if mostly_ascii and len(data) % 2 == 0 and _looks_written(sample, name) and _can_decode(data, name):
            return Encoding(name=name, width=2)
    raise BinaryFile("The file holds zero bytes and is not text.")


def _looks_written(sample: bytes, name: str) -> bool:
    """Tell text from numbers that happen to be valid UTF-16: text has no control characters."""
    return not _CONTROLS.search(sample[: len(sample) // 4 * 4].decode(name, "ignore"))


def _extends_ascii(info: codecs.CodecInfo) -> bool:
    ascii_text = "".join(map(chr, range(128)))
    try:
        return info.encode(ascii_text)[0] == ascii_text.encode()
    except (UnicodeError, TypeError, AttributeError):
        return False


def _can_decode(data: bytes, name: str) -> bool:
    if name not in _UNIT_BYTES and data.isascii():
        return True
    try:
        if name == "utf-8":
            _check_utf8(data)
        else:
            data.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _check_utf8(data: bytes) -> None:
    """Decode slice by slice: the characters of a large file are not wanted, and would take twice its memory."""
    view, at = memoryview(data), 0
    while at < len(view):
        _, used = codecs.utf_8_decode(view[at : at + _SLICE_BYTES], "strict", at + _SLICE_BYTES >= len(view))
        at += used
