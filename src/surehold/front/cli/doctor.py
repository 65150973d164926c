"""`surehold doctor`: what the promises are worth on this disk."""

import argparse
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from surehold.errors import NotFound, PermissionDenied
from surehold.front.cli.command import Command, Context, as_path, no_arguments
from surehold.front.cli.output import Cell, Column, Style, safe

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.disk.probe import Finding

State = Literal["holds", "holds with a fallback", "does not hold"]

_PROMISES = (
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

_TITLES = {
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
_MARKS: dict[State, tuple[str, Style]] = {
    "holds": ("yes", "green"),
    "holds with a fallback": ("fallback", "yellow"),
    "does not hold": ("no", "red"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one promise is worth here."""

    name: str
    state: State
    because: tuple[str, ...] = ()
    """The findings that are not as they should be."""


def _doctor(context: Context, _: argparse.Namespace) -> int:
    root = as_path(os.path.realpath(context.root))
    findings = examine(root, context.memory)
    promises = judge(findings)
    if context.json:
        document = {
            "root": str(root),
            "state_dir": str(context.memory),
            "ok": _all_hold(promises),
            "promises": [asdict(one) for one in promises],
            "findings": [asdict(one) for one in findings],
        }
        context.out.json(document)
    else:
        _print(context, root, findings, promises)
    return 0 if _all_hold(promises) else 1


def examine(root: "Path", state_dir: "Path") -> tuple["Finding", ...]:
    """Try everything, in the root and where the history is or would be."""
    from surehold.disk.probe import probe, probe_state

    if not root.is_dir():
        raise NotFound(
            f"`{root}` is not a directory.",
            path=str(root),
            reason="no_such_root",
            action="Name a directory with --root.",
        )
    try:
        findings = probe(root)
        place = root
        place = _nearest(state_dir)
        return (*findings, *probe_state(place))
    except OSError as error:
        raise PermissionDenied(
            f"Nothing can be tried out: {error.strerror}.",
            path=error.filename if isinstance(error.filename, str) else str(root),
            action="Let the doctor make a directory there, or name other ones with --root and --state-dir.",
        ) from error


def _nearest(directory: "Path") -> "Path":
    """Return the directory, or the nearest one above it that exists."""
    while not directory.is_dir():
        directory = directory.parent
    return directory


def judge(findings: tuple["Finding", ...]) -> tuple[Promise, ...]:
    """Say what every promise is worth, given the findings."""
    named = {finding.name: finding for finding in findings}
    promises = list[Promise]()
    for promise, needs in _PROMISES:
        missing = [named[need] for need in needs if need in named and not named[need].ok]
        state: State = "holds with a fallback" if missing else "holds"
        if any(not one.fallback for one in missing):
            state = "does not hold"
        because = tuple(f"{_TITLES[one.name]}: {one.fallback or one.detail}" for one in missing)
        promises.append(Promise(name=promise, state=state, because=because))
    return tuple(promises)


def _all_hold(promises: tuple[Promise, ...]) -> bool:
    return all(one.state != "does not hold" for one in promises)


def _print(context: Context, root: "Path", findings: tuple["Finding", ...], promises: tuple[Promise, ...]) -> None:
    out = context.out
    out.line(f"{out.paint('Workspace', 'dim')}  {safe(str(root))}")
    out.line(f"{out.paint('History', 'dim')}    {safe(str(context.memory))}")
    out.line()
    columns = (Column(title="tried"), Column(title="works"), Column(title="found", least=16))
    out.table(columns, [_finding_row(finding) for finding in findings])
    out.line()
    rows = [[Cell(text=one.name), Cell(text=_MARKS[one.state][0], style=_MARKS[one.state][1])] for one in promises]
    out.table((Column(title="promise"), Column(title="holds")), rows)
    for text in dict.fromkeys(text for one in promises for text in one.because):
        out.line(f"  {safe(text)}")
    out.line()
    out.line(_verdict(context, promises))


def _finding_row(finding: "Finding") -> list[Cell]:
    state: State = "holds" if finding.ok else "holds with a fallback" if finding.fallback else "does not hold"
    mark, style = _MARKS[state]
    return [Cell(text=_TITLES[finding.name]), Cell(text=mark, style=style), Cell(text=finding.detail)]


def _verdict(context: Context, promises: tuple[Promise, ...]) -> str:
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
    run=_doctor,
)
