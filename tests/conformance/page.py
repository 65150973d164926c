"""The generated blocks of docs/conformance.md: what the last run of all clients, and of all hosts, saw."""

import re

from conformance.hosts.checks import Seen
from conformance.hosts.scripts import CALLS
from conformance.report import Check, summary
from conformance.servers import HOME

PAGE = HOME / "docs" / "conformance.md"
_QUOTED = ("`read_file`", "`edit_file`, stale")
"""The calls whose results stand on the page word for word."""


def renew(block: str, text: str) -> bool:
    """Put a text between the marks of a block; tell whether that changed anything."""
    old = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- begin: {block}, written by make conformance -->", f"<!-- end: {block} -->"
    head, _, rest = old.partition(begin)
    new = f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(new, encoding="utf-8")
    return new != old


def describe_clients(checks: list[Check]) -> str:
    """Return the tables of clients and checkers; nothing in them depends on the machine or the hour."""
    return "\n".join(["## Clients and checkers", "", *_counts(checks), *_remaining(checks)])


def describe_hosts(checks: list[Check], seen: list[Seen]) -> str:
    """Return the same for hosts, with what reached their models."""
    return "\n".join(["## Hosts", "", *_counts(checks), "", *_pages(seen), *_models(seen)])


def describe_sdk(checks: list[Check]) -> str:
    """Return the counts of a run in which the SDK served standard input and output."""
    return "\n".join(["## The same with the SDK's server on standard input and output", "", *_counts(checks), ""])


def _counts(checks: list[Check]) -> list[str]:
    rows = ["| with | passed | expected failures | not scored | failed |", "|---|--:|--:|--:|--:|"]
    for part, counts in summary(checks).items():
        figures = [counts.get(one, 0) for one in ("passed", "expected failure", "not scored", "failed")]
        rows.append(f"| {part} | {' | '.join(map(str, figures))} |")
    return rows


def _remaining(checks: list[Check]) -> list[str]:
    rows = ["", "### What does not pass, and why", ""]
    for part in dict.fromkeys(check.part for check in checks if check.outcome != "passed"):
        left = [check for check in checks if check.part == part and check.outcome != "passed"]
        rows += [f"#### {part}", "", "| why | scenarios |", "|---|---|"]
        for why in dict.fromkeys(check.why for check in left):
            names = ", ".join(f"`{check.name}`{_share(check)}" for check in left if check.why == why)
            rows.append(f"| {why} | {names} |")
        rows.append("")
    return rows


def _share(check: Check) -> str:
    """Say how much of a scenario passes."""
    return f" ({check.seen})" if check.seen else ""


def _pages(seen: list[Seen]) -> list[str]:
    names = [arrival.name for arrival in seen[0].arrivals] if seen else []
    rows = [
        "### Long files, page by page",
        "",
        f"| host | calls itself | {' | '.join(names)} |",
        "|---|---" + "|---" * len(names) + "|",
    ]
    rows += [f"| {one.part} | `{one.client}` | {' | '.join(map(str, one.arrivals))} |" for one in seen]
    if wanted := [f"{one.part} ({', '.join(one.elsewhere)})" for one in seen if one.elsewhere]:
        rows += ["", f"Wanted to reach other addresses, and were refused: {'; '.join(wanted)}."]
    return [*rows, ""]


def _models(seen: list[Seen]) -> list[str]:
    rows = ["### What reaches the model", "", "| host | call | the model is given | characters |", "|---|---|---|--:|"]
    quotes = dict[tuple[str, str], list[str]]()
    for host in seen:
        for call, one in zip(CALLS, host.shown, strict=False):
            text = _steady(one.text)
            rows.append(f"| {host.part} | {call} | {_form(text)} | {len(text):,} |")
            if call in _QUOTED:
                quotes.setdefault((call, text), []).append(host.part)
    rows += ["", "Word for word, with ids and times replaced and without what a host adds about its own budget:", ""]
    for (call, text), parts in quotes.items():
        rows += [f"{call}, in {', '.join(parts)}:", "", "```text", text, "```", ""]
    return rows


def _form(text: str) -> str:
    """Say which part of a result a host hands on."""
    core = text.partition("Output:\n")[2] or text
    if any(word in core for word in ("isError", "is_error=")):
        return "the whole result"
    if core.startswith('{"output"'):
        return "the text, inside a wrapper of the host"
    if core.startswith("[{"):
        return "the content as JSON"
    structured = re.search(r"""^\{["'](ok|path|error)["']""", core, flags=re.MULTILINE)
    if structured is None:
        return "the text"
    in_words = "Nothing was written." in core or "\nsha256: " in core
    return "the text and the structured content" if in_words else "the structured content as JSON"


def _steady(text: str) -> str:
    """Return a text without what differs from run to run."""
    without = re.sub(r"\s*<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL)
    timeless = re.sub(r"^Wall time: [\d.]+ seconds", "Wall time: T seconds", without)
    return re.sub(r"\b[0-9a-hjkmnp-tv-z]{26}\b", "ID", timeless)
