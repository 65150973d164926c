"""A failure of our own: it is reported with a file, and never hides a change that was written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from front.mcp.site import Site, data_of, text_of
from surehold import Workspace
from surehold.dialects.anchored.edit import edit
from surehold.errors import Unavailable
from surehold.front.mcp import tool_calls
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.sessions import Caller
from surehold.front.mcp.tool_calls import tool_result
from surehold.library.families import tools_of
from surehold.workspace.session import Session

FIRST = {"path": "a.txt", "operations": [{"op": "insert_after", "hash": "BOF", "content": "zero"}]}


@pytest.fixture
def workspace(site: Site) -> Iterator[Workspace]:
    site.put("a.txt", "one\n")
    with site.open() as opened:
        yield opened


def fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError


def fail_for_now(*_: Any, **__: Any) -> Any:
    raise Unavailable("The history is busy.")


def in_the_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edit.result, "text", fail)


def in_the_making_of_the_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edit.result, "__init__", fail)


def in_a_refusal_that_comes_too_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edit.result, "__init__", fail_for_now)


def in_the_result_of_the_protocol(patch: pytest.MonkeyPatch) -> None:
    calls = list[str]()

    def fail_once(*args: Any, **facts: Any) -> Any:
        calls.append("call")
        return tool_result(*args, **facts) if len(calls) > 1 else fail()

    patch.setattr(tool_calls, "tool_result", fail_once)


@pytest.mark.parametrize(
    "failure",
    [in_the_text, in_the_making_of_the_result, in_a_refusal_that_comes_too_late, in_the_result_of_the_protocol],
)
def test_a_failure_after_a_change_says_that_it_was_written(
    site: Site, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, failure: Callable[[pytest.MonkeyPatch], None]
) -> None:
    adapter = Adapter(workspace=workspace, tools=tools_of("anchored"))
    failure(monkeypatch)
    result = adapter.call_tool("edit", FIRST, Caller())

    (entry,) = [one for one in workspace.history.log() if one.ok and one.call.tool == "edit"]
    assert site.get("a.txt") == b"zero\none\n"
    assert result["isError"] is False
    assert "The change was written" in text_of(result)
    assert f"change_id: {entry.change_id}" in text_of(result)
    assert "Nothing was written" not in text_of(result)
    assert entry.change_id in str(data_of(result))
    report = Path(text_of(result).rpartition("report: ")[2])
    assert "Traceback" in report.read_text(encoding="utf-8")
    report.unlink()


def test_a_failure_before_a_change_is_a_bug_that_is_reported(
    site: Site, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = Adapter(workspace=workspace, tools=tools_of("anchored"))
    monkeypatch.setattr(Session, "submit", fail)
    result = adapter.call_tool("edit", FIRST, Caller())

    assert site.get("a.txt") == b"one\n"
    assert result["isError"] is True
    assert "this is a bug" in text_of(result)
    assert "The change was written" not in text_of(result)
