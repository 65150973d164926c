"""Replace one quoted text by another in the style of the file: the edit that the tool `Edit` makes.

1. The text must occur exactly once, unless all of its occurrences are asked for; `matching.Haystack` finds them.
2. What the old and the new text share keeps the bytes of the file: the equal beginning, the equal end, and between them
   equal stretches that contain a letter or a digit. A lone quote or bracket between changed words is not shared.
3. Everything else is written as it was sent; only its line breaks follow the file. They take the terminator of the line
   break before them in the result, otherwise that of the line in which the replacement begins. An edit that changes
   nothing but line breaks has them written as sent.
4. Bytes of the file are copied, never decoded and encoded again.
5. An empty old text is accepted only for an empty file.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from surehold.errors import InvalidArgument, MultipleMatches, OldTextNotFound
from surehold.text.align import EqualRun, align_lines
from surehold.text.escape import escape_text
from surehold.text.excerpt import Excerpt, excerpt_lines
from surehold.text.plan import EditOutcome, EditPlan, Span, splice_spans
from surehold.text.quoted.edits import match_lines
from surehold.text.quoted.matching import Haystack, TextMatch, TextMatches, differs_in_breaks_alone
from surehold.text.quoted.near_miss import explain_miss
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot, merge_ranges

_CHARACTER = re.compile(r"\r\n|[\s\S]")
_BREAK = re.compile(r"(\r\n|\n|\r)")
_WORD_CHARACTER = re.compile(r"\w")


class _FileCharacter(NamedTuple):
    """One character of the file, or one CRLF, with its bytes."""

    text: str
    data: bytes


def restyle_replacement(
    snapshot: Snapshot, match: TextMatch, old: str, new: str, *, breaks_as_sent: bool = False
) -> bytes:
    """Return the bytes of `new` for a place where `old` was found, by whichever tier."""
    there = _split_characters(snapshot, match)
    if not breaks_as_sent:  # how a line break is spelled makes no difference then
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    before, after = _CHARACTER.findall(old), _CHARACTER.findall(new)
    # Bytes that are two code points at once cannot be told apart by characters: then nothing is shared.
    blocks = _shared_stretches(before, after) if len(there) == len(before) else []
    writer = _ReplacementWriter(snapshot, match, as_sent=breaks_as_sent)
    out, at = list[bytes](), 0
    for block in blocks:
        out += writer.encode_text("".join(after[at : block.b]))
        for sign in there[block.a : block.a + block.size]:
            if sign.text in ("\n", "\r\n", "\r"):
                writer.last = sign.data
            out.append(sign.data)
        at = block.b + block.size
    out += writer.encode_text("".join(after[at:]))
    return b"".join(out)


def _shared_stretches(before: Sequence[str], after: Sequence[str]) -> list[EqualRun]:

    def is_same(block: EqualRun) -> bool:
        at_start = block.a == block.b == 0
        at_end = block.a + block.size == len(before) and block.b + block.size == len(after)
        return at_start or at_end or bool(_WORD_CHARACTER.search("".join(before[block.a : block.a + block.size])))

    one, other = ([sign.encode("utf-8", "surrogatepass") for sign in signs] for signs in (before, after))
    return [block for block in align_lines(one, other) if is_same(block)]


class _ReplacementWriter:
    """Encodes what was sent; a line break takes the terminator of the one before it in the result."""

    def __init__(self, snapshot: Snapshot, match: TextMatch, *, as_sent: bool) -> None:
        self.last = b""
        self._snapshot, self._start, self._as_sent = snapshot, match[0], as_sent

    def encode_text(self, text: str) -> Iterator[bytes]:
        """Yield the bytes of a text, run by run between line breaks."""
        for number, part in enumerate(_BREAK.split(text)):
            yield self._encode_break(part) if number % 2 else self._snapshot.encoding.encode(part)

    def _encode_break(self, sent: str) -> bytes:
        lines, encoding = self._snapshot.lines, self._snapshot.encoding
        if self._as_sent or (sent == "\r" and lines.style != "cr"):
            return encoding.encode_newline(sent)
        if not self.last:
            self.last = lines.dominant if lines.style != "mixed" else lines.terminator_near(self._start)
        return self.last


def _split_characters(snapshot: Snapshot, match: TextMatch) -> list[_FileCharacter]:
    data, encoding = snapshot.data[slice(*match)], snapshot.encoding
    if encoding.is_raw or (data.isascii() and encoding.width == 1):
        text = data.decode("latin-1")
        return [_FileCharacter(sign, sign.encode("latin-1")) for sign in _CHARACTER.findall(text)]
    decoder = codecs.getincrementaldecoder(encoding.name)("backslashreplace")
    signs, begin = list[_FileCharacter](), 0
    for at in range(1, len(data) + 1):
        text = decoder.decode(data[at - 1 : at], final=at == len(data))
        if not text:
            continue
        sign = _FileCharacter(text, data[begin:at])
        begin = at
        if text == "\n" and signs and signs[-1].text == "\r":
            sign = _FileCharacter("\r\n", signs.pop().data + sign.data)
        signs.append(sign)
    return signs


_CONTEXT_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StyledEdit:
    """Replace `old` by `new`, as a model quotes them."""

    old: str
    new: str
    replace_all: bool = False

    def __post_init__(self) -> None:
        """Refuse an edit that asks for nothing, before any file is looked at."""
        if self.old == self.new:
            raise InvalidArgument(
                "`old_string` and `new_string` are the same.",
                reason="same_text",
                action="Send the text as it should be as new_string.",
            )

    def plan(self, before: Snapshot) -> EditPlan:
        if not self.old:
            return self._fill_empty_file(before)
        haystack = Haystack(before, quotes=True)
        matches = haystack.find(self.old)
        if not matches.found:
            raise _not_found_error(haystack, self.old, self.new)
        if matches.count > 1 and not self.replace_all:
            raise _not_unique_error(before, matches)
        plan = splice_spans(before, self._build_spans(before, matches))
        ranges = tuple(plan.line_spans())
        applied = EditOutcome(index=0, occurrences=len(ranges), ranges=ranges, tier=matches.tier)
        return plan.with_outcomes([applied])

    def _fill_empty_file(self, before: Snapshot) -> EditPlan:
        if before.size > len(before.encoding.bom):
            raise InvalidArgument(
                "`old_string` is empty, and the file is not.",
                reason="empty_old_text",
                action="Quote the text to replace; to insert, quote the line beside it and send it again in new_string.",
            )
        applied = EditOutcome(index=0, occurrences=1, ranges=())
        return replace(WriteText(self.new).plan(before), applied=(applied,))

    def _build_spans(self, before: Snapshot, matches: TextMatches) -> list[Span]:
        plain = self._uniform_replacement(before, matches)
        if plain is not None:
            return [Span(start, end, plain) for start, end in matches.found]
        as_sent = differs_in_breaks_alone(self.old, self.new)
        worked_out = dict[bytes, bytes]()  # where all lines end alike, equal bytes become equal bytes
        spans = list[Span]()
        for match in matches.found:
            there = before.data[slice(*match)]
            new = worked_out.get(there) if before.lines.style != "mixed" else None
            if new is None:
                new = restyle_replacement(before, match, self.old, self.new, breaks_as_sent=as_sent)
                worked_out[there] = new
            spans.append(Span(*match, new))
        return spans

    def _uniform_replacement(self, before: Snapshot, matches: TextMatches) -> bytes | None:
        """Return the new bytes where they are the same for every place, whatever is there."""
        encoding, style = before.encoding, before.lines.style
        if not matches.encoded_alike or (style == "mixed" and re.search(r"[\r\n]", self.new)):
            return None
        if differs_in_breaks_alone(self.old, self.new):
            return encoding.encode(self.new)
        rows = self.new.replace("\r\n", "\n")
        if style == "cr":
            rows = rows.replace("\r", "\n")
        return before.lines.dominant.join(encoding.encode(row) for row in rows.split("\n"))


def _not_found_error(haystack: Haystack, old: str, new: str) -> OldTextNotFound:
    miss = explain_miss(haystack, old, new)
    return OldTextNotFound(
        f"`old_string` is not in the file: {miss.why}.",
        reason=miss.reason,
        action=miss.action,
        closest=list(miss.closest),
        first_difference=miss.first_difference,
        already_applied=miss.reason == "already_applied",
        shown=miss.shown or None,
    )


def _not_unique_error(before: Snapshot, matches: TextMatches) -> MultipleMatches:
    lines = match_lines(before, matches)
    contexts = [_show_context(before, line, at[0]) for line, at in zip(lines, matches.found, strict=False)]
    return MultipleMatches(
        f"`old_string` occurs {matches.count} times.",
        action="Quote more of the lines around the one you mean, or send replace_all: true.",
        count=matches.count,
        lines=lines,
        places=[{"line": line, "context": one.text} for line, one in zip(lines, contexts, strict=True)],
        match_tier=matches.tier,
        shown=merge_ranges(span for one in contexts for span in one.shown) or None,
    )


def _show_context(before: Snapshot, line: int, offset: int) -> Excerpt:
    """Return the line in which a place begins, with the lines above and below; a long one as a window on the place."""
    begin, row = before.lines.starts[line - 1], before.lines.contents[line - 1]
    if len(row) <= _CONTEXT_CHARS:
        return excerpt_lines(before, [(max(line - 1, 1), line + 1)], room=4 * _CONTEXT_CHARS, width=_CONTEXT_CHARS)
    decode = before.encoding.decode
    column = max(len(decode(before.data[begin:offset])) - _CONTEXT_CHARS // 2, 0)
    window = escape_text(decode(row)[column : column + _CONTEXT_CHARS], keep="\t")
    return Excerpt(rows=(f"{line}→{'…' * (column > 0)}{window}…",), shown=(), truncated=False, complete=False)
