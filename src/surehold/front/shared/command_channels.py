"""Where the guard of `surehold run` finds people: servers of the same workspace that can ask one.

1. A server that has a review page, or a client that shows forms, has a socket in the state directory. Its name says which.
2. A page may be asked about every command; the client only about those that its own host started.
3. The socket belongs to this user. A process that the command itself started is never asked.
"""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Approval
    from surehold.workspace.runs.questions import CommandCall

_FOLDER = "questions"
_PAGE, _FORM = "page", "form"
_BACKLOG = 16


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """A server that can ask a person, by the name of its socket."""

    name: str
    host: int
    """The process that started it, for which its client speaks; 0 for none."""
    has_page: bool

    @classmethod
    def parse(cls, name: str) -> "CommandChannel | None":
        words = name.split(".")
        if len(words) != 3 or not (words[0].isdecimal() and words[1].isdecimal()) or words[2] not in {_PAGE, _FORM}:  # noqa: PLR2004
            return None
        return cls(name, int(words[1]), words[2] == _PAGE)


def list_ancestors(pid: int) -> tuple[int, ...]:
    """Return a process and those above it."""
    found = list[int]()
    while pid > 0 and pid not in found:
        found.append(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - cheap
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return tuple(found)


def find_channels(state_dir: str) -> list[CommandChannel]:
    """Return the servers that can ask about a command of this process."""
    try:
        names = os.listdir(f"{state_dir}/{_FOLDER}")  # noqa: PTH208 - cheap
    except OSError:
        return []
    known = [channel for name in sorted(names) if (channel := CommandChannel.parse(name))]
    above = list_ancestors(os.getpid()) if known else ()
    return [channel for channel in known if channel.has_page or channel.host in above]


def open_channels(state_dir: str, channels: Iterable[CommandChannel]) -> list[socket.socket]:
    """Connect to the servers that are still there; forget the sockets of those that are not."""
    found = list[socket.socket]()
    try:
        folder = os.open(f"{state_dir}/{_FOLDER}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return found
    try:
        for channel in channels:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(_short_path(folder, channel.name))
            except ConnectionRefusedError:  # its server was killed
                connection.close()
                with suppress(OSError):
                    os.unlink(channel.name, dir_fd=folder)
                continue
            except OSError:
                connection.close()
                continue
            if _may_answer(connection):
                found.append(connection)
            else:
                connection.close()
    finally:
        os.close(folder)
    return found


def _short_path(folder: int, name: str) -> str:
    """Return a path that fits the address of a socket, however long that of the directory is."""
    return f"/proc/self/fd/{folder}/{name}"


def _peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the process at the other end, and its user."""
    pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user


def _may_answer(connection: socket.socket) -> bool:
    pid, user = _peer_of(connection)  # of the process that began to listen, which must still be there
    return user in {os.geteuid(), 0} and os.path.exists(f"/proc/{pid}") and os.getpid() not in list_ancestors(pid)  # noqa: PTH110


class CommandPost:
    """Takes the questions of commands, each in a thread of its own."""

    def __init__(self, state_dir: Path, ask: "Callable[[CommandCall], Approval]", *, host: int, has_page: bool) -> None:
        self._ask = ask
        self._folder = state_dir / _FOLDER
        self._name = f"{os.getpid()}.{host}.{_PAGE if has_page else _FORM}"
        self._socket = socket.socket(socket.AF_UNIX)

    def open(self) -> None:
        """Begin to listen; where that is not possible, commands ask elsewhere."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with suppress(FileNotFoundError):
                    os.unlink(self._name, dir_fd=folder)  # of an earlier process with this number
                self._socket.bind(_short_path(folder, self._name))
                self._socket.listen(_BACKLOG)
            finally:
                os.close(folder)
        except OSError:
            self._socket.close()
            return
        threading.Thread(target=self._accept, name="questions of commands", daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        (self._folder / self._name).unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        from surehold.workspace.runs.questions import answer_question

        with connection:
            if _peer_of(connection)[1] in {os.geteuid(), 0}:
                answer_question(connection, self._ask)
