"""Prints to a terminal or a pipe: colours, tables, times and sizes, and text that cannot attack a terminal.

1. Nothing that comes from a file, a file name or an agent reaches the terminal without `reveal_text`. Only `read` and
   `diff` write the exact bytes, and only into a pipe.
2. Colour is an extra: every fact is also given in words or signs.
3. A table fits a terminal; what goes into a pipe is never cut.
"""

import os
import sys
import unicodedata
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TextIO

from surehold.text.escape import reveal_text

TextStyle = Literal["bold", "dim", "red", "green", "yellow", "cyan", "plain"]
_STYLE_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_FALLBACK_COLUMNS = 80
_COLUMN_GAP = "  "

MINUTE, HOUR, DAY = 60, 3600, 86_400
_MONTH_DAYS = 30


def display_width(text: str) -> int:
    return len(text) if text.isascii() else sum(_character_width(c) for c in text)


@cache
def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def cut_to_width(text: str, columns: int, *, keep: Literal["start", "end"] = "start") -> str:
    """Return the text, with `…` for what does not fit; `keep` names the end that stays."""
    if display_width(text) <= columns:
        return text
    if columns <= 0:
        return ""
    room, kept = columns - 1, list[str]()
    for character in text if keep == "start" else reversed(text):
        room -= _character_width(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…" if keep == "start" else "…" + "".join(reversed(kept))


def format_size(number: int) -> str:
    """Return a number of bytes, such as `1.5 KB`."""
    if number < 1024:  # noqa: PLR2004
        return f"{number} B"
    amount, units = number / 1024, ["KB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:  # noqa: PLR2004 - four digits would be the next unit
        amount /= 1024
        units.pop(0)
    return f"{amount:.1f} {units[0]}" if amount < 9.95 else f"{amount:.0f} {units[0]}"  # noqa: PLR2004


def format_age(then: datetime, now: datetime) -> str:
    """Return a time such as `5 min ago`; the date once it is a month old."""
    seconds = (now - then).total_seconds()
    if seconds < -MINUTE:
        return then.astimezone().strftime("%Y-%m-%d")
    if seconds < 10:  # noqa: PLR2004
        return "just now"
    for limit, unit, name in ((MINUTE, 1, "s"), (HOUR, MINUTE, "min"), (DAY, HOUR, "h")):
        if seconds < limit:
            return f"{seconds // unit:.0f} {name} ago"
    days = int(seconds // DAY)
    if days < _MONTH_DAYS:
        return "1 day ago" if days == 1 else f"{days} days ago"
    return then.astimezone().strftime("%Y-%m-%d")


def format_count(number: int, one: str, many: str = "") -> str:
    """Return `1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


TableCell = tuple[str, TextStyle]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    title: str
    align: Literal["left", "right"] = "left"
    keep: Literal["start", "end"] = "start"
    """Which end of a text stays if it must be cut."""
    least: int = 0
    """Its minimum width; 0 for a column that is never cut."""
    rank: int = 0
    """Columns of a higher rank are left out first if cutting is not enough; 0 always stays."""


class OutputFailed(Exception):
    """The stream cannot be written to; the message says why."""


@dataclass(frozen=True, slots=True)
class Output:
    """Prints to one stream, with or without colour."""

    stream: TextIO
    _: KW_ONLY
    colour: bool
    columns: int
    """Width of the terminal; 0 for no limit."""
    now: datetime
    is_terminal: bool

    def print_line(self, text: str = "") -> None:
        with self.guard_stream() as stream:
            print(text, file=stream)

    def print_labelled(self, label: str, text: str, *styles: TextStyle) -> None:
        """Print `Label: text`, with only the label in colour."""
        self.print_line(f"{self.paint(label, *styles)}: {reveal_text(text)}")

    def print_numbered(self, rows: Sequence[str], *, start: int, last: int) -> None:
        """Print lines that are escaped already with their numbers, right-aligned as the last of them needs it."""
        digits = len(str(last))
        for number, row in enumerate(rows, start):
            self.print_line(f"{self.paint(f'{number:>{digits}}', 'dim')}  {row}".rstrip(" "))

    def print_json(self, document: Any) -> None:
        """Print one JSON document, in ASCII: names that are not UTF-8 are escaped."""
        import json

        self.print_line(json.dumps(document, indent=2, ensure_ascii=True, default=str))

    def print_json_line(self, document: Any) -> None:
        """Print one JSON document on a line of its own."""
        import json

        self.print_line(json.dumps(document, ensure_ascii=True, default=str))

    def write_bytes(self, data: bytes) -> None:
        with self.guard_stream() as stream:
            stream.flush()
            stream.buffer.write(data)
            stream.buffer.flush()

    def flush(self) -> None:
        with self.guard_stream() as stream:
            stream.flush()

    @contextmanager
    def guard_stream(self) -> Generator[TextIO]:
        """Tell a failure of the stream from any other failure; a closed pipe stays a `BrokenPipeError`."""
        try:
            yield self.stream
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.strerror or str(error)) from error

    @contextmanager
    def print_verdict(self, *, is_good: bool) -> Generator[None]:
        """Print what a command found; a bad verdict ends with its own exit code, whether it is read or not."""
        try:
            yield
        except BrokenPipeError:
            if is_good:
                raise

    def paint(self, text: str, *styles: TextStyle) -> str:
        codes = ";".join(_STYLE_CODES[style] for style in styles if style != "plain")
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and codes and text else text

    def format_time(self, timestamp: str) -> str:
        """Return a recorded time: relative on a terminal, exact in a pipe."""
        then = parse_timestamp(timestamp)
        return format_age(then, self.now) if self.is_terminal else then.strftime("%Y-%m-%dT%H:%M:%SZ")

    def print_table(self, columns: Sequence[TableColumn], rows: Iterable[Sequence[TableCell]]) -> None:
        """Print a table that fits the terminal; empty columns are left out."""
        texts: list[list[TableCell]] = [[(reveal_text(text), style) for text, style in row] for row in rows]
        shown = [i for i in range(len(columns)) if any(row[i][0] for row in texts)]
        natural = {i: max(display_width(text) for text in (columns[i].title, *(r[i][0] for r in texts))) for i in shown}
        widths = _fit_widths(columns, natural, self.columns)
        head: list[TableCell] = [(column.title.upper(), "dim") for column in columns]
        for row in [head, *texts]:
            self.print_line(_COLUMN_GAP.join(self._pad_cell(row[i], columns[i], widths[i]) for i in widths).rstrip())

    def _pad_cell(self, cell: TableCell, column: TableColumn, columns: int) -> str:
        text = cut_to_width(cell[0], columns, keep=column.keep)
        blanks = " " * (columns - display_width(text))
        painted = self.paint(text, cell[1])
        return blanks + painted if column.align == "right" else painted + blanks


def parse_timestamp(timestamp: str) -> datetime:
    then = datetime.fromisoformat(timestamp)
    return then.astimezone(UTC) if then.tzinfo else then.replace(tzinfo=UTC)


def output_to(stream: TextIO, *, no_color: bool) -> Output:
    is_terminal = stream.isatty()
    columns = terminal_columns(stream) if is_terminal else 0
    colour = _wants_colour(no_color=no_color, is_terminal=is_terminal)
    return Output(stream, colour=colour, columns=columns, now=datetime.now(UTC), is_terminal=is_terminal)


def prepare_streams() -> None:
    """Replace closed streams by /dev/null, and let characters that an encoding lacks be escaped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as in `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the rest of our life
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _wants_colour(*, no_color: bool, is_terminal: bool) -> bool:
    if no_color or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return is_terminal and os.environ.get("TERM") != "dumb"


def terminal_columns(stream: TextIO) -> int:
    """Return how wide the terminal is, or said to be; 80 where there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _FALLBACK_COLUMNS
    except (OSError, ValueError):
        return _FALLBACK_COLUMNS


def _fit_widths(columns: Sequence[TableColumn], widths: dict[int, int], room: int) -> dict[int, int]:
    """Make the table as narrow as the terminal: cut columns, then leave some out, then cut whatever is left."""
    while room and _total_width(widths) > room:
        least = {i: min(columns[i].least or number, number) for i, number in widths.items()}
        extra = max(widths, key=lambda i: columns[i].rank)
        if _total_width(least) > room and columns[extra].rank:
            widths = {i: number for i, number in widths.items() if i != extra}
            continue
        able = [i for i in widths if widths[i] > least[i]] or [i for i in widths if widths[i] > 1]
        if not able:
            return widths
        widest = max(able, key=lambda i: widths[i])
        widths = {**widths, widest: widths[widest] - 1}
    return widths


def _total_width(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(_COLUMN_GAP) * (len(widths) - 1)
