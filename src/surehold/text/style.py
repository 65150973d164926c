"""A replacement in the file's own style: what old and new text share keeps the bytes that the file has there.

1. Shared are the equal beginning, the equal end, and between them equal stretches that hold a letter or digit: a lone
   quote or bracket between changed words is not the same one.
2. Everything else is written as it was sent; only its line breaks follow the file: they take the terminator of the line
   break before them in the result, else of the line in which the replacement begins.
3. Bytes of the file are copied, never decoded and encoded again.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from surehold.text.align import Block, align
from surehold.text.matching import Match
from surehold.text.snapshot import Snapshot

_SIGN = re.compile(r"\r\n|[\s\S]")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class _Sign:
    """One character of the file, or one CRLF, with its bytes."""

    text: str
    data: bytes

    @property
    def breaks(self) -> bool:
        return self.text in ("\n", "\r\n", "\r")


def restyled(snapshot: Snapshot, match: Match, old: str, new: str, *, breaks_as_sent: bool = False) -> bytes:
    """Return the bytes of `new` for a place where `old` was found, by whichever tier."""
    there = _signs(snapshot, match)
    before, after = _SIGN.findall(old), _SIGN.findall(new)
    # Bytes that stand for two code points at once cannot be told apart by characters: then nothing is shared.
    blocks = _shared(before, after) if len(there) == len(before) else []
    ending = _Ending(snapshot, match, as_sent=breaks_as_sent)
    out, at = list[bytes](), 0
    for block in [*blocks, Block(len(before), len(after), 0)]:
        out += _inserted(snapshot, after[at : block.b], ending)
        for sign in there[block.a : block.a + block.size]:
            if sign.breaks:
                ending.last = sign.data
            out.append(sign.data)
        at = block.b + block.size
    return b"".join(out)


def _shared(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Return the stretches that both have, in order."""

    def is_same(block: Block) -> bool:
        at_start = block.a == block.b == 0
        at_end = block.a + block.size == len(before) and block.b + block.size == len(after)
        return at_start or at_end or bool(_WORD.search("".join(before[block.a : block.a + block.size])))

    return [block for block in align(_spelled(before), _spelled(after)) if is_same(block)]


def _spelled(signs: Sequence[str]) -> list[bytes]:
    return [sign.encode("utf-8", "surrogatepass") for sign in signs]


class _Ending:
    """Which terminator the next new line break gets."""

    def __init__(self, snapshot: Snapshot, match: Match, *, as_sent: bool) -> None:
        self.as_sent = as_sent
        self.last = b""
        self._snapshot, self._start = snapshot, match.start

    def of(self, sent: str) -> bytes:
        """Return the bytes of a line break that was sent like this."""
        snapshot = self._snapshot
        if self.as_sent or (sent == "\r" and snapshot.lines.style != "cr"):
            return snapshot.encoding.newline(sent)
        if not self.last:
            self.last = self._here()
        return self.last

    def _here(self) -> bytes:
        lines = self._snapshot.lines
        if lines.style in ("lf", "none"):
            return self._snapshot.encoding.newline("\n")
        if lines.style != "mixed":
            return lines.dominant
        index = lines.index_at(self._start)
        return lines.terminator(index) or (lines.terminator(index - 1) if index else b"") or lines.dominant


def _inserted(snapshot: Snapshot, signs: Sequence[str], ending: _Ending) -> Iterator[bytes]:
    """Yield the bytes of what was sent, run by run between line breaks."""
    run = list[str]()
    for sign in signs:
        if sign in ("\n", "\r\n", "\r"):
            yield snapshot.encoding.encode("".join(run))
            yield ending.of(sign)
            run.clear()
        else:
            run.append(sign)
    yield snapshot.encoding.encode("".join(run))


def _signs(snapshot: Snapshot, match: Match) -> list[_Sign]:
    """Return the characters of a place with the bytes of each."""
    data, encoding = snapshot.data[match.start : match.end], snapshot.encoding
    if encoding.is_raw or (data.isascii() and encoding.width == 1):
        text = data.decode("latin-1")
        return [_Sign(sign, sign.encode("latin-1")) for sign in _SIGN.findall(text)]
    decoder = codecs.getincrementaldecoder(encoding.name)("backslashreplace")
    signs, begin = list[_Sign](), 0
    for at in range(1, len(data) + 1):
        text = decoder.decode(data[at - 1 : at], final=at == len(data))
        if not text:
            continue
        sign = _Sign(text, data[begin:at])
        begin = at
        if text == "\n" and signs and signs[-1].text == "\r":
            sign = _Sign("\r\n", signs.pop().data + sign.data)
        signs.append(sign)
    return signs
