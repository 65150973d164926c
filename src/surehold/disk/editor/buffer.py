"""What an editor's buffer says about the bytes on the disk, and how new text is written into it.

An editor works with characters. Many show LF for CRLF, and some omit the newline at the end, so a text that differs
from the bytes is not yet an unsaved change.

Rules:
1. The same text, except for its line endings: nothing is unsaved, and the bytes are those on the disk.
2. Different text: unsaved changes. Where a file of CRLF lines is shown with LF, each LF means CRLF.
3. Only text that can be sent back in the form in which it was shown is written through the editor.
4. There is no compare-and-swap. What the editor shows is compared right before the write; what is typed between the
   comparison and the write is lost from the buffer.
5. What the editor holds afterwards is read back. If that is different text (a formatter, the user typing), the write
   happened and another change followed it; the caller gets a caution.
6. Bytes on the disk that the buffer did not have yet are handed to `keep`: saving the buffer would drop them.
7. `undo` restores the old text only where nothing was written since.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass

from surehold.disk.base import EditorFiles, KeepBytes, Replace, StoredFile
from surehold.disk.errno_errors import displaced_error, vanished_error
from surehold.errors import BinaryFile, Unavailable
from surehold.text.encoding import detect_encoding
from surehold.text.snapshot import sha256_hex

_CODECS = (
    *("utf-8", "cp1252", "latin-1", "cp1250", "cp1251", "koi8-r", "cp437", "gb18030", "big5"),
    *("cp932", "euc_jp", "cp949", "utf-16-le", "utf-16-be"),
)
"""The encodings in which an editor may have read a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferText:
    """A file as the editor shows it."""

    text: str
    data: bytes
    """The bytes that the text represents."""
    saved: bool
    """Whether that is what is on the disk."""
    crlf: bool = False
    """Each LF of the text means CRLF."""
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


def interpret_buffer(saved: bytes, text: str) -> BufferText:
    """Work out what an editor's text says about plain bytes on the disk."""
    data = text.encode()
    if data == saved:
        return BufferText(text=text, data=saved, saved=True)
    crlf = "\r" not in text and b"\r" in saved and _ends_in_crlf_only(saved)
    if crlf:
        data = data.replace(b"\n", b"\r\n")
    if _normalize_text(saved.decode()) == _normalize_text(text):
        return BufferText(text=text, data=saved, saved=True, crlf=crlf, faithful=data == saved)
    return BufferText(text=text, data=data, saved=False, crlf=crlf)


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are not text in any encoding, so that no editor can have unsaved changes."""
    try:
        detect_encoding(data)
    except BinaryFile:
        return True
    return False


def may_be_saved(saved: bytes, text: str) -> bool:
    """Tell whether an editor may show these bytes as this text: read in whatever encoding, nothing is unsaved."""
    own, wanted = detect_encoding(saved), _normalize_text(text)
    if "\ufffd" in wanted or _normalize_text(own.decode(saved)) == wanted:
        return True  # with replacement characters, the editor could not decode the bytes either
    return any(_normalize_text(saved.decode(name, "replace")) == wanted for name in _CODECS)


def _normalize_text(text: str) -> str:
    """Return a text without what editors add or remove on their own."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _ends_in_crlf_only(data: bytes) -> bool:
    return data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")


_NOT_ATOMIC_CAUTION = (
    "`{key}` was written through the editor, which cannot compare and write in one step: "
    "what was typed in that moment may be lost."
)
_UNSAVED_CAUTION = "It is not saved yet: the file on the disk is as before."
_OTHER_TEXT_CAUTION = "The editor made other text of it, by a formatter perhaps: read it again before you edit it."


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferState:
    """A file at one moment, on the disk and in the editor."""

    stored: StoredFile
    shown: BufferText | None = None
    """None when the editor does not have the file."""

    @property
    def data(self) -> bytes:
        return self.stored.data if self.shown is None else self.shown.data


@dataclass(slots=True, kw_only=True)
class EditorWrite:
    """Replaces the text `expected` through the editor."""

    files: EditorFiles
    step: Replace
    path: str
    """The absolute path, as the editor knows it."""
    look: Callable[[], BufferState | None]
    keep: KeepBytes
    caution: str = ""
    """What the caller should know, once it is done."""
    _old: BufferText | None = None
    """What the editor showed before; None as long as nothing was sent."""
    _left: bytes = b""
    """What was read back."""

    def publish(self) -> None:
        key, wanted = self.step.target.key, self.step.data
        seen = self.look()
        if seen is None:
            raise vanished_error(key, self.step.expected)
        actual = sha256_hex(seen.data)
        text = seen.shown.text_for(wanted) if seen.shown else None
        if actual != self.step.expected or seen.shown is None or text is None:
            raise displaced_error(key, self.step.expected, actual)
        if not seen.shown.saved:
            self.keep("", seen.stored.data)
        self._old, self._left = seen.shown, wanted
        self.files.write_text(self.path, text)
        self._check_read_back(seen, self.look())

    def undo(self) -> None:
        """Restore the old text; raise if the editor holds text that is not ours."""
        if self._old is None:
            return
        now = self.look()
        if now is not None and now.data in (self.step.data, self._left):
            self.files.write_text(self.path, self._old.text)
            now = self.look()
        if now is not None and now.data != self._old.data:
            key = self.step.target.key
            message = f"`{key}` holds text in the editor that is not ours."
            raise Unavailable(message, path=key, reason="editor_moved_on")

    def _check_read_back(self, before: BufferState, after: BufferState | None) -> None:
        key, wanted = self.step.target.key, self.step.data
        if after is None:
            raise vanished_error(key, self.step.expected)
        if after.data == before.data != wanted:
            raise Unavailable(
                f"The editor did not take the new text of `{key}`.",
                path=key,
                reason="editor_ignored",
                action="Look whether the file can be edited in the editor, then try again.",
            )
        self._left = after.data
        said = [_NOT_ATOMIC_CAUTION.format(key=key)]
        if before.shown is not None and not before.shown.saved and after.stored.data != before.stored.data:
            self.keep(key, before.stored.data)  # the editor saved over what was on the disk
        if after.data != wanted:
            self.keep("", after.data)
            said.append(_OTHER_TEXT_CAUTION)
        if after.shown is not None and not after.shown.saved:
            said.append(_UNSAVED_CAUTION)
        self.caution = " ".join(said)
