"""Typed methods for the tools of the claude family. The family is loaded by the first call."""

from typing import TYPE_CHECKING, Any, Literal

from surehold.dialects.tool_session import ToolSession

if TYPE_CHECKING:
    from surehold.dialects.claude.edit import FileEditResult
    from surehold.dialects.claude.glob import ClaudeGlobResult
    from surehold.dialects.claude.grep import ClaudeGrepResult
    from surehold.dialects.claude.notebook_edit import NotebookEditResult
    from surehold.dialects.claude.read_result import FileReadResult
    from surehold.dialects.claude.write import FileWriteResult


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
        return read(self._context, params)

    def claude_write(
        self, file_path: str, content: str, *, expected_sha256: str = "", reason: str = "", dry_run: bool = False
    ) -> "FileWriteResult":
        """Make a file, or overwrite one that this session has read."""
        from surehold.dialects.claude.write import FileWriteParams, write

        params = FileWriteParams(
            file_path=file_path, content=content, expected_sha256=expected_sha256, reason=reason, dry_run=dry_run
        )
        return write(self._context, params)

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
        return edit(self._context, params)

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
        return glob(self._context, params)

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
        return grep(self._context, ClaudeGrepParams.model_validate(named))  # its own names begin with a hyphen

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
        return notebook_edit(self._context, params)
