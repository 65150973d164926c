"""`read_text_file`, `write_text_file` and `edit_text_file`: the plain siblings of `multi_edit_text_file`."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from surehold.dialects.multi_edit.change_result import (
    QUOTE_ALIASES,
    TextChangeParams,
    TextChangeResult,
    TextDiffResult,
    change_fields,
    diff_fields,
)
from surehold.dialects.multi_edit.wire import WIRE, ContractMessages
from surehold.dialects.shared.listing_text import page_text
from surehold.dialects.shared.params import CONTENT_ALIASES, PATH_ALIASES, check_text
from surehold.errors import InvalidArgument
from surehold.text.escape import escape_text
from surehold.text.page import FilePage
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import Params, SubjectPath
from surehold.tools.spec import Result, ResultPart, tool
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.file_source import cut_page_to_fit, open_source
from surehold.workspace.proposal import Proposal, Receipt, Seen, Unproven, proof_of

_MAX_BYTES_PER_CHAR = 4
"""No character has more bytes."""


class ReadTextParams(Params):
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
        facts = (escape_text(self.path), shown, f"sha256 {meta.sha256}")
        return page_text(
            facts,
            [meta.notice] if meta.notice else [],
            [self.content.removesuffix("\n") if meta.has_more else self.content] if self.content else [],
            following=f"goes on: line={meta.next_line}" if meta.has_more else "",
        )


@tool("read_text_file", hints=Hints(kind="read", title="Read a file", read_only=True, idempotent=True), wire=WIRE)
def read_text_file(context: CallContext, params: ReadTextParams) -> ReadTextResult:
    """Read a text file, or `limit` lines of it from `line` on.

    At most 2,000 lines and 40,000 characters come back at once; next_line says where to go on. path is absolute. The
    sha256 is of the whole file.
    """
    with ContractMessages(path=params.path, verb="read").translate_errors():
        first, count = _requested_lines(params)
        source = open_source(context.session, params.path, None)
        room = context.budget.beside(params.path).page_room
        page = source.read_page(first, min(count, context.budget.lines), room.size * _MAX_BYTES_PER_CHAR)
        page, texts = cut_page_to_fit(page, [page.encoding.decode(row) for row in page.rows], room)
    content = "".join(texts)
    following = page.next_line
    meta = ReadMeta(
        total_lines=page.line_count,
        returned_lines=len(page.rows),
        has_more=following is not None,
        next_line=following,
        sha256=page.sha256,
        notice=_page_notice(page, first, len(content)),
    )
    result = ReadTextResult(content=content, meta=meta, path=params.path, first=first)
    if context.budget.delivers(result.text(context.budget)):
        context.session.record_shown_page(params.path, page, snapshot=source.snapshot)
    return result


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
        message = f"Line number must be >= 1: {first}"
        raise InvalidArgument(message, reason="bad_line", action="Lines are counted from 1.")
    if params.limit is not None and params.limit < 1:
        message = f"Limit must be >= 1: {params.limit}"
        raise InvalidArgument(message, reason="bad_limit", action="Ask for at least one line.")
    return first, 1 << 40 if params.limit is None else params.limit


@dataclass(frozen=True, slots=True)
class _NewOrSeen:
    """Nothing is there, or this session was shown all of it."""

    def check(self, file: KnownFile) -> None:
        if file.current.exists:
            Seen(whole=True).check(file)


class WriteTextParams(TextChangeParams):
    ALIASES: ClassVar = {**TextChangeParams.ALIASES, **CONTENT_ALIASES}

    path: SubjectPath
    """Absolute path to the file."""
    content: str
    """The whole text of the file."""


class WriteTextResult(TextChangeResult):
    bytes_written: int
    created: bool

    def headline(self) -> str:
        return f"{'Created' if self.created else 'Written'}, {self.bytes_written} bytes."


@tool(
    "write_text_file",
    hints=Hints(kind="edit", title="Write a file", verb="Write", destructive=True, idempotent=True, operation="write"),
    wire=WIRE,
)
def write_text_file(context: CallContext, params: WriteTextParams) -> WriteTextResult:
    """Write the complete content of a text file: a new one, or one that read_text_file showed completely.

    A file that changed since it was read is not overwritten, unless expected_sha256 names what is there now. Encoding and
    line endings of an existing file stay. path is absolute, and its directory must exist.
    """
    size = len(params.content.encode("utf-8", "surrogatepass"))
    with ContractMessages(path=params.path, verb="write", size=size).translate_errors():
        check_text(params.content, "content", path=params.path)
        evidence = proof_of(params.expected_sha256, Unproven() if context.unchecked else _NewOrSeen())
        proposal = Proposal(path=params.path, edit=WriteText(params.content), proof=evidence, parents=False)
        receipt = context.session.submit(
            proposal, tool="write_text_file", operation="write", reason=params.reason, dry_run=params.dry_run
        )
    plan = receipt.files[0].plan
    return WriteTextResult(bytes_written=plan.after.size, created=not plan.before.exists, **change_fields(receipt))


class EditTextParams(TextChangeParams):
    ALIASES: ClassVar = {**TextChangeParams.ALIASES, **QUOTE_ALIASES}

    path: SubjectPath
    """Absolute path to the file."""
    old_string: str
    """Exact text to replace; must occur exactly once."""
    new_string: str
    """Replacement."""


class ReplacedLines(ResultPart):
    """Lines from 1, inclusive."""

    start: int
    end: int


class EditTextResult(TextDiffResult):
    line_range: ReplacedLines

    def headline(self) -> str:
        lines = self.line_range
        where = f"line {lines.start}" if lines.start == lines.end else f"lines {lines.start} to {lines.end}"
        return f"1 edit applied: {where}."


@tool("edit_text_file", hints=Hints(kind="edit", title="Edit a file", destructive=True, operation="edit"), wire=WIRE)
def edit_text_file(context: CallContext, params: EditTextParams) -> EditTextResult:
    """Replace one text that occurs exactly once in a file; everything else stays as it is, byte by byte.

    path is absolute. multi_edit_text_file makes several edits of a file at once.
    """
    with ContractMessages(path=params.path, verb="edit", old_strings=[params.old_string]).translate_errors():
        if params.old_string == params.new_string:  # needs no file to be said
            raise InvalidArgument("There is nothing to change.", reason="same_text")
        check_text(params.new_string, "new_string", path=params.path)
        edit = StringEdit(old=params.old_string, new=params.new_string)
        receipt = context.session.submit(
            Proposal(path=params.path, edit=SnapshotEdits((edit,)), proof=proof_of(params.expected_sha256)),
            tool="edit_text_file",
            operation="edit",
            reason=params.reason,
            dry_run=params.dry_run,
        )
    return EditTextResult(line_range=_replaced_lines(receipt), **diff_fields(receipt, params.path))


def _replaced_lines(receipt: Receipt) -> ReplacedLines:
    """Return the lines that were replaced; a person who was asked may have changed others than the edit would."""
    plan = receipt.files[0].plan
    spans = [span for one in plan.applied for span in one.ranges] or plan.line_spans()
    return ReplacedLines(start=spans[0].start_line, end=spans[-1].end_line) if spans else ReplacedLines(start=0, end=0)
