"""The output format of ripgrep: the flags that select it, and the parser that reads it. It never contains file content.

1. There is one block per file, `path NUL records`, with an empty line between two blocks; no record is empty. A path may
   contain empty lines: a block without NUL is the beginning of a path.
2. A record is `line:column:`, or `offset:` if lines are not requested, and the number of matches.
3. A file with NUL bytes has one last line with the offset of the first one. In the first 8 KiB it makes the file binary;
   after them the file is text and must be searched again, since ripgrep treats the byte as a line end.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from surehold.search.engine import MatchPosition, Span, TreeMatches
from surehold.search.query import Search, Want
from surehold.search.ripgrep.program import CompletedRun
from surehold.text.encoding import SNIFF_BYTES

MAX_OUTPUT_BYTES = 1 << 28
"""More is not collected."""
_RECORD_FLAGS = (
    "--heading",
    "--null",
    "--with-filename",
    "--max-columns=1",
    "--no-max-columns-preview",
    "--binary",
    "--stats",
)
_FLAGS_BY_WANT: dict[Want, tuple[str, ...]] = {
    "files": ("--no-line-number", "--byte-offset", "--max-count=1"),
    "counts": ("--no-line-number", "--byte-offset"),
    "lines": ("--line-number", "--column"),
}
COUNT_FLAGS = ("--count-matches", "--null", "--with-filename", "--text")
"""A match of several lines is in several records, so it cannot be counted by them."""
_STATS = re.compile(rb"\n(\d+) matches\n\d+ matched lines\n\d+ files contained matches\n(\d+) files searched\n[^\0]*\Z")
_STATS_BYTES = 1000
_NUL_NOTICE = re.compile(rb': binary file matches \(found "\\0" byte around offset (\d+)\)\Z')
_NUL_NOTICE_BYTES = 100
_RECORD = re.compile(rb"^(\d+):(?:(\d+):)?", re.MULTILINE)
_MATCH_COUNT = re.compile(rb"\[Omitted long line with (\d+) matches\]")
_ONE_MATCH = b" 1 matches]"
_FILE_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
"""With `--crlf`, ripgrep ends its own lines that way too."""


def match_flags(search: Search) -> list[str]:
    """Return the flags that say what a match is."""
    return [
        *(("--multiline", _DOT_FLAGS[search.dot_all]) if is_multiline(search) else ()),
        *("--crlf", f"--engine={'pcre2' if search.look_around else 'default'}"),
        "--case-sensitive" if search.case_sensitive else "--ignore-case",
        *(("--fixed-strings",) if search.mode == "text" else ()),
        f"--regexp={search.query}",
    ]


_DOT_FLAGS = {False: "--no-multiline-dotall", True: "--multiline-dotall"}


def is_multiline(search: Search) -> bool:
    """Tell whether a match may go over a line end."""
    return search.multiline or (search.mode == "text" and ("\n" in search.query or "\r" in search.query))


def output_flags(search: Search, want: Want) -> tuple[str, ...]:
    """Return the flags that make ripgrep say what is wanted."""
    return (*_RECORD_FLAGS, *_FLAGS_BY_WANT[want], *match_flags(search))


def parse_output(done: CompletedRun, want: Want) -> TreeMatches:
    """Read what was said, all of it or the part that there was time for."""
    output = done.output
    stats = _STATS.search(output, max(0, len(output) - _STATS_BYTES))
    swept = TreeMatches(
        matches=int(stats[1]) if stats else 0,
        scanned=int(stats[2]) if stats else None,
        overflowed=done.overflowed,
        timed_out=done.timed_out,
    )
    body = output[: stats.start() + 1] if stats else output[: output.rfind(b"\n") + 1]
    _add_blocks(swept, body, want)
    return swept


def parse_counts(done: CompletedRun) -> dict[str, int]:
    """Read how many matches each file has."""
    return {_decode_name(path): int(count) for path, count in _FILE_COUNT.findall(done.output)}


def _add_blocks(swept: TreeMatches, body: bytes, want: Want) -> None:
    begun = b""
    for piece in body.rstrip(b"\n").split(b"\n\n"):
        block = begun + piece if begun else piece.lstrip(b"\n")
        if not block:
            continue
        zero = _NUL_NOTICE.search(block, max(0, len(block) - _NUL_NOTICE_BYTES)) if block.endswith(b")") else None
        path, nul, records = block.partition(b"\0")
        if zero is not None:
            path = path if nul else block[: zero.start()]
            _add_file_with_nul(swept, _decode_name(path), int(zero[1]))
        elif not nul:
            begun = block + b"\n\n"
            continue
        else:
            _add_file(swept, _decode_name(path), records, want)
        begun = b""


def _add_file_with_nul(swept: TreeMatches, path: str, offset: int) -> None:
    if offset < SNIFF_BYTES:
        swept.binary.append(path)
    else:
        swept.doubtful.append(path)


def _add_file(swept: TreeMatches, path: str, records: bytes, want: Want) -> None:
    if want == "files":
        swept.counts[path] = 1
        return
    lines = records.count(b"\n") + 1
    if want == "lines":
        swept.counts[path], swept.places[path] = lines, records
    else:
        swept.counts[path] = _count_in_records(records, lines)


def _count_in_records(records: bytes, lines: int) -> int:
    if records.count(_ONE_MATCH) == lines:
        return lines
    return lines + sum(
        int(count) - 1 for count in _MATCH_COUNT.findall(records)
    )  # a record without a count is one match


def keep_wanted(swept: TreeMatches, is_wanted: Callable[[str], bool]) -> None:
    """Leave out what is not wanted."""
    swept.counts = {path: count for path, count in swept.counts.items() if is_wanted(path)}
    swept.doubtful = [path for path in swept.doubtful if is_wanted(path)]
    swept.binary = [path for path in swept.binary if is_wanted(path)]


def count_matches(swept: TreeMatches) -> int:
    """Count the matches in the files that are left."""
    kept = (swept.places[path] for path in swept.counts if path in swept.places)
    return sum(_count_in_records(each, each.count(b"\n") + 1) for each in kept if isinstance(each, bytes))


def parse_positions(records: bytes) -> list[MatchPosition]:
    """Return the matching lines of a block."""
    return [(int(line), int(column or 1) - 1) for line, column in _RECORD.findall(records)]


def parse_spans(output: bytes) -> list[Span]:
    """Return the matches in the one file that was searched; what is said of them is JSON then."""
    events = (json.loads(row) for row in output.split(b"\n")[:-1])
    return [span for event in events if event["type"] == "match" for span in _spans_in_event(event["data"])]


def _spans_in_event(data: Any) -> Iterator[Span]:
    begin = data["absolute_offset"]
    size = len(decode_text(data["lines"]))
    for each in data["submatches"]:
        if each["start"] < size or not data["submatches"][1:]:
            yield begin + each["start"], begin + each["end"]
    if not data["submatches"]:  # it matches only by what stands behind its last character
        yield begin, begin


def decode_text(value: Any) -> bytes:
    """Return the bytes behind a text in JSON."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _decode_name(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))
