"""The guard of `surehold run`: what it asks a person about, and how it asks at the terminal."""

import os
import select
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surehold.text.escape import escape_text

if TYPE_CHECKING:
    from surehold.capture.keeper import Keeper

_SHOWN_PATHS = 20
_LOOK_SECONDS = 0.2
_TERMINAL = "/dev/tty"


@dataclass(slots=True, kw_only=True)
class RemovalGuard:
    """Asks a person before very much is removed; the whole process tree waits for the answer."""

    limit: int
    root: bytes
    ask: Callable[[dict[str, Any]], bool]
    _removed: list[str] = field(default_factory=list[str])
    _removals_allowed: bool | None = None
    _protected_allowed: bool | None = None

    def allows_removal(self, path: bytes, keeper: "Keeper") -> bool:
        """Count what was there before the command; what it made itself may go."""
        if keeper.touch(path) is None:
            return True
        self._removed.append(os.fsdecode(path.removeprefix(self.root + b"/")))
        if len(self._removed) < self.limit:
            return True
        if self._removals_allowed is None:
            *removed, last = self._removed
            self._removals_allowed = self.ask(
                {"removed": len(removed), "paths": removed[-_SHOWN_PATHS:], "next": last, "protected": False}
            )
        return self._removals_allowed

    def allows_change(self, path: bytes, keeper: "Keeper") -> bool:  # noqa: ARG002 - the same for every guard
        """Ask once before the first change of a file that configures another program."""
        name = os.fsdecode(path.removeprefix(self.root + b"/"))
        if not _is_protected(name):
            return True
        if self._protected_allowed is None:
            self._protected_allowed = self.ask({"protected": True, "next": name})
        return self._protected_allowed


def _is_protected(name: str) -> bool:
    from surehold.workspace.access.policy import Policy
    from surehold.workspace.access.protected_names import PROTECTED

    inside_git = "/.git/" in f"/{name}"
    if inside_git and not name.endswith("/config") and "/hooks/" not in name:
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


def ask_at_terminal(question: dict[str, Any]) -> bool:
    """Show what is about to go and ask; without a terminal the answer is no."""
    try:
        with open(_TERMINAL, "r+b", buffering=0) as terminal:  # noqa: PTH123 - the terminal itself
            terminal.write("\n".join(escape_text(row) for row in _spell_question(question)).encode() + b" ")
            # A signal that comes right before a read blocks would be noticed only after it.
            while not select.select([terminal], [], [], _LOOK_SECONDS)[0]:
                pass
            return terminal.readline().strip().lower() in {b"y", b"yes"}
    except OSError:
        return False


def _spell_question(question: dict[str, Any]) -> list[str]:
    if question["protected"]:
        return [
            f"surehold: the command is about to change `{question['next']}`, which configures another program.",
            "Allow this, and further changes of such files? [y/N]",
        ]
    rows = ["surehold: the command has deleted so far:"] if question["removed"] else []
    if hidden := question["removed"] - len(question["paths"]):
        rows.append(f"  … {hidden} more")
    rows += [f"  {path}" for path in question["paths"]]
    rows += [f"surehold: {question['removed']} paths were deleted; next is `{question['next']}`."]
    return [*rows, "Allow this, and all further deletions? [y/N]"]
