"""`Glob`: find files by a path pattern, newest first."""

import time
from typing import ClassVar

from pydantic import Field

from surehold.dialects.claude.wire import WIRE
from surehold.dialects.shared.listing_text import count_noun, listing_room, page_text, skipped_counts, skipped_text
from surehold.dialects.shared.params import CamelResult
from surehold.text.escape import escape_text
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import OptionalSubjectPath, Params
from surehold.tools.spec import tool

_MAX_FILES = 10_000


class ClaudeGlobParams(Params):
    ALIASES: ClassVar = {"directory": "path", "root": "path"}
    POSITIONAL: ClassVar = ("path",)

    pattern: str
    """`**`, `*`, `?`, `[a-z]`, `{a,b}`, from `path` on: `**/*.rs`, `src/**/*.ts`. `*.toml` is about `path` itself only."""
    path: OptionalSubjectPath = None
    """Directory to search; default the first root."""
    include_ignored: bool = False
    """Also files that .gitignore names."""
    include_hidden: bool = True
    limit: int = Field(default=250, ge=1, le=_MAX_FILES)
    """Files returned at most."""
    offset: int = Field(default=0, ge=0)
    """Files passed over, to go on after a page."""


class ClaudeGlobResult(CamelResult):
    filenames: tuple[str, ...]
    num_files: int
    truncated: bool
    next_offset: int | None = None
    duration_ms: int
    total_matches: int
    count_is_complete: bool
    root: str
    not_looked_at: dict[str, int]
    ignored_matches: int | None = None
    """Known only when nothing else matches."""
    matches_below: int | None = None
    """For `**/pattern`; known only when the pattern has no slash and nothing matches."""
    notes: tuple[str, ...] = ()

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        total = count_noun(self.total_matches, "file") + ("" if self.count_is_complete else " so far")
        facts = (
            f"{total}, newest first" if self.total_matches else "No files match",
            f"{self.num_files} shown; narrow the pattern or path, or raise limit" if self.truncated else "",
            skipped_text("not looked at", self.not_looked_at),
        )
        following = f"goes on: offset={self.next_offset}" if self.next_offset else ""
        return page_text(facts, self.notes, self.filenames, following=following)


@tool(
    "Glob",
    hints=Hints(kind="search", title="Find files by name", verb="Find", read_only=True, idempotent=True),
    wire=WIRE,
    method="claude_glob",
)
def glob(context: CallContext, params: ClaudeGlobParams) -> ClaudeGlobResult:
    """Find files by a pattern of their path, most recently modified first; at most 250 unless `limit` says otherwise.

    Files only. Ignored files and version control directories are left out, and said to be; links are not followed.
    """
    began = time.monotonic()
    found = context.session.finder.glob_newest(
        params.pattern,
        root=params.path or ".",
        limit=params.offset + params.limit,
        hidden=params.include_hidden,
        ignore=not params.include_ignored,
        progress=context.progress,
        cancelled=context.cancelled,
    )
    names = tuple(escape_text(file.key) for file in found.files[params.offset :])
    names = names[: max(listing_room(context.budget).count_fitting(names), 1)]
    following = params.offset + len(names)
    beyond = f"offset={params.offset} is past the end: {count_noun(found.total, 'file')} in all."
    is_beyond = bool(params.offset and found.total and not names)
    return ClaudeGlobResult.from_known(
        filenames=names,
        num_files=len(names),
        truncated=following < found.total,
        next_offset=following if following < found.total else None,
        duration_ms=round((time.monotonic() - began) * 1000),
        total_matches=found.total,
        count_is_complete=found.complete,
        root=escape_text(found.directory),
        not_looked_at=skipped_counts(found.skipped),
        notes=(*map(escape_text, found.notes), *([beyond] if is_beyond else [])),
        ignored_matches=found.elsewhere,
        matches_below=found.below,
    )
