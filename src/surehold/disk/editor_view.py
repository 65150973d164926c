"""What the text in an editor says about the bytes on the disk.

An editor speaks of characters. Many show LF for CRLF, and some leave out the newline at the end, so a text that is not
the bytes is not yet an unsaved change:
1. The same text, but for the signs that end lines: nothing is unsaved, and the bytes are those on the disk.
2. Other text: unsaved changes. Where a file of CRLF lines is shown with LF, each LF stands for CRLF.
3. Only text that can be sent back in the form in which it was shown is written through the editor.
"""

import codecs
from dataclasses import dataclass

from surehold.errors import BinaryFile
from surehold.text.encoding import detect

_CODECS = (
    *("utf-8", "cp1252", "latin-1", "cp1250", "cp1251", "koi8-r", "cp437", "gb18030", "big5"),
    *("cp932", "euc_jp", "cp949", "utf-16-le", "utf-16-be"),
)
"""What an editor may have taken a file for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A file as the editor shows it."""

    text: str
    data: bytes
    """The bytes that the text stands for."""
    saved: bool
    """Whether that is what is on the disk."""
    crlf: bool = False
    """Each LF of the text stands for CRLF."""
    faithful: bool = True
    """Whether new text, sent in the same form, would come to the bytes that are meant."""

    def text_for(self, data: bytes) -> str | None:
        """Return what to send so that the editor holds these bytes; None when it cannot be trusted with them."""
        if not self.faithful or not is_plain(data):
            return None
        text = data.decode()
        if self.crlf:
            return text.replace("\r\n", "\n") if _ends_in_crlf_only(data) else None
        return text if "\r" not in text or "\r" in self.text else None


def is_plain(data: bytes) -> bool:
    """Tell whether bytes are text that every editor reads alike: UTF-8 without a byte order mark or zero bytes."""
    if b"\0" in data or data.startswith(codecs.BOM_UTF8):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(saved: bytes, text: str) -> Shown:
    """Work out what an editor's text says about plain bytes on the disk."""
    data = text.encode()
    if data == saved:
        return Shown(text=text, data=saved, saved=True)
    crlf = "\r" not in text and b"\r" in saved and _ends_in_crlf_only(saved)
    if crlf:
        data = data.replace(b"\n", b"\r\n")
    if _bare(saved.decode()) == _bare(text):
        return Shown(text=text, data=saved, saved=True, crlf=crlf, faithful=data == saved)
    return Shown(text=text, data=data, saved=False, crlf=crlf)


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are no text in any encoding, so that no editor holds changes of it."""
    try:
        detect(data)
    except BinaryFile:
        return True
    return False


def may_be_saved(saved: bytes, text: str) -> bool:
    """Tell whether an editor may show these bytes as this text: read in whatever encoding, nothing is unsaved."""
    own, wanted = detect(saved), _bare(text)
    if "\ufffd" in wanted or _bare(own.decode(saved)) == wanted:
        return True  # with signs of replacement, the editor did not understand the bytes either
    return any(_bare(saved.decode(name, "replace")) == wanted for name in _CODECS)


def _bare(text: str) -> str:
    """Return a text without what editors add or leave out by themselves."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _ends_in_crlf_only(data: bytes) -> bool:
    return data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")
