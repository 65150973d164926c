"""Commands that maintain the history and examine the disk: verify, recover, gc, version, doctor."""

import argparse
import os
import re
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from surehold.errors import NotFound, PermissionDenied
from surehold.front.cli.command import CommandContext, argument, as_path, command, flag, short_id
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.output import TableCell, TableColumn, format_count, format_size
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.disk.probe import ProbeResult
    from surehold.stores.upkeep import LedgerCheck
    from surehold.workspace.recovery import SettledIntent

_DURATION_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_MAX_DURATION = timedelta(days=36_500)
_MAX_LISTED_BLOBS = 5


@command(
    "verify",
    "Check that the history, or a bundle, was not altered.",
    argument("bundle", "BUNDLE", "a file that `surehold export --format bundle` wrote", nargs="?", default=""),
    example="surehold verify\n  surehold verify work.bundle",
)
def verify_command(context: CommandContext, args: argparse.Namespace) -> int:
    if args.bundle:
        return _verify_bundle(context, args.bundle)
    if not context.has_history():
        sentence = "There is no history here yet, so there is nothing to check."
        context.print_outcome(sentence, ok=True, entries=0, blobs=0)
        return 0
    with context.open_workspace() as workspace, ProgressLine(context.err, "Checking the history"):
        verdict = workspace.history.verify()
    with context.out.print_verdict(is_good=verdict.ok):
        if context.json:
            context.out.print_json({"ok": verdict.ok, **asdict(verdict)})
        elif verdict.ok:
            entries = format_count(verdict.entries, "entry", "entries")
            blobs = format_count(verdict.blobs, "stored version")
            context.out.print_labelled("Intact", f"{entries} and {blobs}.", "green")
        else:
            _print_broken(context, verdict)
    return 0 if verdict.ok else 1


def _verify_bundle(context: CommandContext, name: str) -> int:
    from surehold.workspace.past.bundle import check_bundle

    try:
        with as_path(name).open("rb") as file, ProgressLine(context.err, "Checking the bundle") as progress:
            verdict = check_bundle(progress.count(file))
    except OSError as error:
        message = f"`{name}` cannot be read: {error.strerror}."
        raise NotFound(message, path=name, reason="no_bundle", action="Name a file that can be read.") from None
    with context.out.print_verdict(is_good=verdict.ok):
        if context.json:
            context.out.print_json({"ok": verdict.ok, **asdict(verdict)})
        elif verdict.ok:
            entries = format_count(verdict.entries, "entry", "entries")
            versions = format_count(verdict.versions, "stored version")
            context.out.print_labelled("Intact", f"{entries} and {versions}.", "green")
        else:
            context.out.print_labelled("Broken", verdict.problem, "red")
    return 0 if verdict.ok else 1


def _print_broken(context: CommandContext, verdict: "LedgerCheck") -> None:
    out, blobs = context.out, verdict.broken_blobs
    if verdict.broken_seq:
        out.print_labelled("Broken", f"the history is not intact from entry {verdict.broken_seq} on.", "red")
    if verdict.problem:
        out.print_labelled("Reason", verdict.problem)
    if blobs:
        names = ", ".join(blobs[:_MAX_LISTED_BLOBS]) + (" …" if len(blobs) > _MAX_LISTED_BLOBS else "")
        out.print_labelled("Broken", f"{format_count(len(blobs), 'stored version')}: {names}", "red")
    out.print_labelled("Next", f"keep a copy of {context.state_place}, then restore it from a backup.")


@command("recover", "Finish or roll back every change that a dead process left open.", example="surehold recover")
def recover_command(context: CommandContext, _: argparse.Namespace) -> int:
    from surehold.front.shared.approval_queue import ApprovalQueue

    settled: tuple[SettledIntent, ...] = ()
    questions = 0
    if context.has_history():
        with context.open_workspace(recover=False, remake=True) as workspace:
            settled = workspace.recover()
            queue = ApprovalQueue(board=workspace.questions, note_unanswered=workspace.record_unanswered)
            questions = queue.parked.end_left()
    is_settled = all(one.direction not in {"conflict", "failed"} for one in settled)
    with context.out.print_verdict(is_good=is_settled):
        if context.json or not (settled or questions):
            found = [asdict(one) for one in settled]
            context.print_outcome("There was nothing to recover.", settled=found, questions=questions)
        else:
            for one in settled:
                _print_settled(context, one)
            if questions:
                what = "1 change" if questions == 1 else f"{questions} changes"
                context.out.print_line(f"Recorded as refused: {what} whose question no server waits for any more.")
    return 0 if is_settled else 1


def _print_settled(context: CommandContext, settled: "SettledIntent") -> None:
    out, change, paths = context.out, short_id(settled.change_id), ", ".join(settled.paths)
    match settled.direction:
        case "forward":
            out.print_labelled(f"Finished {change}", paths, "green")
        case "backward":
            out.print_labelled(f"Rolled back {change}", paths, "green")
        case "gone":
            out.print_labelled("Already settled by another process", change)
        case "failed":
            out.print_labelled(f"Still open {change}", paths, "red")
            out.print_labelled("Reason", settled.problem)
        case "conflict":
            out.print_labelled(f"Conflict {change}", f"left unchanged: {', '.join(settled.conflicts)}", "red")
            out.print_labelled("Next", f"compare the file with both versions: surehold show {change}")


def parse_duration(text: str) -> timedelta:
    """Return the time span of `12h`, `30d` or `8w`."""
    match = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip().lower())
    span = int(match[1]) * _DURATION_UNITS[match[2]] if match else timedelta()
    if not timedelta() < span <= _MAX_DURATION:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 12h, 30d or 8w")
    return span


@command(
    "gc",
    "Remove versions that only old changes need; archive old entries.",
    argument("--keep", "AGE", "how far back undo must work: 12h, 30d, 8w", required=True, type=parse_duration),
    flag("--dry-run", "show what would be removed without removing it"),
    example="surehold gc --keep 30d --dry-run",
)
def gc_command(context: CommandContext, args: argparse.Namespace) -> None:
    if not context.has_history():
        context.print_outcome("There is no history here yet.", blobs=0, bytes=0, sightings=0, dry_run=args.dry_run)
        return
    with context.open_workspace() as workspace:
        pruned = workspace.history.gc(keep=args.keep, dry_run=args.dry_run)
    removed = f"{format_count(pruned.blobs, 'stored version')} ({format_size(pruned.bytes)})."
    done = f"Would remove {removed}" if args.dry_run else f"Removed {removed}"
    sentence = done if pruned.blobs else "No stored version is that old."
    if number := pruned.details["archived"]:
        archived = format_count(number, "entry", "entries")
        sentence += f" Would archive {archived}." if args.dry_run else f" Archived {archived}."
    context.print_outcome(sentence, **asdict(pruned), dry_run=args.dry_run)


@command("version", "Print the versions of Surehold, Python and SQLite.", example="surehold version --json")
def version_command(context: CommandContext, _: argparse.Namespace) -> None:
    from surehold.front.shared.bug_report import collect_versions

    found = collect_versions()
    rest = f"Python {found['python']}, SQLite {found['sqlite']}, {found['system']}"
    context.print_outcome(f"surehold {found['surehold']} ({rest})", **found)


PromiseState = Literal["holds", "holds with a fallback", "does not hold"]

_PROMISE_TRIALS = (
    ("Nothing is lost", ("sync_file", "sync_directory", "state_database", "state_sync", "exchange", "lease")),
    (
        "Nothing is half done",
        (
            "exchange",
            "no_replace",
            "nameless_file",
            "sync_file",
            "sync_directory",
            "state_database",
            "state_sync",
            "state_schema",
        ),
    ),
    (
        "No unseen change is overwritten",
        ("exchange", "no_replace", "lock", "lock_reach", "mount", "state_mount", "state_role", "state_blobs"),
    ),
    ("Untouched bytes stay untouched", ("attributes", "access_lists", "hard_links")),
    ("Nothing outside is reachable", ("contained_open", "letter_case", "unicode_names")),
)
"""Each promise, and the trials that it depends on."""

_TRIAL_TITLES = {
    "contained_open": "open below the root",
    "exchange": "exchange two files",
    "lease": "file leases",
    "no_replace": "rename, no overwrite",
    "nameless_file": "unnamed files",
    "sync_file": "fsync of a file",
    "sync_directory": "fsync of a directory",
    "attributes": "extended attributes",
    "access_lists": "access control lists",
    "hard_links": "hard links",
    "letter_case": "letter case",
    "unicode_names": "Unicode names",
    "lock": "directory lock",
    "lock_reach": "reach of the lock",
    "mount": "file system",
    "space": "free space",
    "state_database": "history: database",
    "state_sync": "history: fsync",
    "state_schema": "history: schema",
    "state_role": "history: role",
    "state_lease": "history: lease",
    "state_blobs": "history: large versions",
    "state_mount": "history: file system",
    "state_space": "history: free space",
}
_STATE_MARKS: dict[PromiseState, TableCell] = {
    "holds": ("yes", "green"),
    "holds with a fallback": ("fallback", "yellow"),
    "does not hold": ("no", "red"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    name: str
    state: PromiseState
    because: tuple[str, ...] = ()
    """The trials that failed."""


@command(
    "doctor",
    "Test on your own disk what Surehold promises.",
    flag("--hosts", "print what is known of each host instead: how much of an answer its model is given"),
    argument("--host", "HOST", "try what is recorded of this host instead: claude, codex, gemini …"),
    example="surehold doctor --root ~/project\n  surehold doctor --host claude",
)
def doctor_command(context: CommandContext, args: argparse.Namespace) -> int:
    if args.hosts:
        _print_hosts(context)
        return 0
    context.check_root()
    if args.host:
        return _print_coverage(context, args.host)
    root = as_path(os.path.realpath(context.root))
    findings = _examine_disk(root, context.state_directory, state=context.state)
    if context.state:
        from surehold.front.cli.config.state_commands import examine_state

        findings = (*findings, *examine_state(context.state, context.blobs_address))
    promises = judge_promises(findings)
    all_hold = all(one.state != "does not hold" for one in promises)
    if context.json:
        document = {
            "root": str(root),
            "state_dir": str(context.state_directory),
            "state": context.state_place,
            "ok": all_hold,
            "promises": [asdict(one) for one in promises],
            "findings": [asdict(one) for one in findings],
        }
        with context.out.print_verdict(is_good=all_hold):
            context.out.print_json(document)
    else:
        with context.out.print_verdict(is_good=all_hold):
            _print_report(context, root, findings, promises)
    return 0 if all_hold else 1


def _print_coverage(context: CommandContext, key: str) -> int:
    from surehold.front.cli.host_commands import named_host
    from surehold.front.hosts.self_test import examine_host

    host, out = named_host(key), context.out
    found = examine_host(host, root=context.root, state_dir=context.state_dir)
    if context.json:
        missing = [{"what": what, "why": why} for what, why in found.not_covered.items()]
        out.print_json({**asdict(found), "not_covered": missing, "ok": found.works})
        return 0 if found.works else 1
    covered: list[tuple[TableCell, ...]] = [
        ((what, "plain"), ("yes", "green"), ("", "plain")) for what in found.covered
    ]
    rest: list[tuple[TableCell, ...]] = [
        ((what, "plain"), ("no", "yellow"), (why, "plain")) for what, why in found.not_covered.items()
    ]
    out.print_table(
        (TableColumn(title=host.name), TableColumn(title="covered"), TableColumn(title="why", least=16)), covered + rest
    )
    for line in found.failures:
        out.print_labelled("Failed", reveal_text(line), "red")
    return 0 if found.works else 1


def _print_hosts(context: CommandContext) -> None:
    from surehold.front.hosts.table import KNOWN_HOSTS, OTHER_HOSTS

    hosts = (*KNOWN_HOSTS, OTHER_HOSTS)
    if context.json:
        context.out.print_json({"hosts": [asdict(one) for one in hosts]})
        return
    titles = ("host", "tested", "client name", "largest answer", "its model is given", "of a larger answer it")
    rows = [(one.name, one.tested, one.client, one.limit_text, one.given, one.beyond) for one in hosts]
    context.out.print_table(
        tuple(TableColumn(title=title) for title in titles),
        [tuple((cell or "-", "plain") for cell in row) for row in rows],
    )


def _examine_disk(root: "Path", state_dir: "Path", *, state: str) -> tuple["ProbeResult", ...]:
    """Run every trial, in the root and where the history is or would be, unless that is a database."""
    from surehold.disk.probe import probe_directory, probe_state

    while not state_dir.is_dir():
        state_dir = state_dir.parent
    try:
        return (*probe_directory(root), *(() if state else probe_state(state_dir)))
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else str(root)
        action = "Allow new directories there, or name other directories with --root and --state-dir."
        raise PermissionDenied(f"The disk cannot be tested: {error.strerror}.", path=path, action=action) from error


def _state_of(finding: "ProbeResult") -> PromiseState:
    return "holds" if finding.ok else "holds with a fallback" if finding.fallback else "does not hold"


def judge_promises(findings: tuple["ProbeResult", ...]) -> tuple[Promise, ...]:
    named = {finding.name: finding for finding in findings}
    promises = list[Promise]()
    for promise, needs in _PROMISE_TRIALS:
        missing = [named[need] for need in needs if need in named and not named[need].ok]
        states: list[PromiseState] = ["holds", *(_state_of(one) for one in missing)]
        state = max(states, key=list(_STATE_MARKS).index)
        because = tuple(f"{_TRIAL_TITLES[one.name]}: {one.fallback or one.detail}" for one in missing)
        promises.append(Promise(name=promise, state=state, because=because))
    return tuple(promises)


def _print_report(
    context: CommandContext, root: "Path", findings: tuple["ProbeResult", ...], promises: tuple[Promise, ...]
) -> None:
    out = context.out
    out.print_line(f"{out.paint('Workspace', 'dim')}  {reveal_text(str(root))}")
    out.print_line(f"{out.paint('History', 'dim')}    {reveal_text(context.state_place)}")
    out.print_line()
    columns = (TableColumn(title="trial"), TableColumn(title="works"), TableColumn(title="finding", least=16))
    out.print_table(
        columns,
        [((_TRIAL_TITLES[one.name], "plain"), _STATE_MARKS[_state_of(one)], (one.detail, "plain")) for one in findings],
    )
    out.print_line()
    columns = (TableColumn(title="promise"), TableColumn(title="holds"))
    out.print_table(columns, [((one.name, "plain"), _STATE_MARKS[one.state]) for one in promises])
    for text in dict.fromkeys(text for one in promises for text in one.because):
        out.print_line(f"  {reveal_text(text)}")
    out.print_line()
    _print_verdict(context, promises)


def _print_verdict(context: CommandContext, promises: tuple[Promise, ...]) -> None:
    out = context.out
    if broken := [one.name for one in promises if one.state == "does not hold"]:
        out.print_labelled("Not every promise holds here", f"{'; '.join(broken)}.", "red", "bold")
        return
    by_fallback = any(one.state == "holds with a fallback" for one in promises)
    rest = ", some through the fallbacks above." if by_fallback else "."
    out.print_line(f"{out.paint('Every promise holds here', 'green', 'bold')}{rest}")
