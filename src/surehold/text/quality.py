"""How safe a line is to point at by its content alone."""

import re
from typing import Literal

Quality = Literal["low", "med", "high"]

_COMMON = 3
_LOW = re.compile(r"""[\s{}()\[\]<>,;:'"`]*(?:(?:/>|\*/|end\b|</[\w.:-]*>)[\s{}()\[\]<>,;:'"`]*)*""")
_WORD = re.compile(r"[^\W\d_]{3}")


def quality(content: str, occurrences: int) -> Quality:
    """Judge a line by what it says and how often the file says it."""
    if _LOW.fullmatch(content):
        return "low"
    if occurrences > _COMMON or not _WORD.search(content):
        return "med"
    return "high"
