"""Keeping the history in order: verify, recover, gc, version."""

import argparse
import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from surehold.front.cli.command import Command, Context, no_arguments, short
from surehold.front.cli.output import plural, safe, size

if TYPE_CHECKING:
    from surehold.stores.base import Verdict
    from surehold.workspace.recover import Settled

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=36_500)
_SHOWN = 5


def _verify(context: Context, _: argparse.Namespace) -> int:
    if not context.has_history():
        context.say("There is no history here yet, so nothing can be broken.", ok=True, entries=0, blobs=0)
        return 0
    with context.open() as workspace:
        verdict = workspace.history.verify()
    if context.json:
        context.out.json({"ok": verdict.ok, **asdict(verdict)})
    elif verdict.ok:
        entries, blobs = plural(verdict.entries, "entry", "entries"), plural(verdict.blobs, "stored version")
        context.out.line(f"{context.out.paint('Intact', 'green')}: {entries} and {blobs}.")
    else:
        _print_broken(context, verdict)
    return 0 if verdict.ok else 1


def _print_broken(context: Context, verdict: "Verdict") -> None:
    out = context.out
    if verdict.broken_seq:
        out.line(f"{out.paint('Broken', 'red')}: the history does not hold from entry {verdict.broken_seq} on.")
    if verdict.problem:
        out.line(safe(verdict.problem))
    if verdict.broken_blobs:
        names = ", ".join(verdict.broken_blobs[:_SHOWN]) + (" …" if len(verdict.broken_blobs) > _SHOWN else "")
        out.line(f"{out.paint('Broken', 'red')}: {plural(len(verdict.broken_blobs), 'stored version')}: {names}")
    out.line(f"Next: keep a copy of {safe(str(context.memory))}, and put it back from a backup.")


def _recover(context: Context, _: argparse.Namespace) -> int:
    settled: tuple[Settled, ...] = ()
    if context.has_history():
        with context.open(recover=False) as workspace:
            settled = workspace.recover()
    trouble = any(one.direction in {"conflict", "failed"} for one in settled)
    if context.json:
        context.out.json({"settled": [asdict(one) for one in settled]})
    elif not settled:
        context.out.line("Nothing was left open.")
    for one in settled if not context.json else ():
        _print_settled(context, one)
    return 1 if trouble else 0


def _print_settled(context: Context, settled: "Settled") -> None:
    out, paths = context.out, ", ".join(safe(path) for path in settled.paths)
    match settled.direction:
        case "forward":
            out.line(f"{out.paint('Finished', 'green')} {short(settled.change_id)}: {paths}")
        case "backward":
            out.line(f"{out.paint('Put back', 'green')} {short(settled.change_id)}: {paths}")
        case "gone":
            out.line(f"Settled by somebody else: {short(settled.change_id)}")
        case "failed":
            out.line(f"{out.paint('Still open', 'red')} {short(settled.change_id)}: {paths}")
            out.line(f"Reason: {safe(settled.problem)}")
        case "conflict":
            stuck = ", ".join(safe(path) for path in settled.conflicts)
            out.line(f"{out.paint('Conflict', 'red')} {short(settled.change_id)}: left as it is: {stuck}")
            out.line(f"Next: compare it with both versions: surehold show {short(settled.change_id)}")


def _gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", required=True, type=duration, metavar="AGE", help="how far back undo must reach: 12h, 30d, 8w"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")


def duration(text: str) -> timedelta:
    """Return the time that `12h`, `30d` or `8w` stands for."""
    match = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip().lower())
    span = int(match[1]) * _UNITS[match[2]] if match else timedelta()
    if not timedelta() < span <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 12h, 30d or 8w")
    return span


def _gc(context: Context, args: argparse.Namespace) -> int:
    if not context.has_history():
        context.say("There is no history here yet.", blobs=0, bytes=0, sightings=0, dry_run=args.dry_run)
        return 0
    with context.open() as workspace:
        pruned = workspace.history.gc(keep=args.keep, dry_run=args.dry_run)
    verb = "Would drop" if args.dry_run else "Dropped"
    sentence = f"{verb} {plural(pruned.blobs, 'stored version')} ({size(pruned.bytes)})."
    if not pruned.blobs:
        sentence = "Nothing is that old."
    context.say(sentence, **asdict(pruned), dry_run=args.dry_run)
    return 0


def _version(context: Context, _: argparse.Namespace) -> int:
    from surehold.front.report import versions

    found = versions()
    rest = f"Python {found['python']}, SQLite {found['sqlite']}, {found['system']}"
    context.say(f"surehold {found['surehold']} ({rest})", **found)
    return 0


UPKEEP_COMMANDS = (
    Command(
        name="verify",
        group="Keep in order",
        help="Check that nobody altered the history or the stored versions.",
        example="surehold verify",
        add_arguments=no_arguments,
        run=_verify,
    ),
    Command(
        name="recover",
        group="Keep in order",
        help="Close every change that a dead process left open.",
        example="surehold recover",
        add_arguments=no_arguments,
        run=_recover,
    ),
    Command(
        name="gc",
        group="Keep in order",
        help="Drop stored versions that only old changes need.",
        example="surehold gc --keep 30d --dry-run",
        add_arguments=_gc_arguments,
        run=_gc,
    ),
    Command(
        name="version",
        group="Keep in order",
        help="Print the versions of Surehold and what it runs on.",
        example="surehold version --json",
        add_arguments=no_arguments,
        run=_version,
    ),
)
