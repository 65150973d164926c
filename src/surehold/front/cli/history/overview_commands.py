"""Commands that answer at a glance: status, sessions, blame."""

import argparse
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surehold.front.cli.command import (
    FILE_ARGUMENT,
    CommandContext,
    argument,
    command,
    flag,
    parse_positive,
    quote_for_shell,
    short_id,
)
from surehold.front.cli.history.log_command import author_name, paths_text, shown_entries
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.history.selector_options import PATHS_ARGUMENT, SELECTOR_OPTIONS, read_selectors
from surehold.front.cli.output import TableColumn, format_count
from surehold.front.shared.ledger_json import entry_record
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.workspace.past.blame import BlamedLine
    from surehold.workspace.undo.switch_board import ChangeView
    from surehold.workspace.workspace import Workspace

_STATUS_CHANGES = 5
_SESSION_COLUMNS = (
    TableColumn(title="session", least=8),
    TableColumn(title="agent", least=6),
    TableColumn(title="ended", rank=2),
    TableColumn(title="turns", align="right", rank=4),
    TableColumn(title="changes", align="right", rank=3),
    TableColumn(title="files", align="right", rank=5),
    TableColumn(title="lines", rank=1),
)
_BLAME_COLUMNS = (
    TableColumn(title="change", rank=1),
    TableColumn(title="who", least=6, rank=2),
    TableColumn(title="reason", least=10, rank=3),
    TableColumn(title="line", align="right"),
    TableColumn(title="text", least=20),
)


@command("status", "Show agents at work, outside edits and the last changes.", example="surehold status")
def status_command(context: CommandContext, _: argparse.Namespace) -> None:
    root = os.path.realpath(context.root)
    from surehold.front.review.page_records import count_questions

    questions = count_questions(context.state_directory)
    facts: dict[str, Any] = {"workspace": root, "state": context.state_place, "questions": questions}
    if not context.has_history():
        nothing: dict[str, Any] = {"agents": [], "outside": [], "last": []}
        context.print_outcome(
            f"{reveal_text(root)}: nothing has been changed through Surehold yet.", **facts, **nothing
        )
        return
    from surehold.stores.base import LedgerQuery
    from surehold.workspace.past.overview import outside_edits, working_agents

    with context.open_workspace(recover=False) as workspace:
        agents, outside = working_agents(workspace), outside_edits(workspace)
        questions = facts["questions"] = questions + workspace.questions.count_open()
        last = _last_changes(workspace)
        recorded = workspace.history.log(LedgerQuery(operation="external", limit=1))
    if context.json:
        rows = [{"agent": one.client or "mcp", "session": one.session, "began": one.began} for one in agents]
        records = [entry_record(shown_entries(one)[0], undone_by=one.undone_by) for one in last]
        context.out.print_json({**facts, "agents": rows, "outside": outside, "last": records})
        return
    out = context.out
    out.print_labelled("Workspace", root)
    out.print_labelled("History", context.state_place)
    names = ", ".join(f"{one.client or 'mcp'} ({short_id(one.session)})" for one in agents)
    out.print_labelled("At work", names or "no server runs here")
    out.print_labelled("Questions", f"{questions} open: surehold review" if questions else "none open")
    shown = f"{format_count(len(outside), 'file')}: {', '.join(outside[:5])}{' …' if len(outside) > 5 else ''}"  # noqa: PLR2004
    older = "none since those in `surehold log --agent outside`" if recorded else "none"
    out.print_labelled("Outside edits", shown if outside else older)
    out.print_line("Last changes:")
    for one in last:
        entry, path = one.entries[0], reveal_text(paths_text(one))
        when, who = out.format_time(entry.timestamp), reveal_text(author_name(entry))
        out.print_line(
            f"  {out.paint(short_id(entry.change_id), 'yellow')}  {when}  {who}  {entry.call.operation} {path}"
        )
    if outside:
        name = quote_for_shell(f"./{outside[0]}" if outside[0].startswith("-") else outside[0])
        context.print_hint(f"To see one: surehold diff {name}; to remove it: surehold revert {name}")


def _last_changes(workspace: "Workspace") -> "list[ChangeView]":
    from itertools import islice

    from surehold.workspace.past.selectors import ChangeSelection

    entries = workspace.history.iterate(ChangeSelection(), outside=True)
    return list(islice(workspace.history.group_changes(entries), _STATUS_CHANGES))


@command(
    "sessions",
    "List sessions: who, when, how many turns, files and lines.",
    PATHS_ARGUMENT,
    *SELECTOR_OPTIONS,
    argument("--limit", "N", "how many to show (default: 20)", type=parse_positive, default=20),
    flag("--all", "show all of them"),
    is_paged=True,
    note="With selectors: what of each session they name.",
    example="surehold sessions\n  surehold sessions --agent claude --since yesterday",
)
def sessions_command(context: CommandContext, args: argparse.Namespace) -> None:
    from itertools import islice

    if not context.has_history():
        context.print_outcome("No session has changed anything yet.", sessions=[])
        return
    with context.open_workspace(recover=False) as workspace:
        rows = workspace.history.sessions(read_selectors(args))
        found = list(islice(rows, None if args.all else args.limit))
    if context.json or not found:
        context.print_outcome(
            "No session has changed anything that is selected.", sessions=[asdict(one) for one in found]
        )
        return
    context.out.print_table(
        _SESSION_COLUMNS,
        [
            (
                (short_id(one.session), "yellow"),
                (one.agent or "-", "plain"),
                (context.out.format_time(one.ended), "dim"),
                (str(one.turns), "plain"),
                (str(one.changes), "plain"),
                (str(one.files), "plain"),
                (f"+{one.added} -{one.removed}", "dim"),
            )
            for one in found
        ],
    )
    context.print_hint("All that one did: surehold diff --session last; to undo it: surehold undo --session last")


@command(
    "blame",
    "Show which change, agent and reason each line of a file is from.",
    FILE_ARGUMENT,
    is_paged=True,
    example="surehold blame src/app.py",
)
def blame_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.workspace.past.blame import blame_file

    with context.open_recorded_workspace() as workspace, ProgressLine(context.err, "Looking for who wrote each line"):
        lines = blame_file(workspace, args.path)
    if context.json:
        context.out.print_json({"path": args.path, "lines": [blame_record(one) for one in lines]})
        return
    context.out.print_table(_BLAME_COLUMNS, [_blame_row(one) for one in lines])


def blame_record(line: "BlamedLine") -> dict[str, Any]:
    entry = line.entry
    agent = "outside" if entry is None or entry.call.operation == "external" else entry.call.agent
    return {
        "number": line.number,
        "text": line.text,
        "change_id": entry.change_id if entry else None,
        "agent": agent,
        "session": (entry.call.session or None) if entry else None,
        "turn": (entry.call.turn or None) if entry else None,
        "reason": entry.call.reason if entry else "",
    }


def _blame_row(line: "BlamedLine") -> list[tuple[str, Any]]:
    record = blame_record(line)
    return [
        (short_id(record["change_id"] or "-"), "yellow"),
        (record["agent"] or "-", "plain"),
        (record["reason"], "dim"),
        (str(line.number), "dim"),
        (line.text or " ", "plain"),
    ]
