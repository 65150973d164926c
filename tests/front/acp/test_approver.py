"""The thread of a tool that waits for a person at an editor."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.acp.reporter import CancelToken, Reporter
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.event_loop import run_on_loop
from surehold.stores.base import Call
from surehold.tools.call import Answer as ToolAnswer
from surehold.workspace.access.permission import Approval, PermissionRequest
from workspaces import real_workspace

REQUEST = PermissionRequest(call=Call(tool="edit", operation="edit", writer="edit"), files=(), why="Because.")
Answer = Callable[[], Coroutine[Any, Any, Approval]]


async def yes() -> Approval:
    return Approval(allowed=True)


async def never() -> Approval:
    await asyncio.Event().wait()
    raise AssertionError


async def ask(answer: Answer, *, cancel: CancelToken | None = None, seconds: float = 10) -> Approval:
    loop, token = asyncio.get_running_loop(), cancel or CancelToken()

    def wait() -> Approval:
        return ApprovalQueue(seconds=seconds).ask(
            REQUEST, show=lambda _: run_on_loop(answer(), loop), cancelled=lambda: token.is_cancelled
        )

    return await asyncio.to_thread(wait)


def test_an_answer_reaches_the_thread_that_asked() -> None:
    async def scenario() -> None:
        assert (await ask(yes)).allowed

    asyncio.run(scenario())


def test_cancelling_withdraws_the_question() -> None:
    async def scenario() -> None:
        token, shown, withdrawn = CancelToken(), asyncio.Event(), asyncio.Event()

        async def silent() -> Approval:
            shown.set()
            try:
                return await never()
            finally:
                withdrawn.set()

        asked = asyncio.ensure_future(ask(silent, cancel=token))
        await shown.wait()
        token.cancel()
        with pytest.raises(Cancelled):
            await asked
        await withdrawn.wait()

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [yes, never])
def test_after_a_cancellation_even_a_yes_is_no_approval(answer: Answer) -> None:
    async def scenario() -> None:
        token = CancelToken()
        token.cancel()
        with pytest.raises(Cancelled):
            await ask(answer, cancel=token)

    asyncio.run(scenario())


def test_silence_ends_after_the_time_for_an_answer() -> None:
    async def scenario() -> None:
        with pytest.raises(PermissionRequired) as refusal:
            await ask(never, seconds=0.01)
        assert refusal.value.reason == "approval_timeout"

    asyncio.run(scenario())


def test_a_loop_that_has_ended_is_no_approval() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    with pytest.raises(PermissionRequired) as refusal:
        ApprovalQueue().ask(REQUEST, show=lambda _: run_on_loop(yes(), loop))
    assert refusal.value.reason == "client_gone"


class QuietClient:
    """A client that takes every event and answers nothing."""

    async def session_update(self, **_: object) -> None: ...


@pytest.mark.parametrize("keyword", ["cancel", "halt"])
def test_a_call_whose_token_is_cancelled_does_not_begin(tmp_path: Path, keyword: str) -> None:
    token = CancelToken()
    token.cancel()

    async def call() -> ToolAnswer:
        with real_workspace(tmp_path) as workspace:
            reporter = Reporter(QuietClient(), "s", workspace.session())  # type: ignore[arg-type]
            return await reporter.call("create_file", {"path": "a.txt", "content": "x"}, **{keyword: token})

    answer = asyncio.run(call())
    assert isinstance(answer.error, Cancelled)
    assert not (tmp_path / "a.txt").exists()
