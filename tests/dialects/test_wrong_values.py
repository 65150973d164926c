"""Wrong values are refused at once, in the words of a Python program, and nothing happens."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Session, Settings, aio, dispatch, open_workspace, tools_for
from surehold.adapters.deepagents import SessionBackend
from surehold.adapters.functions import plain_functions
from surehold.adapters.google_adk import SessionEnvironment
from surehold.errors import InvalidArgument

UNTYPED: dict[str, Callable[[Any, Any], Any]] = {
    "An approver must be a function.": lambda workspace, _: workspace.session(approver="x"),
    "`agent` must be a text, not int.": lambda workspace, _: workspace.session(agent=5),
    "`id` must be a text, not int.": lambda workspace, _: workspace.session(id=5),
    "`change` must be a text, not int.": lambda workspace, _: workspace.undo(5),
    "`since` must be a time, not int.": lambda workspace, _: workspace.changes(since=5),
    "`session` must be a session or its id, not int.": lambda workspace, _: workspace.undo(session=5),
    "`turn` must be a text, not int.": lambda workspace, _: workspace.redo(turn=5),
    "`title` must be a text, not int.": lambda _, session: session.turn(5).__enter__(),
    "`paths` must be a list of texts, not int.": lambda workspace, _: workspace.undo(paths=[5]),
    "`limit` must be a whole number, not str.": lambda workspace, _: workspace.changes(limit="3"),
    "`argv` must be a list of texts, not int.": lambda workspace, _: workspace.run([5]),
    "`stdin` must be bytes, not str.": lambda workspace, _: workspace.run(["touch", "a"], stdin="x"),
    "`guard` must be a whole number, not str.": lambda workspace, _: workspace.run(["touch", "a"], guard="3"),
    "`reason` must be a text, not int.": lambda workspace, _: workspace.run(["touch", "a"], reason=3),
    "`confine` must be True or False, not str.": lambda workspace, _: workspace.run(["touch", "a"], confine="no"),
    "`partial` must be True or False, not str.": lambda workspace, _: workspace.undo(agent="ada", partial="no"),
    "`dry_run` must be True or False, not str.": lambda workspace, _: workspace.redo(dry_run="no"),
    "`dry_run` must be True or False, not int.": lambda _, session: session.undo(dry_run=1),
    "`dry_run` must be True or False, not NoneType.": lambda _, session: session.redo(dry_run=None),
    "`tools` must be a comma list of families, not list.": lambda *_: tools_for("mcp", ["claude"]),  # type: ignore[arg-type]
    "`root` must be a path, not int.": lambda *_: open_workspace(5),  # type: ignore[arg-type]
    "`state` must be a path, not int.": lambda *_: open_workspace(".", state=5),  # type: ignore[arg-type]
    "`settings` must be a `Settings`, not dict.": lambda *_: open_workspace(".", settings={}),  # type: ignore[arg-type]
    "`session` must be a session, not NoneType.": lambda *_: plain_functions(None),  # type: ignore[arg-type]
    "`session` must be a session, not int.": lambda *_: SessionBackend(5),  # type: ignore[arg-type]
    "`session` must be a session, not str.": lambda *_: SessionEnvironment("x"),  # type: ignore[arg-type]
    "`session` must be a session, not AgentWorkspace.": lambda workspace, _: dispatch(workspace, {}),
    "`session` must be a session, not AsyncSession.": lambda _, session: dispatch(aio.AsyncSession(session), {}),  # type: ignore[arg-type]
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "root").mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    return open_workspace(tmp_path / "root", settings=settings).session(agent="ada")


@requirement("front:library:wrong_values")
@pytest.mark.parametrize("told", UNTYPED)
def test_a_wrong_value_is_refused_by_its_name_with_an_example(session: Session, told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        UNTYPED[told](session.workspace, session)

    assert refused.value.message == told
    assert refused.value.action.startswith("For example: ")
    assert list(Path(session.workspace.roots[0]).iterdir()) == []


UNNAMEABLE: dict[str, Callable[[Any, str], object]] = {
    "agent": lambda workspace, name: workspace.session(agent=name),
    "id": lambda workspace, name: workspace.session(id=name),
    "turn id": lambda workspace, name: workspace.session().turn(id=name).__enter__(),
    "by": lambda workspace, name: workspace.undo(by=name),
    "run agent": lambda workspace, name: workspace.run(["touch", "made"], agent=name),
    "run turn": lambda workspace, name: workspace.run(["touch", "made"], turn=name),
    "run session": lambda workspace, name: workspace.run(["touch", "made"], session=name),
}


@requirement("front:library:wrong_values")
@pytest.mark.parametrize("name", ["two\nlines", "zero\0", "half\ud800", "\x1b[31m"], ids=ascii)
@pytest.mark.parametrize("told", UNNAMEABLE)
def test_a_name_that_is_not_one_line_is_refused(session: Session, told: str, name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        UNNAMEABLE[told](session.workspace, name)

    assert refused.value.reason == "bad_name"
    assert list(Path(session.workspace.roots[0]).iterdir()) == []


@requirement("front:library:wrong_values")
@pytest.mark.parametrize("text", ["zero\0", "half\ud800"], ids=ascii)
def test_what_no_command_can_be_given_is_refused(session: Session, text: str) -> None:
    workspace: Any = session.workspace
    with pytest.raises(InvalidArgument, match="reason"):
        workspace.run(["touch", "made"], reason=text)
    with pytest.raises(InvalidArgument, match="command"):
        workspace.run(["touch", text])

    assert list(Path(workspace.roots[0]).iterdir()) == []


@requirement("history:library:selectors")
def test_a_session_itself_is_a_selector_too(session: Session) -> None:
    workspace: Any = session.workspace
    other = workspace.session(agent="bob")
    made = session.create_file("a.txt", "one\n")
    other.create_file("b.txt", "two\n")

    assert [one.change_id for one in workspace.changes(session=session)] == [made.change_id]
    workspace.undo(session=session)
    assert [one.name for one in Path(workspace.roots[0]).iterdir()] == ["b.txt"]


@requirement("history:library:selectors")
def test_an_awaited_session_is_a_selector_too(tmp_path: Path) -> None:
    async def play() -> None:
        async with aio.open_workspace(tmp_path, state=tmp_path.parent / f"{tmp_path.name}-state") as workspace:
            session = workspace.session(agent="ada")
            made = await session.create_file("a.txt", "one\n")
            assert [one.change_id for one in await workspace.changes(session=session)] == [made.change_id]
            await workspace.undo(session=session)

    asyncio.run(play())
    assert list(tmp_path.iterdir()) == []
