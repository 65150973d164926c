"""`Write`: create a file, or replace the content of one that was read."""

import re
from functools import partial
from typing import Any, ClassVar, Literal

from surehold.dialects.claude.change_result import FILE_PATH_ALIASES, FileChangeResult, change_fields, lines_in_patch
from surehold.dialects.claude.gate import GatedParams, submit_gated
from surehold.dialects.claude.located_file import LocatedFile, locate_file
from surehold.dialects.claude.wire import WIRE
from surehold.dialects.shared.params import CONTENT_ALIASES, check_text
from surehold.disk.base import EntryStat
from surehold.errors import InvalidArgument, NotebookInvalid, NotFound, UseNotebookEdit
from surehold.text.notebook.model import read_notebook
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool

_ORIGINAL_BYTES = 20 * 1024
"""Larger originals are named by their hash."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NO_FILE_YET = EntryStat("other", 0, 0, 0)
"""The facts about a file that is still to be made."""


class FileWriteParams(GatedParams):
    ALIASES: ClassVar = {**FILE_PATH_ALIASES, **CONTENT_ALIASES, "contents": "content"}

    content: str
    """The whole text of the file."""
    file_path: SubjectPath
    """Absolute, or relative to the first root."""


class FileWriteResult(FileChangeResult):
    REPEATED: ClassVar = ("original_file",)

    type: Literal["create", "update"]
    original_file: str | None = None
    """None for a new file; absent above 20 KB."""
    original_file_sha256: str = ""

    def headline(self) -> str:
        if self.unchanged:
            return f"{self.display_path} already has this content; nothing was written."
        if self.type == "create":
            return f"Created {self.display_path}."
        if self.structured_patch_truncated:
            return f"Updated {self.display_path}."
        signs = [line[:1] for hunk in self.structured_patch for line in hunk.lines]
        return f"Updated {self.display_path}: +{signs.count('+')} -{signs.count('-')} lines."


@tool(
    "Write",
    hints=Hints(
        kind="edit",
        title="Write a file",
        loaded_when_alone=True,
        verb="Write",
        destructive=True,
        idempotent=True,
        operation="write",
    ),
    wire=WIRE,
    method="claude_write",
)
def write(context: CallContext, params: FileWriteParams) -> FileWriteResult:
    """Create a file, or overwrite one completely; parent directories are made.

    An existing file must have been read completely in this session (Read, in pages if it is long) and not have changed since.
    Its encoding, byte order mark and line endings stay. At most 1 GiB. To change a part of a file use Edit; notebooks
    (.ipynb) are changed with NotebookEdit.
    """
    check_text(params.content, "content", path=params.file_path)
    place = _locate_destination(context, params.file_path)
    if place.target.key.lower().endswith(".ipynb"):
        _check_new_notebook(params, place)
    content, shows = WriteText(params.content), partial(lines_in_patch, context.budget)
    receipt = submit_gated(context, place, content, params, needs="whole", tool="Write", operation="write", shows=shows)
    plan = receipt.files[0].plan
    if not receipt.files[0].changed:  # the caller sent all of it, so it knows all of it
        total = plan.after.line_count
        context.session.record_shown_lines(place.target, plan.after, spans=((1, total),) if total else (), whole=True)
    return FileWriteResult(**_original_fields(plan.before), **change_fields(context, place, receipt))


def _original_fields(before: Snapshot) -> dict[str, Any]:
    if not before.exists:
        return {"type": "create", "original_file": None}
    known = {"type": "update", "original_file_sha256": before.sha256}
    return known if before.size > _ORIGINAL_BYTES else {**known, "original_file": before.text}


def _locate_destination(context: CallContext, path: str) -> LocatedFile:
    """Return the file that a path means, or the place where it will be."""
    try:
        return locate_file(context.session, path, head=0)
    except NotFound:
        target = context.session.workspace.target(path)
        _check_new_name(path)
        return LocatedFile(path=path, target=target, look=_NO_FILE_YET, head=b"")


def _check_new_name(path: str) -> None:
    """Refuse what means another place to the caller, and would create a directory named `~` or `file:`."""
    if path.startswith("~/") or _ADDRESS.match(path):
        raise InvalidArgument(
            f"`{path}` is not expanded: this would create a directory named `{path.partition('/')[0]}`.",
            path=path,
            reason="not_a_plain_path",
            action="Send the absolute path; for a directory of that name, begin the path with `./`.",
        )


def _check_new_notebook(params: FileWriteParams, place: LocatedFile) -> None:
    """Let only a whole new notebook through: an existing one is changed cell by cell."""
    if place.look is not _NO_FILE_YET:
        raise UseNotebookEdit(f"`{params.file_path}` is a notebook.", path=params.file_path)
    try:
        read_notebook(params.content.encode(errors="surrogatepass"))
    except NotebookInvalid as error:
        raise UseNotebookEdit(
            "The content of a new notebook must be a notebook's JSON.",
            path=params.file_path,
            reason=error.reason,
            action='Send {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, and add cells with NotebookEdit.',
            cause=error.message,
        ) from None
