"""docs/conformance.md and the pins say the same; the document itself is written by `make conformance`."""

import json
import re
from pathlib import Path

import pytest

from conformance import page
from conformance.hosts.checks import Seen
from conformance.hosts.model import Call, Shown
from conformance.hosts.scripts import Arrival
from conformance.report import Check, summary, table, unexpected
from conformance.suite import REVISIONS, expected_failures

_NPM = Path(__file__).parent / "npm"
_TEXT = page.PAGE.read_text(encoding="utf-8")
_KINDS = ("clients", "hosts", "peers")
_PINS = {
    package: pin
    for kind in _KINDS
    for package, pin in json.loads((_NPM / kind / "package.json").read_text(encoding="utf-8"))["dependencies"].items()
}
_NAMES = {
    "@anthropic-ai/claude-code": "Claude Code",
    "@continuedev/cli": "Continue",
    "@github/copilot": "Copilot CLI",
    "@google/gemini-cli": "Gemini CLI",
    "@modelcontextprotocol/client": "TypeScript @modelcontextprotocol/client",
    "@modelcontextprotocol/conformance": "Conformance suite",
    "@modelcontextprotocol/inspector": "Inspector",
    "@modelcontextprotocol/sdk": "TypeScript @modelcontextprotocol/sdk",
    "@openai/codex": "Codex",
    "@qwen-code/qwen-code": "Qwen Code",
    "cline": "Cline",
    "opencode-ai": "opencode",
}
_FRAMEWORKS = {
    "google-adk": "google-adk",
    "langchain-mcp-adapters": "langchain-mcp-adapters",
    "llama-index-tools-mcp": "LlamaIndex tools-mcp",
    "openai-agents": "openai-agents",
    "pydantic-ai-slim": "pydantic-ai",
}


@pytest.mark.parametrize("package", sorted(_NAMES))
def test_the_page_shows_the_version_that_is_pinned(package: str) -> None:
    assert f"{_NAMES[package]} {_PINS[package]}" in _TEXT


@pytest.mark.parametrize("package", sorted(_FRAMEWORKS))
def test_the_page_shows_the_version_of_a_framework_and_everything_it_needs_is_pinned(package: str) -> None:
    pins = (Path(__file__).parent / "pip" / f"{package}.txt").read_text(encoding="utf-8").splitlines()
    found = [pin.partition("==")[2] for pin in pins if pin.startswith(f"{package}==")]
    assert [f"{_FRAMEWORKS[package]} {version}" in _TEXT for version in found] == [True]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


@pytest.mark.parametrize("kind", _KINDS)
def test_every_npm_package_is_pinned_to_one_version_and_no_registry_is_named(kind: str) -> None:
    pins = json.loads((_NPM / kind / "package.json").read_text(encoding="utf-8"))["dependencies"]
    lock = (_NPM / kind / "package-lock.json").read_text(encoding="utf-8")
    assert [pin for pin in pins.values() if not re.fullmatch(r"\d[\w.-]*", pin)] == []
    assert '"resolved"' not in lock


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_expected_failure_has_a_reason_that_the_page_shows(revision: str) -> None:
    failures = expected_failures(revision)
    assert failures
    assert [entry for entry, reason in failures.items() if not reason.endswith(".") or reason not in _TEXT] == []


def test_only_a_failure_that_nobody_foresaw_is_unexpected() -> None:
    checks = [
        Check(part="a", name="one", outcome="passed"),
        Check(part="a", name="two", outcome="expected failure", seen="1 of 2", why="known"),
        Check(part="b", name="three", outcome="failed", why="why"),
        Check(part="b", name="four", outcome="not scored"),
    ]
    assert unexpected(checks) == [checks[2]]
    assert summary(checks) == {"a": {"passed": 1, "expected failure": 1}, "b": {"failed": 1, "not scored": 1}}
    assert table(checks).splitlines() == [
        "a",
        "  passed            one",
        "  expected failure  two  (1 of 2; known)",
        "",
        "b",
        "  failed            three  (why)",
        "  not scored        four",
    ]


def test_what_a_model_was_shown_stands_word_for_word_without_what_changes_from_run_to_run() -> None:
    text = '{"ok":true,"changeId":"01m7h8de38825x3p2r4qg4zw1m"}\n<system-reminder>\n9 left\n</system-reminder>'
    shown = Shown(call=Call(tool="read_file", arguments={}), text=text)
    arrival = Arrival(name="long.txt", pages=2, characters=1234, size=2345, missing=[7, 8], in_order=True)
    seen = Seen(part="a host", client="its-name", shown=[shown], arrivals=[arrival], elsewhere=["far:443"])
    rows = page.describe_hosts([], [seen]).splitlines()
    assert "| a host | `read_file` | the structured content as JSON | 27 |" in rows
    figures = "2 pages of at most 1,234 characters, 2,345 bytes; missing: 7-8"
    assert f"| a host | `its-name` | {figures} |" in rows
    assert "Wanted to reach other addresses, and were refused: a host (far:443)." in rows
    assert '{"ok":true,"changeId":"ID"}' in rows


def test_what_does_not_pass_is_listed_below_its_reason() -> None:
    why = "Known."
    checks = [
        Check(part="a suite", name="one", outcome="expected failure", seen="1 of 2 checks", why=why),
        Check(part="a suite", name="two", outcome="not scored", why=why),
        Check(part="a suite", name="three", outcome="passed"),
    ]
    rows = page.describe_clients(checks).splitlines()
    assert "| a suite | 1 | 1 | 1 | 0 |" in rows
    assert "| Known. | `one` (1 of 2 checks), `two` |" in rows
