"""Commands that an agent runs for an editor: they are reported as calls, and the editor is asked while they wait."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse

from front.acp.place import Place
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.capture.filter import can_listen
from surehold.front.acp.reporter import CancelToken, Reporter

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


class FakeEditor:
    """The other side of a connection: it notes what it is told, and chooses one option."""

    def __init__(self, option: str) -> None:
        self._option = option
        self.updates = list[dict[str, Any]]()
        self.questions = list[SimpleNamespace]()

    async def session_update(self, session_id: str, update: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True))

    async def request_permission(self, **asked: Any) -> RequestPermissionResponse:
        self.questions.append(SimpleNamespace(**asked))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self._option))


@requirement("run:guard:editor")
@pytest.mark.parametrize(("option", "left", "ending"), [("allow_once", 0, "completed"), ("reject_once", 6, "failed")])
def test_an_editor_is_asked_while_the_command_waits(place: Place, option: str, left: int, ending: str) -> None:
    for number in range(9):
        place.put(f"f{number}", "x")
    editor = FakeEditor(option)

    async def scenario() -> None:
        with open_workspace(place.root, settings=Settings(state_dir=place.state)) as workspace:
            reporter = Reporter(editor, "s", workspace.session(agent="mover"))  # type: ignore[arg-type]
            done = await reporter.run(["sh", "-c", "rm f*"], guard=4)
            call = workspace.history.show(done.change_id).entries[0].call
            assert call.approval is not None
            assert (call.approval.where, call.call_id) == ("editor", editor.updates[0]["toolCallId"])

    asyncio.run(scenario())

    assert len(list(place.root.glob("f*"))) == left
    assert [one.get("status") for one in editor.updates] == ["pending", "in_progress", ending]
    assert (editor.updates[0]["kind"], editor.updates[0]["title"]) == ("execute", "sh -c 'rm f*'")
    (question,) = editor.questions
    assert [one.option_id for one in question.options] == ["allow_once", "reject_once"]
    shown = question.tool_call.content[0].content.text
    assert "deleted: f0\ndeleted: f1\ndeleted: f2\nnext: f3" in shown


@requirement("run:guard:editor")
def test_a_command_of_a_cancelled_turn_is_ended(place: Place) -> None:
    editor, cancel = FakeEditor("allow_once"), CancelToken()

    async def scenario() -> None:
        with open_workspace(place.root, settings=Settings(state_dir=place.state)) as workspace:
            reporter = Reporter(editor, "s", workspace.session(agent="mover"))  # type: ignore[arg-type]
            running = asyncio.ensure_future(reporter.run(["sleep", "600"], cancel=cancel))
            cancel.cancel()
            assert (await running).exit_code == 143

    asyncio.run(scenario())
    assert editor.updates[-1]["status"] == "failed"
