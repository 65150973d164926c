"""Matches a regular expression in a process of its own, which can be killed. Imports nothing of Surehold."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO


def offsets(pattern: "re.Pattern[str]", data: bytes, *, multiline: bool = False) -> list[int]:
    """Return where matches begin, in bytes."""
    text = data.decode("utf-8", "surrogateescape")
    spans = [match.span() for match in pattern.finditer(text)]
    if any(start == end for start, end in spans):
        found = kept(_with_lines(text, _spans(pattern, text), multiline=multiline))
    else:
        found = [start for start, _ in spans]
    return found if text.isascii() else _in_bytes(text, found)


def spans(pattern: "re.Pattern[str]", data: bytes) -> list[tuple[int, int]]:
    """Return where matches begin and end, in bytes; one behind the last line end is in no line, so it is none."""
    text = data.decode("utf-8", "surrogateescape")
    behind = -1 if text[-1:] in {"", "\n"} else len(text)
    found, ended = list[tuple[int, int]](), -1
    for start, end in _spans(pattern, text):
        if (start != end or start != ended) and (start < len(text) or start == behind):
            found.append((start, end))
        ended = end
    if text.isascii():
        return found
    both = iter(_in_bytes(text, [at for span in found for at in span]))
    return list(zip(both, both, strict=True))


def kept(matches: Iterable[tuple[int, int, bool]]) -> list[int]:
    """Return the offsets that count, from line, offset and emptiness: an empty match only where its line has no other."""
    found = list[int]()
    last_line, last_empty = -1, False
    for line, offset, empty in matches:
        if line == last_line and empty:
            continue
        if line == last_line and last_empty:
            found.pop()
        found.append(offset)
        last_line, last_empty = line, empty
    return found


def _spans(pattern: "re.Pattern[str]", text: str) -> Iterator[tuple[int, int]]:
    """Yield matches as ripgrep does: after an empty one it goes on at the next character."""
    at = 0
    while at <= len(text) and (match := pattern.search(text, at)):
        yield match.span()
        at = match.end() + (match.end() == match.start())


def _with_lines(text: str, spans: Iterable[tuple[int, int]], *, multiline: bool) -> Iterator[tuple[int, int, bool]]:
    ended, line, line_end = -1, 0, -1
    for start, end in spans:
        if start > line_end:
            line, line_end = start, text.find("\n", start)
            line_end = len(text) if line_end < 0 else line_end
        if start == end == len(text):  # behind the last character: that is the last line, if it has no end
            if text and text[-1] != "\n" and not multiline:
                yield line, text.rfind("\n") + 1, True
        elif start != end or start != ended:  # an empty match right behind another is none
            ended = end
            yield line, start, start == end


def _in_bytes(text: str, starts: list[int]) -> list[int]:
    found = list[int]()
    at = size = 0
    for start in starts:
        size += len(text[at:start].encode("utf-8", "surrogateescape"))
        at = start
        found.append(size)
    return found


def answer(source: BinaryIO, drain: BinaryIO) -> None:
    """Read an expression, then answer each text with its offsets, or with its spans, until there is no more."""
    expression, flags, multiline, *whole = json.loads(source.readline())
    try:
        pattern = re.compile(expression, flags)
    except (re.error, OverflowError, RecursionError) as error:
        drain.write(json.dumps({"error": str(error)}).encode() + b"\n")
        drain.flush()
        return
    while size := source.readline():
        text = source.read(int(size))
        found = spans(pattern, text) if any(whole) else offsets(pattern, text, multiline=multiline)
        drain.write(json.dumps({"offsets": found}).encode() + b"\n")
        drain.flush()


if __name__ == "__main__":
    answer(sys.stdin.buffer, sys.stdout.buffer)
