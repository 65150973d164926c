"""What a command of the command line is, and the context that every command receives."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from surehold.errors import NotFound, SureholdError
from surehold.front.cli.output import Output, escape_text

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.workspace.history import HistoryReader
    from surehold.workspace.session import Session
    from surehold.workspace.workspace import Workspace

CommandGroup = Literal["Look", "Take back", "Change files", "For agents", "Keep in order"]
SHORT_ID_CHARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Where a command works, and how it speaks."""

    root: str
    state_dir: str
    """As given by the user; empty for the usual place."""
    json: bool
    out: Output
    err: Output

    def open_workspace(self, *, recover: bool = True) -> "Workspace":
        """Open the workspace; its memory is made when there is none yet."""
        from surehold.app import Settings, open_workspace

        state_dir = as_path(self.state_dir) if self.state_dir else None
        return open_workspace(self.root, settings=Settings(state_dir=state_dir, recover_on_open=recover))

    def open_history(self) -> "HistoryReader":
        """Open the history to look at it only, which is quick."""
        from surehold.app import open_history

        return open_history(self.state_directory)

    def open_recorded_workspace(self) -> "Workspace":
        """Open a workspace that has a history; refuse one that has none, without leaving anything behind."""
        if self.has_history():
            return self.open_workspace()
        raise NotFound(
            "There is no history here yet.",
            path=self.root,
            reason="no_history",
            action=self.parent_history_hint()
            or "Change a file through Surehold first, for example: surehold edit PATH --old A --new B",
        )

    def begin_session(self, workspace: "Workspace") -> "Session":
        """Begin a conversation in the name of the person at the keyboard."""
        from surehold.workspace.session import Session

        return Session(workspace, id=workspace.new_id(), agent=person_name())  # without the tools of agents: quicker

    def has_history(self) -> bool:
        """Tell whether anything was ever recorded here."""
        if not as_path(self.root).is_dir():
            raise NotFound(
                f"`{self.root}` is not a directory.",
                path=self.root,
                reason="no_such_root",
                action="Name a directory with --root.",
            )
        return _has_state_database(self.state_directory)

    @property
    def state_directory(self) -> "Path":
        """The state directory of this root."""
        from surehold.app import default_state_dir

        return as_path(self.state_dir) if self.state_dir else default_state_dir(self.root)

    def parent_history_hint(self) -> str:
        """Say which directory above this one has a history; empty when none has."""
        from surehold.app import default_state_dir

        if self.state_dir:
            return ""
        for parent in as_path(os.path.realpath(self.root)).parents:
            if _has_state_database(default_state_dir(str(parent))):
                return f"This folder has no history; its parent {parent} has: surehold --root {quote_for_shell(str(parent))} log"
        return ""

    def print_outcome(self, sentence: str, **facts: Any) -> None:
        """Print a sentence for people, or its facts for programs."""
        if self.json:
            self.out.print_json(facts)
        else:
            self.out.print_line(sentence)

    def print_hint(self, text: str) -> None:
        """Print what one could do next, on a terminal only."""
        if self.out.is_terminal and not self.json:
            self.out.print_line(self.out.paint(escape_text(text), "dim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One word after `surehold`."""

    name: str
    group: CommandGroup
    help: str
    """One sentence."""
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[CommandContext, argparse.Namespace], int]


def no_arguments(_: argparse.ArgumentParser) -> None:
    """Take nothing."""


def person_name() -> str:
    """Return the name under which a person's changes are recorded."""
    return os.environ.get("USER") or "person"


def short_id(name: str) -> str:
    """Return the end of an id: enough to name it."""
    return name[-SHORT_ID_CHARS:]


def quote_for_shell(text: str) -> str:
    """Return a word that can be pasted into a shell and shown on a terminal."""
    import shlex

    return escape_text(shlex.quote(text))


def with_action(error: SureholdError, action: str) -> SureholdError:
    """Give an error the advice that fits the command line."""
    error.action = action
    return error


def as_path(*names: str) -> "Path":
    """Return a path; imported late, since `--help` can do without."""
    from pathlib import Path

    return Path(*names)


def _has_state_database(directory: "Path") -> bool:
    try:
        return (directory / "state.db").exists()
    except PermissionError:
        return True  # something is there; opening it says what is wrong
