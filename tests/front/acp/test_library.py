"""An agent of a library user, which wraps the reporter around the tools."""

import sys
from pathlib import Path

import pytest

from front.acp import library_agent
from front.acp.editor import choosing, connected, run
from front.acp.place import Place

AGENT = Path(library_agent.__file__)
PAGE = Path(__file__).parents[3] / "docs" / "acp.md"


def test_an_agent_of_somebody_else_asks_and_reports(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(place.state))

    async def scenario() -> None:
        async with connected([sys.executable, str(AGENT)], choosing("allow_once")) as editor:
            await editor.begin(place.root)
            await editor.say("Hello!\n")
            assert editor.statuses == ["pending", "in_progress", "completed"]
            (question,) = editor.questions
            assert question["toolCall"]["toolCallId"] == editor.events[0]["toolCallId"]
            assert editor.events[-1]["content"][0] == {
                "type": "diff",
                "path": str(place.root / "hello.txt"),
                "newText": "Hello!\n",
            }
            editor.answer = choosing("reject_once")
            await editor.say("Again.")
            assert editor.statuses[-2:] == ["pending", "failed"]

    run(scenario())
    assert place.get("hello.txt") == b"Hello!\n"


def test_the_page_shows_the_agent_that_is_tested_here() -> None:
    _, code = AGENT.read_text(encoding="utf-8").split("=false\n", 1)  # without the lines for the type checker
    assert f"```python\n{code}```" in PAGE.read_text(encoding="utf-8")
