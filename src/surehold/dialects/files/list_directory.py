"""`list_directory`: list the entries of a directory."""

from typing import ClassVar

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from surehold.dialects.shared.listing_text import (
    entry_line,
    listing_room,
    mtime_text,
    page_text,
    skipped_counts,
    skipped_text,
)
from surehold.dialects.shared.params import CamelParams, CamelResult
from surehold.dialects.shared.wire import WIRE
from surehold.search.query import ListedEntry
from surehold.text.escape import escape_text
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import SubjectPath
from surehold.tools.spec import tool


class ListParams(CamelParams):
    ALIASES: ClassVar = {"directory": "path", "dir": "path"}
    POSITIONAL: ClassVar = ("path",)

    path: SubjectPath = "."
    recursive: bool = False
    max_depth: int = Field(default=8, ge=1, le=32)
    """With recursive; at most 32."""
    include_hidden: bool = False
    """Also names that begin with a dot."""
    respect_ignore: bool = True
    """Leave out what .gitignore names."""
    max_entries: int = Field(default=5_000, ge=1, le=50_000)
    cursor: str = ""
    """nextCursor of the page before."""


class ListedFile(TypedDict):
    """One entry. Plain data as it goes out, since there are thousands of them."""

    name: str
    relativePath: str
    type: str
    size: int
    mtime: str
    depth: int


class ListResult(CamelResult):
    path: str
    entries: tuple[ListedFile, ...]
    truncated: bool
    next_cursor: str | None = None
    skipped: dict[str, int] = Field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        """Return one entry per line: `dir/`, `link@`, `file  size`."""
        facts = (escape_text(self.path), f"{len(self.entries)} entries", skipped_text("left out", self.skipped))
        rows = (entry_line(row["relativePath"], row["type"], row["size"]) for row in self.entries)
        following = f"goes on: cursor={self.next_cursor}" if self.next_cursor else ""
        return page_text(facts, self.notes, rows, following=following)


@tool(
    "list_directory",
    hints=Hints(kind="read", title="List a directory", verb="List", read_only=True, idempotent=True),
    wire=WIRE,
)
def list_directory(context: CallContext, params: ListParams) -> ListResult:
    """List a directory: name, type, size and time of each entry, in path order. Links are listed, never followed."""
    listing = context.session.finder.list(
        params.path,
        recursive=params.recursive,
        max_depth=params.max_depth,
        hidden=params.include_hidden,
        ignore=params.respect_ignore,
        limit=params.max_entries,
        room=listing_room(context.budget),
        after=params.cursor,
    )
    return ListResult.model_construct(
        path=listing.directory,
        entries=tuple(_listed_file(row) for row in listing.entries),
        truncated=listing.truncated,
        next_cursor=listing.next or None,
        skipped=skipped_counts(listing.skipped),
        notes=listing.notes,
    )


def _listed_file(row: ListedEntry) -> ListedFile:
    return ListedFile(
        name=row.name, relativePath=row.relative, type=row.type, size=row.size, mtime=mtime_text(row), depth=row.depth
    )
