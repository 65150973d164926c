"""`surehold doctor`: tests which promises hold on this disk."""

import argparse
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from surehold.errors import NotFound, PermissionDenied
from surehold.front.cli.command import Command, CommandContext, as_path, no_arguments
from surehold.front.cli.output import TableCell, TableColumn, TextStyle, escape_text

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.disk.probe import ProbeResult

PromiseState = Literal["holds", "holds with a fallback", "does not hold"]

_PROMISE_TRIALS = (
    ("Nothing is lost", ("sync_file", "sync_directory", "state_database", "state_sync", "exchange")),
    (
        "Nothing is half done",
        ("exchange", "no_replace", "nameless_file", "sync_file", "sync_directory", "state_database"),
    ),
    ("Nobody is overwritten unseen", ("exchange", "no_replace", "lock", "mount", "state_mount")),
    ("Untouched bytes stay untouched", ("attributes", "access_lists", "hard_links")),
    ("Nothing outside is reachable", ("contained_open", "letter_case", "unicode_names")),
)
"""Each promise, and the trials that it rests on."""

_TRIAL_TITLES = {
    "contained_open": "opening below the root",
    "exchange": "exchanging two files",
    "no_replace": "renaming to a free name",
    "nameless_file": "files without a name",
    "sync_file": "fsync of a file",
    "sync_directory": "fsync of a directory",
    "attributes": "extended attributes",
    "access_lists": "access lists",
    "hard_links": "hard links",
    "letter_case": "letter case",
    "unicode_names": "Unicode names",
    "lock": "directory lock",
    "mount": "file system",
    "space": "free space",
    "state_database": "history: database",
    "state_sync": "history: fsync",
    "state_mount": "history: file system",
    "state_space": "history: free space",
}
_STATE_MARKS: dict[PromiseState, tuple[str, TextStyle]] = {
    "holds": ("yes", "green"),
    "holds with a fallback": ("fallback", "yellow"),
    "does not hold": ("no", "red"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one promise is worth here."""

    name: str
    state: PromiseState
    because: tuple[str, ...] = ()
    """The findings that are not as they should be."""


def _run_doctor(context: CommandContext, _: argparse.Namespace) -> int:
    root = as_path(os.path.realpath(context.root))
    findings = examine_disk(root, context.state_directory)
    promises = judge_promises(findings)
    if context.json:
        document = {
            "root": str(root),
            "state_dir": str(context.state_directory),
            "ok": _all_hold(promises),
            "promises": [asdict(one) for one in promises],
            "findings": [asdict(one) for one in findings],
        }
        context.out.print_json(document)
    else:
        _print_report(context, root, findings, promises)
    return 0 if _all_hold(promises) else 1


def examine_disk(root: "Path", state_dir: "Path") -> tuple["ProbeResult", ...]:
    """Try everything, in the root and where the history is or would be."""
    from surehold.disk.probe import probe_directory, probe_state

    if not root.is_dir():
        raise NotFound(
            f"`{root}` is not a directory.",
            path=str(root),
            reason="no_such_root",
            action="Name a directory with --root.",
        )
    try:
        findings = probe_directory(root)
        place = root
        place = _nearest_directory(state_dir)
        return (*findings, *probe_state(place))
    except OSError as error:
        raise PermissionDenied(
            f"Nothing can be tried out: {error.strerror}.",
            path=error.filename if isinstance(error.filename, str) else str(root),
            action="Let the doctor make a directory there, or name other ones with --root and --state-dir.",
        ) from error


def _nearest_directory(directory: "Path") -> "Path":
    """Return the directory, or the nearest one above it that exists."""
    while not directory.is_dir():
        directory = directory.parent
    return directory


def judge_promises(findings: tuple["ProbeResult", ...]) -> tuple[Promise, ...]:
    """Say what every promise is worth, given the findings."""
    named = {finding.name: finding for finding in findings}
    promises = list[Promise]()
    for promise, needs in _PROMISE_TRIALS:
        missing = [named[need] for need in needs if need in named and not named[need].ok]
        state: PromiseState = "holds with a fallback" if missing else "holds"
        if any(not one.fallback for one in missing):
            state = "does not hold"
        because = tuple(f"{_TRIAL_TITLES[one.name]}: {one.fallback or one.detail}" for one in missing)
        promises.append(Promise(name=promise, state=state, because=because))
    return tuple(promises)


def _all_hold(promises: tuple[Promise, ...]) -> bool:
    return all(one.state != "does not hold" for one in promises)


def _print_report(
    context: CommandContext, root: "Path", findings: tuple["ProbeResult", ...], promises: tuple[Promise, ...]
) -> None:
    out = context.out
    out.print_line(f"{out.paint('Workspace', 'dim')}  {escape_text(str(root))}")
    out.print_line(f"{out.paint('History', 'dim')}    {escape_text(str(context.state_directory))}")
    out.print_line()
    columns = (TableColumn(title="tried"), TableColumn(title="works"), TableColumn(title="found", least=16))
    out.print_table(columns, [_finding_row(finding) for finding in findings])
    out.print_line()
    rows = [
        [TableCell(text=one.name), TableCell(text=_STATE_MARKS[one.state][0], style=_STATE_MARKS[one.state][1])]
        for one in promises
    ]
    out.print_table((TableColumn(title="promise"), TableColumn(title="holds")), rows)
    for text in dict.fromkeys(text for one in promises for text in one.because):
        out.print_line(f"  {escape_text(text)}")
    out.print_line()
    out.print_line(_verdict_text(context, promises))


def _finding_row(finding: "ProbeResult") -> list[TableCell]:
    state: PromiseState = "holds" if finding.ok else "holds with a fallback" if finding.fallback else "does not hold"
    mark, style = _STATE_MARKS[state]
    return [
        TableCell(text=_TRIAL_TITLES[finding.name]),
        TableCell(text=mark, style=style),
        TableCell(text=finding.detail),
    ]


def _verdict_text(context: CommandContext, promises: tuple[Promise, ...]) -> str:
    out = context.out
    broken = [one.name for one in promises if one.state == "does not hold"]
    if broken:
        return f"{out.paint('Not every promise holds here', 'red', 'bold')}: {'; '.join(broken)}."
    if any(one.state == "holds with a fallback" for one in promises):
        return f"{out.paint('Every promise holds here', 'green', 'bold')}, some by the fallbacks above."
    return f"{out.paint('Every promise holds here', 'green', 'bold')}."


DOCTOR = Command(
    name="doctor",
    group="Keep in order",
    help="Try on your own disk what Surehold promises.",
    example="surehold doctor --root ~/project",
    add_arguments=no_arguments,
    run=_run_doctor,
)
