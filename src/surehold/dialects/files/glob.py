"""`glob`: find files and directories by a path pattern."""

from typing import ClassVar

from pydantic import Field

from surehold.dialects.shared.listing_text import (
    count_noun,
    entry_line,
    listing_room,
    mtime_text,
    page_text,
    skipped_counts,
    skipped_text,
)
from surehold.dialects.shared.params import CamelParams, CamelResult, CamelResultPart
from surehold.dialects.shared.wire import WIRE
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool


class GlobParams(CamelParams):
    ALIASES: ClassVar = {"path": "root", "exclude": "excludeGlobs"}

    pattern: str
    """`**`, `*`, `?`, `[a-z]`, `{a,b}`, relative to root: `src/**/*.py`."""
    root: SubjectPath = "."
    exclude_globs: list[str] = Field(default_factory=list[str])
    max_results: int = Field(default=1_000, ge=1, le=20_000)
    offset: int = Field(default=0, ge=0)
    """Matches to skip, after a page."""
    include_hidden: bool = False


class GlobMatch(CamelResultPart):
    path: str
    type: str
    size: int
    mtime: str

    def summary_line(self) -> str:
        return entry_line(self.path, self.type, self.size)


class FilesGlobResult(CamelResult):
    pattern: str
    root: str
    matches: tuple[GlobMatch, ...]
    truncated: bool
    next_offset: int | None = None
    total: int
    skipped: dict[str, int] = Field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        facts = (
            count_noun(self.total, "match", "matches"),
            f"{len(self.matches)} shown; narrow the pattern or root" if self.truncated else "",
            skipped_text("left out", self.skipped),
        )
        following = f"goes on: offset={self.next_offset}" if self.next_offset else ""
        return page_text(facts, self.notes, (row.summary_line() for row in self.matches), following=following)


@tool(
    "glob",
    hints=Hints(kind="search", title="Find files by name", verb="Find", read_only=True, idempotent=True),
    wire=WIRE,
)
def glob(context: CallContext, params: GlobParams) -> FilesGlobResult:
    """Find files and directories by a pattern, in path order; ignored and hidden ones are left out."""
    found = context.session.finder.glob(
        params.pattern,
        root=params.root,
        exclude=params.exclude_globs,
        limit=params.offset + params.max_results,
        hidden=params.include_hidden,
        progress=context.progress,
        cancelled=context.cancelled,
    )
    rows = tuple(
        GlobMatch(path=row.key, type=row.type, size=row.size, mtime=mtime_text(row))
        for row in found.matches[params.offset :]
    )
    count = max(listing_room(context.budget).count_fitting(row.summary_line() for row in rows), 1)
    return FilesGlobResult(
        pattern=params.pattern,
        root=found.directory,
        matches=rows[:count],
        truncated=found.truncated or count < len(rows),
        next_offset=params.offset + count if params.offset + count < found.total else None,
        total=found.total,
        skipped=skipped_counts(found.skipped),
        notes=found.notes,
    )
