"""The thread of a tool that waits for a person."""

import asyncio

import pytest

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.acp.cancel import CancelToken
from surehold.front.acp.client import EditorApprover
from surehold.stores.base import Call
from surehold.workspace.access.permission import Approval, PermissionRequest

REQUEST = PermissionRequest(call=Call(tool="edit", operation="edit", writer="edit"), files=(), why="Because.")


async def yes(request: PermissionRequest) -> Approval:
    return Approval(allowed=True)


async def never(request: PermissionRequest) -> Approval:
    await asyncio.Event().wait()
    raise AssertionError


async def ask(approver: EditorApprover) -> Approval:
    return await asyncio.to_thread(approver, REQUEST)


def test_an_answer_reaches_the_thread_that_asked() -> None:
    async def scenario() -> None:
        approver = EditorApprover(yes, loop=asyncio.get_running_loop(), halt=CancelToken(), patience=10)
        assert (await ask(approver)).allowed

    asyncio.run(scenario())


def test_a_pulled_brake_withdraws_the_question() -> None:
    async def scenario() -> None:
        halt = CancelToken()
        approver = EditorApprover(never, loop=asyncio.get_running_loop(), halt=halt, patience=10)
        asked = asyncio.ensure_future(ask(approver))
        await asyncio.sleep(0.05)
        halt.cancel()
        with pytest.raises(Cancelled):
            await asked

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [yes, never])
def test_after_the_brake_was_pulled_even_a_yes_is_no_approval(answer: object) -> None:
    async def scenario() -> None:
        halt = CancelToken()
        halt.cancel()
        approver = EditorApprover(answer, loop=asyncio.get_running_loop(), halt=halt, patience=10)  # pyright: ignore[reportArgumentType]
        with pytest.raises(Cancelled):
            await ask(approver)

    asyncio.run(scenario())


def test_silence_ends_after_the_patience() -> None:
    async def scenario() -> None:
        approver = EditorApprover(never, loop=asyncio.get_running_loop(), halt=CancelToken(), patience=0.01)
        with pytest.raises(PermissionRequired) as refusal:
            await ask(approver)
        assert refusal.value.reason == "approval_timeout"

    asyncio.run(scenario())


def test_a_loop_that_has_ended_is_no_approval() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    with pytest.raises(PermissionRequired) as refusal:
        EditorApprover(yes, loop=loop, halt=CancelToken(), patience=10)(REQUEST)
    assert refusal.value.reason == "client_gone"
