"""Commands that search: grep, glob. No match is not a failure: the exit code is 0, and a message says so."""

import argparse
from itertools import groupby
from typing import TYPE_CHECKING, Any

from surehold.front.cli.command import Command, CommandContext
from surehold.front.cli.output import escape_text, format_count

if TYPE_CHECKING:
    from surehold.search.query import GrepResult, MatchedLine, NewestResult, Search
    from surehold.search.result_page import Highlights
    from surehold.workspace.finder import Finder

_MAX_CONTEXT_LINES = 100
_TIME_UP_NOTE = "Time was up: not everything that was found is shown; narrow the search."
_EXIT_CODE_NOTE = "Finding nothing is no failure: the exit code is 0."


def _grep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description} {_EXIT_CODE_NOTE}"
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression; look-around works too")
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", default=[], help="files or directories; without any, everything"
    )
    parser.add_argument("-i", "--ignore-case", action="store_true", help="take small and capital letters as the same")
    parser.add_argument(
        "-F", "--fixed", action="store_true", help="look for the very characters, not for an expression"
    )
    parser.add_argument(
        "-C", "--context", metavar="N", type=_parse_context_lines, default=0, help="show N lines around each match"
    )
    parser.add_argument(
        "-t", "--type", metavar="KIND", action="append", default=[], help="only such files: py, js, rust …"
    )
    parser.add_argument("-g", "--glob", metavar="GLOB", action="append", default=[], help="only such files: '*.py'")
    parser.add_argument("-U", "--multiline", action="store_true", help="match across lines, and let . match line ends")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "-l", "--files", action="store_const", dest="want", const="files", help="only the names of files"
    )
    shown.add_argument("-c", "--count", action="store_const", dest="want", const="counts", help="only how many matches")
    _add_ignored_option(parser)


def _add_ignored_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ignored", action="store_true", help="also what .gitignore names, and build directories")


def _parse_context_lines(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _MAX_CONTEXT_LINES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MAX_CONTEXT_LINES}")
    return int(text)


def _run_grep(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.search.query import ResultWindow

    sought = ResultWindow(want=args.want or "lines", before=args.context, after=args.context)
    documents = list[dict[str, Any]]()
    with context.open_workspace() as workspace:
        for path in args.paths or ["."]:
            search = _build_search(args, path)
            found = workspace.finder.grep(search, sought)
            if context.json:
                documents.append({"root": path, **_grep_record(found)})
            else:
                _print_found(context, workspace.finder, search, found)
    if context.json:
        context.out.print_json(documents[0] if len(documents) == 1 else documents)
    return 0


def _build_search(args: argparse.Namespace, path: str) -> "Search":
    from surehold.search.query import Search
    from surehold.workspace.finder import BUILD_DIRECTORIES, VERSION_CONTROL_DIRECTORIES

    return Search(
        query=args.pattern,
        mode="text" if args.fixed else "regex",
        root=path,
        include=tuple(glob for glob in args.glob if not glob.startswith("!")),
        exclude=tuple(glob[1:] for glob in args.glob if glob.startswith("!")),
        case_sensitive=not args.ignore_case,
        multiline=args.multiline,
        dot_all=args.multiline,
        hidden=True,
        ignore=not args.ignored,
        types=tuple(args.type),
        closed=VERSION_CONTROL_DIRECTORIES if args.ignored else (*VERSION_CONTROL_DIRECTORIES, *BUILD_DIRECTORIES),
    )


def _grep_record(found: "GrepResult") -> dict[str, Any]:
    rows = [{"path": row.path, "line": row.line, "text": row.text, "is_match": row.is_match} for row in found.rows]
    return {
        "files": [{"path": path, "count": count} for path, count in found.counts],
        **({"rows": rows} if found.want == "lines" else {}),
        "total_files": found.total_files,
        "total_lines": found.total_lines,
        "total_matches": found.total_matches,
        "files_searched": found.files_scanned,
        "complete": found.complete,
        "truncated": found.further,
        "notes": list(found.notes),
    }


def _print_found(context: CommandContext, finder: "Finder", search: "Search", found: "GrepResult") -> None:
    if found.want != "lines":
        for path, count in found.counts:
            number = context.out.paint(f":{count}", "green") if found.want == "counts" else ""
            context.out.print_line(context.out.paint(escape_text(path), "cyan") + number)
    elif context.out.is_terminal:
        _print_grouped(context, finder.mark_matches(search, found), found)
    else:
        for row in found.rows:
            sign = ":" if row.is_match else "-"
            context.out.print_line(f"{escape_text(row.path)}{sign}{row.line}{sign}{row.text}")
    _print_summary(context, _summary_text(found), (*found.notes, *((_TIME_UP_NOTE,) if found.further else ())))


def _print_grouped(context: CommandContext, marks: "Highlights", found: "GrepResult") -> None:
    """Print the lines below the name of their file, with the matches in colour."""
    out, digits = context.out, len(str(max((row.line for row in found.rows), default=0)))
    for number, (path, rows) in enumerate(groupby(found.rows, key=lambda row: row.path)):
        if number:
            out.print_line()
        out.print_line(out.paint(escape_text(path), "bold", "cyan"))
        before = 0
        for row in rows:
            if before and row.line > before + 1 and any(not each.is_match for each in found.rows):
                out.print_line(out.paint("…", "dim"))
            sign = ":" if row.is_match else "-"
            place = out.paint(f"{row.line:>{digits}}{sign}", "green" if row.is_match else "dim")
            out.print_line(f"{place} {_paint_matches(context, row, marks.get((row.path, row.line), []))}")
            before = row.line


def _paint_matches(context: CommandContext, row: "MatchedLine", marks: list[tuple[int, int]]) -> str:
    text, at, pieces = row.text, 0, list[str]()
    for start, end in marks:
        pieces += [
            escape_text(text[at:start], keep="\t"),
            context.out.paint(escape_text(text[start:end], keep="\t"), "bold", "red"),
        ]
        at = end
    return "".join([*pieces, escape_text(text[at:], keep="\t")])


def _summary_text(found: "GrepResult") -> str:
    files = format_count(found.total_files, "file")
    searched = f"; {format_count(found.files_scanned, 'file')} searched" if found.files_scanned is not None else ""
    if not found.total_files:
        return f"Nothing found{searched}."
    if found.total_lines is not None:
        return f"{format_count(found.total_lines, 'line')} in {files}{searched}."
    if found.total_matches is not None:
        return f"{format_count(found.total_matches, 'match', 'matches')} in {files}{searched}."
    return f"{files} with matches{searched}."


def _print_summary(context: CommandContext, summary: str, notes: tuple[str, ...]) -> None:
    """Say the facts beside the result: on the standard error, so that a pipe holds nothing but what was found."""
    context.out.flush()
    for sentence in (summary, *notes):
        context.err.print_line(context.err.paint(escape_text(sentence), "dim"))


def _glob_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description} {_EXIT_CODE_NOTE}"
    parser.add_argument("pattern", metavar="PATTERN", help="such as '**/*.py'; * stays in one name, {a,b} chooses")
    parser.add_argument("path", metavar="PATH", nargs="?", default=".", help="the directory to begin in")
    parser.add_argument("--ignored", action="store_true", help="also what .gitignore names")


def _run_glob(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_workspace() as workspace:
        found = workspace.finder.glob_newest(args.pattern, root=args.path, limit=1 << 40, ignore=not args.ignored)
    if context.json:
        context.out.print_json(_glob_record(found))
        return 0
    for file in found.files:
        context.out.print_line(context.out.paint(escape_text(file.key), "cyan"))
    skipped = f"; {format_count(found.skipped.ignored, 'entry', 'entries')} ignored" if found.skipped.ignored else ""
    _print_summary(
        context,
        f"{format_count(found.total, 'file')}{skipped}." if found.total else f"Nothing found{skipped}.",
        found.notes,
    )
    return 0


def _glob_record(found: "NewestResult") -> dict[str, Any]:
    return {
        "files": [file.key for file in found.files],
        "total": found.total,
        "complete": found.complete,
        "ignored": found.skipped.ignored,
        "notes": list(found.notes),
    }


SEARCH_COMMANDS = (
    Command(
        name="grep",
        group="Look",
        help="Search files for a regular expression.",
        example="surehold grep 'def \\w+_path' src --type py -C 2",
        add_arguments=_grep_arguments,
        run=_run_grep,
    ),
    Command(
        name="glob",
        group="Look",
        help="Find files by a pattern of their path, newest first.",
        example="surehold glob 'src/**/*.py'",
        add_arguments=_glob_arguments,
        run=_run_glob,
    ),
)
