"""A session that calls any tool by name, with typed methods for the claude and multi_edit families.

Each of these two families is imported by its first call.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from surehold.dialects.shared.delivery_record import DeliveryRecord
from surehold.library.families import tool_named
from surehold.tools.context import AnswerBudget, CallContext
from surehold.tools.spec import Answer
from surehold.workspace.access.permission import Permission
from surehold.workspace.session import Session
from surehold.workspace.writer import WorkspaceWriter

if TYPE_CHECKING:
    from surehold.dialects.claude.edit import FileEditResult
    from surehold.dialects.claude.glob import ClaudeGlobResult
    from surehold.dialects.claude.grep import ClaudeGrepResult
    from surehold.dialects.claude.notebook_edit import NotebookEditResult
    from surehold.dialects.claude.read_result import FileReadResult
    from surehold.dialects.claude.write import FileWriteResult
    from surehold.dialects.multi_edit.edit_text_file import EditTextResult
    from surehold.dialects.multi_edit.multi_edit_text_file import MultiEditResult
    from surehold.dialects.multi_edit.read_text_file import ReadTextResult
    from surehold.dialects.multi_edit.write_text_file import WriteTextResult


_UNLIMITED_BUDGET = AnswerBudget(lines=1 << 30, characters=1 << 40, tokens=1 << 40)
"""A program is given everything at once."""


class ToolSession(Session):
    """One agent's conversation with one workspace, which can call every tool by its name."""

    def __init__(
        self,
        workspace: WorkspaceWriter,
        *,
        id: str,  # noqa: A002 - it is the id
        agent: str = "",
        permission: Permission | None = None,
    ) -> None:
        super().__init__(workspace, id=id, agent=agent, permission=permission)
        self.deliveries = DeliveryRecord()  # here, so that the copies that `asking` makes share it

    def notify_compaction(self) -> None:
        """Hear that the host shortened the conversation: nothing is answered with `file_unchanged` before it is shown again."""
        self.deliveries.notify_compaction()

    def answer(self, name: str, arguments: Mapping[str, Any], *, budget: AnswerBudget | None = None) -> Answer:
        """Call a tool by its name with plain data, as a model does; a refusal is an answer too."""
        return tool_named(name).call(CallContext(session=self, budget=budget or AnswerBudget()), arguments)

    @property
    def _program_context(self) -> CallContext:
        return CallContext(session=self, budget=_UNLIMITED_BUDGET)


class ClaudeMethods(ToolSession):
    """Read, Write, Edit, Glob, Grep and NotebookEdit from Python."""

    def claude_read(
        self,
        file_path: str,
        *,
        offset: int | None = 1,
        limit: int | None = 2_000,
        pages: str | None = None,
        column: int | None = 1,
        encoding: str | None = None,
        sha256: bool = False,
    ) -> "FileReadResult":
        """Read a file of any kind: text, an image, a PDF document or a notebook."""
        from surehold.dialects.claude.read import FileReadParams, read

        params = FileReadParams(
            file_path=file_path,
            offset=offset,
            limit=limit,
            pages=pages,
            column=column,
            encoding=encoding,
            sha256=sha256,
        )
        return read(self._program_context, params)

    def claude_write(
        self, file_path: str, content: str, *, expected_sha256: str = "", reason: str = "", dry_run: bool = False
    ) -> "FileWriteResult":
        """Make a file, or overwrite one that this session has read."""
        from surehold.dialects.claude.write import FileWriteParams, write

        params = FileWriteParams(
            file_path=file_path, content=content, expected_sha256=expected_sha256, reason=reason, dry_run=dry_run
        )
        return write(self._program_context, params)

    def claude_edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
    ) -> "FileEditResult":
        """Replace a text that stands exactly once, in lines that this session has read."""
        from surehold.dialects.claude.edit import FileEditParams, edit

        params = FileEditParams(
            file_path=file_path,
            old_string=old_string,
            new_string=new_string,
            replace_all=replace_all,
            expected_sha256=expected_sha256,
            reason=reason,
            dry_run=dry_run,
        )
        return edit(self._program_context, params)

    def claude_glob(
        self,
        pattern: str,
        path: str | None = None,
        *,
        include_ignored: bool = False,
        include_hidden: bool = True,
        limit: int = 250,
    ) -> "ClaudeGlobResult":
        """Find files by a pattern, newest first."""
        from surehold.dialects.claude.glob import ClaudeGlobParams, glob

        params = ClaudeGlobParams(
            pattern=pattern, path=path, include_ignored=include_ignored, include_hidden=include_hidden, limit=limit
        )
        return glob(self._program_context, params)

    def claude_grep(
        self,
        pattern: str,
        path: str | None = None,
        *,
        glob: str | None = None,
        output_mode: Literal["files_with_matches", "content", "count"] = "files_with_matches",
        ignore_case: bool = False,
        line_numbers: bool = True,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        context: int | None = None,
        type: str | None = None,  # noqa: A002 - the tool's word
        head_limit: int = 250,
        offset: int = 0,
        multiline: bool = False,
        include_ignored: bool = False,
        include_hidden: bool = True,
    ) -> "ClaudeGrepResult":
        """Search contents with a regular expression."""
        from surehold.dialects.claude.grep import ClaudeGrepParams, grep

        named: dict[str, Any] = {
            "pattern": pattern,
            "path": path,
            "glob": glob,
            "output_mode": output_mode,
            "ignore_case": ignore_case,
            "line_numbers": line_numbers,
            "after": after,
            "before": before,
            "around": around,
            "context": context,
            "type": type,
            "head_limit": head_limit,
            "offset": offset,
            "multiline": multiline,
            "include_ignored": include_ignored,
            "include_hidden": include_hidden,
        }
        return grep(self._program_context, ClaudeGrepParams.model_validate(named))  # its own names begin with a hyphen

    def claude_notebook_edit(
        self,
        notebook_path: str,
        new_source: str | None = None,
        *,
        edit_mode: Literal["replace", "insert", "delete"] = "replace",
        cell_id: str | None = None,
        cell_type: Literal["code", "markdown", "raw"] | None = None,
        position: Literal["after", "before", "start", "end"] | None = None,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
    ) -> "NotebookEditResult":
        """Change one cell of a notebook, and nothing else in its file."""
        from surehold.dialects.claude.notebook_edit import NotebookEditParams, notebook_edit

        params = NotebookEditParams(
            notebook_path=notebook_path,
            new_source=new_source,
            edit_mode=edit_mode,
            cell_id=cell_id,
            cell_type=cell_type,
            position=position,
            expected_sha256=expected_sha256,
            reason=reason,
            dry_run=dry_run,
        )
        return notebook_edit(self._program_context, params)


class MultiEditMethods(ToolSession):
    """multi_edit_text_file and its siblings from Python. Paths are absolute."""

    def multi_edit_text_file(
        self, path: str, edits: Sequence[tuple[str, str]], *, expected_sha256: str = ""
    ) -> "MultiEditResult":
        """Replace texts one after the other, each looking at the result of the one before; all of them or none."""
        from surehold.dialects.multi_edit.multi_edit_text_file import EditOp, MultiEditParams, multi_edit_text_file

        params = MultiEditParams(
            path=path,
            edits=[EditOp(old_string=old, new_string=new) for old, new in edits],
            expected_sha256=expected_sha256,
        )
        return multi_edit_text_file(self._program_context, params)

    def edit_text_file(
        self, path: str, old_string: str, new_string: str, *, expected_sha256: str = ""
    ) -> "EditTextResult":
        """Replace a text that stands exactly once."""
        from surehold.dialects.multi_edit.edit_text_file import EditTextParams, edit_text_file

        params = EditTextParams(
            path=path, old_string=old_string, new_string=new_string, expected_sha256=expected_sha256
        )
        return edit_text_file(self._program_context, params)

    def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> "ReadTextResult":
        """Read some lines of a text file."""
        from surehold.dialects.multi_edit.read_text_file import ReadTextParams, read_text_file

        return read_text_file(self._program_context, ReadTextParams(path=path, line=line, limit=limit))

    def write_text_file(self, path: str, content: str, *, expected_sha256: str = "") -> "WriteTextResult":
        """Make a file, or overwrite one that this session has read."""
        from surehold.dialects.multi_edit.write_text_file import WriteTextParams, write_text_file

        return write_text_file(
            self._program_context, WriteTextParams(path=path, content=content, expected_sha256=expected_sha256)
        )
