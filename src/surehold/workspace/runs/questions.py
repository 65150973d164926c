"""The question of a command that waits: what it is about to do, as it is told to those who can ask a person.

One line of JSON asks, one line answers. The connection is the question: when the side of the command closes it, the command
has gone; when that side sends anything more, the question was answered elsewhere.
"""

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surehold.errors import SureholdError

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Approval, PermissionRequest

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandQuestion:
    """What a command did so far, and is about to do."""

    argv: tuple[str, ...]
    next: str
    """The path that it is about to delete, or to change."""
    removed: tuple[str, ...] = ()
    """The paths that it deleted so far: the last ones, where they are very many."""
    removed_count: int = 0
    is_protected: bool = False
    """It is about to change a file that configures another program; else it is about deletions."""

    @property
    def summary(self) -> str:
        """What is asked for, to follow "wants to"."""
        return f"change `{self.next}`" if self.is_protected else f"delete more than {self.removed_count:,} paths"

    @property
    def why(self) -> str:
        if self.is_protected:
            return f"The command is about to change `{self.next}`, which configures another program."
        return f"The command has deleted {self.removed_count:,} paths, and is about to delete `{self.next}`."

    @property
    def totals(self) -> str:
        if self.is_protected:
            return "A yes allows this and further changes of such files"
        return f"{self.removed_count:,} paths were deleted; a yes allows this and all further deletions"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """A question as it came, and whether it is still open."""

    connection: socket.socket
    message: Message

    @property
    def ancestors(self) -> frozenset[int]:
        """The processes that the command was started by."""
        return frozenset(self.message.get("ancestors", ()))

    def to_request(self) -> "PermissionRequest":
        from surehold.stores.base import Call
        from surehold.workspace.access.permission import PermissionRequest

        said = self.message
        argv = tuple(said["argv"])
        names = ("agent", "session", "turn", "call_id", "reason")
        call = Call(
            tool="run", operation="run", writer="run", argv=argv, **{name: said.get(name, "") for name in names}
        )
        command = CommandQuestion(
            argv=argv,
            next=said["next"],
            removed=tuple(said.get("paths", ())),
            removed_count=said.get("removed", 0),
            is_protected=said["protected"],
        )
        return PermissionRequest(
            call=call, files=(), why=command.why, is_protected=command.is_protected, command=command
        )

    def is_gone(self) -> bool:
        """Tell whether the command ended before it was answered."""
        return self._peek() == b""

    def is_withdrawn(self) -> bool:
        """Tell whether another place answered first."""
        return bool(self._peek())

    def _peek(self) -> bytes | None:
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return b""


def answer_question(connection: socket.socket, ask: "Callable[[CommandCall], Approval]") -> bool:
    """Read one question, have it asked, and send the answer; False when there is no question to read."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            piece = connection.recv(1 << 16)
        except OSError:
            return False
        if not piece:
            return False
        line += piece
    try:
        approval = ask(CommandCall(connection=connection, message=json.loads(line)))
        reply = {"answer": approval.allowed, "where": approval.where, "who": approval.who, "note": approval.note}
    except SureholdError as error:
        reply = {"problem": error.message}
    except Exception as error:  # noqa: BLE001 - the command waits, and must hear that no answer comes
        reply = {"problem": f"the question could not be asked ({type(error).__name__}: {error})"}
    with suppress(OSError):
        connection.sendall(json.dumps(reply).encode("ascii") + b"\n")
    return True
