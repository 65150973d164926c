"""The selectors on the command line: their options, and what they name."""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, NotFound
from surehold.front.cli.command import Argument, argument, as_path, parse_moment_word, with_action

if TYPE_CHECKING:
    from surehold.stores.base import Entry
    from surehold.workspace.past.selectors import Selectors
    from surehold.workspace.undo.switch_board import ChangeView
    from surehold.workspace.workspace import Workspace

_FULL_ID_CHARS = 26


def _parse_word(word: str) -> str:
    """Return the value of a selector; refuse an empty one: a script that lost a name must not mean everything."""
    if not word.strip():
        raise argparse.ArgumentTypeError("it is empty; leave the option out to select everything")
    return word


def _parse_time(word: str) -> str:
    return parse_moment_word(_parse_word(word))


def _selector(name: str, metavar: str, text: str, parse: Callable[[str], str] = _parse_word) -> Argument:
    return argument(name, metavar, text, type=parse, default=None)


SELECTOR_OPTIONS = (
    _selector("--session", "S", "only this session: `last`, or the beginning or end of its id"),
    _selector("--agent", "A", "only agents whose name begins so; `outside` for other programs"),
    _selector("--turn", "T", "only this turn of a session: `last`, or its id"),
    _selector("--since", "T", "only from then on: 2026-11-17T10:00, 10:00, 2h, yesterday", _parse_time),
    _selector("--until", "T", "only before then", _parse_time),
)
PATHS_ARGUMENT = argument("paths", "PATH", "only these files, or what is below these directories", nargs="*")
SUBJECTS_ARGUMENT = argument("subject", "CHANGE|PATH", "a change; or files, with or without selectors", nargs="*")


def read_selectors(args: argparse.Namespace, paths: list[str] | None = None) -> "Selectors":
    from surehold.workspace.past.selectors import Selectors

    return Selectors(
        session=args.session or "",
        agent=args.agent or "",
        turn=args.turn or "",
        since=args.since or "",
        until=args.until or "",
        paths=tuple(args.paths if paths is None else paths),
    )


def find_change(workspace: "Workspace", reference: str) -> "ChangeView":
    """Return a change; an ambiguous reference is refused with the candidates."""
    try:
        return workspace.history.show(reference)
    except InvalidArgument as error:
        names = error.details.get("candidates")
        if not names:
            raise
        raise with_action(error, f"Use more characters; it could be {', '.join(names)}.") from None


def recorded_path(workspace: "Workspace", subject: str) -> str:
    """Return the key of a file if the subject is one; empty if it can only be a change."""
    if not subject or (len(subject) == _FULL_ID_CHARS and subject.isalnum()):
        return ""
    from surehold.stores.base import LedgerQuery
    from surehold.workspace.past.recorded import is_recorded, recorded_key

    key = recorded_key(workspace, subject)
    if is_recorded(workspace, key) or workspace.history.log(LedgerQuery(under=key, ok_only=True, limit=1)):
        return key
    target = workspace.target(subject)
    return key if os.path.lexists(as_path(target.root, *target.parts)) else ""


def named_change(workspace: "Workspace", args: argparse.Namespace) -> str:
    """Return the one change that is named instead of selectors; empty if files or selectors are."""
    selected = any((args.session, args.agent, args.turn, args.since, args.until))
    if selected or len(args.subject) != 1 or recorded_path(workspace, args.subject[0]):
        return ""
    return find_change(workspace, args.subject[0]).id


def selected_entries(workspace: "Workspace", args: argparse.Namespace) -> "list[Entry]":
    """Return the entries that are named, by a change or by selectors; everything that was done if nothing is."""
    if change := named_change(workspace, args):
        return [entry for entry in workspace.history.show(change).entries if entry.ok]
    words = read_selectors(args, args.subject)
    if not words:
        message = "Nothing is selected."
        raise InvalidArgument(message, reason="no_selector", action="Name a change, files, or --session last.")
    found = workspace.history.select_done(words)
    if not found:
        raise NotFound(f"No change matches `{words.describe()}`.", reason="no_changes", action="See: surehold log")
    return found
