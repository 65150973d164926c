"""Commands that read and change files: read, edit, write, delete, move."""

import argparse
import sys
from typing import TYPE_CHECKING, TextIO

from surehold.errors import AlreadyExists, InvalidArgument, MultipleMatches, StaleFile
from surehold.front.cli.change_view import paint_diff, print_receipt
from surehold.front.cli.command import Command, CommandContext, as_path, quote_for_shell, with_action
from surehold.front.cli.output import escape_text, format_count, format_size

if TYPE_CHECKING:
    from surehold.text.rewrite import WriteBytes, WriteText
    from surehold.text.snapshot import Snapshot
    from surehold.workspace.proposal import Proof


def _read_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument(
        "--lines", metavar="A:B", type=_parse_line_range, help="only lines A to B; either may be left out"
    )
    parser.add_argument("--hashes", action="store_true", help="show each line with its anchor, as `edit` takes it")


def _parse_line_range(text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    if not all(part == "" or (part.isascii() and part.isdecimal()) for part in (first, last)) or not (first or last):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 10:20")
    start = int(first or 1)
    end = int(last) if last else (None if colon else start)
    if start < 1 or (end is not None and end < start):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 10:20")
    return start, end


def _run_read(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_workspace() as workspace:
        snapshot = workspace.read(args.path)
    start, end = args.lines or (1, None)
    if args.lines and start > max(snapshot.line_count, 1):
        raise InvalidArgument(
            f"`{args.path}` has {format_count(snapshot.line_count, 'line')}.",
            path=args.path,
            reason="line_out_of_range",
        )
    if args.hashes:
        _print_anchored(context, args.path, snapshot, start, end)
    elif context.json:
        context.out.print_json(_read_record(args.path, snapshot, start, end))
    elif context.out.is_terminal:
        _print_numbered(context, args.path, snapshot, start, end)
    else:
        context.out.write_bytes(b"".join(snapshot.lines.raw[start - 1 : end]) if args.lines else snapshot.data)
    return 0


def _print_anchored(context: CommandContext, path: str, snapshot: "Snapshot", start: int, end: int | None) -> None:
    from surehold.text.anchored.rows import anchor_lines

    found = anchor_lines(
        snapshot.lines.contents[start - 1 : end], [snapshot.digests], start=start, encoding=snapshot.encoding
    )
    if context.json:
        lines = [{"line": row.line, "anchor": row.anchor, "quality": row.quality, "text": row.text} for row in found]
        context.out.print_json({"path": path, "sha256": snapshot.sha256, "lines": lines})
        return
    for row in found:
        text = escape_text(str(row), keep="\t") if context.out.is_terminal else str(row)
        anchor, bar, rest = text.partition("|")
        context.out.print_line(f"{context.out.paint(anchor + bar, 'dim')}{rest}")


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
    err, out = context.err, context.out
    rows = snapshot.lines.contents[start - 1 : end]
    facts = f"{format_count(snapshot.line_count, 'line')}, {format_size(snapshot.size)}"
    err.print_line(err.paint(f"{escape_text(path)}: {facts}", "dim"))
    err.print_line(err.paint(f"sha256 {snapshot.sha256}", "dim"))
    err.stream.flush()
    digits = len(str(start + len(rows)))
    for number, row in enumerate(rows, start):
        text = escape_text(snapshot.encoding.decode(row), keep="\t")
        out.print_line(f"{out.paint(f'{number:>{digits}}', 'dim')}  {text}".rstrip(" "))


def _edit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument("--old", metavar="TEXT", help="the text to replace (--old=TEXT when it begins with a dash)")
    parser.add_argument("--new", metavar="TEXT", help="what to put there; may be empty")
    parser.add_argument("--all", action="store_true", help="replace every place, not only one")
    parser.add_argument(
        "--operations", metavar="FILE", help="instead: operations on lines as a JSON list, from a file; - reads stdin"
    )
    parser.add_argument("--safety-check", choices=("strict", "warn", "off"), default="strict", help="of --operations")
    _add_sha256(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would happen, and change nothing")


def _add_sha256(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sha256", metavar="H", default="", help="refuse unless the file is exactly this version")


def _run_edit(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.text.quoted.edits import StringEdit

    if args.operations is not None:
        return _edit_lines(context, args)
    if args.old is None or args.new is None:
        raise InvalidArgument(
            "Neither a text to replace nor operations were given.",
            reason="nothing_to_do",
            action="Send --old and --new, or --operations FILE.",
        )
    edit = StringEdit(old=args.old, new=args.new, replace_all=args.all)
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        try:
            receipt = session.edit(args.path, edit, expected_sha256=args.sha256, dry_run=args.dry_run)
        except MultipleMatches as error:
            raise with_action(error, "Quote more of the surrounding text, or add --all.") from None
        except StaleFile as error:
            raise with_action(error, f"Look at it again: surehold read {quote_for_shell(args.path)}") from None
    return print_receipt(context, receipt, "Edited")


def _edit_lines(context: CommandContext, args: argparse.Namespace) -> int:
    """Apply operations on lines through the very tool that agents use."""
    import json

    from surehold.dialects.anchored.edit import edit
    from surehold.tools.context import CallContext

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
        "dry_run": args.dry_run,
    }
    with context.open_workspace() as workspace:
        answer = edit.call(CallContext(session=context.begin_session(workspace)), call)
    if context.json:
        context.out.print_json(answer.data)
    else:
        head, _, diff = answer.text.partition("\n@@")
        (context.out if answer.ok else context.err).print_line(escape_text(head, keep="\n"))
        if diff:
            paint_diff(context.out, "@@" + diff + "\n")
    return 0 if answer.ok else 1


def _write_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file; it is made when it does not exist")
    proof = parser.add_mutually_exclusive_group()
    _add_sha256_to_overwrite(proof)
    proof.add_argument("--force", action="store_true", help="overwrite whatever is there (it stays in the history)")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen, and change nothing")


def _add_sha256_to_overwrite(group: "argparse._MutuallyExclusiveGroup") -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument("--sha256", metavar="H", default="", help="overwrite the file if it is exactly this version")


def _run_write(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.stores.base import Call
    from surehold.workspace.proposal import Absent, Proposal, Sha256, Unproven

    proof: Proof = Sha256(args.sha256) if args.sha256 else Unproven() if args.force else Absent()
    content = _content_edit(_read_standard_input(context))
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        exists = bool(workspace.fingerprint(args.path))
        operation = "write" if exists else "create"
        call = Call(tool=operation, operation=operation, writer=operation, agent=session.agent, session=session.id)
        proposal = Proposal(path=args.path, edit=content, proof=proof)
        try:
            receipt = workspace.write(proposal, call=call, dry_run=args.dry_run)
        except AlreadyExists as error:
            seen = error.details.get("actual_sha256", "")
            advice = f"To overwrite that version add --sha256 {seen}, or --force." if seen else error.action
            raise with_action(error, advice) from None
        except StaleFile as error:
            raise with_action(error, f"Look at it again: surehold read {quote_for_shell(args.path)}") from None
    return print_receipt(context, receipt, "Overwritten" if exists else "Created")


def _read_standard_input(context: CommandContext) -> bytes:
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise InvalidArgument(
            "The standard input is closed.", reason="no_input", action="Pipe the content in: … | surehold write PATH"
        )
    if stdin.isatty():
        context.err.print_line(context.err.paint("Type the content; Ctrl-D on a line of its own ends it.", "dim"))
        context.err.stream.flush()
    return stdin.buffer.read()


def _content_edit(data: bytes) -> "WriteText | WriteBytes":
    """Return text as text, which keeps the encoding and the line endings of the file; other bytes as they are."""
    from surehold.text.rewrite import WriteBytes, WriteText

    try:
        return WriteBytes(data) if b"\0" in data else WriteText(data.decode("utf-8"))
    except UnicodeDecodeError:
        return WriteBytes(data)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file")
    _add_sha256(parser)


def _run_delete(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_workspace() as workspace:
        session = context.begin_session(workspace)
        if not args.sha256:
            session.read(args.path)
        receipt = session.delete(args.path, expected_sha256=args.sha256)
    return print_receipt(context, receipt, "Deleted")


def _move_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="the file")
    parser.add_argument("target", metavar="TO", help="its new path, or a directory to put it into")


def _run_move(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_workspace() as workspace:
        target = workspace.target(args.target)
        to = args.target
        if as_path(target.root, *target.parts).is_dir():
            to = str(as_path(args.target, as_path(args.source).name))
        try:
            receipt = context.begin_session(workspace).move(args.source, to)
        except AlreadyExists as error:
            raise with_action(
                error, f"Choose another path, or delete it first: surehold delete {quote_for_shell(to)}"
            ) from None
    return print_receipt(context, receipt, "Moved")


FILE_COMMANDS = (
    Command(
        name="read",
        group="Look",
        help="Print a file: numbered lines on a terminal, its bytes in a pipe.",
        example="surehold read src/app.py --lines 10:40",
        add_arguments=_read_arguments,
        run=_run_read,
    ),
    Command(
        name="edit",
        group="Change files",
        help="Replace a text that stands exactly once in a file.",
        example="surehold edit README.md --old colour --new color",
        add_arguments=_edit_arguments,
        run=_run_edit,
    ),
    Command(
        name="write",
        group="Change files",
        help="Make a file from standard input, or overwrite a version you name.",
        example="date | surehold write notes/today.txt",
        add_arguments=_write_arguments,
        run=_run_write,
    ),
    Command(
        name="delete",
        group="Change files",
        help="Move a file to the trash.",
        example="surehold delete notes/today.txt",
        add_arguments=_delete_arguments,
        run=_run_delete,
    ),
    Command(
        name="move",
        group="Change files",
        help="Give a file another name; an existing file is never overwritten.",
        example="surehold move draft.md docs/guide.md",
        add_arguments=_move_arguments,
        run=_run_move,
    ),
)
