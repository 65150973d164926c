"""Reads and writes files through an ACP client, with `fs/read_text_file` and `fs/write_text_file`.

Call it from any thread but that of the event loop.
"""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acp.exceptions import RequestError
from pydantic import ValidationError

from surehold.errors import Unavailable

if TYPE_CHECKING:
    from acp.schema import ClientCapabilities, ReadTextFileResponse, WriteTextFileResponse

T = TypeVar("T")
_RESOURCE_NOT_FOUND = -32002
_METHOD_NOT_FOUND = -32601
_NO_FILE = re.compile(
    r"no such file|\benoent\b|(file|resource|path|document)\b.{0,200}?(not found|does not exist)", re.IGNORECASE
)
"""How clients say it that do not use the code of the protocol."""


class EditorConnection(Protocol):
    """What is needed of a connection to a client."""

    async def read_text_file(self, session_id: str, path: str) -> "ReadTextFileResponse": ...

    async def write_text_file(self, session_id: str, path: str, content: str) -> "WriteTextFileResponse | None": ...


def can_edit(capabilities: "ClientCapabilities | None") -> bool:
    files = capabilities.fs if capabilities else None
    return bool(files and files.read_text_file and files.write_text_file)


def names_of(directories: Sequence[str]) -> dict[str, str]:
    """Return how a client spells the directories that it names, by where they really are."""
    named = {os.path.realpath(one): one.rstrip("/") for one in directories if "\0" not in one}
    return {real: name for real, name in named.items() if real != name}


class AcpEditorFiles:
    """The files of one ACP session. Texts are always read whole."""

    def __init__(
        self,
        conn: EditorConnection,
        session_id: str,
        loop: asyncio.AbstractEventLoop,
        *,
        timeout: float = 30.0,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`names` says how the client spells directories that it reached by a link: it knows its files by no other name."""
        self._conn = conn
        self._session = session_id
        self._loop = loop
        self._timeout = timeout
        self._names = sorted((names or {}).items(), reverse=True)

    def read_text(self, path: str) -> str | None:
        """Return the text of an absolute path as the user sees it; None when the editor has no such file."""
        try:
            named = self._client_path(path)
            answer = self._ask_editor(lambda: self._conn.read_text_file(session_id=self._session, path=named), path)
        except RequestError as error:
            if _says_no_file(error):
                return None
            raise _refused_error(f"The editor refused to read `{path}` ({error}).", path, error.code) from error
        return answer.content

    def write_text(self, path: str, text: str) -> None:
        try:
            named = self._client_path(path)
            write = self._conn.write_text_file
            self._ask_editor(lambda: write(session_id=self._session, path=named, content=text), path)
        except RequestError as error:
            raise _refused_error(f"The editor refused to write `{path}` ({error}).", path, error.code) from error

    def _client_path(self, path: str) -> str:
        """Return a path as the client spells it; the innermost directory decides."""
        real, name = next((one for one in self._names if path.startswith(f"{one[0]}/")), ("", ""))
        return name + path[len(real) :]

    def _ask_editor(self, question: Callable[[], Coroutine[Any, Any, T]], path: str) -> T:
        """Run a question on the connection's loop, and wait for the answer in this thread."""
        if _is_current_loop(self._loop):
            raise RuntimeError("The editor is asked from other threads than the one that must carry the answer.")
        asked = question()
        try:
            answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError as error:  # the loop is closed
            asked.close()
            raise _disconnected_error(path) from error
        try:
            return answer.result(self._timeout)
        except TimeoutError as error:
            answer.cancel()
            seconds = self._timeout
            message = f"The editor did not answer about `{path}` within {seconds:g} s."
            action = "Check whether the editor waits for something, then read the file and try again."
            raise Unavailable(message, path=path, reason="editor_timeout", action=action, seconds=seconds) from error
        except (ConnectionError, CancelledError, asyncio.CancelledError) as error:
            raise _disconnected_error(path) from error
        except ValidationError as error:
            raise _refused_error(f"The editor sent an invalid answer about `{path}`.", path, None) from error


def _is_current_loop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _says_no_file(error: RequestError) -> bool:
    if error.code == _METHOD_NOT_FOUND:
        return False
    return error.code == _RESOURCE_NOT_FOUND or bool(_NO_FILE.search(f"{error} {error.data or ''}"))


def _refused_error(message: str, path: str, code: int | None) -> Unavailable:
    action = "Check whether the file can be opened and changed in the editor."
    return Unavailable(message, path=path, reason="editor_refused", action=action, editor_code=code)


def _disconnected_error(path: str) -> Unavailable:
    message = f"The connection to the editor ended before it answered about `{path}`."
    action = "Connect again, then read the file before you change it."
    return Unavailable(message, path=path, reason="editor_gone", action=action)
