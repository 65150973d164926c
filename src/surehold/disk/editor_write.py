"""A new text on its way into an editor.

1. There is no compare-and-swap. What the editor shows is compared right before the write; what is typed between that
   look and the write is lost from the buffer.
2. What the editor holds afterwards is read back. If that is other text (a formatter, somebody typing), the write
   happened and something else after it; the caller is told.
3. Bytes on the disk that the buffer had not kept up with are handed to `keep`: saving the buffer would drop them.
4. `undo` gives the old text back only where nobody wrote since.
"""

from collections.abc import Callable
from dataclasses import dataclass

from surehold.disk.base import EditorFiles, Replace, Stored
from surehold.disk.editor_view import Shown
from surehold.disk.failures import displaced, vanished
from surehold.errors import Unavailable
from surehold.text.hashing import sha256

_WEAKER = (
    "`{key}` was written through the editor, which cannot compare and write in one step: "
    "what was typed in that moment may be lost."
)
_UNSAVED = "It is not saved yet: the file on the disk is as before."
_OTHER = "The editor made other text of it, by a formatter perhaps: read it again before you edit it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file at one moment, on the disk and in the editor."""

    stored: Stored
    shown: Shown | None = None
    """None when the editor has nothing to say about it."""

    @property
    def data(self) -> bytes:
        """What is there: what the editor shows, else what is on the disk."""
        return self.stored.data if self.shown is None else self.shown.data


@dataclass(slots=True, kw_only=True)
class EditorWrite:
    """Puts other text where `expected` is, through the editor."""

    files: EditorFiles
    step: Replace
    path: str
    """The absolute path, as the editor knows it."""
    look: Callable[[], Seen | None]
    keep: Callable[[bytes], None]
    caution: str = ""
    """What the caller should know, once it is done."""
    _old: Shown | None = None
    """What the editor showed before; None as long as nothing was sent."""
    _left: bytes = b""
    """What was read back."""

    def publish(self) -> None:
        """Compare, write, and read back."""
        key, wanted = self.step.target.key, self.step.data
        seen = self.look()
        if seen is None:
            raise vanished(key, self.step.expected)
        actual = sha256(seen.data)
        text = seen.shown.text_for(wanted) if seen.shown else None
        if actual != self.step.expected or seen.shown is None or text is None:
            raise displaced(key, self.step.expected, actual)
        if not seen.shown.saved:
            self.keep(seen.stored.data)
        self._old, self._left = seen.shown, wanted
        self.files.write_text(self.path, text)
        self._check(seen, self.look())

    def undo(self) -> None:
        """Give the old text back; raise where the editor holds something that is not ours."""
        if self._old is None:
            return
        now = self.look()
        if now is not None and now.data in (self.step.data, self._left):
            self.files.write_text(self.path, self._old.text)
            now = self.look()
        if now is not None and now.data != self._old.data:
            raise _stuck(self.step.target.key)

    def _check(self, before: Seen, after: Seen | None) -> None:
        key, wanted = self.step.target.key, self.step.data
        if after is None:
            raise vanished(key, self.step.expected)
        if after.data == before.data != wanted:
            raise Unavailable(
                f"The editor did not take the new text of `{key}`.",
                path=key,
                reason="editor_ignored",
                action="Look whether the file can be edited in the editor, then try again.",
            )
        self._left = after.data
        said = [_WEAKER.format(key=key)]
        if after.data != wanted:
            self.keep(after.data)
            said.append(_OTHER)
        if after.shown is not None and not after.shown.saved:
            said.append(_UNSAVED)
        self.caution = " ".join(said)


def _stuck(key: str) -> Unavailable:
    return Unavailable(f"`{key}` holds text in the editor that is not ours.", path=key, reason="editor_moved_on")
