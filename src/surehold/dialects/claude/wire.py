"""The claude family's output: plain results, errors as `{error: {kind, message, suggested_action, details}}`, and its guide for models."""

from typing import get_args

from surehold import errors
from surehold.errors import SureholdError
from surehold.tools.call import Json
from surehold.tools.spec import Result, Wire

GUIDE = """\
Changing files with Read, Write, Edit and NotebookEdit:
- Read before you change. `Edit` wants the lines that it touches to have been shown in this conversation, `Write` the whole file.
  Pages of Read, rows of Grep, and the lines that a result or a refusal shows add up; your own changes keep counting.
- Copy `old_string` exactly from the file, without the `N→` in front of each line, with enough lines around it to occur once.
- `stale` means that the file changed since you saw it. The refusal shows what changed, and that counts as reading it:
  look whether your change is still right, and send it again. `partially_read` shows or names what is missing.
- Notebooks (.ipynb) are changed cell by cell with `NotebookEdit`; Read shows the ids of the cells.
- Glob and Grep say what they did not look at. No hit proves nothing where ignored or binary files were left out.
- Every refusal says what to do next; "Nothing was written." means just that. A person can take every change back."""

BRIEF = """\
Read before you change: Edit wants the lines that it touches shown in this conversation (Read, Grep, earlier answers), Write the
whole file. `stale`: the file changed; the refusal shows what, so look and send the call again. Notebooks: NotebookEdit."""


_BY_REASON = {
    "not_read": "not_read",
    "partially_read": "partially_read",
    "same_text": "no_change",
    "is_a_directory": "is_directory",
    "unknown_type": "bad_type",
}
"""Where the reason says it more finely than the kind."""

_BY_CLASS: tuple[tuple[type[SureholdError], str], ...] = (
    (errors.InvalidPattern, "bad_pattern"),
    (errors.InvalidArgument, "invalid_arguments"),
    (errors.OverlappingEdits, "invalid_arguments"),
    (errors.NotEncodable, "encoding_unencodable"),
    (errors.NotAFile, "not_regular_file"),
    (errors.NotFound, "file_not_found"),
    (errors.AlreadyExists, "stale"),
    (errors.StaleFile, "stale"),
    (errors.OldTextNotFound, "not_found"),
    (errors.MultipleMatches, "not_unique"),
    (errors.PermissionRequired, "permission_required"),
    (errors.ProtectedPath, "protected_path"),
    (errors.PermissionDenied, "permission_denied"),
    (errors.OutsideWorkspace, "outside_roots"),
    (errors.BinaryFile, "binary_file"),
    (errors.FileTooLarge, "file_too_large"),
    (errors.SearchTimeout, "timeout_partial"),
)
"""The first class that fits; every other error keeps its own kind."""


class ClaudeWire(Wire):
    """Spells results as they are; only what was set is there."""

    leaves_out = "unset"

    def failure(self, error: SureholdError) -> Json:
        details = {"reason": error.reason, **error.details}
        if error.path is not None:
            details["path"] = error.path
        kind = self.kind_of(error)
        body = {"kind": kind, "message": error.message, "suggested_action": error.action, "details": details}
        return {"error": body}

    def kind_of(self, error: SureholdError) -> str:
        if named := _BY_REASON.get(error.reason):
            return named
        return next((kind for cls, kind in _BY_CLASS if isinstance(error, cls)), error.kind)

    def declared_fields(self, result: type[Result]) -> Json:
        """Return every field; what may be null says so."""
        rows = zip(super().declared_fields(result).items(), result.model_fields.values(), strict=True)
        return {
            name: {**row, "type": [row["type"], "null"]} if type(None) in get_args(info.annotation) else row
            for (name, row), info in rows
        }


WIRE = ClaudeWire()
