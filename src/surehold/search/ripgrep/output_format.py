"""The output of ripgrep: the flags that select it, and the parser that reads it.

1. Normally there is one block per file, `path NUL records`, with an empty line between two blocks; no record is empty. A
   path may contain empty lines: a block without NUL is the beginning of a path. It never contains file content.
2. A record is `line:column:`, or `offset:` if lines are not requested, and the number of matches. If every match is wanted
   there is a record for each, and an empty match has nothing after the column, or no column.
3. A file with NUL bytes has one last line, a notice with the offset of the first one. In the first 8 KiB it makes the file
   binary; after them the file is text and must be searched again, since ripgrep treats the byte as a line end.
   If ripgrep has only one thread, empty lines end in CRLF, and no empty line precedes a notice.
4. Matches that may span lines are read from JSON if each of them is wanted: records are about lines.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from surehold.search.engine import Deadline, MatchPosition, Span, TreeMatches, drop_empty_matches, positions_of_matches
from surehold.search.literal_engine import escape_lines
from surehold.search.query import Search, Want
from surehold.search.ripgrep.program import CompletedRun
from surehold.text.encoding import SNIFF_BYTES

MAX_OUTPUT_BYTES = 1 << 28
"""More is not collected."""
MAX_JSON_BYTES = 1 << 25
"""The same for JSON, which contains the matching lines."""
_RECORD_FLAGS = (
    *("--heading", "--null", "--with-filename", "--max-columns=1", "--no-max-columns-preview", "--binary", "--stats"),
)
_FLAGS_BY_WANT: dict[Want, tuple[str, ...]] = {
    "files": ("--no-line-number", "--byte-offset", "--max-count=1"),
    "counts": ("--no-line-number", "--byte-offset"),
    "lines": ("--line-number", "--column"),
    "matches": ("--line-number", "--column", "--only-matching"),
}
_COUNT_FLAGS = ("--count-matches", "--null", "--with-filename", "--text")
"""A match of several lines is in several records, so it cannot be counted by them."""
_STATS = re.compile(rb"\n(\d+) matches\n\d+ matched lines\n\d+ files contained matches\n(\d+) files searched\n[^\0]*\Z")
_STATS_BYTES = 1000
_BLOCKS_PER_REPORT = 1024
_NUL_NOTICE = re.compile(rb': binary file matches \(found "\\0" byte around offset (\d+)\)\Z')
_NUL_NOTICE_BYTES = 100
_NOTICE_TAIL = b' (found "\\0" byte around offset '
_RECORD = re.compile(rb"^(\d+):(?:(\d+):)?([^\r\n]?)", re.MULTILINE)
_EMPTY_RECORD = re.compile(rb"(?:^|\0)\d+:(?:\d+:\r?$|\r?$|[^\d\n]|\d+(?![\d:]))", re.MULTILINE)
_MATCH_COUNT = re.compile(rb"\[Omitted long line with (\d+) matches\]")
_ONE_MATCH = b" 1 matches]"
_FILE_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
"""With `--crlf`, ripgrep ends its own lines that way too."""
_DOT_FLAGS = {False: "--no-multiline-dotall", True: "--multiline-dotall"}


def _match_flags(search: Search) -> list[str]:
    spans_lines = search.mode == "text" and "\n" in search.query
    return [
        *(("--multiline", _DOT_FLAGS[search.dot_all]) if is_multiline(search) else ()),
        *("--crlf", f"--engine={'pcre2' if search.look_around else 'default'}"),
        "--case-sensitive" if search.case_sensitive else "--ignore-case",
        *(("--fixed-strings",) if search.mode == "text" and not spans_lines else ()),
        f"--regexp={escape_lines(search.query) if spans_lines else search.query}",
    ]


def is_multiline(search: Search) -> bool:
    return search.multiline or (search.mode == "text" and ("\n" in search.query or "\r" in search.query))


def is_json(search: Search, want: Want) -> bool:
    return want == "matches" and is_multiline(search)


def output_flags(search: Search, want: Want) -> tuple[str, ...]:
    if is_json(search, want):
        return ("--json", "--binary", *_match_flags(search))
    return (*_RECORD_FLAGS, *_FLAGS_BY_WANT[want], *_match_flags(search))


def span_flags(search: Search) -> tuple[str, ...]:
    return ("--json", "--text", *_match_flags(search))


def count_flags(search: Search) -> tuple[str, ...]:
    return (*_COUNT_FLAGS, *_match_flags(search))


def parse_output(done: CompletedRun, search: Search, want: Want, deadline: Deadline | None = None) -> TreeMatches:
    """Read the output, all of it or the part that there was time for; the deadline hears how far that is."""
    parse = _parse_match_positions if want == "matches" else _parse_line_positions
    found = TreeMatches(overflowed=done.overflowed, timed_out=done.timed_out, parse=parse)
    if is_json(search, want):
        _add_events(found, done.output)
        return found
    output = done.output
    stats = _STATS.search(output, max(0, len(output) - _STATS_BYTES))
    found.matches, found.scanned = (int(stats[1]), int(stats[2])) if stats else (0, None)
    body = output[: stats.start() + 1] if stats else output[: output.rfind(b"\n") + 1]
    _add_blocks(found, body, _COUNTERS[want], deadline)
    return found


def parse_counts(done: CompletedRun) -> dict[str, int]:
    return {_decode_name(path): int(count) for path, count in _FILE_COUNT.findall(done.output)}


def _count_wanted_matches(records: bytes) -> int:
    """Count them; of empty ones, which are rare, not every one counts."""
    return len(_parse_match_positions(records)) if _EMPTY_RECORD.search(records) else _count_records(records)


def _count_records(records: bytes) -> int:
    return records.count(b"\n") + 1


def _count_matches(records: bytes) -> int:
    lines = _count_records(records)
    if records.count(_ONE_MATCH) == lines:
        return lines
    # a record without a count is one match
    return lines + sum(int(count) - 1 for count in _MATCH_COUNT.findall(records))


_COUNTERS: dict[Want, Callable[[bytes], int]] = {
    "files": lambda _: 1,
    "counts": _count_matches,
    "lines": _count_records,
    "matches": _count_wanted_matches,
}


def _add_blocks(found: TreeMatches, body: bytes, count: Callable[[bytes], int], deadline: Deadline | None) -> None:
    begun = b""
    for number, piece in enumerate(body.replace(b"\n\r\n", b"\n\n").rstrip(b"\n").split(b"\n\n")):
        if deadline is not None and number % _BLOCKS_PER_REPORT == 0:
            deadline.report(number, None, "files with matches read")
        block = begun + piece if begun else piece.lstrip(b"\n")
        while block.endswith(b")") and (notice := _NUL_NOTICE.search(block, max(0, len(block) - _NUL_NOTICE_BYTES))):
            block, path = _split_notice(block[: notice.start()])
            _add_file_with_nul(found, _decode_name(path), int(notice[1]))
        path, nul, records = block.partition(b"\0")
        if nul:
            name = _decode_name(path)
            found.counts[name], found.places[name] = count(records), records
        begun = block + b"\n\n" if block and not nul else b""


def _split_notice(block: bytes) -> tuple[bytes, bytes]:
    """Split the path of a notice from what precedes it, unless that is about the same file."""
    path, nul, records = block.partition(b"\0")
    if nul and records.endswith(b"\n" + path):
        return b"", path
    begin, earlier = block.rfind(b"\r\n") + 2 if nul else 0, block.rfind(_NOTICE_TAIL)
    if earlier >= 0:
        begin = max(begin, block.find(b")\n", earlier) + 2)
    return block[:begin].rstrip(b"\r\n"), block[begin:]


def _add_file_with_nul(found: TreeMatches, name: str, offset: int) -> None:
    if offset < SNIFF_BYTES:
        found.binary.append(name)
    else:
        found.doubtful.append(name)


def keep_wanted(found: TreeMatches, is_wanted: Callable[[str], bool]) -> None:
    found.counts = {path: count for path, count in found.counts.items() if is_wanted(path)}
    found.doubtful = [path for path in found.doubtful if is_wanted(path)]
    found.binary = [path for path in found.binary if is_wanted(path)]


def count_matches(found: TreeMatches) -> int:
    """Count the matches in the files that are left, by their records."""
    kept = (found.places[path] for path in found.counts)
    return sum(_count_matches(each) for each in kept if isinstance(each, bytes))


def _parse_line_positions(records: bytes) -> list[MatchPosition]:
    return [(int(line), int(column or 1) - 1) for line, column, _ in _RECORD.findall(records)]


def _parse_match_positions(records: bytes) -> list[MatchPosition]:
    rows = _RECORD.findall(records)
    return drop_empty_matches((int(line), int(column or 1) - 1, not (column and text)) for line, column, text in rows)


def _add_events(found: TreeMatches, output: bytes) -> None:
    for kind, data in _read_events(output):
        if kind == "match":
            places = positions_of_matches(_decode_text(data["lines"]), list(_spans_in_event(data, 0)))
            name, line = _decode_name(_decode_text(data["path"])), data["line_number"] - 1
            known = found.places.setdefault(name, [])
            assert isinstance(known, list)
            known += [(line + number, begins) for number, begins in places]
            found.counts[name] = len(known)
        elif kind == "end" and data["binary_offset"] is not None:
            name = _decode_name(_decode_text(data["path"]))
            found.counts.pop(name, None)
            _add_file_with_nul(found, name, data["binary_offset"])
        elif kind == "summary":
            found.scanned = data["stats"]["searches"]


def parse_spans(output: bytes) -> list[Span]:
    matches = (data for kind, data in _read_events(output) if kind == "match")
    return [span for data in matches for span in _spans_in_event(data, data["absolute_offset"])]


def _read_events(output: bytes) -> Iterator[tuple[str, Any]]:
    for row in output.split(b"\n")[:-1]:
        event = json.loads(row)
        yield event["type"], event["data"]


def _spans_in_event(data: Any, begin: int) -> Iterator[Span]:
    size = len(_decode_text(data["lines"]))
    for each in data["submatches"]:
        if each["start"] < size or not data["submatches"][1:]:
            yield begin + each["start"], begin + each["end"]
    if not data["submatches"]:  # it matches only at the end of its last line
        yield begin, begin


def _decode_text(value: Any) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _decode_name(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))
