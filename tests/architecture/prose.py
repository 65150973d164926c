"""Finds the idiom that this project gave up: phrases that say plain things in a private way."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

IDIOM = re.compile(
    r"\bstands?\b(?!-)|\bstood\b|\bstanding\b"  # is, occurs, has
    r"|\bsomebody\b|\bnobody\b|\bmeanwhile\b"  # another process, a person, no one, in the meantime
    r"|(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|other\b|one\b)"  # is not a
    r"|\bso already\b|\b(?:needs?|wants?) a yes\b"  # already, requires approval
    r"|\bbehind\b(?! (?:a|the) proxy| checks)",  # after
    re.IGNORECASE,
)
"""Write as the field writes: "occurs 3 times", "unknown mode", "requires approval", "already has this content"."""

_GENERATED = re.compile(r"<!-- tree: generated.*?<!-- tree: end -->", re.DOTALL)
_TEXT_TOKENS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def idiom_in_source(file: Path) -> Iterator[str]:
    """Yield every use of the idiom in strings, docstrings and comments of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type in _TEXT_TOKENS:
            yield from _found(file, token.start[0], token.string)


def idiom_in_page(file: Path) -> Iterator[str]:
    """Yield every use of the idiom in a document; what is generated from the source is checked there."""
    text = file.read_text(encoding="utf-8")
    yield from _found(file, 1, _GENERATED.sub(lambda tree: "\n" * tree[0].count("\n"), text))


def _found(file: Path, line: int, text: str) -> Iterator[str]:
    plain = re.sub(r"\s", " ", text)  # a phrase may go over the end of a line; the length stays
    for match in IDIOM.finditer(plain):
        at = line + text.count("\n", 0, match.start())
        yield f"{file.name}:{at}: …{plain[max(match.start() - 30, 0) : match.end() + 30].strip()}…"
