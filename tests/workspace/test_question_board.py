"""Questions that every process can show, and those that stay with the process that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.stores.base import Change
from surehold.stores.owner import current_owner
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import Snapshot
from surehold.workspace.access import question_board
from surehold.workspace.access.permission import Approval, PermissionRequest
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


def test_an_answer_is_taken_once_and_ends_the_question(bench: Bench) -> None:
    board = QuestionBoard(bench.store.questions, current_owner)
    for name in ("q1", "q2"):
        board.post(name, ask(b"1", b"2"), QuestionFacts(), seconds=60)
    said = Approval(
        allowed=True, always=True, contents={"a": "mine"}, left_out=("b",), note="Well.", where="page", who="eve"
    )

    assert board.answer("q1", said)
    assert not board.answer("q1", Approval(allowed=False))
    assert not board.answer("missing", said)

    assert board.read_answers(["q1", "q2", "missing"]) == {"q1": said}
    assert (board.count_open(), board.mark(), [one.id for one in board.list_shown()]) == (1, ["q2"], ["q2"])
    assert board.find_shown("q1") is None
    assert (board.take_answer("q1"), board.take_answer("q1"), board.take_answer("q2")) == (said, None, None)
    assert board.mark() == []


def test_a_question_whose_agent_has_gone_is_shown_and_waits_for_nothing(bench: Bench) -> None:
    board = QuestionBoard(bench.store.questions, current_owner)
    for name in ("q1", "q2"):
        board.post(name, ask(b"1", b"2"), QuestionFacts(), seconds=60)
    board.answer("q2", Approval(allowed=True))

    assert board.end("q1", QuestionFacts(ended="It left."))
    assert not board.end("q2", QuestionFacts(ended="It left."))

    assert [(one.id, one.facts.ended) for one in board.list_shown()] == [("q1", "It left.")]
    assert (board.count_open(), board.mark()) == (0, ["-q1"])
    assert board.find_shown("q1") is not None
    assert not board.answer("q1", Approval(allowed=True))


def test_parked_questions_are_taken_when_their_call_is_made_again(bench: Bench) -> None:
    board = QuestionBoard(bench.store.questions, current_owner)
    for name in ("p1", "p2", "p3"):
        board.post(name, ask(b"1", b"2"), QuestionFacts(handle="h"), seconds=60, kind="parked")
    board.post("q1", ask(b"1", b"2"), QuestionFacts(), seconds=60)
    assert not board.answer("p2", Approval(allowed=True))  # no call waits for it

    assert board.take_surplus(3) == []
    assert [one.id for one in board.take_surplus(2)] == ["p1"]
    taken = board.take_parked("p2")
    assert taken is not None
    assert (taken.id, taken.is_answered, taken.facts.handle) == ("p2", False, "h")
    assert (board.take_parked("p2"), board.take_parked("q1"), board.take_parked("missing")) == (None, None, None)
    assert board.take_left() == []
    assert board.mark() == ["q1"]


def test_only_so_many_questions_are_remembered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_board, "_MAX_REMEMBERED", 2)
    board = QuestionBoard(bench.store.questions, current_owner)
    for name in ("q1", "q2", "q3"):
        board.post(name, ask(b"1", name.encode()), QuestionFacts(), seconds=60)
    board.list_shown()

    def find_nothing(question_id: str) -> None:
        del question_id

    monkeypatch.setattr(bench.store.questions, "read_body", find_nothing)

    assert [one.id for one in board.list_shown()] == ["q2", "q3"]  # the others go in this moment
