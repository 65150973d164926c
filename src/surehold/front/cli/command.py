"""Defines what a command is, its arguments as a table, and the context that every command receives; lists them all."""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, NotFound, SureholdError
from surehold.front.cli.output import Output
from surehold.front.shared.person import person_name
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.workspace.past.history_reader import HistoryReader
    from surehold.workspace.proposal import CallAuthor
    from surehold.workspace.session import Session
    from surehold.workspace.workspace import Workspace

SHORT_ID_CHARS = 8


class UsageError(Exception):
    """The command line is not a valid command; `hint` is what to print below the message."""

    def __init__(self, message: str, *, hint: str = "", reason: str = "usage") -> None:
        super().__init__(message)
        self.hint, self.reason = hint, reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Where a command works, and where it prints."""

    root: str
    state_dir: str
    """As given by the user; empty for the default location."""
    blobs: str
    """As given by the user; empty for what their settings say."""
    state: str
    """The URL of a history in a database; empty for one in the state directory."""
    json: bool
    out: Output
    err: Output

    def with_absolute_paths(self) -> "CommandContext":
        """Return the same context, for a process that changes its working directory."""
        blobs = self.blobs if not self.blobs or "://" in self.blobs else os.path.abspath(self.blobs)  # noqa: PTH100
        state_dir = os.path.abspath(self.state_dir) if self.state_dir else ""  # noqa: PTH100
        return replace(self, root=os.path.abspath(self.root), state_dir=state_dir, blobs=blobs)  # noqa: PTH100

    def open_workspace(self, *, recover: bool = True, remake: bool = False) -> "Workspace":
        """Open the workspace; creates its state directory if there is none yet, and its root if a command removed it."""
        from surehold.app import Settings, open_workspace

        if remake and self.is_removed():
            os.mkdir(self.root)  # noqa: PTH102 - a string all the way
            self.print_note(f"Made again: {self.root}")
        state_dir = as_path(self.state_dir) if self.state_dir else None
        settings = Settings(state_dir=state_dir, state=self.state, blobs=self.blobs_address, recover_on_open=recover)
        return open_workspace(self.root, settings=settings)

    def open_history(self) -> "HistoryReader":
        """Open the history for reading only, which is faster than opening the workspace."""
        from surehold.app import open_history

        return open_history(self.state_directory, root=self.root, state=self.state, blobs=self.blobs_address)

    def open_recorded_workspace(self) -> "Workspace":
        """Open a workspace that has a history; refuse one that has none, without creating anything."""
        if self.has_history():
            return self.open_workspace(remake=True)
        action = "Change a file through Surehold first, for example: surehold edit PATH --old A --new B"
        raise NotFound("There is no history here yet.", path=self.root, reason="no_history", action=action)

    def begin_session(self, workspace: "Workspace") -> "Session":
        from surehold.workspace.session import Session

        return Session(workspace, id=workspace.new_id(), agent=person_name())  # without the agent tools: faster

    @property
    def author(self) -> "CallAuthor":
        """The person at the keyboard, for the ledger."""
        from surehold.workspace.proposal import CallAuthor

        return CallAuthor(agent=person_name())

    def has_history(self) -> bool:
        self.check_root(or_removed=True)
        from surehold.front.shared.locate import has_state_database

        return bool(self.state) or has_state_database(self.state_directory)

    def check_root(self, *, or_removed: bool = False) -> None:
        if not as_path(self.root).is_dir() and not (or_removed and self.is_removed()):
            message, action = f"`{self.root}` is not a directory.", "Name a directory with --root."
            raise NotFound(message, path=self.root, reason="no_such_root", action=action)

    def is_removed(self) -> bool:
        """Tell whether the root is gone, and was a workspace: its history is known by its path."""
        if os.path.lexists(self.root) or not os.path.isdir(os.path.dirname(os.path.abspath(self.root))):  # noqa: PTH100, PTH112, PTH120
            return False
        from surehold.front.shared.locate import has_state_database

        return not self.state and has_state_database(self.state_directory)

    @property
    def state_place(self) -> str:
        """Where the history is kept, for people."""
        if not self.state:
            return str(self.state_directory)
        from surehold.stores.postgres.address import hide_password

        return hide_password(self.state)

    @property
    def state_directory(self) -> "Path":
        from surehold.app import default_state_dir

        return as_path(self.state_dir) if self.state_dir else default_state_dir(self.root)

    @property
    def blobs_address(self) -> str:
        """Where large versions are kept; empty for the state directory."""
        if self.blobs:
            return self.blobs
        from surehold.front.cli.config.configuration import user_place

        return user_place("blobs")

    def print_outcome(self, sentence: str, **facts: Any) -> None:
        """Print a sentence for people, or its facts as JSON."""
        if self.json:
            self.out.print_json(facts)
        else:
            self.out.print_line(sentence)

    def print_hint(self, text: str) -> None:
        """Print what one could do next, on a terminal only."""
        if self.out.is_terminal and not self.json:
            self.out.print_line(self.out.paint(reveal_text(text), "dim"))

    def print_note(self, text: str) -> None:
        """Print something about the output on standard error, so that a pipe holds nothing but the output."""
        self.out.flush()
        self.err.print_line(self.err.paint(reveal_text(text), "dim"))
        self.err.flush()


def make_context(args: argparse.Namespace, root: str, *, out: Output, err: Output) -> CommandContext:
    """Return the context of a command from its global options, and from what the user's settings say of the state."""
    state: str = args.state or os.environ.get("SUREHOLD_STATE", "")
    os.environ.pop("SUREHOLD_STATE", None)  # it may have a password, which is not for the programs that we start
    if not state and not args.state_dir:
        from surehold.front.cli.config.configuration import user_place

        state = user_place("state")
    is_url = "://" in state
    return CommandContext(
        root=root,
        state_dir=args.state_dir or ("" if is_url else state),
        state=state if is_url else "",
        blobs=args.blobs,
        json=bool(args.json),
        out=out,
        err=err,
    )


@dataclass(frozen=True, slots=True)
class Argument:
    names: tuple[str, ...]
    settings: dict[str, Any]


def argument(names: str, metavar: str | None, text: str, **settings: Any) -> Argument:
    """Return a positional argument, or an option with a value; `-C --context` gives it two names."""
    usual = {"default": ""} if names.startswith("-") else {}
    return Argument(tuple(names.split()), {**usual, "metavar": metavar, "help": text, **settings})


def flag(names: str, text: str, **settings: Any) -> Argument:
    return Argument(tuple(names.split()), {"action": "store_true", "help": text, **settings})


def repeatable(names: str, metavar: str, text: str) -> Argument:
    return argument(names, metavar, f"{text}; repeatable", action="append", default=[])


def choice(name: str, values: tuple[str, ...], text: str) -> Argument:
    """Return an option that takes one of these values; the first is the default."""
    return argument(name, None, text, choices=values, default=values[0])


FILE_ARGUMENT = argument("path", "PATH", "the file")
DRY_RUN_FLAG = flag("--dry-run", "show what would change without changing anything")

GLOBAL_OPTIONS = (
    argument("-C", "DIR", "run as if started in this directory", dest="directory"),
    argument("--root", "DIR", "exactly this workspace (default: the nearest with a history)"),
    argument("--state-dir", "DIR", "where its history is kept"),
    argument("--state", "PLACE", "the same, or in a database: DIR, postgresql://..."),
    argument("--blobs", "PLACE", "where large versions are kept: DIR, s3://bucket/prefix"),
    flag("--json", "print one JSON document"),
    flag("--no-color", "disable colour (or set NO_COLOR)"),
    flag("--no-pager", "print everything at once"),
)
"""What every command takes."""

CommandRunner = Callable[[CommandContext, argparse.Namespace], int | None]
"""Returns the exit code; None when it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One word after `surehold`, or one action of such a word."""

    name: str
    help: str
    """One sentence."""
    note: str = ""
    """More for its own help text."""
    example: str
    arguments: tuple[Argument | tuple[Argument, ...], ...]
    """In the order of the help text; at most one of those in an inner tuple may be given."""
    actions: tuple["Command", ...] = ()
    is_paged: bool = False
    """Whether long output is shown page by page on a terminal."""
    run: CommandRunner


def command(
    name: str,
    sentence: str,
    *arguments: Argument | tuple[Argument, ...],
    example: str,
    note: str = "",
    is_paged: bool = False,
) -> Callable[[CommandRunner], Command]:
    return lambda run: Command(
        name=name, help=sentence, note=note, example=example, arguments=arguments, is_paged=is_paged, run=run
    )


def wrong_usage(error: SureholdError) -> UsageError:
    """Return a refusal of a word that is wrong wherever it is used as what it is on the command line: wrong usage."""
    return UsageError(error.message, hint=error.action, reason=error.reason)


def parse_name(word: str) -> str:
    """Return a name as it was typed; refuse an empty one: a script that lost it must not mean what counts without the option."""
    if not word.strip():
        raise argparse.ArgumentTypeError("it is empty; leave the option out, or name one")
    return word


def parse_moment_word(word: str) -> str:
    """Return a time as it was typed; refuse what is not a time, also where there is no history to look into."""
    from datetime import UTC, datetime

    from surehold.workspace.past.moments import read_moment

    try:
        read_moment(parse_name(word), now=datetime.now(UTC))
    except InvalidArgument as error:
        raise wrong_usage(error) from None
    return word


def parse_positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def short_id(name: str) -> str:
    """Return the end of an id, which is enough to name it; one that is short, such as `outside-12`, is whole."""
    return name if len(name) <= 2 * SHORT_ID_CHARS else name[-SHORT_ID_CHARS:]


def quote_for_shell(text: str) -> str:
    """Return a word that can be pasted into a shell and shown on a terminal."""
    import shlex

    return reveal_text(shlex.quote(text))


def with_action(error: SureholdError, action: str) -> SureholdError:
    error.action = action
    return error


def as_path(*names: str) -> "Path":
    """Return a path; pathlib is imported late, since `--help` does not need it."""
    from pathlib import Path

    return Path(*names)


COMMAND_GROUPS: dict[str, dict[str, str]] = {
    "Look back": {
        "status": "history.overview_commands",
        "sessions": "history.overview_commands",
        "log": "history.log_command",
        "show": "history.show_commands",
        "diff": "history.show_commands",
        "blame": "history.overview_commands",
        "review": "history.review_command",
        "export": "history.export_commands",
        "commit": "history.export_commands",
    },
    "Undo and restore": {
        "undo": "history.undo_commands",
        "redo": "history.undo_commands",
        "rewind": "history.undo_commands",
        "revert": "history.undo_commands",
        "trash": "trash_commands",
        "restore": "trash_commands",
    },
    "Read and search": {
        "read": "file_commands",
        "view": "view_command",
        "grep": "search_commands",
        "glob": "search_commands",
    },
    "Change files": {
        "edit": "file_commands",
        "write": "file_commands",
        "delete": "file_commands",
        "move": "file_commands",
    },
    "For agents": {
        "run": "run_command",
        "mcp": "agent_commands",
        "serve": "agent_commands",
        "acp": "agent_commands",
        "tool": "agent_commands",
        "schema": "agent_commands",
        "prompt": "agent_commands",
    },
    "Hosts": {"setup": "host_commands", "hook": "host_commands"},
    "Maintain": {
        "config": "config.commands",
        "verify": "upkeep_commands",
        "recover": "upkeep_commands",
        "gc": "upkeep_commands",
        "state": "config.state_commands",
        "version": "upkeep_commands",
        "doctor": "upkeep_commands",
        "completion": "config.commands",
    },
}
"""Every command by its group, and the module below this package in which it is `NAME_command`."""
COMMAND_MODULES = {name: module for group in COMMAND_GROUPS.values() for name, module in group.items()}


_INTRODUCTION = "Surehold: file tools for AI agents that never lose an edit."


def load_command(name: str) -> Command:
    return getattr(import_module(f"surehold.front.cli.{COMMAND_MODULES[name]}"), f"{name}_command")


def overview_text() -> str:
    """Return all commands; what each of them does is in `commands.json`, which `make fix` writes from their definitions."""
    with open(os.path.join(os.path.dirname(__file__), "commands.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 - pathlib is not loaded yet
        sentences = json.load(file)
    longest = max(map(len, COMMAND_MODULES))
    parts = [_INTRODUCTION, "", "usage: surehold COMMAND [options]"]
    for title, commands in COMMAND_GROUPS.items():
        parts += ["", f"{title}:", *(f"  {name:<{longest}}  {sentences[name]}" for name in commands)]
    parts += ["", "Global options, before or after the command:"]
    parts += [f"  {_spell_option(one):<15}  {one.settings['help']}" for one in GLOBAL_OPTIONS]
    parts += ["", "Help on one command, with an example: surehold COMMAND --help"]
    return "\n".join(parts)


def _spell_option(option: Argument) -> str:
    return " ".join(filter(None, (option.names[0], option.settings.get("metavar"))))
