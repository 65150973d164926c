"""The methods of a session, one for each tool. Written by scripts/write_stubs.py; do not edit."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Literal

from surehold.dialects.anchored.edit import LineEditResult
from surehold.dialects.claude.edit import FileEditResult
from surehold.dialects.claude.glob import ClaudeGlobResult
from surehold.dialects.claude.grep import ClaudeGrepResult
from surehold.dialects.claude.notebook_edit import NotebookEditResult
from surehold.dialects.claude.read_result import FileReadResult
from surehold.dialects.claude.write import FileWriteResult
from surehold.dialects.files.apply_patch import PatchResult
from surehold.dialects.files.edit_file import EditResult
from surehold.dialects.files.glob import FilesGlobResult
from surehold.dialects.files.list_directory import ListResult
from surehold.dialects.files.move_file import MoveResult
from surehold.dialects.files.search_files import SearchFilesResult
from surehold.dialects.files.trash import DeleteResult, RestoreResult
from surehold.dialects.multi_edit.multi_edit_text_file import MultiEditResult
from surehold.dialects.multi_edit.text_file import EditTextResult, ReadTextResult, WriteTextResult
from surehold.dialects.shared.read_file import ReadResult
from surehold.dialects.shared.write_file import CreateResult, WriteResult
from surehold.disk.base import Target
from surehold.library.workspace import AgentWorkspace
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.page import FilePage
from surehold.text.quoted.edits import StringEdit
from surehold.text.snapshot import Snapshot
from surehold.workspace.proposal import Proposal, Receipt

class ToolMethods:
    def apply_patch(
        self,
        patch: str,
        *,
        expected_sha256_by_path: Mapping[str, str] | None = None,
        atomic: bool = True,
        format: Literal["auto", "envelope", "unified", "git"] = "auto",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> PatchResult:
        """Apply a patch to many files: all or none, even if the machine dies in the middle."""

    def create_file(
        self,
        path: str,
        content: str,
        *,
        create_parent_directories: bool = True,
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> CreateResult:
        """Create a new file; one that exists is never overwritten (already_exists)."""

    def delete_file(
        self,
        path: str,
        *,
        permanent: bool = False,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> DeleteResult:
        """Delete a file; it goes to the trash, from where restore_file brings it back. Directories are refused."""

    def edit_file(
        self,
        path: str,
        edits: Sequence[StringEdit | tuple[str, str]],
        *,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> EditResult:
        """Replace exact texts in a file: all edits or none, all matched against the file as it is now."""

    def edit_lines(
        self,
        path: str,
        operations: Sequence[ReplaceLine | InsertAfter | InsertBefore | DeleteLine | ReplaceRange | DeleteRange],
        *,
        expected_sha256: str = "",
        safety_check: Literal["strict", "warn", "off"] = "strict",
        dry_run: bool = False,
        strict_order: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> LineEditResult:
        """Change lines by the anchors `N#HASH` of read_file(hashes: true). The number is advisory (a snapshot position), the hash is the authoritative identity. Edit right after reading, one file after the other, all operations on a file in one call. Anchor on unique lines, not blanks, braces or boilerplate; repeated lines: replace_range around them, or occurrence with line. One line: replace_line, delete_line, insert_after, insert_before take hash; a block: replace_range, delete_range take start_hash, end_hash; mixing is refused. `path` names the file; `file_path` is deprecated and will be rejected."""

    def glob(
        self,
        pattern: str,
        *,
        root: str = ".",
        exclude_globs: Sequence[str] | None = None,
        max_results: int = 1000,
        offset: int = 0,
        include_hidden: bool = False,
    ) -> FilesGlobResult:
        """Find files and directories by a pattern, in path order; ignored and hidden ones are left out."""

    def list_directory(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        max_depth: int = 8,
        include_hidden: bool = False,
        respect_ignore: bool = True,
        max_entries: int = 5000,
        cursor: str = "",
    ) -> ListResult:
        """List a directory: name, type, size and time of each entry, in path order. Links are listed, never followed."""

    def move_file(
        self,
        from_path: str,
        to_path: str,
        *,
        overwrite: bool = False,
        expected_dest_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> MoveResult:
        """Move or rename a file; missing directories are made. An existing destination is refused, unless overwrite."""

    def read_file(
        self,
        path: str,
        *,
        start_line: int | None = None,
        start_column: int | None = None,
        end_line: int | None = None,
        max_bytes: int = 262144,
        hashes: bool = False,
        anchors: Literal["all", "sparse"] = "all",
        allow_binary: bool = False,
        start_byte: int = 0,
        encoding: str | None = None,
        if_none_match: str | None = None,
    ) -> ReadResult:
        """Read a text file: its lines, and the sha256 that changing tools want as expectedSha256."""

    def restore_file(
        self,
        trash_id: str | None = None,
        *,
        trashed_path: str | None = None,
        target_path: str | None = None,
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> RestoreResult:
        """Bring a deleted file back, with mode and times; never over an existing file."""

    def search_files(
        self,
        query: str,
        *,
        mode: Literal["path", "text", "regex"] = "text",
        root: str = ".",
        include_globs: Sequence[str] | None = None,
        exclude_globs: Sequence[str] | None = None,
        max_results: int = 100,
        context_lines: int = 0,
        case_sensitive: bool = True,
        multiline: bool = False,
        cursor: str = "",
    ) -> SearchFilesResult:
        """Search names (path), literal text or regular expressions in many files; ignored, hidden and binary ones are left out."""

    def write_file(
        self,
        path: str,
        content: str,
        *,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> WriteResult:
        """Overwrite an existing file; encoding, byte order mark and line endings stay as they are."""

    @property
    def claude(self) -> ClaudeTools: ...
    @property
    def multi_edit(self) -> MultiEditTools: ...

class AsyncToolMethods:
    id: str
    agent: str
    turn_id: str
    workspace: AgentWorkspace
    async def apply_patch(
        self,
        patch: str,
        *,
        expected_sha256_by_path: Mapping[str, str] | None = None,
        atomic: bool = True,
        format: Literal["auto", "envelope", "unified", "git"] = "auto",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> PatchResult:
        """Apply a patch to many files: all or none, even if the machine dies in the middle."""

    async def create_file(
        self,
        path: str,
        content: str,
        *,
        create_parent_directories: bool = True,
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> CreateResult:
        """Create a new file; one that exists is never overwritten (already_exists)."""

    async def delete_file(
        self,
        path: str,
        *,
        permanent: bool = False,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> DeleteResult:
        """Delete a file; it goes to the trash, from where restore_file brings it back. Directories are refused."""

    async def edit_file(
        self,
        path: str,
        edits: Sequence[StringEdit | tuple[str, str]],
        *,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> EditResult:
        """Replace exact texts in a file: all edits or none, all matched against the file as it is now."""

    async def edit_lines(
        self,
        path: str,
        operations: Sequence[ReplaceLine | InsertAfter | InsertBefore | DeleteLine | ReplaceRange | DeleteRange],
        *,
        expected_sha256: str = "",
        safety_check: Literal["strict", "warn", "off"] = "strict",
        dry_run: bool = False,
        strict_order: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> LineEditResult:
        """Change lines by the anchors `N#HASH` of read_file(hashes: true). The number is advisory (a snapshot position), the hash is the authoritative identity. Edit right after reading, one file after the other, all operations on a file in one call. Anchor on unique lines, not blanks, braces or boilerplate; repeated lines: replace_range around them, or occurrence with line. One line: replace_line, delete_line, insert_after, insert_before take hash; a block: replace_range, delete_range take start_hash, end_hash; mixing is refused. `path` names the file; `file_path` is deprecated and will be rejected."""

    async def glob(
        self,
        pattern: str,
        *,
        root: str = ".",
        exclude_globs: Sequence[str] | None = None,
        max_results: int = 1000,
        offset: int = 0,
        include_hidden: bool = False,
    ) -> FilesGlobResult:
        """Find files and directories by a pattern, in path order; ignored and hidden ones are left out."""

    async def list_directory(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        max_depth: int = 8,
        include_hidden: bool = False,
        respect_ignore: bool = True,
        max_entries: int = 5000,
        cursor: str = "",
    ) -> ListResult:
        """List a directory: name, type, size and time of each entry, in path order. Links are listed, never followed."""

    async def move_file(
        self,
        from_path: str,
        to_path: str,
        *,
        overwrite: bool = False,
        expected_dest_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> MoveResult:
        """Move or rename a file; missing directories are made. An existing destination is refused, unless overwrite."""

    async def read_file(
        self,
        path: str,
        *,
        start_line: int | None = None,
        start_column: int | None = None,
        end_line: int | None = None,
        max_bytes: int = 262144,
        hashes: bool = False,
        anchors: Literal["all", "sparse"] = "all",
        allow_binary: bool = False,
        start_byte: int = 0,
        encoding: str | None = None,
        if_none_match: str | None = None,
    ) -> ReadResult:
        """Read a text file: its lines, and the sha256 that changing tools want as expectedSha256."""

    async def restore_file(
        self,
        trash_id: str | None = None,
        *,
        trashed_path: str | None = None,
        target_path: str | None = None,
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> RestoreResult:
        """Bring a deleted file back, with mode and times; never over an existing file."""

    async def search_files(
        self,
        query: str,
        *,
        mode: Literal["path", "text", "regex"] = "text",
        root: str = ".",
        include_globs: Sequence[str] | None = None,
        exclude_globs: Sequence[str] | None = None,
        max_results: int = 100,
        context_lines: int = 0,
        case_sensitive: bool = True,
        multiline: bool = False,
        cursor: str = "",
    ) -> SearchFilesResult:
        """Search names (path), literal text or regular expressions in many files; ignored, hidden and binary ones are left out."""

    async def write_file(
        self,
        path: str,
        content: str,
        *,
        dry_run: bool = False,
        reason: str = "",
        expected_sha256: str,
        idempotency_key: str = "",
    ) -> WriteResult:
        """Overwrite an existing file; encoding, byte order mark and line endings stay as they are."""

    async def read(self, path: str | Target, *, encoding: str | None = None) -> Snapshot:
        """Return a file as it is now; the session has then seen all of it."""

    async def page(self, path: str | Target, *, start: int = 1, count: int = 2000) -> FilePage:
        """Return some lines of a file of any size; the session has then seen those."""

    async def create(
        self, path: str | Target, text: str, *, reason: str = "", dry_run: bool = False, idempotency_key: str = ""
    ) -> Receipt:
        """Make a new file; one that exists is never overwritten."""

    async def write(
        self,
        path: str | Target,
        text: str,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Overwrite a file that this session has read, or whose sha256 it names. Encoding and line endings stay."""

    async def edit(
        self,
        path: str | Target,
        *edits: StringEdit | tuple[str, str],
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Replace quoted texts, each of which occurs exactly once; all of them or none."""

    async def delete(
        self,
        path: str | Target,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Move a file to the trash."""

    async def move(
        self,
        path: str | Target,
        to_path: str | Target,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Give a file another name; an existing file there is never overwritten."""

    async def apply(
        self, *proposals: Proposal, reason: str = "", dry_run: bool = False, idempotency_key: str = ""
    ) -> Receipt:
        """Make several proposals happen as one change, all or none."""

    async def restore(self, trash_id: str, *, to_path: str = "") -> Receipt:
        """Bring a deleted file back."""

    async def undo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Take back a change, by default the newest that is not undone."""

    async def redo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Make a change again that was undone."""

    async def notify_compaction(self) -> None:
        """Forget what the host no longer shows: nothing is answered with `file_unchanged` until it was sent again."""

    @property
    def claude(self) -> AsyncClaudeTools: ...
    @property
    def multi_edit(self) -> AsyncMultiEditTools: ...

class AsyncClaudeTools:
    async def Edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> FileEditResult:
        """Replace old_string by new_string in an existing file, exactly and literally."""

    async def Glob(
        self,
        pattern: str,
        path: str | None = None,
        *,
        include_ignored: bool = False,
        include_hidden: bool = True,
        limit: int = 250,
        offset: int = 0,
    ) -> ClaudeGlobResult:
        """Find files by a pattern of their path, most recently modified first; at most 250 unless `limit` says otherwise."""

    async def Grep(
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
        type: str | None = None,
        head_limit: int = 250,
        offset: int = 0,
        multiline: bool = False,
        include_ignored: bool = False,
        include_hidden: bool = True,
    ) -> ClaudeGrepResult:
        """Search file contents for a regular expression; at most 250 files or lines a page, in path order."""

    async def NotebookEdit(
        self,
        notebook_path: str,
        new_source: str | None = None,
        *,
        edit_mode: Literal["replace", "insert", "delete"] = "replace",
        cell_id: str | None = None,
        cell_type: Literal["code", "markdown", "raw"] | None = None,
        position: Literal["after", "before", "start", "end"] | None = None,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> NotebookEditResult:
        """Replace, insert or delete one cell of a Jupyter notebook (.ipynb); no other byte of the file changes."""

    async def Read(
        self,
        file_path: str,
        *,
        offset: int | None = 1,
        limit: int | None = 2000,
        pages: str | None = None,
        column: int | None = 1,
        encoding: str | None = None,
        sha256: bool = False,
    ) -> FileReadResult:
        """Read a file of any kind: text, an image, a PDF document or a Jupyter notebook."""

    async def Write(
        self,
        file_path: str,
        content: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> FileWriteResult:
        """Create a file, or overwrite one completely; parent directories are made."""

class AsyncMultiEditTools:
    async def edit_text_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> EditTextResult:
        """Replace one text that occurs exactly once in a file; everything else stays as it is, byte by byte."""

    async def multi_edit_text_file(
        self,
        path: str,
        edits: Sequence[tuple[str, str]],
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> MultiEditResult:
        """Apply many string replacements to one file in order: all of them or none, with one cumulative diff."""

    async def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> ReadTextResult:
        """Read a text file, or `limit` lines of it from `line` on."""

    async def write_text_file(
        self,
        path: str,
        content: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> WriteTextResult:
        """Write the complete content of a text file: a new one, or one that read_text_file showed completely."""

class ClaudeTools:
    def Edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> FileEditResult:
        """Replace old_string by new_string in an existing file, exactly and literally."""

    def Glob(
        self,
        pattern: str,
        path: str | None = None,
        *,
        include_ignored: bool = False,
        include_hidden: bool = True,
        limit: int = 250,
        offset: int = 0,
    ) -> ClaudeGlobResult:
        """Find files by a pattern of their path, most recently modified first; at most 250 unless `limit` says otherwise."""

    def Grep(
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
        type: str | None = None,
        head_limit: int = 250,
        offset: int = 0,
        multiline: bool = False,
        include_ignored: bool = False,
        include_hidden: bool = True,
    ) -> ClaudeGrepResult:
        """Search file contents for a regular expression; at most 250 files or lines a page, in path order."""

    def NotebookEdit(
        self,
        notebook_path: str,
        new_source: str | None = None,
        *,
        edit_mode: Literal["replace", "insert", "delete"] = "replace",
        cell_id: str | None = None,
        cell_type: Literal["code", "markdown", "raw"] | None = None,
        position: Literal["after", "before", "start", "end"] | None = None,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> NotebookEditResult:
        """Replace, insert or delete one cell of a Jupyter notebook (.ipynb); no other byte of the file changes."""

    def Read(
        self,
        file_path: str,
        *,
        offset: int | None = 1,
        limit: int | None = 2000,
        pages: str | None = None,
        column: int | None = 1,
        encoding: str | None = None,
        sha256: bool = False,
    ) -> FileReadResult:
        """Read a file of any kind: text, an image, a PDF document or a Jupyter notebook."""

    def Write(
        self,
        file_path: str,
        content: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> FileWriteResult:
        """Create a file, or overwrite one completely; parent directories are made."""

class MultiEditTools:
    def edit_text_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> EditTextResult:
        """Replace one text that occurs exactly once in a file; everything else stays as it is, byte by byte."""

    def multi_edit_text_file(
        self,
        path: str,
        edits: Sequence[tuple[str, str]],
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> MultiEditResult:
        """Apply many string replacements to one file in order: all of them or none, with one cumulative diff."""

    def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> ReadTextResult:
        """Read a text file, or `limit` lines of it from `line` on."""

    def write_text_file(
        self,
        path: str,
        content: str,
        *,
        expected_sha256: str = "",
        dry_run: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> WriteTextResult:
        """Write the complete content of a text file: a new one, or one that read_text_file showed completely."""

class ToolNamespace: ...

CANCELLED: ContextVar[Callable[[], bool]]
SESSION_METHODS: tuple[str, ...]
