"""How a notebook writes its JSON, learned from the file, so that what is added looks the same.

Indent, line endings, blanks around colons, the order of keys, sources as lists or as strings, which characters are
escaped: each is copied from the nearest place that shows it, and derived only where no place shows it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from surehold.text.notebook.json_spans import JsonBlock, JsonText
from surehold.text.notebook.model import Notebook, NotebookCell

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN_SIGNS = frozenset("!#$%&'()*+,-./:;<=>?@[]^_`{|}~\x7f")
"""ASCII that needs no escape, and that no escape is spelled with."""
_SAMPLE_CHARS = 256 * 1024
"""So many characters of sources show how characters are spelled."""
_MAX_ESCAPES_TRIED = 100_000
"""So many escapes of the file are looked at where the sources show none beyond ASCII."""
_ASCII = 0x80
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSpelling:
    """Which characters are written as escapes."""

    ascii_only: bool
    known: Mapping[str, str]
    """Characters that are escaped without need, and how."""

    def json_string(self, text: str) -> str:
        spelled = json.dumps(text, ensure_ascii=self.ascii_only)
        for sign, escape in self.known.items():
            spelled = spelled.replace(sign, escape)
        return spelled


def _learn_spelling(notebook: Notebook, near: int, *, new: str) -> JsonSpelling:
    """Learn how to spell a new text from the sources, the nearest cell first, and if need be from all of the file."""
    known, raw, wide = dict[str, str](), set[str](), False
    for sample in _source_samples(notebook, near):
        raw.update(_ESCAPE.sub("", sample))
        for match in _ESCAPE.finditer(sample):
            sign = chr(int(match[1], 16)) if match[1] else match[2]
            wide = wide or (bool(match[1]) and ord(sign) >= _ASCII)
            if (match[1] or sign == "/") and (sign in _PLAIN_SIGNS or ord(sign) >= _ASCII):
                known.setdefault(sign, match[0])
    matters = not new.isascii() or "\x7f" in new  # who escapes the one escapes the other
    ascii_only = matters and notebook.text.isascii() and (wide or _escapes_wide(notebook.text))
    useful = {
        sign: escape
        for sign, escape in known.items()
        if sign not in raw and ord(sign) not in _SURROGATES and not (ascii_only and ord(sign) >= _ASCII)
    }
    return JsonSpelling(ascii_only=ascii_only, known=useful)


def _source_samples(notebook: Notebook, near: int) -> Iterator[str]:
    room = _SAMPLE_CHARS
    for cell in sorted(notebook.cells, key=lambda one: abs(one.index - near)):
        begin, end = cell.source_place
        yield notebook.text[begin : end + 1][:room].rstrip("\\")
        room -= end - begin
        if room <= 0:
            break


def _escapes_wide(text: str) -> bool:
    """Tell whether a character beyond ASCII is escaped somewhere in the first so many escapes of a sound JSON text."""
    at = text.find("\\")
    for _ in range(_MAX_ESCAPES_TRIED):
        if at < 0:
            return False
        if text[at + 1] == "u" and int(text[at + 2 : at + 6], 16) >= _ASCII:
            return True
        at = text.find("\\", at + 2)  # an escaped backslash begins no escape
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonGaps:
    """What is between the parts of an object or an array."""

    opening: str
    """After the opening bracket."""
    between: str
    """From one value to the next, comma included."""
    closing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookLayout:
    """Where blanks and line ends are, and how strings are spelled."""

    spelling: JsonSpelling
    colon: str
    """From a key to its value."""
    cells: JsonGaps
    members: JsonGaps
    """Of a cell."""
    rows: JsonGaps
    """Of a source that is a list."""

    def write_member(self, key: str, value: str) -> str:
        return f"{self.spelling.json_string(key)}{self.colon}{value}"


def learn_layout(notebook: Notebook, near: int, *, new: str) -> NotebookLayout:
    """Copy the layout of the nearest cell, for a new text; what no cell shows is derived from the notebook's members."""
    text, top, array = notebook.text, notebook.place, notebook.array
    outer = _read_gaps(text, top) or JsonGaps(opening="", between=", ", closing="")
    near_first = sorted(notebook.cells, key=lambda one: abs(one.index - near))
    nearest = near_first[0].place if near_first else None
    sample = nearest.members[0] if nearest else top.members[0]
    listed = (JsonText(text).read_items(cell.source_member.start) for cell in near_first if cell.listed)
    rows = next((gaps for one in listed if (gaps := _read_gaps(text, one))), None)
    return NotebookLayout(
        spelling=_learn_spelling(notebook, near, new=new),
        colon=text[sample.key_end : sample.start],
        cells=_fill_gaps(_read_gaps(text, array), outer, depth=2),
        members=_fill_gaps(_read_gaps(text, nearest) if nearest else None, outer, depth=3),
        rows=_fill_gaps(rows, outer, depth=4),
    )


def order_keys(wanted: Sequence[str], cells: Sequence[NotebookCell], kind: str) -> list[str]:
    """Return the keys of a new cell in the order that the notebook's cells have, those of its kind first."""
    order = list[str]()
    for cell in sorted(cells, key=lambda one: one.kind != kind):
        order += [one.key for one in cell.place.members if one.key in wanted and one.key not in order]
        if len(order) == len(wanted):
            return order
    for key in sorted(set(wanted) - set(order)):
        order.insert(key_position(key, order), key)
    return order


def key_position(key: str, order: Sequence[str]) -> int:
    """Return where a key goes among others: by the alphabet if they are in that order, as Jupyter writes them, else after them."""
    if list(order) != sorted(order):
        return len(order)
    return next((index for index, one in enumerate(order) if one > key), len(order))


def split_source(source: str) -> list[str]:
    r"""Split a source as notebooks do: every line with its `\n`."""
    *ended, last = source.split("\n")
    return [row + "\n" for row in ended] + ([last] if last else [])


def _read_gaps(text: str, outer: JsonBlock) -> JsonGaps | None:
    """Return what is between the members; without a second one it does not show what is between two."""
    inner = outer.members
    if not inner:
        return None
    return JsonGaps(
        opening=text[outer.start + 1 : inner[0].at],
        between=text[inner[0].end : inner[1].at] if inner[1:] else "",
        closing=text[inner[-1].end : outer.end - 1],
    )


def _fill_gaps(gaps: JsonGaps | None, outer: JsonGaps, *, depth: int) -> JsonGaps:
    """Return the gaps of something at this depth, with what was not seen."""
    if gaps is None:
        blank, unit = _split_indent(outer.opening)
        if not blank:
            return JsonGaps(opening="", between=outer.between, closing="")
        inside, outside = blank + unit * depth, blank + unit * (depth - 1)
        return JsonGaps(opening=inside, between="," + inside, closing=outside)
    if gaps.between:
        return gaps
    flat = ", " if _split_indent(outer.between)[0] else outer.between
    return replace(gaps, between="," + gaps.opening if _split_indent(gaps.opening)[0] else flat)


def _split_indent(gap: str) -> tuple[str, str]:
    """Return the line end of a gap and the blanks after it; nothing when it stays on its line."""
    end = "\r\n" if "\r\n" in gap else "\n" if "\n" in gap else "\r" if "\r" in gap else ""
    return end, gap.rpartition(end)[2] if end else ""
