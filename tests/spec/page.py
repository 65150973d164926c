"""Lays the requirements out as docs/contract.md."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from spec.model import AREAS, Requirement
from spec.requirements import REQUIREMENTS

_HEAD = """\
# The contract

What Surehold promises, sentence by sentence. Each sentence has an id, and at least one test that carries it:

    .venv/bin/python -m pytest --requirement anchored:low:bare_hash

Surehold joins several contracts that existed before it: one for edits by anchors, one for file tools, one for several
edits of one file, and the six tools of Claude Code. Where they contradict themselves or each other, or where we do
better, the line "Divergence" says what the original contract says, what we do instead, and why.

This page is generated from `tests/spec` by `make fix`; a test compares them.
"""


def contract_page() -> str:
    """Return the whole page."""
    return _HEAD + "".join(_area_lines())


def _area_lines() -> Iterator[str]:
    for area, title in AREAS.items():
        rows = [r for r in REQUIREMENTS if r.id.partition(":")[0] == area]
        yield f"\n## {title}\n"
        for heading, group in groupby(rows, key=attrgetter("heading")):
            chosen = list(group)
            yield f"\n### {heading}\n\nSource: {chosen[0].source}.\n\n"
            yield from map(_entry, chosen)


def _entry(one: Requirement) -> str:
    divergence = f"  - Divergence: {one.divergence}\n" if one.divergence else ""
    return f"- **`{one.id}`** {one.statement}\n{divergence}"
