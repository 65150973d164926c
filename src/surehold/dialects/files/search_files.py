"""`search_files`: search file names, literal text or regular expressions in many files."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import ClassVar, Literal

from pydantic import Field

from surehold.dialects.shared.listing_text import count_noun, listing_room, page_text, skipped_counts, skipped_text
from surehold.dialects.shared.params import CamelParams, CamelResult, CamelResultPart
from surehold.dialects.shared.wire import WIRE
from surehold.search.query import Hit, Search
from surehold.text.escape import escape_text
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool


class SearchParams(CamelParams):
    ALIASES: ClassVar = {"pattern": "query", "path": "root"}

    query: str
    mode: Literal["path", "text", "regex"] = "text"
    """`path`: part of the path, or a glob; `text`: literal; `regex`: Rust syntax, no look-around."""
    root: SubjectPath = "."
    """Directory or file to search."""
    include_globs: list[str] = Field(default_factory=list[str])
    """Only these files, such as `*.py`."""
    exclude_globs: list[str] = Field(default_factory=list[str])
    max_results: int = Field(default=100, ge=1, le=2_000)
    context_lines: int = Field(default=0, ge=0, le=20)
    """Lines around each match."""
    case_sensitive: bool = True
    multiline: bool = False
    """Let a regex match across lines."""
    cursor: str = ""
    """nextCursor of the page before."""


class SearchMatch(CamelResultPart):
    path: str
    line: int | None = None
    column: int | None = None
    preview: str | None = None
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None

    def grep_lines(self) -> Iterator[str]:
        """Yield its lines as `grep` shows them: `12:5: text`, and `11- text` around it."""
        if self.line is None:
            return
        before, after = self.before or (), self.after or ()
        yield from (f"{self.line - len(before) + i}- {text}" for i, text in enumerate(before))
        yield f"{self.line}:{self.column}: {self.preview or ''}"
        yield from (f"{self.line + 1 + i}- {text}" for i, text in enumerate(after))


class MatchedFile(CamelResultPart):
    path: str
    sha256: str
    match_count: int


class SearchFilesResult(CamelResult):
    mode: str
    query: str
    root: str
    matches: tuple[SearchMatch, ...]
    files: tuple[MatchedFile, ...]
    total_matches: int
    files_scanned: int
    files_skipped: dict[str, int]
    truncated: bool
    next_cursor: str | None = None
    engine: str
    left_out: tuple[str, ...] | None = None
    """Where nothing matches: what was not searched, and therefore not counted."""
    notes: tuple[str, ...] = ()

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        """Return the matches grouped by file, each with the sha256 that an edit needs."""
        facts = (
            count_noun(self.total_matches, "match", "matches"),
            f"{len(self.matches)} shown" if len(self.matches) != self.total_matches else "",
            f"{count_noun(self.files_scanned, 'file')} searched" if self.files_scanned and self.mode != "path" else "",
            skipped_text("skipped", self.files_skipped),
            f"left out: {', '.join(self.left_out)}" if self.left_out else "",
        )
        following = f"goes on: cursor={self.next_cursor}" if self.next_cursor else ""
        return page_text(facts, self.notes, self._rows_by_file(), following=following)

    def _rows_by_file(self) -> Iterator[str]:
        hashes = {file.path: f" · sha256 {file.sha256}" for file in self.files}
        for path, group in groupby(self.matches, key=attrgetter("path")):
            yield escape_text(path) + hashes.get(path, "")
            for match in group:
                yield from match.grep_lines()


@tool("search_files", hints=Hints(kind="search", title="Search files", read_only=True, idempotent=True), wire=WIRE)
def search_files(context: CallContext, params: SearchParams) -> SearchFilesResult:
    """Search names (path), literal text or regular expressions in many files; ignored, hidden and binary ones are left out.

    So is UTF-16 without a byte order mark, unless `root` names the file. Each file comes with its sha256: an edit needs no read before. Order: path, line, column.
    """
    found = context.session.finder.search(
        Search(
            query=params.query,
            mode=params.mode,
            root=params.root,
            include=tuple(params.include_globs),
            exclude=tuple(params.exclude_globs),
            context=params.context_lines,
            case_sensitive=params.case_sensitive,
            multiline=params.multiline,
        ),
        limit=params.max_results,
        after=params.cursor,
        room=listing_room(context.budget),
        progress=context.progress,
        cancelled=context.cancelled,
    )
    result = SearchFilesResult(
        mode=params.mode,
        query=params.query,
        root=params.root,
        matches=tuple(map(_search_match, found.matches)),
        files=tuple(MatchedFile(path=one.path, sha256=one.sha256, match_count=one.match_count) for one in found.files),
        total_matches=found.total_matches or 0,
        files_scanned=found.files_scanned or 0,
        files_skipped=skipped_counts(found.skipped),
        truncated=found.truncated,
        next_cursor=found.next or None,
        engine=found.engine,
        left_out=found.left_out if found.left_out and not found.total_files else None,
        notes=found.notes,
    )
    if context.budget.delivers(result.text(context.budget)):
        context.session.record_shown_matches(found)
    return result


def _search_match(hit: Hit) -> SearchMatch:
    return SearchMatch(
        path=hit.path,
        line=hit.line,
        column=hit.column,
        preview=hit.preview or None,
        before=hit.before or None,
        after=hit.after or None,
    )
