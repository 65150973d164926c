"""`read_text_file`: read some or all lines of a text file."""

from typing import ClassVar

from pydantic import Field

from surehold.dialects.multi_edit.wire import WIRE, ContractMessages
from surehold.dialects.shared.params import PATH_ALIASES
from surehold.errors import InvalidArgument
from surehold.text.escape import escape_text
from surehold.text.page import FilePage
from surehold.tools.context import AnswerBudget, CallContext
from surehold.tools.spec import Hints, Params, Result, ResultPart, SubjectPath, tool
from surehold.workspace.file_source import cut_page_to_fit, open_source

_MAX_BYTES_PER_CHAR = 4
"""No character has more bytes."""


class ReadTextParams(Params):
    """What to read."""

    ALIASES: ClassVar = PATH_ALIASES

    path: SubjectPath
    """Absolute path to the file."""
    line: int | None = None
    """First line, from 1."""
    limit: int | None = None
    """How many lines at most."""


class ReadMeta(ResultPart):
    """Facts about the file, and about what of it was returned."""

    total_lines: int
    returned_lines: int
    has_more: bool
    next_line: int | None = None
    sha256: str
    """Of the whole file."""
    notice: str | None = None
    warnings: tuple[str, ...] | None = None


class ReadTextResult(Result):
    """Some lines, with their terminators."""

    content: str
    meta: ReadMeta = Field(serialization_alias="_meta")
    path: str = Field(exclude=True)
    first: int = Field(exclude=True)

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - the page was cut to the budget when it was taken
        meta = self.meta
        last = self.first + meta.returned_lines - 1
        shown = f"lines {self.first}-{last} of {meta.total_lines}" if self.content else f"{meta.total_lines} lines"
        facts = [escape_text(self.path), shown, f"sha256 {meta.sha256}"]
        if meta.has_more:
            facts.append(f"goes on: line={meta.next_line}")
        notice = [f"[{meta.notice}]"] if meta.notice else []
        return "\n".join([" · ".join(facts), *notice, *([self.content] if self.content else [])])


@tool("read_text_file", hints=Hints(kind="read", title="Read a file", read_only=True, idempotent=True), wire=WIRE)
def read_text_file(context: CallContext, params: ReadTextParams) -> ReadTextResult:
    """Read a text file, or `limit` lines of it from `line` on.

    At most 2,000 lines and 40,000 characters come back at once; next_line says where to go on. path is absolute. The
    sha256 is of the whole file.
    """
    with ContractMessages(path=params.path, verb="read").translate_errors():
        first, count = _requested_lines(params)
        source, room = open_source(context.session, params.path, None), context.budget.page_characters
        page = source.read_page(first, min(count, context.budget.lines), room * _MAX_BYTES_PER_CHAR)
        texts = [page.encoding.decode(row) for row in page.rows]
        page = cut_page_to_fit(page, [len(text) for text in texts], room)
        context.session.record_shown_page(params.path, page, snapshot=source.snapshot)
    content = "".join(text[:room] for text in texts[: len(page.rows)])
    following = page.next_line
    meta = ReadMeta(
        total_lines=page.line_count,
        returned_lines=len(page.rows),
        has_more=following is not None,
        next_line=following,
        sha256=page.sha256,
        notice=_page_notice(page, first, len(content)),
    )
    return ReadTextResult(content=content, meta=meta, path=params.path, first=first)


def _page_notice(page: FilePage, first: int, shown: int) -> str | None:
    """Say why less came back than was asked for, where the numbers do not."""
    if page.cut:
        how = "edits find the rest of it all the same"
        return f"line {first} is too long to be shown whole; these are its first {shown:,} characters, and {how}"
    if first > max(page.line_count, 1):
        return f"there is no line {first}; the file has {page.line_count:,}"
    return None


def _requested_lines(params: ReadTextParams) -> tuple[int, int]:
    first = 1 if params.line is None else params.line
    if first < 1:
        raise InvalidArgument(
            f"Line number must be >= 1: {first}", reason="bad_line", action="Lines are counted from 1."
        )
    if params.limit is not None and params.limit < 1:
        raise InvalidArgument(
            f"Limit must be >= 1: {params.limit}", reason="bad_limit", action="Ask for at least one line."
        )
    return first, 1 << 40 if params.limit is None else params.limit
