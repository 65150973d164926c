"""deepagents: a backend on the files of a session, without or with a shell: `create_deep_agent(backend=SessionBackend(session))`.

Paths begin with `/`, which is the first root of the workspace; absolute paths below a root mean themselves. Without a shell paths
are answered from that `/`; with one they are the real ones, so that commands can use them.
"""

import base64
from collections.abc import Callable
from functools import wraps
from pathlib import PurePosixPath
from typing import Concatenate, ParamSpec, TypeVar

from surehold import Proposal, StringEdit, SureholdError, Unchanged, WriteBytes, WriteText
from surehold.adapters.frameworks import import_framework
from surehold.adapters.shell import AnySession, cut_output, plain_session, run_shell
from surehold.adapters.tool_calls import refusal
from surehold.adapters.trees import delete_path
from surehold.errors import BinaryFile, NotAFile, NotFound, PermissionDenied

with import_framework("deepagents", "0.7.32"):
    from deepagents.backends import protocol

_MAX_MATCHES = 2_000
_MAX_PATHS = 20_000
_MAX_OUTPUT_CHARS = 100_000
_ERROR_CODES: tuple[tuple[type[SureholdError], protocol.FileOperationError], ...] = (
    (NotAFile, "is_directory"),
    (NotFound, "file_not_found"),
    (PermissionDenied, "permission_denied"),
)
_READS = (protocol.LsResult, protocol.ReadResult, protocol.GrepResult, protocol.GlobResult)
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="SessionBackend")


def _or(failure: Callable[..., R]) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Let a method answer a refusal with a result that has an error, as the protocol wants it."""

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return method(self, *args, **kwargs)
            except SureholdError as error:
                return failure(error=refusal(error, reads=failure in _READS).text)

        return call

    return decorate


class SessionBackend(protocol.BackendProtocol):
    """The files of a session, read and changed through it."""

    def __init__(self, session: AnySession) -> None:
        self._session = plain_session(session)

    @_or(protocol.LsResult)
    def ls(self, path: str) -> protocol.LsResult:
        place = self._place(path)
        found = self._session.list_directory(place, include_hidden=True, respect_ignore=False, max_entries=50_000)
        rows = [(self._name(str(PurePosixPath(place, one["relativePath"]))), one) for one in found.entries]
        facts = [(name, one["type"] == "directory", one["size"], one["mtime"]) for name, one in rows]
        entries = [
            protocol.FileInfo(path=name, is_dir=is_dir, size=size, modified_at=at) for name, is_dir, size, at in facts
        ]
        return protocol.LsResult(entries=entries)

    @_or(protocol.ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        if limit <= 0:
            return protocol.ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        try:
            page = self._session.page(self._place(file_path), start=max(offset, 0) + 1, count=limit)
        except BinaryFile:
            data = self._session.read(self._place(file_path)).data
            return protocol.ReadResult(file_data={"content": base64.b64encode(data).decode(), "encoding": "base64"})
        content: protocol.FileData = {"content": page.text, "encoding": "utf-8"}
        if not page.line_count:
            return protocol.ReadResult(file_data=content)
        if not page.rows:
            return protocol.ReadResult(
                error=f"{file_path} has {page.line_count} lines; line {offset + 1} is none of them."
            )
        last = page.start + len(page.rows) - 1
        return protocol.ReadResult(
            file_data=content,
            start_line=page.start,
            end_line=last,
            total_lines=page.line_count,
            next_offset=last if page.next_line else None,
        )

    @_or(protocol.WriteResult)
    def write(self, file_path: str, content: str) -> protocol.WriteResult:
        """Create or overwrite a file; refuse only one that changed outside since this session read it."""
        return protocol.WriteResult(path=self._write(file_path, WriteText(content)))

    @_or(protocol.EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> protocol.EditResult:  # noqa: FBT002
        change = StringEdit(old=old_string, new=new_string, replace_all=replace_all)
        done = self._session.edit(self._place(file_path), change)
        return protocol.EditResult(
            path=file_path, occurrences=sum(one.occurrences for one in done.files[0].plan.applied)
        )

    @_or(protocol.DeleteResult)
    def delete(self, file_path: str) -> protocol.DeleteResult:
        delete_path(self._session, self._place(file_path), tool="delete")
        return protocol.DeleteResult(path=file_path)

    @_or(protocol.GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> protocol.GrepResult:
        globs, most = [glob] if glob else [], min(max_count or _MAX_MATCHES, _MAX_MATCHES)
        root = self._place(path or "/")
        found = self._session.search_files(pattern, root=root, include_globs=globs, max_results=most)
        rows = [(self._name(one.path), one.line or 0, one.preview or "") for one in found.matches]
        matches = [protocol.GrepMatch(path=name, line=line, text=text) for name, line, text in rows]
        return protocol.GrepResult(matches=matches, truncated=found.truncated)

    @_or(protocol.GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        is_bare = "/" not in pattern  # then it matches a name at any depth
        hidden = is_bare or any(part.startswith(".") for part in pattern.split("/"))
        wanted, root = f"**/{pattern}" if is_bare else pattern.removeprefix("/"), self._place(path or "/")
        found = self._session.glob(wanted, root=root, max_results=_MAX_PATHS, include_hidden=hidden)
        names = [PurePosixPath(one.path) for one in found.matches if one.type == "file"]
        shown = [one for one in names if pattern.startswith(".") or not (is_bare and one.name.startswith("."))]
        rows = [protocol.FileInfo(path=self._name(str(one)), is_dir=False) for one in shown]
        why = "budget" if found.truncated else None
        return protocol.GlobResult(matches=rows, truncated=found.truncated, truncation_reason=why)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        def upload(path: str, data: bytes) -> protocol.FileUploadResponse:
            try:
                return protocol.FileUploadResponse(path=self._write(path, WriteBytes(data)))
            except SureholdError as error:
                return protocol.FileUploadResponse(path=path, error=_error_code(error))

        return [upload(path, data) for path, data in files]

    def download_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        def download(path: str) -> protocol.FileDownloadResponse:
            try:
                return protocol.FileDownloadResponse(path=path, content=self._session.read(self._place(path)).data)
            except SureholdError as error:
                return protocol.FileDownloadResponse(path=path, error=_error_code(error))

        return [download(path) for path in paths]

    def _write(self, path: str, edit: WriteText | WriteBytes) -> str:
        proposal = Proposal(path=self._place(path), edit=edit, proof=Unchanged(may_be_new=True))
        self._session.submit(proposal, operation="write", tool="write")
        return path

    def _place(self, path: str) -> str:
        """Return where in the workspace a path leads to."""
        roots = self._session.workspace.roots
        is_real = any(path == root or path.startswith(f"{root}/") for root in roots)
        return path if is_real else path.lstrip("/") or "."

    def _name(self, path: str) -> str:
        """Return the absolute path by which a file is answered."""
        return "/" + path.removeprefix(f"{self._session.workspace.roots[0]}/").removeprefix("/")


class SessionSandbox(SessionBackend, protocol.SandboxBackendProtocol):
    """The same with a shell, whose commands run under capture in the first root. It records; it does not isolate."""

    @property
    def id(self) -> str:
        return self._session.id

    def execute(self, command: str, *, timeout: int | None = None) -> protocol.ExecuteResponse:
        try:
            done = run_shell(self._session, command, timeout=timeout)
        except SureholdError as error:
            return protocol.ExecuteResponse(output=refusal(error).text, exit_code=1)
        output = done.stdout + (f"\n[stderr]\n{done.stderr}" if done.stderr else "")
        output += "\n[ended because its time was over]" if done.timed_out else ""
        return protocol.ExecuteResponse(
            output=cut_output(output, _MAX_OUTPUT_CHARS),
            exit_code=done.exit_code,
            truncated=len(output) > _MAX_OUTPUT_CHARS,
        )

    def _name(self, path: str) -> str:
        return str(PurePosixPath(self._session.workspace.roots[0], path))


def _error_code(error: SureholdError) -> protocol.FileOperationError | str:
    return next((code for kind, code in _ERROR_CODES if isinstance(error, kind)), str(error))
