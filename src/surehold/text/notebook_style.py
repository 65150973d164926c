"""How one notebook writes its JSON, learned from what stands there, so that what is added looks the same.

Indent, line ends, blanks around colons, the order of keys, sources as lists or as strings, which characters are escaped:
each is copied from the nearest place that shows it, and derived only where nothing shows it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from surehold.text.json_spans import Item, JsonArray, JsonObject, JsonText, Member
from surehold.text.notebook import Cell, Notebook

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN_SIGNS = frozenset("!#$%&'()*+,-./:;<=>?@[]^_`{|}~\x7f")
"""ASCII that needs no escape, and that no escape is spelled with."""
_SAMPLE = 256 * 1024
"""So many characters of sources show how characters are spelled."""
_TRIED = 100_000
"""So many escapes of the file are looked at where the sources show none beyond ASCII."""
_ASCII = 0x80
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Which characters are written as escapes."""

    ascii_only: bool
    known: Mapping[str, str]
    """Characters that are escaped without need, and how."""

    def string(self, text: str) -> str:
        """Return a text as a JSON string."""
        spelled = json.dumps(text, ensure_ascii=self.ascii_only)
        for sign, escape in self.known.items():
            spelled = spelled.replace(sign, escape)
        return spelled


def spelling_of(notebook: Notebook, near: int, *, new: str) -> Spelling:
    """Learn how to spell a new text from the sources, the nearest cell first, and if need be from all of the file."""
    known, raw, wide = dict[str, str](), set[str](), False
    for sample in _samples(notebook, near):
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
    return Spelling(ascii_only=ascii_only, known=useful)


def _samples(notebook: Notebook, near: int) -> Iterator[str]:
    room = _SAMPLE
    for cell in sorted(notebook.cells, key=lambda one: abs(one.index - near)):
        begin, end = cell.source_place
        yield notebook.text[begin : end + 1][:room].rstrip("\\")
        room -= end - begin
        if room <= 0:
            break


def _escapes_wide(text: str) -> bool:
    """Tell whether a character beyond ASCII is escaped somewhere in the first so many escapes of a sound JSON text."""
    at = text.find("\\")
    for _ in range(_TRIED):
        if at < 0:
            return False
        if text[at + 1] == "u" and int(text[at + 2 : at + 6], 16) >= _ASCII:
            return True
        at = text.find("\\", at + 2)  # an escaped backslash begins no escape
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What stands between the parts of an object or an array."""

    opening: str
    """Behind the opening bracket."""
    between: str
    """From one value to the next, comma included."""
    closing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where blanks and line ends stand."""

    colon: str
    """From a key to its value."""
    cells: Gaps
    members: Gaps
    """Of a cell."""
    rows: Gaps
    """Of a source that is a list."""


def layout_of(notebook: Notebook, near: int) -> Layout:
    """Copy the layout of the nearest cell; what no cell shows is derived from the members of the notebook itself."""
    text, top, array = notebook.text, notebook.place, notebook.array
    outer = _gaps(text, top, top.members) or Gaps(opening="", between=", ", closing="")
    near_first = sorted(notebook.cells, key=lambda one: abs(one.index - near))
    nearest = near_first[0].place if near_first else None
    sample = nearest.members[0] if nearest else top.members[0]
    json = JsonText(text)
    listed = (json.array(cell.source_at, lambda at: json.value(at)[1]) for cell in near_first if cell.listed)
    rows = next((gaps for one in listed if (gaps := _gaps(text, one, one.items))), None)
    return Layout(
        colon=text[sample.key_end : sample.start],
        cells=_filled(_gaps(text, array, array.items), outer, depth=2),
        members=_filled(_gaps(text, nearest, nearest.members) if nearest else None, outer, depth=3),
        rows=_filled(rows, outer, depth=4),
    )


def ordered(wanted: Sequence[str], cells: Sequence[Cell], kind: str) -> list[str]:
    """Return the keys of a new cell in the order that the notebook's cells have, those of its kind first."""
    order = list[str]()
    for cell in sorted(cells, key=lambda one: one.kind != kind):
        order += [one.key for one in cell.place.members if one.key in wanted and one.key not in order]
        if len(order) == len(wanted):
            return order
    for key in sorted(set(wanted) - set(order)):
        order.insert(place_for(key, order), key)
    return order


def place_for(key: str, order: Sequence[str]) -> int:
    """Return where a key goes among others: by the alphabet if they stand so, as Jupyter writes them, else behind them."""
    if list(order) != sorted(order):
        return len(order)
    return next((index for index, one in enumerate(order) if one > key), len(order))


def rows_of(source: str) -> list[str]:
    r"""Split a source as notebooks do: every line with its `\n`."""
    *ended, last = source.split("\n")
    return [row + "\n" for row in ended] + ([last] if last else [])


def _gaps(text: str, outer: JsonObject | JsonArray, inner: Sequence[Member | Item]) -> Gaps | None:
    """Return what stands between these parts; without a second one it does not show what stands between two."""
    if not inner:
        return None
    starts = [one.at if isinstance(one, Member) else one.start for one in inner[:2]]
    return Gaps(
        opening=text[outer.start + 1 : starts[0]],
        between=text[inner[0].end : starts[1]] if len(inner) > 1 else "",
        closing=text[inner[-1].end : outer.end - 1],
    )


def _filled(gaps: Gaps | None, outer: Gaps, *, depth: int) -> Gaps:
    """Return the gaps of something at this depth, with what was not seen."""
    if gaps is None:
        blank, unit = _indent(outer.opening)
        if not blank:
            return Gaps(opening="", between=outer.between, closing="")
        inside, outside = blank + unit * depth, blank + unit * (depth - 1)
        return Gaps(opening=inside, between="," + inside, closing=outside)
    if gaps.between:
        return gaps
    flat = ", " if _indent(outer.between)[0] else outer.between
    return replace(gaps, between="," + gaps.opening if _indent(gaps.opening)[0] else flat)


def _indent(gap: str) -> tuple[str, str]:
    """Return the line end of a gap and the blanks behind it; nothing when it stays on its line."""
    end = "\r\n" if "\r\n" in gap else "\n" if "\n" in gap else "\r" if "\r" in gap else ""
    return end, gap.rpartition(end)[2] if end else ""
