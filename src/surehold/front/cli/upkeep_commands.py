"""Commands that maintain the history: verify, recover, gc, version."""

import argparse
import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from surehold.front.cli.command import Command, CommandContext, no_arguments, short_id
from surehold.front.cli.output import escape_text, format_count, format_size

if TYPE_CHECKING:
    from surehold.stores.base import LedgerCheck
    from surehold.workspace.recovery import SettledIntent

_DURATION_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_MAX_DURATION = timedelta(days=36_500)
_MAX_LISTED_BLOBS = 5


def _run_verify(context: CommandContext, _: argparse.Namespace) -> int:
    if not context.has_history():
        context.print_outcome("There is no history here yet, so nothing can be broken.", ok=True, entries=0, blobs=0)
        return 0
    with context.open_workspace() as workspace:
        verdict = workspace.history.verify()
    if context.json:
        context.out.print_json({"ok": verdict.ok, **asdict(verdict)})
    elif verdict.ok:
        entries, blobs = (
            format_count(verdict.entries, "entry", "entries"),
            format_count(verdict.blobs, "stored version"),
        )
        context.out.print_line(f"{context.out.paint('Intact', 'green')}: {entries} and {blobs}.")
    else:
        _print_broken(context, verdict)
    return 0 if verdict.ok else 1


def _print_broken(context: CommandContext, verdict: "LedgerCheck") -> None:
    out = context.out
    if verdict.broken_seq:
        out.print_line(f"{out.paint('Broken', 'red')}: the history does not hold from entry {verdict.broken_seq} on.")
    if verdict.problem:
        out.print_line(escape_text(verdict.problem))
    if verdict.broken_blobs:
        names = ", ".join(verdict.broken_blobs[:_MAX_LISTED_BLOBS]) + (
            " …" if len(verdict.broken_blobs) > _MAX_LISTED_BLOBS else ""
        )
        out.print_line(
            f"{out.paint('Broken', 'red')}: {format_count(len(verdict.broken_blobs), 'stored version')}: {names}"
        )
    out.print_line(f"Next: keep a copy of {escape_text(str(context.state_directory))}, and put it back from a backup.")


def _run_recover(context: CommandContext, _: argparse.Namespace) -> int:
    settled: tuple[SettledIntent, ...] = ()
    if context.has_history():
        with context.open_workspace(recover=False) as workspace:
            settled = workspace.recover()
    trouble = any(one.direction in {"conflict", "failed"} for one in settled)
    if context.json:
        context.out.print_json({"settled": [asdict(one) for one in settled]})
    elif not settled:
        context.out.print_line("Nothing was left open.")
    for one in settled if not context.json else ():
        _print_settled(context, one)
    return 1 if trouble else 0


def _print_settled(context: CommandContext, settled: "SettledIntent") -> None:
    out, paths = context.out, ", ".join(escape_text(path) for path in settled.paths)
    match settled.direction:
        case "forward":
            out.print_line(f"{out.paint('Finished', 'green')} {short_id(settled.change_id)}: {paths}")
        case "backward":
            out.print_line(f"{out.paint('Put back', 'green')} {short_id(settled.change_id)}: {paths}")
        case "gone":
            out.print_line(f"Settled by somebody else: {short_id(settled.change_id)}")
        case "failed":
            out.print_line(f"{out.paint('Still open', 'red')} {short_id(settled.change_id)}: {paths}")
            out.print_line(f"Reason: {escape_text(settled.problem)}")
        case "conflict":
            stuck = ", ".join(escape_text(path) for path in settled.conflicts)
            out.print_line(f"{out.paint('Conflict', 'red')} {short_id(settled.change_id)}: left as it is: {stuck}")
            out.print_line(f"Next: compare it with both versions: surehold show {short_id(settled.change_id)}")


def _gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", required=True, type=parse_duration, metavar="AGE", help="how far back undo must reach: 12h, 30d, 8w"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")


def parse_duration(text: str) -> timedelta:
    """Return the time that `12h`, `30d` or `8w` stands for."""
    match = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip().lower())
    span = int(match[1]) * _DURATION_UNITS[match[2]] if match else timedelta()
    if not timedelta() < span <= _MAX_DURATION:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 12h, 30d or 8w")
    return span


def _run_gc(context: CommandContext, args: argparse.Namespace) -> int:
    if not context.has_history():
        context.print_outcome("There is no history here yet.", blobs=0, bytes=0, sightings=0, dry_run=args.dry_run)
        return 0
    with context.open_workspace() as workspace:
        pruned = workspace.history.gc(keep=args.keep, dry_run=args.dry_run)
    verb = "Would drop" if args.dry_run else "Dropped"
    sentence = f"{verb} {format_count(pruned.blobs, 'stored version')} ({format_size(pruned.bytes)})."
    if not pruned.blobs:
        sentence = "Nothing is that old."
    context.print_outcome(sentence, **asdict(pruned), dry_run=args.dry_run)
    return 0


def _run_version(context: CommandContext, _: argparse.Namespace) -> int:
    from surehold.front.shared.bug_report import collect_versions

    found = collect_versions()
    rest = f"Python {found['python']}, SQLite {found['sqlite']}, {found['system']}"
    context.print_outcome(f"surehold {found['surehold']} ({rest})", **found)
    return 0


UPKEEP_COMMANDS = (
    Command(
        name="verify",
        group="Keep in order",
        help="Check that nobody altered the history or the stored versions.",
        example="surehold verify",
        add_arguments=no_arguments,
        run=_run_verify,
    ),
    Command(
        name="recover",
        group="Keep in order",
        help="Close every change that a dead process left open.",
        example="surehold recover",
        add_arguments=no_arguments,
        run=_run_recover,
    ),
    Command(
        name="gc",
        group="Keep in order",
        help="Drop stored versions that only old changes need.",
        example="surehold gc --keep 30d --dry-run",
        add_arguments=_gc_arguments,
        run=_run_gc,
    ),
    Command(
        name="version",
        group="Keep in order",
        help="Print the versions of Surehold and what it runs on.",
        example="surehold version --json",
        add_arguments=no_arguments,
        run=_run_version,
    ),
)
