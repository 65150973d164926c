"""What the sanity checks look at, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from surehold.text.encoding import Encoding
from surehold.text.plan import EditPlan, Span

FindingKind = Literal[
    "parse_error",
    "unbalanced_delimiters",
    "seam_duplicate",
    "conflict_marker",
    "anchor_prefix",
    "line_number_prefix",
    "doubtful_syntax",
    "duplicate_lines",
    "syntax_not_checked",
]
SUSPICIOUS: frozenset[FindingKind] = frozenset(
    {"parse_error", "unbalanced_delimiters", "seam_duplicate", "conflict_marker", "anchor_prefix"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is odd about the text an edit would leave."""

    kind: FindingKind
    message: str
    line: int | None = None
    """Where it is in the new text."""
    span: int | None = None
    """Which span of the plan did it."""
    operation: int | None = None
    """Which operation of the caller that was."""
    suspicious: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {"kind": self.kind, "message": self.message, "line": self.line, "operation": self.operation}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """The first place at which a text cannot be read."""

    line: int
    message: str
    exact: bool = True
    """Whether the parser knows what is wrong, and not only where it got lost."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A parser gave up before it could say anything."""

    reason: str


class Reading(Protocol):
    """One way to read a text, such as a grammar."""

    @property
    def name(self) -> str:
        """What it reads, in the words of people: `Python`, `JSON`."""
        ...

    @property
    def templates(self) -> bool:
        """Whether files of this kind are often templates, which the parser cannot read."""
        ...

    @property
    def gaps(self) -> bool:
        """Whether it is known to stumble over valid text, so that its word alone does not refuse an edit."""
        ...

    def flaw(self, source: bytes, /) -> Flaw | Unread | None:
        """Return the first flaw of some UTF-8 text, or None when all of it can be read."""
        ...


class Syntax(Protocol):
    """Knows how files are read."""

    def __call__(self, path: str, source: bytes, /) -> Sequence[Reading]:
        """Return the ways to read a file, the strictest first; none when there is no parser for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Both sides of a plan as UTF-8 with LF or CRLF, whatever the file's own encoding is."""

    before: bytes
    after: bytes
    spans: tuple[Span, ...]
    """In offsets of `before`."""

    def with_spans(self, kept: Sequence[Span]) -> bytes:
        """Return the text that only some of the spans would leave."""
        pieces, at = list[bytes](), 0
        for span in kept:
            pieces += (self.before[at : span.start], span.new)
            at = span.end
        return b"".join((*pieces, self.before[at:]))

    def span_at(self, line: int) -> int:
        """Return the span that wrote a line of the new text, else the last one above it."""
        found, shift, at, number = 0, 0, 0, 1
        for index, span in enumerate(self.spans):
            number += self.after.count(b"\n", at, span.start + shift)
            at = span.start + shift
            if number > line:
                break
            found = index
            shift += len(span.new) - (span.end - span.start)
        return found


def subject_of(plan: EditPlan) -> Subject:
    """Bring a plan to UTF-8; one in UTF-8 without a byte order mark is taken as it is."""
    before, after = plan.before, plan.after
    spans = plan.spans or (Span(start=0, end=before.size, new=after.data),)
    encoding = before.encoding if before.data else after.encoding
    same = encoding.name in ("utf-8", "ascii", "bytes") and not encoding.bom
    if same and b"\r" not in before.data and b"\r" not in after.data:
        return Subject(before=before.data, after=after.data, spans=spans)
    lone_cr = before.data != b"" and before.lines.style == "cr"
    at, grown, moved, pieces = 0, 0, list[Span](), list[bytes]()
    for span in spans:
        gap, old, new = (
            _plain(part, encoding, lone_cr=lone_cr)
            for part in (before.data[at : span.start], before.data[span.start : span.end], span.new)
        )
        grown += len(gap)
        moved.append(Span(start=grown, end=grown + len(old), new=new))
        grown += len(old)
        pieces += (gap, old)
        at = span.end
    text = b"".join((*pieces, _plain(before.data[at:], encoding, lone_cr=lone_cr)))
    subject = Subject(before=text, after=b"", spans=tuple(moved))
    return replace(subject, after=subject.with_spans(moved))


def _plain(data: bytes, encoding: Encoding, *, lone_cr: bool) -> bytes:
    if encoding.bom and data.startswith(encoding.bom):
        data = data[len(encoding.bom) :]
    if encoding.name not in ("utf-8", "ascii", "bytes"):
        data = encoding.decode(data).encode("utf-8", "replace")
    return data.replace(b"\r", b"\n") if lone_cr else data
