"""The hosts that we know, one row each: what they call themselves, and how much of an answer reaches their model.

The limits were observed with the versions named here. A row is chosen by the name that a client gives in the protocol.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from surehold.text.measure import Unit
from surehold.tools.call import AnswerBudget

_WRAPPER_UNITS = 200
"""What a host puts around an answer, at most: a sentence, a tag, or the JSON of the result."""
_WRAPPER_LINES = 20
"""The lines of an answer around a page: the heading, and the notices."""
_UNITS_PER_TOKEN = 4
_USUAL = AnswerBudget()
_MAX_REMEMBERED_HOSTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    name: str
    client: str
    """How the name begins that it gives itself in the protocol."""
    also: tuple[str, ...] = ()
    """How it begins in other versions or editions of the host."""
    tested: str = ""
    """The version that the facts were observed with."""
    limit: int
    """How large an answer may be, with what the host puts around it."""
    unit: Unit
    lines: int = 0
    """How many lines an answer may have at most, where the host counts them too."""
    given: str
    """What its model is given of an answer."""
    beyond: str
    """What it does with a larger answer."""
    prefix: bool = True
    """Whether it puts the name of the server before the names of the tools."""

    @property
    def limit_text(self) -> str:
        lines = f", {self.lines:,} lines" if self.lines else ""
        return f"{self.limit:,} {'characters of JSON' if self.unit == 'json' else self.unit}{lines}"


_NOT_SEEN = "not reached so far"
_CUT = "cuts the middle out"

KNOWN_HOSTS: Sequence[HostEntry] = (
    HostEntry(
        name="Claude Code",
        client="claude-code",
        tested="2.1.325",
        limit=40_000,
        unit="characters",
        given="text; of a change the data",
        beyond=_NOT_SEEN,
    ),
    HostEntry(
        name="Codex",
        client="codex",
        tested="0.166.0",
        limit=12_000,
        unit="bytes",
        given="text; of a change or a refusal the data",
        beyond=_CUT,
    ),
    HostEntry(
        name="Copilot CLI",
        client="copilot-cli",
        also=("github-copilot", "copilot"),
        tested="1.0.102",
        limit=19_000,
        unit="bytes",
        given="text and data, no images",
        beyond="saves it to a file, shows 500 characters",
    ),
    HostEntry(
        name="Gemini CLI",
        client="gemini-cli-mcp-client",
        also=("gemini-cli",),
        tested="0.61.0",
        limit=39_000,
        unit="characters",
        given="text; of a refusal text and data",
        beyond=_CUT,
    ),
    HostEntry(
        name="Qwen Code",
        client="qwen-cli-mcp-client",
        also=("qwen",),
        tested="0.24.4",
        limit=10_000,
        unit="bytes",
        given="text; of a change the data, of a refusal both",
        beyond="saves it to a file, shows 2 KB",
    ),
    HostEntry(
        name="Cline",
        client="@cline/",
        also=("cline",),
        tested="3.0.65",
        limit=8_000,
        unit="json",
        given="the whole result as JSON",
        beyond=_CUT,
    ),
    HostEntry(
        name="opencode",
        client="opencode",
        tested="1.18.33",
        limit=40_000,
        unit="bytes",
        lines=2_000,
        given="text",
        beyond="cuts the end off, saves it to a file",
    ),
    HostEntry(
        name="Continue",
        client="continue",
        tested="1.5.47",
        limit=40_000,
        unit="characters",
        given="text",
        beyond=_NOT_SEEN,
        prefix=False,
    ),
)
OTHER_HOSTS = HostEntry(
    name="any other", client="", limit=20_000, unit="bytes", given="not known", beyond="not known", prefix=False
)
"""What is assumed of a host that we have not seen; `mcp-test-client`, which only lists the tools, is one of them."""


def find_host(client: str) -> HostEntry:
    """Return the row of the host that gives itself this name."""
    name = client.casefold()
    return next((host for host in KNOWN_HOSTS if name.startswith((host.client, *host.also))), OTHER_HOSTS)


@lru_cache(_MAX_REMEMBERED_HOSTS)
def budget_for(client: str, *, max_chars: int = 0, max_tokens: int = 0, only_lower: bool = False) -> AnswerBudget:
    """Return what fits this host; a limit that was set by hand replaces what we know of it, or only lowers it."""
    if only_lower:
        known = budget_for(client)
        given = [one for one in (max_chars, max_tokens * _UNITS_PER_TOKEN) if one]  # a character is a unit at least
        most = min([known.answer, *given])
        return replace(known, page=most, answer=most, tokens=min(known.tokens, max_tokens or known.tokens))
    host = find_host(client)
    unit: Unit = "characters" if max_chars else host.unit
    answer = max_chars or max_tokens * _UNITS_PER_TOKEN or host.limit - _WRAPPER_UNITS
    lines = host.lines - _WRAPPER_LINES if host.lines else _USUAL.lines
    return AnswerBudget(lines=lines, page=answer, answer=answer, tokens=max_tokens or _USUAL.tokens, unit=unit)
