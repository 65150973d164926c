"""The guard of `surehold run`: what it asks a person about, and where it asks: at the terminal, and through other servers."""

import json
import os
import re
import select
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.capture.kept.keeper import Keeper
    from surehold.stores.base import ApprovalRecord

_SHOWN_PATHS = 20
_SENT_PATHS = 10_000
_COMMAND_WIDTH = 300
_LOOK_SECONDS = 0.2
_TERMINAL = "/dev/tty"
_GIT_RUNS = re.compile(r"^(?!(?:refs|logs|objects)/)(?:.*/)?(?:config|config\.worktree|hooks(?:/.*)?)$")
"""What git takes programs from, in its own directory: the directory of the hooks itself too, which can be exchanged."""

Answer = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class RemovalGuard:
    """Asks a person before very much is removed; the whole process tree waits for the answer."""

    limit: int
    root: bytes
    ask: Callable[[dict[str, Any]], Answer]
    approval: "ApprovalRecord | None" = None
    """What was answered last, for the ledger."""
    _removed: list[str] = field(default_factory=list[str])
    _removals_allowed: bool | None = None
    _protected_allowed: bool | None = None

    def allows_removal(self, path: bytes, keeper: "Keeper") -> bool:
        """Count what was there before the command; what it made itself may go."""
        if keeper.touch(path) is None:
            return True
        if not self.allows_change(path, keeper):
            return False
        self._removed.append(os.fsdecode(path.removeprefix(self.root + b"/")))
        if len(self._removed) < self.limit:
            return True
        if self._removals_allowed is None:
            *removed, last = self._removed
            question = {"removed": len(removed), "paths": removed[-_SENT_PATHS:], "next": last, "protected": False}
            self._removals_allowed = self._allows(question, f"guard {self.limit}")
        return self._removals_allowed

    def allows_change(self, path: bytes, keeper: "Keeper") -> bool:  # noqa: ARG002 - the same for every guard
        """Ask once before the first change of a file that configures another program."""
        name = os.fsdecode(path.removeprefix(self.root + b"/"))
        if not _is_protected(name):
            return True
        if self._protected_allowed is None:
            self._protected_allowed = self._allows({"protected": True, "next": name}, f"protected {name}")
        return self._protected_allowed

    def _allows(self, question: dict[str, Any], rule: str) -> bool:
        from datetime import UTC, datetime

        from surehold.stores.base import ApprovalRecord

        answer = self.ask(question)
        allowed, note = bool(answer.get("answer")), str(answer.get("note", ""))
        self.approval = ApprovalRecord(
            asked=bool(answer.get("where")),
            rule=rule,
            where=str(answer.get("where", "")),
            who=str(answer.get("who", "")),
            at=datetime.now(UTC).isoformat(),
            note=note if allowed else f"refused: {note}" if note else "refused",
        )
        return allowed


def _is_protected(name: str) -> bool:
    from surehold.workspace.access.protected_names import PROTECTED
    from surehold.workspace.paths import Policy

    inside_git = f"/{name}".rpartition("/.git/")[2] if "/.git/" in f"/{name}" else ""
    if inside_git and not _GIT_RUNS.search(inside_git):
        return False  # git's own record of its work
    return bool(Policy(protected=PROTECTED).rules_for(name, name, key=name).protected_by)


def has_terminal() -> bool:
    """Tell whether a person sees what is printed, and can be asked: standard input may well be a file."""
    if not sys.stderr.isatty():
        return False
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


@dataclass(slots=True, kw_only=True)
class PersonAsker:
    """Asks at the terminal and at every channel at once, in the process that has the terminal; the first answer counts."""

    facts: Mapping[str, Any]
    """Who runs which command."""
    state_dir: str
    through: socket.socket | None = None
    """The program that started us asks; then no one else is asked."""
    uses_terminal: bool = True
    """Whether a person started the command at our terminal; else that is the business of other programs."""
    refusals: list[str] = field(default_factory=list[str])
    """What was refused, and why, for the person who reads the output."""

    def __call__(self, question: dict[str, Any]) -> Answer:
        terminal, connections = self._open_terminal(), list[socket.socket]()
        try:
            self._send(question, connections)
            answer = _wait_for_answer({**self.facts, **question}, terminal, connections)
        finally:
            if terminal is not None:
                terminal.close()
            for connection in connections:
                if connection is not self.through:
                    with suppress(OSError):
                        connection.sendall(b"withdrawn\n")
                    connection.close()
        if not answer.get("answer"):
            what = "change a protected file" if question["protected"] else "delete more"
            why = f": {answer['note']}" if answer.get("note") else ""
            self.refusals.append(f"the command was not allowed to {what} (`{question['next']}`){why}")
        return answer

    def _open_terminal(self) -> IO[bytes] | None:
        if self.through is not None or not self.uses_terminal:
            return None
        try:
            return open(_TERMINAL, "r+b", buffering=0)  # noqa: PTH123 - the terminal itself; the caller closes it
        except OSError:
            return None

    def _send(self, question: dict[str, Any], heard: list[socket.socket]) -> None:
        """Tell the channels that are open what is asked; a signal may end it anywhere, so who `heard` it is known at once."""
        from surehold.front.shared.command_channels import find_channels, list_ancestors, open_channels

        connections = [self.through] if self.through else open_channels(self.state_dir, find_channels(self.state_dir))
        message = {**self.facts, **question, "ancestors": list_ancestors(os.getpid())}
        line = json.dumps(message).encode("ascii") + b"\n"
        for connection in connections:
            heard.append(connection)
            try:
                connection.sendall(line)
            except OSError:
                heard.remove(connection)


def _wait_for_answer(question: dict[str, Any], terminal: IO[bytes] | None, connections: list[socket.socket]) -> Answer:
    """Show what is about to go, and wait for the first answer; where no one is left to answer, it is no."""
    waiting, problem = dict.fromkeys(connections, b""), "no person could be asked"
    if terminal is not None:
        rows = _spell_question(question, elsewhere=bool(waiting))
        terminal.write("\n".join(reveal_text(row) for row in rows).encode() + b" ")
    while terminal is not None or waiting:
        # A signal that comes right before a read blocks would be noticed only after it; so would a job that is brought to the
        # front. What is typed while another program is there is for that one, and to read it would stop us.
        heard = [terminal] if terminal is not None and _is_in_front(terminal) else []
        ready = select.select([*waiting, *heard], [], [], _LOOK_SECONDS)[0]
        if terminal in ready:
            return _read_terminal(terminal)
        for connection in [one for one in waiting if one in ready]:
            said = _hear(connection)
            waiting[connection] += said
            if not said:
                del waiting[connection]
            elif waiting[connection].endswith(b"\n"):
                answer = json.loads(waiting.pop(connection))
                if "problem" not in answer:
                    _tell_terminal(terminal, answer)
                    return answer
                problem = answer["problem"]
    return {"answer": False, "note": problem}


def _is_in_front(terminal: IO[bytes]) -> bool:
    try:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:  # it was hung up, which is read as no answer
        return True


def _read_terminal(terminal: IO[bytes] | None) -> Answer:
    from surehold.front.shared.person import person_name

    row = b""
    with suppress(OSError):
        row = terminal.readline() if terminal else b""
    return {"answer": row.strip().lower() in {b"y", b"yes"}, "where": "terminal", "who": person_name()}


def _tell_terminal(terminal: IO[bytes] | None, answer: Answer) -> None:
    if terminal is not None:
        word = "allowed" if answer.get("answer") else "refused"
        terminal.write(f"\nsurehold: {word} by {reveal_text(str(answer.get('who') or 'a person'))}\n".encode())


def _hear(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _cut_middle(text: str) -> str:
    left = len(text) - _COMMAND_WIDTH
    half = _COMMAND_WIDTH // 2
    return text if left <= 0 else f"{text[:half]}[… {left:,} characters are not shown …]{text[-half:]}"


def _spell_question(question: dict[str, Any], *, elsewhere: bool) -> list[str]:
    import shlex

    also = ["It can be answered here or where else it is shown; the first answer counts."] if elsewhere else []
    command = f"surehold: {_cut_middle(shlex.join(question['argv']))}"
    if question["protected"]:
        return [
            command,
            f"surehold: the command is about to change `{question['next']}`, which configures another program.",
            *also,
            "Allow this, and further changes of such files? [y/N]",
        ]
    rows = [command, *(["surehold: the command has deleted so far:"] if question["removed"] else [])]
    shown = question["paths"][-_SHOWN_PATHS:]
    if hidden := question["removed"] - len(shown):
        rows.append(f"  … {hidden} more")
    rows += [f"  {path}" for path in shown]
    count = "1 path was" if question["removed"] == 1 else f"{question['removed']} paths were"
    rows += [f"surehold: {count} deleted; next is `{question['next']}`."]
    return [*rows, *also, "Allow this, and all further deletions? [y/N]"]
