"""What ripgrep says when a tree is swept: a block for each file, a record for each matching line, never any text of a file.

1. A block is `path NUL records`, and an empty line stands between two blocks; no record is empty. A path may hold empty
   lines itself: what has no NUL is the beginning of a path.
2. A record is `line:column:`, or `offset:` when lines are not wanted, and how many matches there are.
3. A file with zero bytes has one last line that says where the first one is. In the first 8 KiB it makes the file binary;
   behind them it is text, and must be searched again, since ripgrep takes the byte for a line end.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from surehold.search.engine import Place, Span, Swept
from surehold.search.running import Run
from surehold.search.values import Search, Want
from surehold.text.encoding import SNIFF

MAX_OUTPUT = 1 << 28
"""More is not collected."""
_RECORDS = (
    "--heading",
    "--null",
    "--with-filename",
    "--max-columns=1",
    "--no-max-columns-preview",
    "--binary",
    "--stats",
)
_WANTED: dict[Want, tuple[str, ...]] = {
    "files": ("--no-line-number", "--byte-offset", "--max-count=1"),
    "counts": ("--no-line-number", "--byte-offset"),
    "lines": ("--line-number", "--column"),
}
COUNTS = ("--count-matches", "--null", "--with-filename", "--text")
"""A match of several lines is in several records, so it cannot be counted by them."""
_STATS = re.compile(rb"\n(\d+) matches\n\d+ matched lines\n\d+ files contained matches\n(\d+) files searched\n[^\0]*\Z")
_STATS_ROOM = 1000
_ZERO = re.compile(rb': binary file matches \(found "\\0" byte around offset (\d+)\)\Z')
_ZERO_ROOM = 100
_RECORD = re.compile(rb"^(\d+):(?:(\d+):)?", re.MULTILINE)
_MANY = re.compile(rb"\[Omitted long line with (\d+) matches\]")
_ONE = b" 1 matches]"
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
"""With `--crlf`, ripgrep ends its own lines that way too."""


def matching(search: Search) -> list[str]:
    """Return the flags that say what a match is."""
    return [
        *(("--multiline", _DOT[search.dot_all]) if is_multiline(search) else ()),
        *("--crlf", f"--engine={'pcre2' if search.look_around else 'default'}"),
        "--case-sensitive" if search.case_sensitive else "--ignore-case",
        *(("--fixed-strings",) if search.mode == "text" else ()),
        f"--regexp={search.query}",
    ]


_DOT = {False: "--no-multiline-dotall", True: "--multiline-dotall"}


def is_multiline(search: Search) -> bool:
    """Tell whether a match may go over a line end."""
    return search.multiline or (search.mode == "text" and ("\n" in search.query or "\r" in search.query))


def flags(search: Search, want: Want) -> tuple[str, ...]:
    """Return the flags that make ripgrep say what is wanted."""
    return (*_RECORDS, *_WANTED[want], *matching(search))


def read(done: Run, want: Want) -> Swept:
    """Read what was said, all of it or the part that there was time for."""
    output = done.output
    stats = _STATS.search(output, max(0, len(output) - _STATS_ROOM))
    swept = Swept(
        matches=int(stats[1]) if stats else 0,
        scanned=int(stats[2]) if stats else None,
        overflowed=done.overflowed,
        timed_out=done.timed_out,
    )
    body = output[: stats.start() + 1] if stats else output[: output.rfind(b"\n") + 1]
    _add_blocks(swept, body, want)
    return swept


def counts(done: Run) -> dict[str, int]:
    """Read how many matches each file has."""
    return {_name(path): int(count) for path, count in _COUNT.findall(done.output)}


def _add_blocks(swept: Swept, body: bytes, want: Want) -> None:
    begun = b""
    for piece in body.rstrip(b"\n").split(b"\n\n"):
        block = begun + piece if begun else piece.lstrip(b"\n")
        if not block:
            continue
        zero = _ZERO.search(block, max(0, len(block) - _ZERO_ROOM)) if block.endswith(b")") else None
        path, nul, records = block.partition(b"\0")
        if zero is not None:
            path = path if nul else block[: zero.start()]
            _add_zero(swept, _name(path), int(zero[1]))
        elif not nul:
            begun = block + b"\n\n"
            continue
        else:
            _add(swept, _name(path), records, want)
        begun = b""


def _add_zero(swept: Swept, path: str, offset: int) -> None:
    if offset < SNIFF:
        swept.binary.append(path)
    else:
        swept.doubtful.append(path)


def _add(swept: Swept, path: str, records: bytes, want: Want) -> None:
    if want == "files":
        swept.counts[path] = 1
        return
    lines = records.count(b"\n") + 1
    if want == "lines":
        swept.counts[path], swept.places[path] = lines, records
    else:
        swept.counts[path] = _matches_in(records, lines)


def _matches_in(records: bytes, lines: int) -> int:
    if records.count(_ONE) == lines:
        return lines
    return lines + sum(int(count) - 1 for count in _MANY.findall(records))  # a record without a count is one match


def keep(swept: Swept, is_wanted: Callable[[str], bool]) -> None:
    """Leave out what is not wanted."""
    swept.counts = {path: count for path, count in swept.counts.items() if is_wanted(path)}
    swept.doubtful = [path for path in swept.doubtful if is_wanted(path)]
    swept.binary = [path for path in swept.binary if is_wanted(path)]


def matches_of(swept: Swept) -> int:
    """Count the matches in the files that are left."""
    kept = (swept.places[path] for path in swept.counts if path in swept.places)
    return sum(_matches_in(each, each.count(b"\n") + 1) for each in kept if isinstance(each, bytes))


def places(records: bytes) -> list[Place]:
    """Return the matching lines of a block."""
    return [(int(line), int(column or 1) - 1) for line, column in _RECORD.findall(records)]


def spans(output: bytes) -> list[Span]:
    """Return the matches in the one file that was searched; what is said of them is JSON then."""
    events = (json.loads(row) for row in output.split(b"\n")[:-1])
    return [span for event in events if event["type"] == "match" for span in _spans(event["data"])]


def _spans(data: Any) -> Iterator[Span]:
    begin = data["absolute_offset"]
    size = len(text_of(data["lines"]))
    for each in data["submatches"]:
        if each["start"] < size or not data["submatches"][1:]:
            yield begin + each["start"], begin + each["end"]
    if not data["submatches"]:  # it matches only by what stands behind its last character
        yield begin, begin


def text_of(value: Any) -> bytes:
    """Return the bytes behind a text in JSON."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _name(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))
