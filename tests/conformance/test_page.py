"""docs/conformance.md and the pins say the same; the document itself is written by `make conformance`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import page
from conformance.report import Check, summary, table, unexpected
from conformance.scripted_model import Call, Script, Shown, Vendor, serve
from conformance.suite import REVISIONS, expected_failures

_NPM = Path(__file__).parent / "npm"
_TEXT = page.PAGE.read_text(encoding="utf-8")
_PINS = json.loads((_NPM / "clients" / "package.json").read_text(encoding="utf-8"))["dependencies"]
_NAMES = {
    "@anthropic-ai/claude-code": "Claude Code",
    "@google/gemini-cli": "Gemini CLI",
    "@modelcontextprotocol/client": "TypeScript @modelcontextprotocol/client",
    "@modelcontextprotocol/conformance": "Conformance suite",
    "@modelcontextprotocol/inspector": "Inspector",
    "@modelcontextprotocol/sdk": "TypeScript @modelcontextprotocol/sdk",
}


@pytest.mark.parametrize("package", sorted(_NAMES))
def test_the_page_shows_the_version_that_is_pinned(package: str) -> None:
    assert f"{_NAMES[package]} {_PINS[package]}" in _TEXT


@pytest.mark.parametrize("kind", ["clients", "peers"])
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
    shown = Shown(call=Call(tool="read_file", arguments={}), text=text, is_error=False)
    rows = page.body([], {"an agent": [shown]}).splitlines()
    assert "| an agent | `read_file` | the structured content as JSON | 27 |" in rows
    assert '{"ok":true,"changeId":"ID"}' in rows


def test_what_does_not_pass_is_listed_below_its_reason() -> None:
    why = "Known."
    checks = [
        Check(part="a suite", name="one", outcome="expected failure", seen="1 of 2 checks", why=why),
        Check(part="a suite", name="two", outcome="not scored", why=why),
        Check(part="a suite", name="three", outcome="passed"),
    ]
    rows = page.body(checks, {}).splitlines()
    assert "| a suite | 1 | 1 | 1 | 0 |" in rows
    assert "| Known. | `one` (1 of 2 checks), `two` |" in rows


def _requests() -> Iterator[tuple[Vendor, dict[str, object], dict[str, object]]]:
    """Yield, for each vendor, a first request and one that carries the result of the call."""
    tools = [{"name": "mcp__surehold__read_file"}, {"name": "read_file"}]
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "shown"}]}
    yield (
        "anthropic",
        {"tools": tools, "messages": [], "stream": True},
        {"tools": tools, "messages": [{"role": "user", "content": [result]}], "stream": True},
    )
    functions = [{"functionDeclarations": [{"name": "read_file"}, {"name": "mcp_surehold_read_file"}]}]
    part = {"functionResponse": {"name": "mcp_surehold_read_file", "response": "shown"}}
    yield "gemini", {"tools": functions, "contents": []}, {"tools": functions, "contents": [{"parts": [part]}]}


@pytest.mark.parametrize(("vendor", "first", "second"), list(_requests()))
def test_the_scripted_model_calls_our_tool_and_records_what_it_is_shown(
    vendor: Vendor, first: dict[str, object], second: dict[str, object]
) -> None:
    call = Call(tool="read_file", arguments={"path": "a"})

    def script() -> Script:
        yield call
        return "done"

    with serve(vendor, script()) as (_, model):
        assert "surehold" in json.dumps(model.answer(first))
        assert "done" in json.dumps(model.answer(second))
    assert [(one.call, one.text) for one in model.shown] == [(call, "shown")]
