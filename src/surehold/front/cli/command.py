"""What every command gets, and what it is."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from surehold.errors import NotFound, SureholdError
from surehold.front.cli.output import Output, safe

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.workspace.past import Past
    from surehold.workspace.session import Session
    from surehold.workspace.workspace import Workspace

Group = Literal["Look", "Take back", "Change files", "For agents", "Keep in order"]
SHORT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a command works, and how it speaks."""

    root: str
    state_dir: str
    """As given by the user; empty for the usual place."""
    json: bool
    out: Output
    err: Output

    def open(self, *, recover: bool = True) -> "Workspace":
        """Open the workspace; its memory is made when there is none yet."""
        from surehold.app import Settings, open_workspace

        state_dir = as_path(self.state_dir) if self.state_dir else None
        return open_workspace(self.root, settings=Settings(state_dir=state_dir, recover_on_open=recover))

    def look(self) -> "Past":
        """Open the history to look at it only, which is quick."""
        from surehold.app import open_past

        return open_past(self.memory)

    def open_past(self) -> "Workspace":
        """Open a workspace that has a history; refuse one that has none, without leaving anything behind."""
        if self.has_history():
            return self.open()
        raise NotFound(
            "There is no history here yet.",
            path=self.root,
            reason="no_history",
            action=self.elsewhere()
            or "Change a file through Surehold first, for example: surehold edit PATH --old A --new B",
        )

    def session(self, workspace: "Workspace") -> "Session":
        """Begin a conversation in the name of the person at the keyboard."""
        from surehold.workspace.session import Session

        return Session(workspace, id=workspace.new_id(), agent=person())  # without the tools of agents: quicker

    def has_history(self) -> bool:
        """Tell whether anything was ever recorded here."""
        if not as_path(self.root).is_dir():
            raise NotFound(
                f"`{self.root}` is not a directory.",
                path=self.root,
                reason="no_such_root",
                action="Name a directory with --root.",
            )
        return _is_state(self.memory)

    @property
    def memory(self) -> "Path":
        """The state directory of this root."""
        from surehold.app import default_state_dir

        return as_path(self.state_dir) if self.state_dir else default_state_dir(self.root)

    def elsewhere(self) -> str:
        """Say which directory above this one has a history; empty when none has."""
        from surehold.app import default_state_dir

        if self.state_dir:
            return ""
        for parent in as_path(os.path.realpath(self.root)).parents:
            if _is_state(default_state_dir(str(parent))):
                return f"This folder has no history; its parent {parent} has: surehold --root {quoted(str(parent))} log"
        return ""

    def say(self, sentence: str, **facts: Any) -> None:
        """Print a sentence for people, or its facts for programs."""
        if self.json:
            self.out.json(facts)
        else:
            self.out.line(sentence)

    def hint(self, text: str) -> None:
        """Print what one could do next, on a terminal only."""
        if self.out.is_terminal and not self.json:
            self.out.line(self.out.paint(safe(text), "dim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One word after `surehold`."""

    name: str
    group: Group
    help: str
    """One sentence."""
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Context, argparse.Namespace], int]


def no_arguments(_: argparse.ArgumentParser) -> None:
    """Take nothing."""


def person() -> str:
    """Return the name under which a person's changes are recorded."""
    return os.environ.get("USER") or "person"


def short(name: str) -> str:
    """Return the end of an id: enough to name it."""
    return name[-SHORT:]


def quoted(text: str) -> str:
    """Return a word that can be pasted into a shell and shown on a terminal."""
    import shlex

    return safe(shlex.quote(text))


def with_action(error: SureholdError, action: str) -> SureholdError:
    """Give an error the advice that fits the command line."""
    error.action = action
    return error


def as_path(*names: str) -> "Path":
    """Return a path; imported late, since `--help` can do without."""
    from pathlib import Path

    return Path(*names)


def _is_state(directory: "Path") -> bool:
    try:
        return (directory / "state.db").exists()
    except PermissionError:
        return True  # something is there; opening it says what is wrong
