"""Commands that search: grep, glob. A message says when nothing was found; the exit code of grep does too, as scripts expect."""

import argparse
from itertools import groupby
from typing import TYPE_CHECKING, Any

from surehold.front.cli.command import CommandContext, argument, command, flag, repeatable
from surehold.front.cli.output import format_count
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.search.query import MatchedLine, Search, SearchResult
    from surehold.search.result_page import Highlights
    from surehold.workspace.finder import Finder

_MAX_CONTEXT_LINES = 100
_NOT_FOUND = 1
_TIME_UP_NOTE = "Time ran out: not everything that was found is shown; narrow the search."


def _parse_context_lines(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _MAX_CONTEXT_LINES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MAX_CONTEXT_LINES}")
    return int(text)


@command(
    "grep",
    "Search files for a regular expression.",
    argument("pattern", "PATTERN", "a regular expression; look-around is supported"),
    argument("paths", "PATH", "files or directories (default: everything)", nargs="*", default=[]),
    flag("-i --ignore-case", "ignore case"),
    flag("-F --fixed", "treat the pattern as plain text"),
    argument("-C --context", "N", "show N lines around each match", type=_parse_context_lines, default=0),
    repeatable("-t --type", "KIND", "only files of a type: py, js, rust …"),
    repeatable("-g --glob", "GLOB", "only matching files: '*.py'; '!*.py' excludes"),
    flag("-U --multiline", "match across lines, and let . match line ends"),
    (
        flag("-l --files", "print only file names", action="store_const", dest="want", const="files"),
        flag("-c --count", "print only the number of matches", action="store_const", dest="want", const="counts"),
    ),
    flag("--ignored", "include what .gitignore excludes, and build directories"),
    flag("-n -r", "accepted for habit: lines are always numbered, directories always searched", dest="usual"),
    note=f"The exit code is {_NOT_FOUND} if nothing matches.",
    example="surehold grep 'def \\w+_path' src --type py -C 2",
)
def grep_command(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.search.query import ResultWindow

    window = ResultWindow(want=args.want or "lines", before=args.context, after=args.context)
    documents, code = list[dict[str, Any]](), _NOT_FOUND
    with context.open_workspace() as workspace:
        for path in args.paths or ["."]:
            search = _build_search(args, path)
            found = workspace.finder.grep(search, window)
            code = 0 if found.total_files else code
            if context.json:
                documents.append({"root": path, **_grep_record(found)})
            else:
                _print_found(context, workspace.finder, search, found)
    if context.json:
        context.out.print_json(documents[0] if len(documents) == 1 else documents)
    return code


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


def _grep_record(found: "SearchResult") -> dict[str, Any]:
    rows = [{"path": row.path, "line": row.line, "text": row.text, "is_match": row.is_match} for row in found.rows]
    return {
        "files": [{"path": path, "count": count} for path, count in found.counts],
        **({"rows": rows} if found.want == "lines" else {}),
        "total_files": found.total_files,
        "total_lines": found.total_lines,
        "total_matches": found.total_matches,
        "files_searched": found.files_scanned,
        "complete": found.complete,
        "truncated": found.truncated,
        "notes": list(found.notes),
    }


def _print_found(context: CommandContext, finder: "Finder", search: "Search", found: "SearchResult") -> None:
    if found.want != "lines":
        for path, count in found.counts:
            number = context.out.paint(f":{count}", "green") if found.want == "counts" else ""
            context.out.print_line(context.out.paint(reveal_text(path), "cyan") + number)
    elif context.out.is_terminal:
        _print_grouped(context, finder.mark_matches(search, found), found)
    else:
        for row in found.rows:
            sign = ":" if row.is_match else "-"
            context.out.print_line(f"{reveal_text(row.path)}{sign}{row.line}{sign}{row.text}")
    for note in (_summary_text(found), *found.notes, *((_TIME_UP_NOTE,) if found.truncated else ())):
        context.print_note(note)


def _print_grouped(context: CommandContext, marks: "Highlights", found: "SearchResult") -> None:
    out, digits = context.out, len(str(max((row.line for row in found.rows), default=0)))
    for number, (path, rows) in enumerate(groupby(found.rows, key=lambda row: row.path)):
        if number:
            out.print_line()
        out.print_line(out.paint(reveal_text(path), "bold", "cyan"))
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
            reveal_text(text[at:start], keep="\t"),
            context.out.paint(reveal_text(text[start:end], keep="\t"), "bold", "red"),
        ]
        at = end
    return "".join([*pieces, reveal_text(text[at:], keep="\t")])


def _summary_text(found: "SearchResult") -> str:
    files = format_count(found.total_files, "file")
    searched = f"; {format_count(found.files_scanned, 'file')} searched" if found.files_scanned is not None else ""
    if not found.total_files:
        return f"Nothing found{searched}."
    if found.total_lines is not None:
        return f"{format_count(found.total_lines, 'line')} in {files}{searched}."
    if found.total_matches is not None:
        return f"{format_count(found.total_matches, 'match', 'matches')} in {files}{searched}."
    return f"{files} with matches{searched}."


@command(
    "glob",
    "Find files by path pattern, newest first.",
    argument("pattern", "PATTERN", "such as '**/*.py'; * matches within one name, {a,b} either of two"),
    argument("path", "PATH", "the directory to search (default: the root)", nargs="?", default="."),
    flag("--ignored", "include what .gitignore excludes"),
    note="The exit code is 0 also if nothing matches.",
    example="surehold glob 'src/**/*.py'",
)
def glob_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_workspace() as workspace:
        found = workspace.finder.glob_newest(args.pattern, root=args.path, limit=1 << 40, ignore=not args.ignored)
    if context.json:
        facts = {"total": found.total, "complete": found.complete, "ignored": found.skipped.ignored}
        context.out.print_json({"files": [file.key for file in found.files], **facts, "notes": list(found.notes)})
        return
    for file in found.files:
        context.out.print_line(context.out.paint(reveal_text(file.key), "cyan"))
    skipped = f"; {format_count(found.skipped.ignored, 'entry', 'entries')} ignored" if found.skipped.ignored else ""
    summary = f"{format_count(found.total, 'file')}{skipped}." if found.total else f"Nothing found{skipped}."
    for note in (summary, *found.notes):
        context.print_note(note)
