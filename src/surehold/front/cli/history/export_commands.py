"""Commands that take the history elsewhere: export, and commit into git."""

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING

from surehold.errors import AlreadyExists, SureholdError
from surehold.front.cli.command import DRY_RUN_FLAG, CommandContext, argument, as_path, choice, command
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.history.selector_options import SELECTOR_OPTIONS, SUBJECTS_ARGUMENT, selected_entries
from surehold.front.cli.output import format_count
from surehold.front.shared.ledger_json import entry_record
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.stores.base import Entry
    from surehold.workspace.workspace import Workspace

_MAX_REASONS = 20


@command(
    "export",
    "Write changes as a patch, JSON lines, or a verifiable bundle.",
    SUBJECTS_ARGUMENT,
    *SELECTOR_OPTIONS,
    choice("--format", ("patch", "jsonl", "bundle"), "patch (default), jsonl, or bundle"),
    argument("--output", "FILE", "write there instead of standard output; an existing file is not overwritten"),
    example="surehold export --session last --format bundle --output work.bundle",
)
def export_command(context: CommandContext, args: argparse.Namespace) -> None:
    wanted = args.format or "patch"
    with context.open_recorded_workspace() as workspace:
        entries = selected_entries(workspace, args)
        number = len({entry.change_id for entry in entries})
        left_out = list[str]()
        pieces = _export_pieces(context, workspace, entries, wanted, left_out)
        if context.json and not args.output:
            text = b"".join(pieces).decode("utf-8", "backslashreplace")
            content = (
                {"entries": [json.loads(row) for row in text.splitlines()]} if wanted == "jsonl" else {wanted: text}
            )
            context.out.print_json({"format": wanted, "changes": number, "left_out": left_out, **content})
            return
        if not args.output:
            for piece in pieces:
                context.out.write_bytes(piece)
        else:
            with ProgressLine(context.err, "Exporting") as progress:
                size = _write_output(args.output, progress.count(pieces))
            sentence = f"Wrote {format_count(number, 'change')} to {reveal_text(args.output)}."
            context.print_outcome(sentence, output=args.output, changes=number, bytes=size, left_out=left_out)
    for note in left_out if not context.json else ():
        context.print_note(f"Left out: {note}.")


def _export_pieces(
    context: CommandContext, workspace: "Workspace", entries: "list[Entry]", wanted: str, left_out: list[str]
) -> Iterator[bytes]:
    match wanted:
        case "bundle":
            from surehold.stores.ledger_entries import utc_timestamp
            from surehold.workspace.past.bundle import write_bundle

            yield from write_bundle(workspace, entries, made=utc_timestamp(context.out.now))
        case "jsonl":
            from surehold.workspace.past.net_diff import single_diff

            for entry in sorted(entries, key=lambda one: one.seq):
                record = {**entry_record(entry), "diff": single_diff(workspace, entry)}
                yield json.dumps(record, ensure_ascii=True).encode() + b"\n"
        case _:
            yield from _patch_pieces(context, workspace, entries, left_out)


def _patch_pieces(
    context: CommandContext, workspace: "Workspace", entries: "list[Entry]", left_out: list[str]
) -> Iterator[bytes]:
    from surehold.workspace.past.git_patch import find_left_out, render_git_patch
    from surehold.workspace.past.net_diff import net_diff

    files = net_diff(workspace, entries)
    names = [one.to_key or one.key for one in files]
    for one in files:
        if one.conflict and not context.json:
            context.print_note(f"{one.key}: each change by itself, since {one.conflict}.")
        yield render_git_patch(one)
        if why := find_left_out(one):
            is_implied = one.after_version and any(name.startswith(f"{one.key}/") for name in names)
            left_out += [] if is_implied else [f"{one.key}, since {why}"]
    if not files and not context.json:
        context.print_note("Nothing of what was selected is in effect.")


def _write_output(name: str, pieces: Iterable[bytes]) -> int:
    """Write a new file as a whole, or none."""
    path = as_path(name)
    part, size = path.with_name(f"{path.name}.part-{os.getpid()}"), 0
    try:
        if path.exists():
            message = f"`{name}` exists already."
            raise AlreadyExists(message, path=name, action="Name another file with --output.")
        with part.open("xb") as file:
            for piece in pieces:
                size += file.write(piece)
        os.link(part, path)
    except FileExistsError:
        message = f"`{name}` exists already."
        raise AlreadyExists(message, path=name, action="Name another file with --output.") from None
    except OSError as error:
        message = f"`{name}` cannot be written: {error.strerror}."
        raise SureholdError(message, path=name, reason="output_failed", action="Name another file.") from None
    finally:
        part.unlink(missing_ok=True)
    return size


@command(
    "commit",
    "Commit exactly these changes to git; nothing else is touched.",
    SUBJECTS_ARGUMENT,
    *SELECTOR_OPTIONS,
    argument("-m --message", "MSG", "the commit message (default: made from the reasons)"),
    DRY_RUN_FLAG,
    note="The working files and the stash stay as they are; what else is staged stays staged. Hooks do not run.",
    example="surehold commit --session last -m 'Add retries'",
)
def commit_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.workspace.past.git_commit import GitRepository
    from surehold.workspace.past.net_diff import net_diff

    with context.open_recorded_workspace() as workspace:
        repository = GitRepository(workspace.roots[0])
        repository.refuse_unfinished()
        entries = selected_entries(workspace, args)
        files = net_diff(workspace, entries)
        board = workspace.history.load_board()
        entries = [one for one in entries if board.is_on(one)]
    left_out = set[str]().union(*repository.find_left_out([one.change.to_path or one.change.path for one in entries]))
    kept = [one for one in entries if (one.change.to_path or one.change.path) not in left_out]
    message = args.message or partial(_default_message, kept)
    made = repository.commit(files, message, partial(_unsettled_trailers, kept), dry_run=args.dry_run)
    if context.json:
        context.out.print_json(
            {
                "commit": made.sha or None,
                "paths": list(made.paths),
                "ignored": list(made.ignored),
                "foreign": list(made.foreign),
                "left_staged": list(made.left_staged),
                "message": made.message,
                "dry_run": args.dry_run,
            }
        )
        return
    subject, number = made.message.partition("\n")[0], format_count(len(made.files), "file")
    if args.dry_run:
        context.out.print_line(f"Nothing was written. This would commit {number}:")
        for path in made.files:
            context.out.print_labelled("  File", path)
    else:
        context.out.print_labelled("Committed", f"{made.sha[:12]} {subject} ({number})", "green")
    for path in made.ignored:
        context.print_note(f"{path}: ignored by git, not committed.")
    for path in made.foreign:
        context.print_note(f"{path}: in a git repository of its own, not committed.")
    for path in made.left_staged:
        context.print_note(f"{path}: what is staged there stays as it was.")


def commit_trailers(entries: "list[Entry]") -> list[str]:
    """Return who made the changes, and which they are, oldest first."""
    ordered = sorted(entries, key=lambda one: one.seq)
    agents = dict.fromkeys(one.call.agent for one in ordered if one.call.agent)
    changes = dict.fromkeys(one.change_id for one in ordered if one.call.operation not in {"undo", "redo"})
    clean = (reveal_text(" ".join(name.split())) for name in agents)
    return [*(f"Agent: {name}" for name in clean), *(f"Surehold-Change: {name}" for name in changes)]


def _unsettled_trailers(entries: "list[Entry]", settled: AbstractSet[str]) -> list[str]:
    return commit_trailers(_unsettled(entries, settled))


def _unsettled(entries: "list[Entry]", settled: AbstractSet[str]) -> "list[Entry]":
    """Return the entries without those of files that HEAD has as they made them."""
    return [one for one in entries if not {one.change.path, one.change.to_path or one.change.path} <= settled]


def _default_message(entries: "list[Entry]", names: Sequence[str], settled: AbstractSet[str]) -> str:
    ordered = sorted(_unsettled(entries, settled), key=lambda one: one.seq)
    reasons = [*dict.fromkeys(reveal_text(" ".join(one.call.reason.split())) for one in ordered if one.call.reason)]
    if len(reasons) == 1:
        return reasons[0]
    subject = f"Change {reveal_text(names[0])}" if len(names) == 1 else f"Change {format_count(len(names), 'file')}"
    return "\n".join((subject, "", *(f"- {reason}" for reason in reasons[:_MAX_REASONS]))) if reasons else subject
