"""Commands that read and change files: read, edit, write, delete, move."""

import argparse
import sys
from typing import TYPE_CHECKING, TextIO

from surehold.errors import AlreadyExists, InvalidArgument, MultipleMatches, StaleFile
from surehold.front.cli.change_view import paint_diff, print_receipt
from surehold.front.cli.command import (
    DRY_RUN_FLAG,
    FILE_ARGUMENT,
    CommandContext,
    UsageError,
    argument,
    as_path,
    choice,
    command,
    flag,
    parse_moment_word,
    parse_name,
    quote_for_shell,
    with_action,
)
from surehold.front.cli.history.selector_options import find_change
from surehold.front.cli.output import format_count, format_size
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.text.rewrite import WriteBytes, WriteText
    from surehold.text.snapshot import Snapshot
    from surehold.workspace.proposal import Proof
    from surehold.workspace.workspace import Workspace


_REASON_OPTION = argument("--reason", "TEXT", "why, for the history")
_SHA256_OPTION = argument("--sha256", "H", "refuse unless the file has exactly this sha256")


def _parse_line_range(text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    if not all(part == "" or (part.isascii() and part.isdecimal()) for part in (first, last)) or not (first or last):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 10:20")
    start = int(first or 1)
    end = int(last) if last else (None if colon else start)
    if start < 1 or (end is not None and end < start):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 10:20")
    return start, end


@command(
    "read",
    "Print a file: numbered lines on a terminal, its bytes in a pipe.",
    FILE_ARGUMENT,
    argument("--lines", "A:B", "only lines A to B; either may be omitted", type=_parse_line_range, default=None),
    flag("--hashes", "show each line with its anchor, for `edit --operations`"),
    (
        argument("--at", "CHANGE", "the file as it was right after this change", type=parse_name, default=None),
        argument("--before", "CHANGE", "the file as it was right before this change", type=parse_name, default=None),
        argument(
            "--at-time",
            "T",
            "the file as it was then: 2026-11-17T10:00, 10:00, 2h, yesterday",
            type=parse_moment_word,
            default=None,
        ),
    ),
    example="surehold read src/app.py --lines 10:40\n  surehold read src/app.py --before 7k2m9qxr",
)
def read_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_workspace() as workspace:
        snapshot = _read_recorded(context, workspace, args) or workspace.read(args.path)
    start, end = args.lines or (1, None)
    if args.lines and start > max(snapshot.line_count, 1):
        message = f"Line {start} is after the end: `{args.path}` has {format_count(snapshot.line_count, 'line')}."
        raise InvalidArgument(message, path=args.path, reason="line_out_of_range")
    if args.hashes:
        _print_anchored(context, args.path, snapshot, start, end)
    elif context.json:
        context.out.print_json(_read_record(args.path, snapshot, start, end))
    elif context.out.is_terminal:
        _print_numbered(context, args.path, snapshot, start, end)
    else:
        context.out.write_bytes(b"".join(snapshot.lines.raw[start - 1 : end]) if args.lines else snapshot.data)


def _read_recorded(context: CommandContext, workspace: "Workspace", args: argparse.Namespace) -> "Snapshot | None":
    """Return the file as it was; None if it is wanted as it is."""
    if not (args.at or args.before or args.at_time):
        return None
    from surehold.workspace.past.moments import parse_moment
    from surehold.workspace.past.versions import HistoryPoint, point_at, point_before, read_version

    if args.at_time:
        moment = parse_moment(args.at_time, now=context.out.now)
        return read_version(workspace, args.path, HistoryPoint(moment=moment, name=f"at {args.at_time}"))
    view = find_change(workspace, args.at or args.before)
    point = point_at(view.entries, view.id) if args.at else point_before(view.entries, view.id)
    return read_version(workspace, args.path, point)


def _print_anchored(context: CommandContext, path: str, snapshot: "Snapshot", start: int, end: int | None) -> None:
    from surehold.text.anchored.lines import anchor_lines

    contents = snapshot.lines.contents[start - 1 : end]
    found = anchor_lines(contents, [snapshot.digests], start=start, encoding=snapshot.encoding)
    if context.json:
        lines = [{"line": row.line, "anchor": row.anchor, "quality": row.quality, "text": row.text} for row in found]
        context.out.print_json({"path": path, "sha256": snapshot.sha256, "lines": lines})
        return
    for row in found:
        text = reveal_text(row.text, keep="\t") if context.out.is_terminal else row.text
        context.out.print_line(f"{context.out.paint(row.prefix, 'dim')}{text}")


def _read_record(path: str, snapshot: "Snapshot", start: int, end: int | None) -> dict[str, object]:
    rows = snapshot.lines.raw[start - 1 : end]
    return {
        "path": path,
        "content": snapshot.encoding.decode(b"".join(rows)),
        "start_line": start if rows else 0,
        "end_line": start + len(rows) - 1 if rows else 0,
        "line_count": snapshot.line_count,
        "size": snapshot.size,
        "sha256": snapshot.sha256,
        "encoding": snapshot.encoding.name,
        "has_bom": bool(snapshot.encoding.bom),
        "newline_style": snapshot.lines.style,
        "final_newline": snapshot.lines.final_newline,
    }


def _print_numbered(context: CommandContext, path: str, snapshot: "Snapshot", start: int, end: int | None) -> None:
    rows = [reveal_text(snapshot.encoding.decode(row), keep="\t") for row in snapshot.lines.contents[start - 1 : end]]
    context.print_note(f"{path}: {format_count(snapshot.line_count, 'line')}, {format_size(snapshot.size)}")
    context.print_note(f"sha256 {snapshot.sha256}")
    context.out.print_numbered(rows, start=start, last=start + len(rows))


@command(
    "edit",
    "Replace text that occurs exactly once in a file.",
    FILE_ARGUMENT,
    argument("--old", "TEXT", "the text to replace (--old=TEXT if it begins with a dash)", default=None),
    argument("--new", "TEXT", "the new text; may be empty", default=None),
    flag("--all", "replace every occurrence"),
    argument("--operations", "FILE", "instead: line operations as a JSON list; - reads stdin", default=None),
    choice("--safety-check", ("strict", "warn", "off"), "of --operations that look damaging (default: strict)"),
    _SHA256_OPTION,
    _REASON_OPTION,
    DRY_RUN_FLAG,
    example="surehold edit README.md --old colour --new color",
)
def edit_command(context: CommandContext, args: argparse.Namespace) -> int | None:
    from surehold.text.quoted.edits import StringEdit

    if args.operations is not None:
        return _edit_lines(context, args)
    if args.old is None or args.new is None:
        raise UsageError("Give --old and --new, or --operations FILE.", hint="See: surehold edit --help")
    edit = StringEdit(old=args.old, new=args.new, replace_all=args.all)
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        try:
            receipt = session.edit(
                args.path, edit, expected_sha256=args.sha256, reason=args.reason or "", dry_run=args.dry_run
            )
        except MultipleMatches as error:
            raise with_action(error, "Quote more of the surrounding text, or add --all.") from None
        except StaleFile as error:
            raise with_action(error, f"Read it again: surehold read {quote_for_shell(args.path)}") from None
    return print_receipt(context, receipt, "Edited")


def _edit_lines(context: CommandContext, args: argparse.Namespace) -> int:
    """Apply line operations through the tool that agents use."""
    import json

    from surehold.dialects.anchored.edit import edit
    from surehold.tools.call import CallContext

    source = sys.stdin.read() if args.operations == "-" else as_path(args.operations).read_text("utf-8")
    try:
        operations = json.loads(source)
    except ValueError as error:
        raise InvalidArgument(f"The operations are not JSON: {error}.", reason="bad_json") from None
    call = {
        "path": args.path,
        "operations": operations,
        "expected_sha256": args.sha256,
        "safety_check": args.safety_check,
        "reason": args.reason or "",
        "dry_run": args.dry_run,
    }
    with context.open_workspace() as workspace:
        answer = edit.call(CallContext(session=context.begin_session(workspace)), call)
    if context.json:
        context.out.print_json(answer.data)
    else:
        paint_diff(context.out if answer.ok else context.err, answer.text, header="plain")
    return 0 if answer.ok else 1


@command(
    "write",
    "Create a file from standard input, or overwrite a named version.",
    argument("path", "PATH", "the file; it is created if it does not exist"),
    (
        argument("--sha256", "H", "overwrite the file if it has exactly this sha256"),
        flag("--force", "overwrite whatever is there (it stays in the history)"),
    ),
    _REASON_OPTION,
    DRY_RUN_FLAG,
    example="date | surehold write notes/today.txt",
)
def write_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.stores.base import Call
    from surehold.workspace.proposal import Absent, Proposal, Sha256, Unproven

    proof: Proof = Sha256(args.sha256) if args.sha256 else Unproven() if args.force else Absent()
    content = _content_edit(_read_standard_input(context))
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        exists = bool(workspace.fingerprint(args.path))
        operation = "write" if exists else "create"
        call = Call(
            tool=operation,
            operation=operation,
            writer=operation,
            agent=session.agent,
            session=session.id,
            reason=args.reason or "",
        )
        proposal = Proposal(path=args.path, edit=content, proof=proof)
        try:
            receipt = workspace.write(proposal, call=call, dry_run=args.dry_run)
        except AlreadyExists as error:
            seen = error.details.get("actual_sha256", "")
            advice = f"To overwrite that version, add --sha256 {seen} or --force." if seen else error.action
            raise with_action(error, advice) from None
        except StaleFile as error:
            raise with_action(error, f"Read it again: surehold read {quote_for_shell(args.path)}") from None
    print_receipt(context, receipt, "Overwritten" if exists else "Created")


def _read_standard_input(context: CommandContext) -> bytes:
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        action = "Pipe the content in: … | surehold write PATH"
        raise InvalidArgument("Standard input is closed.", reason="no_input", action=action)
    if stdin.isatty():
        context.print_note("Type the content; end it with Ctrl-D on a line of its own.")
    return stdin.buffer.read()


def _content_edit(data: bytes) -> "WriteText | WriteBytes":
    """Treat text as text, which keeps the encoding and the line endings of the file; other bytes stay as they are."""
    from surehold.text.rewrite import WriteBytes, WriteText

    try:
        return WriteBytes(data) if b"\0" in data else WriteText(data.decode("utf-8"))
    except UnicodeDecodeError:
        return WriteBytes(data)


@command(
    "delete",
    "Move a file to the trash.",
    FILE_ARGUMENT,
    _SHA256_OPTION,
    _REASON_OPTION,
    example="surehold delete notes/today.txt",
)
def delete_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        if not args.sha256:
            session.read(args.path)
        receipt = session.delete(args.path, expected_sha256=args.sha256, reason=args.reason or "")
    print_receipt(context, receipt, "Deleted")


@command(
    "move",
    "Move or rename a file, never over an existing file.",
    argument("source", "FROM", "the file"),
    argument("target", "TO", "its new path, or a directory to move it into"),
    _REASON_OPTION,
    example="surehold move draft.md docs/guide.md",
)
def move_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_workspace() as workspace:
        target = workspace.target(args.target)
        to = args.target
        if as_path(target.root, *target.parts).is_dir():
            to = str(as_path(args.target, as_path(args.source).name))
        try:
            receipt = context.begin_session(workspace).move(args.source, to, reason=args.reason or "")
        except AlreadyExists as error:
            advice = f"Choose another path, or delete it first: surehold delete {quote_for_shell(to)}"
            raise with_action(error, advice) from None
    print_receipt(context, receipt, "Moved")
