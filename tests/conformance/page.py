"""The generated half of docs/conformance.md: what the last complete run saw."""

import re
from collections.abc import Iterable, Mapping

from conformance.report import Check, summary
from conformance.scripted_model import Shown
from conformance.servers import HOME

PAGE = HOME / "docs" / "conformance.md"
BEGIN, END = "<!-- begin: written by make conformance -->", "<!-- end -->"
_CALLS = ("`read_file`", "`edit_file`", "`edit_file`, stale", "`edit_file`, retried")


def renew(checks: Iterable[Check], shown: Mapping[str, list[Shown]]) -> bool:
    """Put the run between the marks; tell whether that changed anything."""
    old = PAGE.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    new = f"{head}{BEGIN}\n\n{body(list(checks), shown)}\n{END}{rest.partition(END)[2]}"
    PAGE.write_text(new, encoding="utf-8")
    return new != old


def body(checks: list[Check], shown: Mapping[str, list[Shown]]) -> str:
    """Return the tables; nothing in them depends on the machine or the hour."""
    return "\n".join([*_counts(checks), *_remaining(checks), *_models(shown)])


def _counts(checks: list[Check]) -> list[str]:
    rows = ["## Results", "", "| with | passed | expected failures | not scored | failed |", "|---|--:|--:|--:|--:|"]
    for part, counts in summary(checks).items():
        figures = [counts.get(one, 0) for one in ("passed", "expected failure", "not scored", "failed")]
        rows.append(f"| {part} | {' | '.join(map(str, figures))} |")
    return rows


def _remaining(checks: list[Check]) -> list[str]:
    rows = ["", "## What does not pass, and why", ""]
    for part in dict.fromkeys(check.part for check in checks if check.outcome != "passed"):
        left = [check for check in checks if check.part == part and check.outcome != "passed"]
        rows += [f"### {part}", "", "| why | scenarios |", "|---|---|"]
        for why in dict.fromkeys(check.why for check in left):
            names = ", ".join(f"`{check.name}`{_share(check)}" for check in left if check.why == why)
            rows.append(f"| {why} | {names} |")
        rows.append("")
    return rows


def _share(check: Check) -> str:
    """Say how much of a scenario passes."""
    return f" ({check.seen})" if check.seen else ""


def _models(shown: Mapping[str, list[Shown]]) -> list[str]:
    rows = ["## What reaches the model", "", "| agent | call | the model is given | characters |", "|---|---|---|--:|"]
    for agent, results in shown.items():
        rows += [
            f"| {agent} | {call} | {_form(one.text)} | {len(_steady(one.text)):,} |"
            for call, one in zip(_CALLS, results, strict=False)
        ]
    rows += ["", "Word for word, with ids replaced and without what the agent adds about its own budget:", ""]
    for agent, results in shown.items():
        for call, one in zip(_CALLS, results, strict=False):
            rows += [f"{agent}, {call}:", "", "```text", _steady(one.text), "```", ""]
    return rows


def _form(text: str) -> str:
    """Say which part of a result an agent hands on."""
    if '"isError"' in text or "surehold/result" in text:
        return "the whole result as JSON, inside a sentence of the agent"
    if text.startswith('{"ok"'):
        return "the structured content as JSON"
    return "the text, inside a wrapper of the agent" if text.startswith('{"output"') else "the text"


def _steady(text: str) -> str:
    """Return a text without what differs from run to run."""
    without = re.sub(r"\s*<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL)
    return re.sub(r"\b[0-9a-hjkmnp-tv-z]{26}\b", "ID", without)
