"""Refusals speak to a Python program of its own arguments and methods; to a model, of the tools."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Session, Settings, SureholdError, open_workspace
from surehold.errors import LOG, InvalidArgument, argument, spell, to_python
from surehold.library.workspace import AgentWorkspace


@pytest.fixture
def workspace(tmp_path: Path) -> AgentWorkspace:
    (tmp_path / "root").mkdir()
    return open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state", durability="none"))


def refusal_of(call: Any) -> str:
    with pytest.raises(SureholdError) as refused:
        call()
    said = str(refused.value)
    assert not [word for word in ("surehold ", "--", "Sha256", "trashId") if word in said], said
    return said


@requirement("front:library:python_words")
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("default", 'Pass `approver=` or `mode="acceptEdits"` to `workspace.session()`'),
        ("plan", 'begin a session in another mode: `workspace.session(mode="default", approver=…)`.'),
        ("dontAsk", 'begin a session in another mode: `workspace.session(mode="default", approver=…)`.'),
    ],
)
def test_a_mode_that_refuses_names_the_argument_that_helps(workspace: AgentWorkspace, mode: Any, words: str) -> None:
    session = workspace.session(mode=mode)

    assert words in refusal_of(lambda: session.create_file("a.txt", "one\n"))
    if mode == "plan":
        assert words in refusal_of(lambda: workspace.run(["touch", "a.txt"], session=session))


@requirement("front:library:python_words")
def test_a_protected_path_names_the_argument_that_helps(workspace: AgentWorkspace) -> None:
    session = workspace.session()

    assert "Pass `approver=` to `workspace.session()`" in refusal_of(lambda: session.create_file(".bashrc", "x\n"))


@requirement("front:library:python_words")
def test_arguments_are_named_as_the_method_takes_them(workspace: AgentWorkspace) -> None:
    session = workspace.session()
    session.create_file("a.txt", "one\n")

    assert "as expected_sha256." in refusal_of(lambda: session.write_file("a.txt", "two\n", expected_sha256=""))
    assert "Send the trash_id" in refusal_of(session.restore_file)
    assert "end_line is not before start_line" in refusal_of(
        lambda: session.read_file("a.txt", start_line=3, end_line=1)
    )
    assert "`startLine` does not exist" in str(missing(session, "startLine"))


def missing(session: Session, name: str) -> SureholdError:
    with pytest.raises(SureholdError) as refused:
        session.read_file(name)
    return refused.value


@requirement("front:library:python_words")
def test_changes_are_looked_up_undone_and_redone_by_methods(workspace: AgentWorkspace) -> None:
    session = workspace.session()
    made = session.create_file("a.txt", "one\n")
    undone = workspace.undo(made.change_id)
    again = f'workspace.redo("{made.change_id}")'

    assert "`workspace.changes()`" in refusal_of(lambda: workspace.undo("nothing"))
    assert "`workspace.changes()`" in refusal_of(lambda: session.undo("nothing"))
    assert again in refusal_of(lambda: workspace.undo(made.change_id))
    assert again in refusal_of(lambda: workspace.redo(undone.change_id))
    redone = workspace.redo(made.change_id)
    assert f'workspace.undo("{made.change_id}")' in refusal_of(lambda: workspace.redo(made.change_id))
    assert redone.change_id


@requirement("front:library:python_words")
def test_selectors_are_named_as_methods_take_them(workspace: AgentWorkspace) -> None:
    session = workspace.session(agent="ann")
    made = session.create_file("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n")
    done = session.edit_file("a.txt", [("two", "2")], expected_sha256=made.sha256)
    session.create_file("b.txt", "b\n")
    other = workspace.session(agent="bob")
    last = other.edit_file("a.txt", [("2", "two and a half")], expected_sha256=done.sha256)

    assert "`workspace.history.sessions()`" in refusal_of(lambda: workspace.changes(session="nothing"))
    assert f'First, in this order: workspace.undo("{last.change_id}").' in refusal_of(
        lambda: workspace.undo(done.change_id)
    )
    assert "`partial=True` does what can be done: 1 of 3 changes." in refusal_of(lambda: workspace.undo(agent="ann"))


@requirement("front:library:python_words")
def test_an_argument_that_cannot_be_used_is_named_as_the_method_takes_it(workspace: AgentWorkspace) -> None:
    session = workspace.session()
    made = session.create_file("startLine", "one\n")
    wrong: Any = "first"

    assert "`read_file` cannot use `start_line`" in refusal_of(lambda: session.read_file("startLine", start_line=wrong))
    with pytest.raises(SureholdError) as refused:
        session.create_file("startLine", "two\n")
    assert "`startLine` exists" in str(refused.value)
    assert "`ignore_case`" in refusal_of(lambda: session.claude.Grep("one", ignore_case=wrong))
    assert "send its sha256 as expected_sha256." in refusal_of(
        lambda: session.move_file("startLine", "b", expected_sha256="")
    )
    assert made.sha256


@requirement("front:library:python_words")
def test_a_refusal_keeps_both_spellings_in_another_process() -> None:
    error = pickle.loads(
        pickle.dumps(InvalidArgument(spell("Send {}.", argument("trashId")), action=spell("See {}.", LOG)))
    )

    assert (error.message, error.action) == ("Send trashId.", "See `surehold log`.")
    assert (to_python(error.message), to_python(error.action)) == ("Send trash_id.", "See `workspace.changes()`.")


@requirement("front:library:python_words")
def test_a_model_is_told_of_the_tools(workspace: AgentWorkspace) -> None:
    session = workspace.session()
    session.create_file("a.txt", "one\n")
    answer = session.answer("write_file", {"path": "a.txt", "content": "two\n"})

    assert "as expectedSha256." in answer.text
    assert (
        "--mode acceptEdits"
        in workspace.session(mode="default").answer("create_file", {"path": "b", "content": ""}).text
    )
