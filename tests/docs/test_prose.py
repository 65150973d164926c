"""The documents are in plain English, and cite only what a reader has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.prose import idiom_in_page
from architecture.source import PROJECT

PAGES = (*sorted(PROJECT.glob("*.md")), *sorted(PROJECT.glob("docs/**/*.md")))
ABSENT = re.compile(
    r"\bSPEC(?:\.md| \d|'s)|\b(?:DESIGN|STYLE)\.md|\bthe seeds?\b|\bseed 0|\bissue \d|(?<![\d.,#\"'-])\b00[0-4]\b(?![:\\])"
)
"""Papers that the project was made from, and that are not in the repository."""


def sources() -> Iterator[Path]:
    for folder in ("src", "tests", "docs", "bench", "examples", "scripts"):
        yield from (
            file for file in sorted((PROJECT / folder).rglob("*")) if file.suffix in {".py", ".md", ".sh", ".yml"}
        )
    yield from (*PROJECT.glob("*.md"), PROJECT / "Makefile", PROJECT / "pyproject.toml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_document_is_written_in_plain_english(page: Path) -> None:
    assert list(idiom_in_page(page)) == []


def test_nothing_cites_a_document_that_a_reader_does_not_have() -> None:
    found = [
        f"{file.relative_to(PROJECT)}:{number}: {line.strip()}"
        for file in sources()
        if file != Path(__file__)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if ABSENT.search(line) and "https://" not in line
    ]

    assert found == []
