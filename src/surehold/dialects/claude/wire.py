"""The claude family's output: plain results, errors as `{error: {kind, message, suggested_action, details}}`, and its guide for models."""

from typing import get_args

from surehold.dialects.shared.wire import detail_rows
from surehold.errors import (
    AlreadyExists,
    BinaryFile,
    FileTooLarge,
    InvalidArgument,
    InvalidPattern,
    MultipleMatches,
    NotAFile,
    NotEncodable,
    NotFound,
    OldTextNotFound,
    OutsideWorkspace,
    OverlappingEdits,
    PermissionDenied,
    PermissionRequired,
    ProtectedPath,
    RecoveryRequired,
    SearchTimeout,
    StaleFile,
    SureholdError,
)
from surehold.tools.schema import Json, result_schema
from surehold.tools.spec import Result

GUIDE = """\
Changing files with Read, Write, Edit and NotebookEdit:
- Read before you change. `Edit` wants the lines that it touches to have been shown in this conversation, `Write` the whole file.
  Pages of Read, rows of Grep, and the lines that a result or a refusal shows add up; your own changes keep counting.
- Copy `old_string` exactly from the file, without the `N→` in front of each line, with enough lines around it to stand once.
- `stale` means that somebody changed the file since you saw it. The refusal shows what changed, and that counts as reading it:
  look whether your change is still right, and send it again. `partially_read` shows or names what is missing.
- Notebooks (.ipynb) are changed cell by cell with `NotebookEdit`; Read shows the ids of the cells.
- Glob and Grep say what they did not look at. No hit is no proof where ignored or binary files were left out.
- Every refusal says what to do next; "Nothing was written." means just that. A person can take every change back."""

BRIEF = """\
Read before you change: Edit wants the lines that it touches shown in this conversation (Read, Grep, earlier answers), Write the
whole file. `stale`: somebody changed it; the refusal shows what, so look and send the call again. Notebooks: NotebookEdit."""


_BY_REASON = {
    "not_read": "not_read",
    "partially_read": "partially_read",
    "same_text": "no_change",
    "is_a_directory": "is_directory",
    "unknown_type": "bad_type",
}
"""Where the reason says it more finely than the kind."""

_BY_CLASS: tuple[tuple[type[SureholdError], str], ...] = (
    (InvalidPattern, "bad_pattern"),
    (InvalidArgument, "invalid_arguments"),
    (OverlappingEdits, "invalid_arguments"),
    (NotEncodable, "encoding_unencodable"),
    (NotAFile, "not_regular_file"),
    (NotFound, "file_not_found"),
    (AlreadyExists, "stale"),
    (StaleFile, "stale"),
    (OldTextNotFound, "not_found"),
    (MultipleMatches, "not_unique"),
    (PermissionRequired, "permission_required"),
    (ProtectedPath, "protected_path"),
    (PermissionDenied, "permission_denied"),
    (OutsideWorkspace, "outside_roots"),
    (BinaryFile, "binary_file"),
    (FileTooLarge, "file_too_large"),
    (SearchTimeout, "timeout_partial"),
)
"""The first class that fits; every other error keeps its own kind."""


class ClaudeWire:
    """Spells results as they are."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool."""
        data = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {**data, "warnings": [*data.get("warnings", ()), *warnings]} if warnings else data

    def failure(self, error: SureholdError) -> Json:
        """Spell an error."""
        details = {"reason": error.reason, **error.details}
        if error.path is not None:
            details["path"] = error.path
        body = {"kind": kind_of(error), "message": error.message, "suggested_action": error.action, "details": details}
        return {"error": body}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say what is wrong, what to do next, and what is needed to do it."""
        first = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        rows = [f"{first}{kind_of(error)}: {error.message}", error.action, *detail_rows(error.details)]
        return "\n".join(row for row in rows if row)

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there, and what may be null says so."""
        rows = zip(result_schema(result)["properties"].items(), result.model_fields.values(), strict=True)
        properties = {
            name: {**row, "type": [row["type"], "null"]} if type(None) in get_args(info.annotation) else row
            for (name, row), info in rows
        }
        return {"type": "object", "properties": {**properties, "error": {"type": "object"}}}


WIRE = ClaudeWire()


def kind_of(error: SureholdError) -> str:
    """Return the family's word for an error."""
    if named := _BY_REASON.get(error.reason):
        return named
    return next((kind for cls, kind in _BY_CLASS if isinstance(error, cls)), error.kind)
