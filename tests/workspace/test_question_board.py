"""Questions that every process can show, and those that stay with the process that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.stores.base import Change
from surehold.stores.owner import current_owner
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import Snapshot
from surehold.workspace.access import question_board
from surehold.workspace.access.permission import PermissionRequest
from surehold.workspace.access.question_board import QuestionBoard, QuestionFacts
from surehold.workspace.proposal import FileReceipt
from surehold.workspace.runs.questions import CommandQuestion
from workspaces import Bench, call, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "memory", tmp_path)
    yield made
    made.workspace.close()


def ask(before: bytes, after: bytes) -> PermissionRequest:
    plan = WriteBytes(after).plan(Snapshot(before))
    change = Change(path="a", before=plan.before.version, after=plan.after.version)
    return PermissionRequest(call=call(), files=(FileReceipt(path="a", plan=plan, change=change),), why="It is asked.")


def test_a_question_is_posted_up_to_a_size(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    board = QuestionBoard(bench.store.questions, current_owner)
    monkeypatch.setattr(question_board, "_MAX_POSTED_BYTES", 8)

    assert board.post("q1", ask(b"1234", b"5678"), QuestionFacts(tool="Edit"), seconds=60)
    assert not board.post("q2", ask(b"1234", b"56789"), QuestionFacts(), seconds=60)

    (posted,) = board.list_shown()
    assert (posted.id, posted.facts, posted.request.why) == ("q1", QuestionFacts(tool="Edit"), "It is asked.")
    assert [one.plan.after.data for one in posted.request.files] == [b"5678"]
    assert (board.count_open(), board.mark()) == (1, ["q1"])
    found = board.find_shown("q1")
    assert found is not None
    assert (found.id, board.find_shown("q2")) == ("q1", None)


def test_what_a_command_is_about_to_do_is_asked_by_its_own_process(bench: Bench) -> None:
    board = QuestionBoard(bench.store.questions, current_owner)
    command = CommandQuestion(argv=("rm", "a"), next="a")
    asked = PermissionRequest(call=call("run"), files=(), why="It is asked.", command=command)

    assert not board.post("q1", asked, QuestionFacts(), seconds=60)
    assert (board.list_shown(), board.count_open()) == ([], 0)
