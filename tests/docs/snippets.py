"""What the pages tell people to paste, as data: every fenced block, and every way in which it starts Surehold."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

PROJECT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/clients.md")
LANGUAGES = {"sh", "json", "toml", "python", "text", ""}

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`((?:uvx )?(?:--from \S+ )?surehold [^`]+)`")


class Unknown(Exception):
    """A line that the tests do not know how to check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def data(self) -> dict[str, Any]:
        """What a JSON or TOML block says."""
        return tomllib.loads(self.text) if self.language == "toml" else json.loads(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A way to start Surehold: the words after `surehold`."""

    place: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place} {' '.join(self.words)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A way to reach a server over HTTP."""

    place: str
    url: str
    authorization: str


def snippets() -> list[Snippet]:
    """Return every block of the pages that tell how to connect."""
    return [block for page in PAGES for block in snippets_of(page)]


def snippets_of(page: str) -> list[Snippet]:
    """Return every block of a page; one inside of a list is indented."""
    text, found = (PROJECT / page).read_text("utf-8"), list[Snippet]()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Snippet(page=page, line=line, language=match[2], text=dedent(match[3])))
    return found


def inline_commands() -> list[Command]:
    """Return every whole command between backticks in a sentence."""
    found = list[Command]()
    for page in PAGES:
        text = _FENCE.sub("", (PROJECT / page).read_text("utf-8"))
        spans = [span for span in _SPAN.findall(text) if "…" not in span]
        found += [
            Command(place=page, words=_words(shlex.split(span))) for span in spans if not span.endswith(" surehold")
        ]
    return found


def ways_in(snippet: Snippet) -> list[Command | Remote]:
    """Return every way to Surehold in a block; `Unknown` when a line leads anywhere else."""
    if snippet.language == "sh":
        lines = [shlex.split(line, comments=True) for line in snippet.text.splitlines()]
        return [way for words in lines if words for way in _typed(str(snippet), words)]
    if snippet.language in {"json", "toml"}:
        return list(_entries(str(snippet), snippet.data))
    return []


def _typed(place: str, words: Sequence[str]) -> Iterator[Command | Remote]:
    """Yield what one line of a shell does."""
    match words:
        case ["make", target] if f"\n{target}: " in (PROJECT / "Makefile").read_text("utf-8"):
            return
        case ["uv", "tool", "install", ".[all]"]:
            return
        case ["echo", _, "|", *rest]:
            yield Command(place=place, words=_words(rest))
        case ["code", "--add-mcp", entry]:
            yield from _entries(place, {"servers": [json.loads(entry)]})
        case ["claude" | "codex", "mcp", "add", "surehold", "--", *rest]:
            yield Command(place=place, words=_words(rest))
        case ["gemini", "mcp", "add", "surehold", *rest]:
            yield Command(place=place, words=_words(rest))
        case ["claude", "mcp", "add", "--transport", "http", "surehold", url, "--header", header]:
            yield Remote(place=place, url=url, authorization=header.removeprefix("Authorization: "))
        case ["gemini", "mcp", "add", "--transport", "http", "--header", header, "surehold", url]:
            yield Remote(place=place, url=url, authorization=header.removeprefix("Authorization: "))
        case ["codex", "mcp", "add", "surehold", "--url", url, "--bearer-token-env-var", "SUREHOLD_TOKEN"]:
            yield Remote(place=place, url=url, authorization="Bearer TOKEN")
        case _:
            yield Command(place=place, words=_words(words))


def _entries(place: str, data: object) -> Iterator[Command | Remote]:
    """Yield every server that a client's settings name."""
    if isinstance(data, list):
        for one in cast("list[object]", data):
            yield from _entries(place, one)
    elif isinstance(data, dict):
        entry = cast("dict[str, Any]", data)
        if isinstance(entry.get("command"), list):
            yield Command(place=place, words=_words(entry["command"]))
        elif "command" in entry:
            yield Command(place=place, words=_words([entry["command"], *entry["args"]]))
        elif "url" in entry:
            yield Remote(place=place, url=entry["url"], authorization=entry["headers"]["Authorization"])
        else:
            for one in entry.values():
                yield from _entries(place, one)


def _words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words after `surehold`, however it is found."""
    match words:
        case ["uvx", "--from", "/path/to/surehold", "surehold", *rest]:
            return tuple(rest)
        case ["uvx", "surehold", *rest] | ["surehold", *rest]:
            return tuple(rest)
        case _:
            raise Unknown(" ".join(words))
