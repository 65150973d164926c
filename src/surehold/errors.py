"""Every deliberate error of Surehold, in one tree.

    SureholdError
    ├─ InvalidRequest                          the caller must change the call
    │  ├─ InvalidArgument       command_failed · invalid_argument      -32602
    │  │  └─ InvalidPattern     command_failed · invalid_regex, invalid_glob, unknown_type, needs_ripgrep
    │  ├─ NotEncodable          command_failed · not_encodable         -32018
    │  └─ PatchParseError       patch_parse_error · bad_line           -32013
    ├─ PathError                               the path is the problem
    │  ├─ NotFound              not_found · no_such_file               -32001
    │  │  └─ NotAFile           not_found · is_a_directory, not_a_file -32003
    │  ├─ AlreadyExists         already_exists · file                  -32006
    │  ├─ PermissionDenied      permission_denied · os_denied          -32002
    │  │  ├─ ProtectedPath      permission_denied · protected_path
    │  │  ├─ DeniedByRule       permission_denied · policy
    │  │  └─ PermissionRequired permission_denied · permission_required
    │  ├─ OutsideWorkspace      outside_workspace · dotdot, absolute … -32007
    │  ├─ BinaryFile            binary_file · nul_bytes                -32004
    │  └─ FileTooLarge          file_too_large · size_limit            -32008
    ├─ Stale                                   read again, then try again
    │  ├─ StaleFile             stale_file · hash_mismatch             -32009
    │  └─ UndoConflict          stale_file · undo_conflict
    ├─ MatchError                              the text to replace is the problem
    │  ├─ OldTextNotFound       old_text_not_found                     -32010
    │  ├─ MultipleMatches       multiple_matches                       -32011
    │  ├─ OverlappingEdits      overlapping_edits                      -32012
    │  └─ PatchApplyError       patch_apply_error · context_not_found  -32014
    ├─ LineEditError                           the operations on lines are the problem
    │  ├─ SchemaInvalid         schema_invalid · bad_field             -32602
    │  ├─ AnchorStale           anchor_stale · gone                    -32009
    │  ├─ RangeUnseen           range_unseen · never_shown             -32009
    │  ├─ AnchorLowEntropy      anchor_low_entropy · bare_hash         -32011
    │  ├─ AnchorAmbiguous       anchor_ambiguous · several_lines       -32011
    │  ├─ AnchorContextAmbiguous  anchor_context_ambiguous · same_context -32011
    │  ├─ InvalidRangeOrder     invalid_range_order · same_line        -32602
    │  ├─ OverlappingOperations  overlapping_operations · same_lines   -32012
    │  ├─ NoChange              no_change · same_bytes                 -32602
    │  └─ SafetyCheckFailed     safety_check_failed · suspicious       -32014
    ├─ MediaError                              the image or document cannot be shown    -32004
    │  ├─ ImageInvalid          image_invalid · undecodable
    │  ├─ ImageTooLarge         image_too_large · pixels
    │  ├─ PdfInvalid            pdf_invalid · undecodable
    │  ├─ PdfEncrypted          pdf_encrypted · password
    │  ├─ PdfPagesRequired      pdf_pages_required · many_pages        -32602
    │  └─ PdfBadRange           pdf_bad_range · bad_pages              -32602
    ├─ NotebookError                           the notebook or its cell is the problem
    │  ├─ UseNotebookEdit       use_notebook_edit · notebook           -32602
    │  ├─ NotebookInvalid       notebook_invalid · malformed           -32004
    │  ├─ CellNotFound          cell_not_found · no_such_cell          -32010
    │  └─ CellAmbiguous         cell_ambiguous · several_cells         -32011
    └─ Unavailable                             the machine or our own state is the problem
       ├─ LockTimeout           timeout · lock_timeout                 -32015
       ├─ SearchTimeout         timeout · scan_budget                  -32015
       ├─ Cancelled             command_failed · cancelled             -32018
       ├─ DiskFull              command_failed · disk_full             -32005
       ├─ DiskFailed            command_failed · io_error              -32018
       ├─ StateUnavailable      command_failed · audit_unavailable     -32018
       │  ├─ WorkspaceClosed    command_failed · closed
       │  ├─ StateTooNew        command_failed · state_too_new
       │  ├─ BlobsUnavailable   command_failed · blobs_away
       │  └─ StateCorrupt       command_failed · state_corrupt
       └─ RecoveryRequired      unknown · recovery_required            -32603

`kind` is the closed set that callers switch on, `reason` the finer one; both are public and stable.
A subclass only sets class attributes, so every error prints, pickles and serialises the same way.
The message is one sentence; what to do next is a field of its own.
"""

from typing import Any, ClassVar, Self, TypedDict


class SpelledText(str):
    """A text that names commands or arguments, as people at a terminal and models call them; `in_python` is for programs."""

    __slots__ = ("in_python",)
    in_python: str

    def __new__(cls, text: str, in_python: str) -> Self:
        made = super().__new__(cls, text)
        made.in_python = in_python
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.in_python))


def spell(text: str, *parts: str) -> SpelledText:
    """Fill the `{}` of a text; what a part is called in Python is what the text says there."""
    return SpelledText(text.format(*parts), text.format(*map(to_python, parts)))


def to_python(text: str) -> str:
    """Return a text as a program reads it."""
    return text.in_python if isinstance(text, SpelledText) else text


def argument(name: str) -> SpelledText:
    """Return the name of an argument as models send it; methods take it in snake_case."""
    return SpelledText(name, "".join(f"_{one.lower()}" if one.isupper() else one for one in name))


def undo_command(change_id: str) -> SpelledText:
    return SpelledText(f"surehold undo {change_id}", f'workspace.undo("{change_id}")')


def redo_command(change_id: str) -> SpelledText:
    return SpelledText(f"surehold redo {change_id}", f'workspace.redo("{change_id}")')


LOG = SpelledText("`surehold log`", "`workspace.changes()`")
SESSIONS = SpelledText("`surehold sessions`", "`workspace.history.sessions()`")
VERIFY = SpelledText("`surehold verify`", "`workspace.history.verify()`")
RECOVER = SpelledText("`surehold recover`", "`workspace.recover()`")
STATE_DIR = SpelledText("--state-dir", "`Settings(state_dir=…)`")
BLOBS = SpelledText("--blobs", "`open_workspace(blobs=…)`")
OTHER_MODE = SpelledText(
    "ask a person to start in another mode",
    'begin a session in another mode: `workspace.session(mode="default", approver=…)`',
)


class ErrorDict(TypedDict):
    """The serialised form of any error."""

    kind: str
    reason: str
    code: int
    message: str
    path: str | None
    suggested_action: str
    recoverable: bool
    details: dict[str, Any]


class SureholdError(Exception):
    """Base class of everything that Surehold refuses or fails to do on purpose."""

    kind: ClassVar[str] = "unknown"
    code: ClassVar[int] = -32603
    recoverable: ClassVar[bool] = True
    default_reason: ClassVar[str] = "internal"
    default_action: ClassVar[str] = spell("Look at {}, then try again.", LOG)

    message: str
    path: str | None
    reason: str
    action: str
    details: dict[str, Any]
    shown: tuple[tuple[int, int], ...] | None
    """The lines of the current version that the details show whole; () if they show that there is no file."""
    recorded: bool = False
    """Whether the refusal is already in the ledger."""

    def __init__(
        self,
        message: str,
        /,
        *,
        path: str | None = None,
        reason: str | None = None,
        action: str | None = None,
        shown: tuple[tuple[int, int], ...] | None = None,
        **details: Any,
    ) -> None:
        """Take the message, one sentence, and the data that belongs to it."""
        super().__init__(message)
        self.message = message
        self.path = path
        self.reason = reason or self.default_reason
        self.action = action if action is not None else self.default_action
        self.details = details
        self.shown = shown

    def as_dict(self) -> ErrorDict:
        """Return the error as plain data."""
        return {
            "kind": self.kind,
            "reason": self.reason,
            "code": self.code,
            "message": self.message,
            "path": self.path,
            "suggested_action": self.action,
            "recoverable": self.recoverable,
            "details": self.details,
        }

    def __str__(self) -> str:
        return f"{self.message} {self.action}".rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"path": self.path, "reason": self.reason, "action": self.action, "details": self.details}
        return (type(self), (self.message,), state)


class InvalidRequest(SureholdError):
    """The caller must change the call."""

    kind = "command_failed"
    code = -32602
    default_reason = "invalid_argument"
    default_action = "Correct the call and try again."


class InvalidArgument(InvalidRequest):
    """A value of the call cannot be used."""


class InvalidPattern(InvalidArgument):
    """A regular expression or a glob that cannot be read."""

    default_reason = "invalid_regex"
    default_action = "Correct the pattern and search again."


class PatchParseError(InvalidRequest):
    """The text is not a patch in a notation that we know."""

    kind = "patch_parse_error"
    code = -32013
    default_reason = "bad_line"
    default_action = "Correct that line and send the whole patch again."


class NotEncodable(InvalidRequest):
    """The file's encoding has no bytes for some of the new characters."""

    code = -32018
    default_reason = "not_encodable"
    default_action = "Write those characters differently, or convert the file to UTF-8 first."


class PathError(SureholdError):
    """The path is the problem."""


class NotFound(PathError):
    """The path does not exist."""

    kind = "not_found"
    code = -32001
    default_reason = "no_such_file"
    default_action = "Check the path, or create the file first."


class NotAFile(NotFound):
    """The path exists, but it is not a regular file."""

    code = -32003
    default_reason = "not_a_file"
    default_action = "Name a regular file."


class AlreadyExists(PathError):
    """The path must not exist, but it does."""

    kind = "already_exists"
    code = -32006
    default_reason = "file"
    default_action = "Choose another path, or read the file and write it with its sha256."


class PermissionDenied(PathError):
    """The operating system or a rule forbids it."""

    kind = "permission_denied"
    code = -32002
    recoverable = False
    default_reason = "os_denied"
    default_action = "Ask the owner of the workspace to change the permissions."


class ProtectedPath(PermissionDenied):
    """The path configures tools or holds Surehold's own state."""

    default_reason = "protected_path"
    default_action = SpelledText(
        "Ask a person to make this change.",
        "Pass `approver=` to `workspace.session()`, or name the path in `Settings(unprotected=[…])`.",
    )


class DeniedByRule(PermissionDenied):
    """A deny rule of this workspace matches the path."""

    default_reason = "policy"
    default_action = "Work on another file, or ask the owner of the workspace to change the rule."


class PermissionRequired(PermissionDenied):
    """The change requires approval, and there is no one to ask."""

    recoverable = True
    default_reason = "permission_required"
    default_action = "Ask a person to allow this change, or to start in another mode."


class OutsideWorkspace(PathError):
    """The path leads out of every root."""

    kind = "outside_workspace"
    code = -32007
    recoverable = False
    default_reason = "absolute"
    default_action = "Use a path below a workspace root."


class BinaryFile(PathError):
    """The file is not text."""

    kind = "binary_file"
    code = -32004
    default_reason = "nul_bytes"
    default_action = spell(
        "Leave it as it is; read_file shows it with {}, or as text when its encoding is named.", argument("allowBinary")
    )


class FileTooLarge(PathError):
    """The file is larger than this operation allows."""

    kind = "file_too_large"
    code = -32008
    default_reason = "size_limit"
    default_action = "Read a part of it, or raise max_file_bytes."


class Stale(SureholdError):
    """The file changed since the caller saw it."""

    kind = "stale_file"
    code = -32009


class StaleFile(Stale):
    """The file is not the version that the caller saw."""

    default_reason = "hash_mismatch"
    default_action = "Re-read the file to obtain the current sha256 and re-apply your edit."


class UndoConflict(Stale):
    """Later changes depend on this one, or another file has its name, so it cannot be undone alone."""

    default_reason = "undo_conflict"
    default_action = spell("Look at {}, or edit the file by hand.", LOG)


class MatchError(SureholdError):
    """The text to replace does not occur exactly once."""


class OldTextNotFound(MatchError):
    """The text to replace is not in the file."""

    kind = "old_text_not_found"
    code = -32010
    default_reason = "no_match"
    default_action = "Copy the text exactly as it is in the file."


class MultipleMatches(MatchError):
    """The text to replace occurs several times."""

    kind = "multiple_matches"
    code = -32011
    default_reason = "not_unique"
    default_action = "Include more of the surrounding lines, or replace all of them."


class OverlappingEdits(MatchError):
    """Two edits of one call change the same bytes."""

    kind = "overlapping_edits"
    code = -32012
    default_reason = "snapshot_overlap"
    default_action = "Merge the two edits into one."


class PatchApplyError(MatchError):
    """A hunk of a patch does not apply to its file."""

    kind = "patch_apply_error"
    code = -32014
    default_reason = "context_not_found"
    default_action = "Read the file, and write the hunk with its current lines."


class LineEditError(SureholdError):
    """The operations of a line edit do not name lines that they may change."""

    code = -32602
    step: ClassVar[str] = "fix_operation"
    """What to do next, as one word for programs; `action` says it in a sentence."""
    anchored: tuple[tuple[int, int], ...] = ()
    """The lines whose anchors the details show; long ones are in `shown` only if all of them is shown."""


class SchemaInvalid(LineEditError):
    """An operation has a wrong or missing field."""

    kind = "schema_invalid"
    default_reason = "bad_field"
    default_action = "Correct the operation and send the edit again."


class AnchorStale(LineEditError):
    """The line that an anchor names is gone, or cannot be proven to be the same."""

    kind = "anchor_stale"
    code = -32009
    step = "re-read_file"
    default_reason = "gone"
    default_action = "Copy fresh anchors from `fresh_rows`, or read the file again with hashes."


class RangeUnseen(LineEditError):
    """A range covers lines that this session was never shown."""

    kind = "range_unseen"
    code = -32009
    step = "retry"
    default_reason = "never_shown"
    default_action = "Look at the lines in `fresh_rows`; if they should be replaced too, send the same edit again."


class AnchorLowEntropy(LineEditError):
    """A bare hash names a line with too little content, such as a closing brace."""

    kind = "anchor_low_entropy"
    code = -32011
    step = "use_neighbor_anchor"
    default_reason = "bare_hash"
    default_action = "Copy the whole anchor with its line number, or use one of `neighbor_anchors`."


class AnchorAmbiguous(LineEditError):
    """An anchor names several lines."""

    kind = "anchor_ambiguous"
    code = -32011
    step = "choose_candidate"
    default_reason = "several_lines"
    default_action = "Copy the anchor of the line that you mean from `candidates`."


class AnchorContextAmbiguous(LineEditError):
    """An anchor names several lines with equal surroundings, or an end of a range names several lines."""

    kind = "anchor_context_ambiguous"
    code = -32011
    step = "choose_candidate"
    default_reason = "same_context"
    default_action = "Copy the anchor of the line that you mean from `candidates`."


class InvalidRangeOrder(LineEditError):
    """The end of a range is before its start, or is the same line."""

    kind = "invalid_range_order"
    default_reason = "same_line"
    default_action = "Send the operation in `operation` instead."


class OverlappingOperations(LineEditError):
    """Two operations of one call change the same lines."""

    kind = "overlapping_operations"
    code = -32012
    step = "rewrite_as_single_block"
    default_reason = "same_lines"
    default_action = "Merge the two operations into one."


class NoChange(LineEditError):
    """The edit would leave the file as it is."""

    kind = "no_change"
    step = "nothing"
    default_reason = "same_bytes"
    default_action = "Nothing to do, unless you meant other lines."


class SafetyCheckFailed(LineEditError):
    """The result looks damaged."""

    kind = "safety_check_failed"
    code = -32014
    default_reason = "suspicious"
    default_action = "Correct the named operation and send the edit again."


class MediaError(SureholdError):
    """An image or a document cannot be shown."""

    code = -32004


class ImageInvalid(MediaError):
    """The image cannot be decoded."""

    kind = "image_invalid"
    default_reason = "undecodable"
    default_action = "Check where the file comes from; an image program may repair it."


class ImageTooLarge(MediaError):
    """Decoding the image would take too much memory."""

    kind = "image_too_large"
    default_reason = "pixels"
    default_action = "Make a smaller copy of the image, and read that."


class PdfInvalid(MediaError):
    """The file is not a valid PDF document."""

    kind = "pdf_invalid"
    default_reason = "undecodable"
    default_action = "Check where the file comes from; it may be something else under this name."


class PdfEncrypted(MediaError):
    """The PDF document requires a password."""

    kind = "pdf_encrypted"
    default_reason = "password"
    default_action = "Ask a person for a copy without a password."


class PdfPagesRequired(MediaError):
    """The document has too many pages to show all of them."""

    kind = "pdf_pages_required"
    code = -32602
    default_reason = "many_pages"
    default_action = "Name at most 20 pages, such as pages='1-5'."


class PdfBadRange(MediaError):
    """These pages cannot be shown."""

    kind = "pdf_bad_range"
    code = -32602
    default_reason = "bad_pages"
    default_action = "Name at most 20 pages, such as '3', '1-5' or '1,4,7-9'."


class NotebookError(SureholdError):
    """The notebook or its cell is the problem."""

    code = -32602


class UseNotebookEdit(NotebookError):
    """A notebook is changed cell by cell."""

    kind = "use_notebook_edit"
    default_reason = "notebook"
    default_action = "Change it with NotebookEdit."


class NotebookInvalid(NotebookError):
    """The file is not a notebook that we can change safely."""

    kind = "notebook_invalid"
    code = -32004
    default_reason = "malformed"
    default_action = "Open it in Jupyter and save it again."


class CellNotFound(NotebookError):
    """No cell has this name."""

    kind = "cell_not_found"
    code = -32010
    default_reason = "no_such_cell"
    default_action = "Read the notebook for the ids of its cells."


class CellAmbiguous(NotebookError):
    """The name matches several cells."""

    kind = "cell_ambiguous"
    code = -32011
    default_reason = "several_cells"
    default_action = "Use a name that only one cell has."


class Unavailable(SureholdError):
    """The machine or Surehold's own state is the problem; nothing was written."""

    kind = "command_failed"
    code = -32018


def missing_extra(what: str, extra: str) -> Unavailable:
    """Say which extra of the package brings what is missing."""
    message = f"{what}: this needs the extra `{extra}` of Surehold, which is not installed."
    action = f'Install it: pip install "surehold[{extra}]", or everything: uv tool install "surehold[all]".'
    return Unavailable(message, reason="extra_missing", action=action, extra=extra)


class LockTimeout(Unavailable):
    """Another writer held the lock for too long."""

    kind = "timeout"
    code = -32015
    default_reason = "lock_timeout"
    default_action = "Try again; if it persists, look for a stuck process with `surehold doctor`."


class SearchTimeout(Unavailable):
    """A search took too long."""

    kind = "timeout"
    code = -32015
    default_reason = "scan_budget"
    default_action = "Narrow the search to a directory or to some files."


class Cancelled(Unavailable):
    """The caller cancelled the call before anything was written."""

    default_reason = "cancelled"
    default_action = "Call again if it is still needed."


class DiskFull(Unavailable):
    """There is no space left for the new bytes."""

    code = -32005
    default_reason = "disk_full"
    default_action = "Free some space, then try again."


class DiskFailed(Unavailable):
    """The operating system reported an input or output error."""

    default_reason = "io_error"
    default_action = "Check the disk, then try again."


class StateUnavailable(Unavailable):
    """Surehold cannot record the change, so it does not make it."""

    default_reason = "audit_unavailable"
    default_action = spell("Make the state directory writable, or name another one with {}.", STATE_DIR)


class WorkspaceClosed(StateUnavailable):
    """The workspace was closed before this call."""

    default_reason = "closed"
    default_action = "Open it again with `open_workspace`, and make calls before it is closed."


class StateTooNew(StateUnavailable):
    """A newer Surehold wrote this state directory."""

    default_reason = "state_too_new"
    default_action = spell("Upgrade Surehold, or name another state directory with {}.", STATE_DIR)


class BlobsUnavailable(StateUnavailable):
    """The place of large versions cannot be used."""

    default_reason = "blobs_away"
    default_action = "Nothing was written. Try again when it can be reached; changes that store no large version go on."


class StateCorrupt(StateUnavailable):
    """Stored bytes do not match their hash."""

    default_reason = "state_corrupt"
    default_action = spell("Run {} to see what is affected.", VERIFY)


class RecoveryRequired(Unavailable):
    """An interrupted change left a file that is neither its old nor its new version."""

    kind = "unknown"
    code = -32603
    recoverable = False
    default_reason = "recovery_required"
    default_action = spell("Run {}.", RECOVER)
