"""The awaitable library."""

import ast
import asyncio
import hashlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Settings, aio, tools_for
from surehold.errors import StaleFile, SureholdError, WorkspaceClosed
from surehold.library import tool_methods
from surehold.library.async_session import call_in_thread
from surehold.workspace.access.permission import Approval
from waiting import wait_until

Scenario = Callable[[aio.AsyncWorkspace], Awaitable[None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def play(root: Path, scenario: Scenario, **more: Any) -> None:
    async def run() -> None:
        settings = Settings(state_dir=root.parent / "state", durability="none", **more)
        async with aio.open_workspace(root, settings=settings) as workspace:
            await scenario(workspace)

    asyncio.run(run())


@requirement("front:library:awaitable")
def test_the_same_names_are_awaited(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        session = workspace.session(agent="ada")
        made = await session.create_file("a.txt", "one\n")
        async with session.turn("change it") as turn:
            edited = await session.edit_file("a.txt", [("one", "two")], expected_sha256=made.sha256)
        with pytest.raises(StaleFile):
            await session.write_file("a.txt", "three\n", expected_sha256=made.sha256)
        again = await workspace.session(id=session.id)

        assert (await again.claude.Read("a.txt")).sha256 == edited.sha256
        assert (await session.answer("read_file", {"path": "a.txt"})).ok
        newest, *_ = await workspace.changes(agent="ada")
        assert newest.entries[0].call.turn == turn.id
        assert (await workspace.undo(agent="ada")).change_id
        assert {"create_file", "claude", "id"} <= set(dir(session))
        call = {"type": "tool_use", "id": "1", "name": "create_file", "input": {"path": "b", "content": "b"}}
        assert not (await aio.dispatch(session, call))["is_error"]

    play(root, scenario)
    assert [one.name for one in root.iterdir()] == ["b"]


@requirement("front:library:awaitable")
def test_many_calls_at_once_do_not_block_the_loop(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        sessions = [workspace.session(agent=str(number)) for number in range(4)]
        await asyncio.gather(*(one.create_file(f"{one.id}.txt", "x\n") for one in sessions))

    play(root, scenario)
    assert len(list(root.iterdir())) == 4


@requirement("front:library:awaitable")
@pytest.mark.parametrize("kind", ["coroutine", "blocking"])
def test_questions_that_wait_block_no_other_call(root: Path, kind: str) -> None:
    count = 100

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        waiting, all_wait, go = list[object](), asyncio.Event(), threading.Event()

        async def ask(request: object) -> bool:
            waiting.append(request)
            if len(waiting) == count:
                all_wait.set()
            await all_wait.wait()
            assert await workspace.changes() is not None
            return True

        loop = asyncio.get_running_loop()

        def ask_and_block(request: object) -> bool:
            waiting.append(request)
            if len(waiting) == count:
                loop.call_soon_threadsafe(all_wait.set)
            return go.wait()

        approver = ask if kind == "coroutine" else ask_and_block
        sessions = [workspace.session(agent=str(number), approver=approver) for number in range(count)]
        writes = [asyncio.create_task(one.create_file(f"{one.id}.txt", "x\n")) for one in sessions]
        await all_wait.wait()
        assert await workspace.changes() == []
        go.set()
        await asyncio.gather(*writes)

    play(root, scenario, mode="default")
    assert len(list(root.iterdir())) == count


@requirement("front:library:awaitable")
def test_only_so_many_calls_work_at_once_and_one_that_is_cancelled_before_its_turn_says_so(root: Path) -> None:
    at_once = list[int]()

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        go = threading.Event()

        def work() -> None:
            at_once.append(1)
            go.wait()

        calls = [asyncio.create_task(call_in_thread(work)) for _ in range(200)]
        read = asyncio.create_task(workspace.session().create_file("a.txt", "one\n"))
        await asyncio.to_thread(wait_until, lambda: len(at_once) >= 32)
        read.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await read
        assert cancelled.value.__notes__ == ["The call was cancelled. Nothing was written."]
        assert len(at_once) == 32
        go.set()
        await asyncio.gather(*calls)

    play(root, scenario)
    assert len(at_once) == 200
    assert list(root.iterdir()) == []


class AsyncPerson:
    """Approves, as an object whose calls are awaited."""

    async def __call__(self, request: object) -> bool:
        await asyncio.sleep(0)
        return True


async def approve(request: object) -> bool:
    await asyncio.sleep(0)
    return True


@requirement("front:library:awaitable")
@pytest.mark.parametrize("approver", [approve, AsyncPerson()], ids=["function", "object"])
def test_an_approver_of_the_settings_or_of_a_session_may_be_awaited(root: Path, approver: Any) -> None:
    async def by_settings(workspace: aio.AsyncWorkspace) -> None:
        await workspace.session().create_file("a.txt", "one\n")

    async def by_session(workspace: aio.AsyncWorkspace) -> None:
        await workspace.session(approver=approver).create_file("b.txt", "two\n")

    play(root, by_settings, mode="default", approver=approver)
    play(root, by_session, mode="default")
    assert sorted(one.name for one in root.iterdir()) == ["a.txt", "b.txt"]


@requirement("front:library:awaitable")
def test_a_workspace_is_recovered_and_closed_by_hand_too(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        assert await workspace.recover() == ()
        await workspace.close()
        with pytest.raises(WorkspaceClosed):
            await workspace.changes()

    play(root, scenario)


@requirement("front:library:awaitable")
def test_a_call_that_is_cancelled_while_a_person_is_asked_writes_nothing(root: Path) -> None:
    asked = list[object]()

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        reached = asyncio.Event()

        async def ask(request: object) -> Approval:
            asked.append(request)
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

        task = asyncio.create_task(workspace.session(approver=ask).create_file("a.txt", "one\n"))
        await reached.wait()
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert cancelled.value.__notes__ == ["The call was cancelled. Nothing was written."]

    play(root, scenario, mode="default")
    assert len(asked) == 1
    assert list(root.iterdir()) == []


@requirement("front:library:awaitable")
@pytest.mark.parametrize("way", ["method", "answer", "dispatch", "namespace"])
def test_a_call_that_is_cancelled_while_it_is_planned_writes_nothing(root: Path, way: str) -> None:
    begun, go = threading.Event(), threading.Event()

    def guess(data: bytes) -> str:
        begun.set()
        go.wait()
        return "cp1252"

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        session = workspace.session()
        sha256 = hashlib.sha256((root / "a.txt").read_bytes()).hexdigest()
        arguments: dict[str, Any] = {"path": "a.txt", "content": "tea\n", "expectedSha256": sha256}
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "method": lambda: session.write_file("a.txt", "tea\n", expected_sha256=sha256),
            "answer": lambda: session.answer("write_file", arguments),
            "dispatch": lambda: aio.dispatch(session, {"name": "write_file", "arguments": arguments}),
            "namespace": lambda: session.multi_edit.multi_edit_text_file(str(root / "a.txt"), [("x = ", "y = ")]),
        }
        task = asyncio.ensure_future(calls[way]())
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert cancelled.value.__notes__ == ["The call was cancelled. Nothing was written."]
        assert await workspace.changes() == []

    (root / "a.txt").write_bytes(b"x = \xe9\n")
    play(root, scenario, detector=guess)
    assert (root / "a.txt").read_bytes() == b"x = \xe9\n"


@requirement("front:library:awaitable")
def test_a_call_that_is_cancelled_too_late_says_what_it_did(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        begun, go = threading.Event(), threading.Event()

        def ask(request: object) -> Approval:
            begun.set()
            go.wait()
            return Approval(allowed=True)

        session = workspace.session(approver=ask)
        task = asyncio.create_task(session.create("a.txt", "one\n"))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        (change,) = await workspace.changes()
        assert cancelled.value.__notes__ == [f"The call could not be taken back any more: its change is {change.id}."]

    play(root, scenario, mode="default")
    assert (root / "a.txt").read_bytes() == b"one\n"


PATCH = "*** Begin Patch\n" + "".join(f"*** Add File: {one}.txt\n+1\n" for one in "abcd") + "*** End Patch\n"


@requirement("front:library:awaitable")
@pytest.mark.parametrize("way", ["method", "answer", "dispatch"])
@pytest.mark.parametrize(("asked", "made"), [("b.txt", 1), ("c.txt", 2)])
def test_a_call_of_several_changes_says_which_of_them_it_made(root: Path, way: str, asked: str, made: int) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        begun = asyncio.Event()

        async def ask(request: object) -> Approval:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        session, words = workspace.session(mode="acceptEdits", approver=ask), {"patch": PATCH, "atomic": False}
        calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "method": lambda: session.apply_patch(PATCH, atomic=False),
            "answer": lambda: session.answer("apply_patch", words),
            "dispatch": lambda: aio.dispatch(session, {"name": "apply_patch", "arguments": words}),
        }
        task = asyncio.create_task(calls[way]())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task

        ids = ", ".join(one.id for one in reversed(await workspace.changes()) if one.entries[0].ok)
        said = f"its change is {ids}" if made == 1 else f"its changes are {ids}"
        assert cancelled.value.__notes__ == [f"The call could not be taken back any more: {said}."]
        assert ids.count(",") == made - 1

    play(root, scenario, ask=[asked])
    assert len(list(root.glob("[abcd].txt"))) == made


@requirement("front:library:awaitable")
def test_a_call_that_is_cancelled_and_fails_by_itself_says_how_it_failed(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        begun, go = threading.Event(), threading.Event()

        def ask(request: object) -> Approval:
            begun.set()
            go.wait()
            return Approval(allowed=False, note="not today")

        task = asyncio.create_task(workspace.session(approver=ask).create("a.txt", "one\n"))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        (note,) = cancelled.value.__notes__
        assert note.startswith("The call failed by itself: ")
        assert "not today" in note

    play(root, scenario, mode="default")
    assert list(root.iterdir()) == []


@requirement("front:library:awaitable")
def test_a_coroutine_can_approve(root: Path) -> None:
    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        async def ask(request: object) -> Approval:
            await asyncio.sleep(0)
            return Approval(allowed=True)

        await workspace.session(approver=ask).create_file("a.txt", "one\n")

    play(root, scenario, mode="default")
    assert (root / "a.txt").read_bytes() == b"one\n"


@requirement("front:library:awaitable")
def test_a_session_that_is_used_after_the_end_says_that_the_workspace_is_closed(root: Path) -> None:
    sessions = list[aio.AsyncSession]()

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        sessions.append(workspace.session(agent="ada"))

    play(root, scenario)

    async def use(session: aio.AsyncSession) -> None:
        with pytest.raises(SureholdError, match="closed"):
            await session.create_file("a.txt", "one\n")
        assert "closed" in (await session.answer("read_file", {"path": "a.txt"})).text

    asyncio.run(use(sessions[0]))  # in another event loop
    assert list(root.iterdir()) == []


@requirement("front:library:awaitable")
def test_type_checkers_are_told_of_every_awaitable_method(root: Path) -> None:
    stub = ast.parse(Path(tool_methods.__file__).with_suffix(".pyi").read_text("utf-8"))
    (methods,) = [one for one in stub.body if isinstance(one, ast.ClassDef) and one.name == "AsyncToolMethods"]
    told = {one.name for one in methods.body if isinstance(one, ast.AsyncFunctionDef)}

    async def scenario(workspace: aio.AsyncWorkspace) -> None:
        session = workspace.session(agent="ada")
        assert {one["name"] for one in tools_for("mcp")} - {"edit"} <= told
        assert {"edit_lines", "read", "undo"} <= told
        assert [name for name in told if not inspect.iscoroutinefunction(getattr(session, name))] == []

    play(root, scenario)
