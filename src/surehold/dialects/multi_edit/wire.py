"""The multi_edit family's output: plain results with `_meta`, errors as `{error: {code, message, data}}`, and its guide for models.

`ContractMessages` translates errors into the contract's codes and messages. A translated error keeps its class, kind, reason and
data; only its message and, where the contract defines another, its code change.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from surehold import errors
from surehold.errors import SureholdError
from surehold.text.escape import preview_text
from surehold.tools.call import Json
from surehold.tools.spec import Result, Wire

GUIDE = """\
Editing with multi_edit_text_file, edit_text_file and write_text_file:
- Paths are absolute here.
- The edits of one call apply in order, each to the result of the one before. Every `old_string` must occur exactly once when its
  turn comes; copy it exactly, with enough around it. All of them are written, or none.
- `line_ranges` are lines just before each edit; the diff goes from the original to the final text.
- write_text_file overwrites only what was read in this conversation with read_text_file, or whose `expected_sha256` is sent.
- An error names the edit by its number, from 0. Nothing was written then: correct that edit, and send all of them again."""

BRIEF = """\
For the *_text_file tools paths are absolute. Edits of one call apply in order, each to the result of the one before, each
old_string occurring exactly once at its turn: all of them or none. Overwrite only what was read."""


_INVALID_REQUEST = -32600
_QUOTED_CHARS = 200
"""How many characters of a quoted text a message shows."""
_MAX_PATH_CHARS = 4_096
_MAX_DETAIL_CHARS = 20_000
"""How many characters of it the data holds."""
_NO_DIRECTORY_REASONS = ("no_such_parent", "not_a_directory")
_STRING_ERRORS = (errors.OldTextNotFound, errors.MultipleMatches, errors.OverlappingEdits)
_EXPLAINED_ERRORS = (
    errors.OldTextNotFound,
    errors.OverlappingEdits,
    errors.OutsideWorkspace,
    errors.PermissionDenied,
    errors.DiskFull,
)
"""Errors whose own message says more than the contract's."""
_STALE_MESSAGES = {
    "not_read": (
        "File was not read in this session: {path}",
        "Read all of it with read_text_file and write again, or send its sha256 as expected_sha256.",
    ),
    "partially_read": (
        "File was read only in part: {path}",
        "Read the rest of it with read_text_file and write again, or send its sha256 as expected_sha256.",
    ),
    "unsaved_changes": ("File has unsaved changes in the editor: {path}", None),
}
"""Message and action by reason."""


class ContractMessage(NamedTuple):
    """An error in the words of the contract; without an action or a code the error keeps its own."""

    message: str
    action: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractMessages:
    path: str
    verb: Literal["read", "write", "edit"]
    old_strings: Sequence[str] = ()
    numbered: bool = False
    """The edits of the call have numbers."""
    size: int | None = None
    """How many bytes the call wants to write, when that is known."""

    @property
    def shown_path(self) -> str:
        """The path as answers name it; one that is longer than any path can be is cut."""
        return self.path if len(self.path) <= _MAX_PATH_CHARS else f"{self.path[:_QUOTED_CHARS]}…"

    @contextmanager
    def translate_errors(self) -> Generator[None]:
        """Let every refusal inside speak the contract's words."""
        if not self.path.startswith("/"):
            action = "Send the whole path, beginning with `/`."
            error = errors.InvalidArgument("The path is relative.", reason="relative_path", action=action)
            raise self._translate_error(error)
        try:
            yield
        except SureholdError as error:
            raise self._translate_error(error) from None

    def _translate_error(self, error: SureholdError) -> SureholdError:
        said = self._message_for(error)
        if said is None:
            error.path = error.path and self.shown_path  # as it was sent, here too
            return error
        details = {"explanation": error.message} if isinstance(error, _EXPLAINED_ERRORS) else {}
        details |= {name: value for name, value in error.details.items() if name != "old_text"}
        if isinstance(error, _STRING_ERRORS):
            details["old_string"] = self._old_string(error)[:_MAX_DETAIL_CHARS]
        told = type(error)(
            said.message,
            path=self.shown_path,
            reason=error.reason,
            action=said.action or error.action,
            shown=error.shown,
            **details,
        )
        told.recorded = error.recorded
        if said.code is not None:
            vars(told)["code"] = said.code  # the contract's own number for this call; the class keeps its own
        return told

    def _message_for(self, error: SureholdError) -> ContractMessage | None:
        match error:
            case errors.OldTextNotFound() | errors.MultipleMatches() | errors.OverlappingEdits():
                return self._about_strings(error)
            case errors.InvalidArgument():
                return self._about_arguments(error)
            case errors.NotFound():
                return self._about_missing(error)
            case errors.OutsideWorkspace() | errors.PermissionDenied():
                return self._about_permission(error)
            case errors.BinaryFile():
                verb = "read" if self.verb == "read" else "edit"
                return ContractMessage(f"Cannot {verb} binary file: {self.shown_path}", "Leave it to another program.")
            case errors.StaleFile():
                message, action = _STALE_MESSAGES.get(error.reason, ("File changed since it was read: {path}", None))
                return ContractMessage(message.format(path=self.shown_path), action)
            case errors.DiskFull():
                what = f"cannot write {self.size} bytes to" if self.size is not None else "cannot write to"
                return ContractMessage(f"Disk full: {what} {self.shown_path}")
            case _:
                return None

    def _about_strings(self, error: SureholdError) -> ContractMessage:
        index, old = error.details.get("edit_index", 0), preview_text(self._old_string(error), _QUOTED_CHARS + 1)
        edit = f"Edit {index}: " if self.numbered else ""
        if isinstance(error, errors.OverlappingEdits):
            return ContractMessage(f"Edit {index} conflicts with edit {error.details.get('prior_index')}")
        if isinstance(error, errors.OldTextNotFound):
            return ContractMessage(f"{edit}String not found{'' if edit else ' in file'}: {old}")
        must = "" if edit else " (must be unique)"
        more = "Include more of the lines around it in old_string, so that it occurs only once."
        return ContractMessage(f"{edit}String appears {error.details['count']} times{must}: {old}", more)

    def _about_arguments(self, error: SureholdError) -> ContractMessage | None:
        edit = f"Edit {error.details.get('edit_index')}: " if self.numbered else ""
        messages = {
            "relative_path": f"Path must be absolute: {self.shown_path}",
            "no_edits": "Edits array cannot be empty",
            "same_text": f"{edit}old_string and new_string are identical",
            "empty_old_text": f"{edit}old_string cannot be empty",
            "bad_line": error.message,
            "bad_limit": error.message,
        }
        message = messages.get(error.reason)
        return None if message is None else ContractMessage(message, code=_INVALID_REQUEST)

    def _about_missing(self, error: SureholdError) -> ContractMessage:
        if isinstance(error, errors.NotAFile):
            is_directory = error.reason == "is_a_directory" and self.verb != "read"
            return ContractMessage(f"{self.shown_path} is {'a directory' if is_directory else 'not a file'}")
        if self.verb == "write" and error.reason in _NO_DIRECTORY_REASONS:
            parent = self.shown_path.rstrip("/").rpartition("/")[0] or "/"
            action = "Check the path; this tool makes no directories."
            return ContractMessage(f"Parent directory not found: {parent}", action)
        new = "leave expected_sha256 out to make" if self.verb == "write" else "write_text_file makes"
        return ContractMessage(f"File not found: {self.shown_path}", f"Check the path; {new} a new file.")

    def _about_permission(self, error: SureholdError) -> ContractMessage:
        if self.verb == "write" and error.reason == "read_only_fs":
            return ContractMessage(f"Read-only filesystem: {self.shown_path}")
        return ContractMessage(f"Permission denied: {self.shown_path}", code=errors.PermissionDenied.code)

    def _old_string(self, error: SureholdError) -> str:
        return self.old_strings[int(error.details.get("edit_index", 0))]


class ContractWire(Wire):
    """Spells results and errors as the contract does; what it does not know goes to `_meta` and to `data`."""

    in_message = frozenset({"edit_index", "prior_index", "old_string", "count"})

    def with_warnings(self, data: Json, warnings: Sequence[str]) -> Json:
        return {**data, "_meta": super().with_warnings(data["_meta"], warnings)} if "_meta" in data else data

    def change_made(self, change_ids: Sequence[str], warning: str) -> Json:
        return {"success": True, "_meta": super().change_made(change_ids, warning)}

    def failure(self, error: SureholdError) -> Json:
        """Spell an error; `data` holds what one retry needs."""
        data: Json = {"kind": error.kind, "reason": error.reason, "suggested_action": error.action}
        if error.path is not None:
            data["path"] = error.path
        return {"error": {"code": error.code, "message": error.message, "data": {**data, **error.details}}}

    def failure_heading(self, error: SureholdError, notice: str) -> tuple[str, str]:
        """Begin with the contract's message, and nothing before it."""
        return error.message, f"{notice}{error.action}".strip()

    def declared_fields(self, result: type[Result]) -> Json:
        """Return what the contract names; models are not shown `_meta`."""
        return {name: kind for name, kind in super().declared_fields(result).items() if name != "_meta"}


WIRE = ContractWire()
