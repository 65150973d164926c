"""`Grep`: search many files with a regular expression; shows files, lines or counts."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from surehold.dialects.claude.wire import WIRE
from surehold.dialects.shared.listing_text import count_noun, listing_room, page_text, skipped_counts, skipped_text
from surehold.dialects.shared.params import CamelResult
from surehold.search.glob import is_glob
from surehold.search.query import MatchedLine, ResultWindow, Search, SearchResult, Want
from surehold.text.escape import escape_text
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import OptionalSubjectPath, Params
from surehold.tools.spec import tool
from surehold.workspace.finder import BUILD_DIRECTORIES, VERSION_CONTROL_DIRECTORIES

OutputMode = Literal["files_with_matches", "content", "count"]
_WANT_BY_MODE: dict[OutputMode, Want] = {"files_with_matches": "files", "content": "lines", "count": "counts"}


class ClaudeGrepParams(Params):
    ALIASES: ClassVar = {"query": "pattern", "regex": "pattern", "include": "glob"}
    POSITIONAL: ClassVar = ("path",)

    pattern: str
    """Regular expression, Rust syntax; look-around and backreferences work too. Escape literal braces: `\\{`."""
    path: OptionalSubjectPath = None
    """File or directory; default the first root."""
    glob: str | None = None
    """Only these files, from `path` on: `*.js`, `src/**/*.{ts,tsx}`, `!*.min.js`."""
    output_mode: OutputMode = "files_with_matches"
    """`content`: matching lines; `files_with_matches`: paths; `count`: matches per file."""
    ignore_case: bool = Field(default=False, alias="-i")
    line_numbers: bool = Field(default=True, alias="-n")
    """In content mode."""
    after: int | None = Field(default=None, alias="-A", ge=0, le=100)
    """Lines after each match, in content mode."""
    before: int | None = Field(default=None, alias="-B", ge=0, le=100)
    """Lines before each match, in content mode."""
    around: int | None = Field(default=None, alias="-C", ge=0, le=100)
    """Lines before and after."""
    context: int | None = Field(default=None, ge=0, le=100)
    """The same as -C."""
    type: str | None = None
    """Kind of files: py, js, ts, rust, go …"""
    head_limit: int = Field(default=250, ge=0)
    """Lines or files shown at most; 0 for as many as fit."""
    offset: int = Field(default=0, ge=0)
    """Lines or files passed over, to go on after a page."""
    multiline: bool = False
    """Match across lines, `.` matching line ends."""
    include_ignored: bool = False
    """Also files that .gitignore names, and build directories."""
    include_hidden: bool = True


class ClaudeGrepResult(CamelResult):
    """One page of what matches, and the totals of everything."""

    mode: OutputMode
    num_files: int
    filenames: tuple[str, ...]
    content: str | None = None
    num_lines: int | None = None
    num_matches: int | None = None
    total_files: int
    total_lines: int | None = None
    total_matches: int | None = None
    applied_limit: int | None = None
    applied_offset: int | None = None
    truncated: bool
    next_offset: int | None = None
    complete: bool
    files_searched: int | None = None
    not_looked_at: dict[str, int]
    left_out: tuple[str, ...]
    """What is always left out, and therefore not counted."""
    ignored_matches: int | None = None
    """Files that would match if nothing were left out; known only when nothing else matches."""
    engine: str
    notes: tuple[str, ...] = ()

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        searched = self.files_searched
        facts = (
            self._total_text(),
            f"{count_noun(searched, 'file')} searched" if searched is not None else "",
            skipped_text("not looked at", self.not_looked_at),
            f"left out: {', '.join(self.left_out)}" if self.left_out and not self.total_files else "",
        )
        rows = self.filenames if self.content is None else (self.content,) if self.content else ()
        following = f"goes on: offset={self.next_offset}" if self.next_offset else ""
        return page_text(facts, self.notes, rows, following=following)

    def _total_text(self) -> str:
        files = count_noun(self.total_files, "file") + ("" if self.complete else " so far")
        if not self.total_files:
            return "No matches"
        if self.total_lines is not None:
            return f"{count_noun(self.total_lines, 'matching line')} in {files}"
        if self.total_matches is not None:
            return f"{count_noun(self.total_matches, 'match', 'matches')} in {files}"
        return f"{files} with matches"


@tool(
    "Grep",
    hints=Hints(kind="search", title="Search file contents", read_only=True, idempotent=True),
    wire=WIRE,
    method="claude_grep",
)
def grep(context: CallContext, params: ClaudeGrepParams) -> ClaudeGrepResult:
    """Search file contents for a regular expression; at most 250 files or lines a page, in path order.

    Left out, and said to be: ignored files, .git and its like, node_modules, target, __pycache__, binary files, UTF-16 without a byte order
    mark. Naming such a directory or text file as `path` searches it. Lines over 500 characters are shown around the match.
    """
    query, window = _search_query(params), _result_window(params, context.budget)
    found = context.session.finder.grep(query, window, progress=context.progress, cancelled=context.cancelled)
    shown = len(found.rows) if found.want == "lines" else len(found.counts)
    result = ClaudeGrepResult.from_known(
        mode=params.output_mode,
        num_files=len(found.counts),
        filenames=tuple(escape_text(path) for path, _ in found.counts),
        total_files=found.total_files,
        truncated=found.truncated,
        complete=found.complete,
        not_looked_at=skipped_counts(found.skipped),
        left_out=(*_left_out_kinds(params), *found.left_out),
        engine="ripgrep with PCRE2" if found.look_around and found.engine == "ripgrep" else found.engine,
        notes=(*map(escape_text, found.notes), *_page_notices(params, found, shown)),
        total_lines=found.total_lines,
        total_matches=found.total_matches,
        applied_limit=shown if found.truncated else None,
        applied_offset=params.offset or None,
        next_offset=params.offset + shown if found.truncated else None,
        files_searched=found.files_scanned,
        ignored_matches=found.elsewhere,
        **_mode_fields(params, found),
    )
    if context.budget.delivers(result.text(context.budget)):
        context.session.record_shown_matches(found)
    return result


def _search_query(params: ClaudeGrepParams) -> Search:
    globs = _split_globs(params.glob or "")
    build = () if params.include_ignored else BUILD_DIRECTORIES
    return Search(
        query=params.pattern,
        mode="regex",
        root=params.path or ".",
        include=tuple(glob for glob in globs if glob[0] != "!"),
        exclude=tuple(glob[1:] for glob in globs if glob[0] == "!"),
        case_sensitive=not params.ignore_case,
        multiline=params.multiline,
        dot_all=params.multiline,
        hidden=params.include_hidden,
        ignore=not params.include_ignored,
        types=(params.type,) if params.type else (),
        closed=(*VERSION_CONTROL_DIRECTORIES, *build),
    )


def _split_globs(text: str) -> list[str]:
    """Split globs at blanks; if a part is not a glob, the text is one glob whose name contains blanks."""
    pieces = text.split()
    several = len(pieces) > 1 and all(is_glob(piece) or piece[0] == "!" for piece in pieces)
    return pieces if several else [text] if pieces else []


def _result_window(params: ClaudeGrepParams, budget: AnswerBudget) -> ResultWindow:
    around = params.around if params.around is not None else params.context or 0
    return ResultWindow(
        want=_WANT_BY_MODE[params.output_mode],
        before=around if params.before is None else params.before,
        after=around if params.after is None else params.after,
        offset=params.offset,
        limit=min(params.head_limit or budget.lines, budget.lines),
        room=listing_room(budget),
    )


def _mode_fields(params: ClaudeGrepParams, found: SearchResult) -> dict[str, Any]:
    if found.want == "lines":
        around = any((params.after, params.before, params.around, params.context))
        rows = _format_rows(found.rows, numbers=params.line_numbers, groups=around)
        return {"content": "\n".join(rows), "num_lines": len(found.rows)}
    if found.want == "counts":
        rows = (f"{escape_text(path)}:{count}" for path, count in found.counts)
        return {"content": "\n".join(rows), "num_matches": found.total_matches}
    return {}


def _format_rows(rows: Sequence[MatchedLine], *, numbers: bool, groups: bool) -> Iterator[str]:
    """Yield rows as grep prints them: `path:line:text` for a match, `path-line-text` for context, `--` between groups."""
    before: MatchedLine | None = None
    for row in rows:
        if groups and before and (row.path != before.path or row.line != before.line + 1):
            yield "--"
        sign = ":" if row.is_match else "-"
        yield escape_text(row.path) + sign + (f"{row.line}{sign}" if numbers else "") + row.text
        before = row


def _left_out_kinds(params: ClaudeGrepParams) -> tuple[str, ...]:
    return (
        *(() if params.include_ignored else ("ignored files", *BUILD_DIRECTORIES)),
        *(() if params.include_hidden else ("hidden files",)),
        *VERSION_CONTROL_DIRECTORIES,
    )


def _page_notices(params: ClaudeGrepParams, found: SearchResult, shown: int) -> Iterator[str]:
    if found.total_files and not shown and params.offset:
        entries = "lines" if found.want == "lines" else "files"
        total = found.total_lines if found.want == "lines" else found.total_files
        yield f"offset={params.offset} is past the end: there are {total} {entries} with matches."
    if found.files_scanned == 0 and not found.total_files and (params.glob or params.type):
        yield "No file was searched: none has a name that fits the glob and type."
