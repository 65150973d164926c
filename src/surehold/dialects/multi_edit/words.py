"""What the contract calls things that go wrong: its codes and its messages, word by word.

An error keeps its class, kind, reason and data; only its message and, where the contract has another, its code change.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from surehold.errors import (
    BinaryFile,
    DiskFull,
    InvalidArgument,
    MultipleMatches,
    NotAFile,
    NotFound,
    OldTextNotFound,
    OutsideWorkspace,
    OverlappingEdits,
    PermissionDenied,
    PermissionRequired,
    StaleFile,
    SureholdError,
)

_INVALID_REQUEST = -32600
_DENIED = PermissionDenied.code
_LONGEST = 200
"""How many characters of a quoted text a message shows."""
_LONGEST_PATH = 4_096
_MOST = 20_000
"""How many characters of it the data holds."""
_ABSOLUTE = "relative_path"
_NO_DIRECTORY = ("no_such_parent", "not_a_directory")
_EXPLAINED = (OldTextNotFound, OverlappingEdits, OutsideWorkspace, PermissionDenied, DiskFull)
"""Errors whose own message says more than the contract's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """An error in the words of the contract."""

    message: str
    code: int | None = None
    action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words for one call."""

    path: str
    verb: Literal["read", "write", "edit"]
    old_strings: Sequence[str] = ()
    numbered: bool = False
    """The edits of the call have numbers."""
    size: int | None = None
    """How many bytes the call wants to write, when that is known."""

    @property
    def shown(self) -> str:
        """The path as answers name it; one that is longer than any path can be is cut."""
        return self.path if len(self.path) <= _LONGEST_PATH else f"{self.path[:_LONGEST]}…"

    @contextmanager
    def spoken(self) -> Generator[None]:
        """Let every refusal inside speak the contract's words."""
        if not self.path.startswith("/"):
            raise self._translated(_relative(self.shown)) from None
        try:
            yield
        except SureholdError as error:
            raise self._translated(error) from None

    def _translated(self, error: SureholdError) -> SureholdError:
        said = self._said(error)
        if said is None:
            error.path = error.path and self.shown  # as it was sent, here too
            return error
        details = self._details(error)
        if isinstance(error, _EXPLAINED):
            details = {"explanation": error.message, **details}
        told = type(error)(
            said.message, path=self.shown, reason=error.reason, action=said.action or error.action, **details
        )
        told.recorded = error.recorded
        if said.code is not None:
            vars(told)["code"] = said.code  # the contract's own number for this call; the class keeps its own
        return told

    def _details(self, error: SureholdError) -> dict[str, Any]:
        """Return the data of an error with the names that this family uses."""
        details = dict(error.details)
        details.pop("old_text", None)
        if isinstance(error, (OldTextNotFound, MultipleMatches, OverlappingEdits)):
            details["old_string"] = self._old(error)[:_MOST]
        return details

    def _said(self, error: SureholdError) -> Spoken | None:
        match error:
            case OldTextNotFound() | MultipleMatches() | OverlappingEdits():
                return self._about_strings(error)
            case InvalidArgument():
                return self._about_arguments(error)
            case NotFound():
                return self._about_missing(error)
            case OutsideWorkspace() | PermissionDenied():
                return self._about_permission(error)
            case BinaryFile():
                verb = "read" if self.verb == "read" else "edit"
                return Spoken(message=f"Cannot {verb} binary file: {self.shown}", action="Leave it to another program.")
            case StaleFile():
                return self._about_sight(error)
            case DiskFull():
                what = f"cannot write {self.size} bytes to" if self.size is not None else "cannot write to"
                return Spoken(message=f"Disk full: {what} {self.shown}")
            case _:
                return None

    def _about_strings(self, error: SureholdError) -> Spoken:
        index, old = error.details.get("edit_index", 0), _cut(self._old(error))
        edit = f"Edit {index}: " if self.numbered else ""
        if isinstance(error, OverlappingEdits):
            return Spoken(message=f"Edit {index} conflicts with edit {error.details.get('prior_index')}")
        if isinstance(error, OldTextNotFound):
            return Spoken(message=f"{edit}String not found{'' if edit else ' in file'}: {old}")
        must = "" if edit else " (must be unique)"
        more = "Include more of the lines around it in old_string, so that it stands only once."
        return Spoken(message=f"{edit}String appears {error.details['count']} times{must}: {old}", action=more)

    def _about_arguments(self, error: SureholdError) -> Spoken | None:
        edit = f"Edit {error.details.get('edit_index')}: " if self.numbered else ""
        messages = {
            _ABSOLUTE: f"Path must be absolute: {self.shown}",
            "no_edits": "Edits array cannot be empty",
            "same_text": f"{edit}old_string and new_string are identical",
            "empty_old_text": f"{edit}old_string cannot be empty",
            "bad_line": error.message,
            "bad_limit": error.message,
        }
        message = messages.get(error.reason)
        return None if message is None else Spoken(message=message, code=_INVALID_REQUEST)

    def _about_missing(self, error: SureholdError) -> Spoken:
        if isinstance(error, NotAFile):
            is_directory = error.reason == "is_a_directory" and self.verb != "read"
            return Spoken(message=f"{self.shown} is {'a directory' if is_directory else 'not a file'}")
        if self.verb == "write" and error.reason in _NO_DIRECTORY:
            parent = self.shown.rstrip("/").rpartition("/")[0] or "/"
            return Spoken(
                message=f"Parent directory not found: {parent}",
                action="Check the path; this tool makes no directories.",
            )
        new = "leave expected_sha256 out to make" if self.verb == "write" else "write_text_file makes"
        return Spoken(message=f"File not found: {self.shown}", action=f"Check the path; {new} a new file.")

    def _about_permission(self, error: SureholdError) -> Spoken:
        if self.verb == "write" and error.reason == "read_only_fs":
            return Spoken(message=f"Read-only filesystem: {self.shown}")
        action = error.action if isinstance(error, PermissionRequired) else None
        return Spoken(message=f"Permission denied: {self.shown}", code=_DENIED, action=action)

    def _about_sight(self, error: SureholdError) -> Spoken:
        if error.reason == "not_read":
            return Spoken(
                message=f"File was not read in this session: {self.shown}",
                action="Read all of it with read_text_file and write again, or send its sha256 as expected_sha256.",
            )
        if error.reason == "partially_read":
            return Spoken(
                message=f"File was read only in part: {self.shown}",
                action="Read the rest of it with read_text_file and write again, or send its sha256 as expected_sha256.",
            )
        if error.reason == "unsaved_changes":
            return Spoken(message=f"File has unsaved changes in the editor: {self.shown}")
        return Spoken(message=f"File changed since it was read: {self.shown}")

    def _old(self, error: SureholdError) -> str:
        return self.old_strings[int(error.details.get("edit_index", 0))]


def _relative(path: str) -> InvalidArgument:
    return InvalidArgument(
        f"Path must be absolute: {path}", reason=_ABSOLUTE, action="Send the whole path, beginning with `/`."
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
