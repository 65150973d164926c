"""Pages as callers name them: `3`, `1-5`, `1,4,7-9`."""

import re

from surehold.errors import PdfBadRange

MOST_PAGES = 20
"""How many pages are shown in one call."""
_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:[-–]\s*([0-9]{1,9})\s*)?", re.ASCII)


def page_numbers(pages: str, count: int, *, path: str, most: int = MOST_PAGES) -> tuple[int, ...]:
    """Return the pages that are meant, each once and in order, of a document that has `count`."""
    found = set[int]()
    for part in pages.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _bad(pages, count, path, f"`{part.strip()}` is neither a page nor a range")
        first, last = int(match[1]), int(match[2] or match[1])
        if first < 1:
            raise _bad(pages, count, path, "pages are counted from 1")
        if last < first:
            raise _bad(pages, count, path, f"{first} is behind {last}")
        if last > count:
            raise _bad(pages, count, path, f"the last page is {count}")
        found.update(range(first, min(last, first + most) + 1))
        if last - first >= most or len(found) > most:
            raise _bad(pages, count, path, f"at most {most} pages are shown in one call")
    return tuple(sorted(found))


def page_ranges(numbers: tuple[int, ...]) -> str:
    """Return how a caller names these pages."""
    spans = list[list[int]]()
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _bad(pages: str, count: int, path: str, why: str) -> PdfBadRange:
    return PdfBadRange(
        f"The pages `{pages[:80]}` cannot be shown: {why}.",
        path=path,
        action=f"Name at most {MOST_PAGES} of the pages 1 to {count}, such as '1-{min(count, 5)}'.",
        page_count=count,
    )
