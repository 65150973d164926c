"""A session with a typed method for every tool.

A method takes the tool's arguments in snake_case and returns its result; a refusal is raised. `answer` is for programs that have
a tool's name and its arguments as plain data, as a model sends them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal

from surehold.dialects.anchored.edit import LineEditParams, LineEditResult, edit
from surehold.dialects.anchored.operations import LineOperation
from surehold.dialects.files.apply_patch import PatchParams, PatchResult, apply_patch
from surehold.dialects.files.create_file import CreateParams, CreateResult, create_file
from surehold.dialects.files.edit_file import EditParams, EditResult, TextEdit, edit_file
from surehold.dialects.files.glob import FilesGlobResult, GlobParams, glob
from surehold.dialects.files.list_directory import ListParams, ListResult, list_directory
from surehold.dialects.files.move_file import MoveParams, MoveResult, move_file
from surehold.dialects.files.search_files import SearchFilesResult, SearchParams, search_files
from surehold.dialects.files.trash import (
    DeleteParams,
    DeleteResult,
    RestoreParams,
    RestoreResult,
    delete_file,
    restore_file,
)
from surehold.dialects.shared.read_file import ReadParams, ReadResult, read_file
from surehold.dialects.shared.write_file import WriteParams, WriteResult, write_file
from surehold.library.tool_session import ClaudeMethods, MultiEditMethods
from surehold.text.anchored.edits import Operation
from surehold.text.quoted.edits import StringEdit


class AgentSession(ClaudeMethods, MultiEditMethods):
    """One agent's conversation with one workspace."""

    def read_file(
        self,
        path: str,
        *,
        start_line: int | None = None,
        end_line: int | None = None,
        max_bytes: int = 262_144,
        hashes: bool = False,
        anchors: Literal["all", "sparse"] = "all",
        allow_binary: bool = False,
        encoding: str | None = None,
        if_none_match: str | None = None,
    ) -> ReadResult:
        """Read a text file: its lines, and the sha256 of all of it."""
        params = ReadParams(
            path=path,
            start_line=start_line,
            end_line=end_line,
            max_bytes=max_bytes,
            hashes=hashes,
            anchors=anchors,
            allow_binary=allow_binary,
            encoding=encoding,
            if_none_match=if_none_match,
        )
        return read_file(self._program_context, params)

    def list_directory(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        max_depth: int = 8,
        include_hidden: bool = False,
        respect_ignore: bool = True,
        max_entries: int = 5_000,
        cursor: str = "",
    ) -> ListResult:
        """List a directory in path order."""
        params = ListParams(
            path=path,
            recursive=recursive,
            max_depth=max_depth,
            include_hidden=include_hidden,
            respect_ignore=respect_ignore,
            max_entries=max_entries,
            cursor=cursor,
        )
        return list_directory(self._program_context, params)

    def search_files(
        self,
        query: str,
        *,
        mode: Literal["path", "text", "regex"] = "text",
        root: str = ".",
        include_globs: Sequence[str] = (),
        exclude_globs: Sequence[str] = (),
        max_results: int = 100,
        context_lines: int = 0,
        case_sensitive: bool = True,
        multiline: bool = False,
        cursor: str = "",
    ) -> SearchFilesResult:
        """Search names, literal text or regular expressions."""
        params = SearchParams(
            query=query,
            mode=mode,
            root=root,
            include_globs=list(include_globs),
            exclude_globs=list(exclude_globs),
            max_results=max_results,
            context_lines=context_lines,
            case_sensitive=case_sensitive,
            multiline=multiline,
            cursor=cursor,
        )
        return search_files(self._program_context, params)

    def glob(
        self,
        pattern: str,
        *,
        root: str = ".",
        exclude_globs: Sequence[str] = (),
        max_results: int = 1_000,
        include_hidden: bool = False,
    ) -> FilesGlobResult:
        """Find files and directories by a pattern."""
        params = GlobParams(
            pattern=pattern,
            root=root,
            exclude_globs=list(exclude_globs),
            max_results=max_results,
            include_hidden=include_hidden,
        )
        return glob(self._program_context, params)

    def create_file(
        self,
        path: str,
        content: str,
        *,
        create_parent_directories: bool = True,
        dry_run: bool = False,
        reason: str = "",
    ) -> CreateResult:
        """Create a new file; one that exists is never overwritten."""
        params = CreateParams(
            path=path,
            content=content,
            create_parent_directories=create_parent_directories,
            dry_run=dry_run,
            reason=reason,
        )
        return create_file(self._program_context, params)

    def write_file(
        self, path: str, content: str, *, expected_sha256: str, dry_run: bool = False, reason: str = ""
    ) -> WriteResult:
        """Overwrite an existing file whose sha256 the caller knows."""
        params = WriteParams(
            path=path, content=content, expected_sha256=expected_sha256, dry_run=dry_run, reason=reason
        )
        return write_file(self._program_context, params)

    def edit_file(
        self,
        path: str,
        edits: Sequence[StringEdit | tuple[str, str]],
        *,
        expected_sha256: str,
        dry_run: bool = False,
        reason: str = "",
    ) -> EditResult:
        """Replace exact texts in a file: all edits or none."""
        params = EditParams(
            path=path,
            edits=[_text_edit(edit) for edit in edits],
            expected_sha256=expected_sha256,
            dry_run=dry_run,
            reason=reason,
        )
        return edit_file(self._program_context, params)

    def edit_lines(
        self,
        path: str,
        operations: Sequence[Operation],
        *,
        expected_sha256: str = "",
        safety_check: Literal["strict", "warn", "off"] = "strict",
        dry_run: bool = False,
        strict_order: bool = False,
        reason: str = "",
    ) -> LineEditResult:
        """Change lines by their anchors, as the tool `edit` does: all operations or none."""
        params = LineEditParams(
            path=path,
            operations=[LineOperation(**operation.as_sent()) for operation in operations],
            expected_sha256=expected_sha256,
            safety_check=safety_check,
            dry_run=dry_run,
            strict_order=strict_order,
            reason=reason,
        )
        return edit(self._program_context, params)

    def delete_file(
        self, path: str, *, expected_sha256: str, permanent: bool = False, dry_run: bool = False, reason: str = ""
    ) -> DeleteResult:
        """Delete a file; it goes to the trash."""
        params = DeleteParams(
            path=path, expected_sha256=expected_sha256, permanent=permanent, dry_run=dry_run, reason=reason
        )
        return delete_file(self._program_context, params)

    def restore_file(
        self,
        trash_id: str | None = None,
        *,
        trashed_path: str | None = None,
        target_path: str | None = None,
        dry_run: bool = False,
        reason: str = "",
    ) -> RestoreResult:
        """Bring a deleted file back, never over an existing file."""
        params = RestoreParams(
            trash_id=trash_id, trashed_path=trashed_path, target_path=target_path, dry_run=dry_run, reason=reason
        )
        return restore_file(self._program_context, params)

    def move_file(
        self,
        from_path: str,
        to_path: str,
        *,
        expected_sha256: str,
        overwrite: bool = False,
        expected_dest_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
    ) -> MoveResult:
        """Move or rename a file."""
        params = MoveParams(
            from_path=from_path,
            to_path=to_path,
            expected_sha256=expected_sha256,
            overwrite=overwrite,
            expected_dest_sha256=expected_dest_sha256,
            dry_run=dry_run,
            reason=reason,
        )
        return move_file(self._program_context, params)

    def apply_patch(
        self,
        patch: str,
        *,
        expected_sha256_by_path: Mapping[str, str] | None = None,
        atomic: bool = True,
        format: Literal["auto", "envelope", "unified", "git"] = "auto",  # noqa: A002 - the tool's word
        dry_run: bool = False,
        reason: str = "",
    ) -> PatchResult:
        """Apply a patch to many files: all of them or none."""
        params = PatchParams(
            patch=patch,
            expected_sha256_by_path=dict(expected_sha256_by_path or {}),
            atomic=atomic,
            format=format,
            dry_run=dry_run,
            reason=reason,
        )
        return apply_patch(self._program_context, params)


def _text_edit(edit: StringEdit | tuple[str, str]) -> TextEdit:
    one = edit if isinstance(edit, StringEdit) else StringEdit(old=edit[0], new=edit[1])
    facts = asdict(one)
    return TextEdit(old_text=facts.pop("old"), new_text=facts.pop("new"), **facts)
