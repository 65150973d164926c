import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from surehold.errors import Cancelled, NotFound, PermissionRequired, SureholdError
from surehold.front.review import markup
from surehold.front.review.sign_in import SignIn
from surehold.front.review.site import ReviewPage
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.pending_approval import PendingApproval
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.workspace import Workspace
from waiting import HANG_SECONDS, wait_until
from workspaces import real_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a").write_bytes(b"old\n")
    with real_workspace(tmp_path / "r") as opened:
        yield opened


class Writer(threading.Thread):
    """An agent that edits, and waits for a yes."""

    def __init__(self, workspace: Workspace, ask: object) -> None:
        super().__init__(daemon=True)
        self.session = workspace.session(mode="default", approver=ask)  # type: ignore[arg-type]
        self.error: SureholdError | None = None
        self.start()

    def run(self) -> None:
        try:
            self.session.edit("a", ("old", "new"))
        except SureholdError as error:
            self.error = error


def asked(questions: ApprovalQueue) -> PendingApproval:
    return wait_until(questions.list_open, "nobody asked")[0]


def content(workspace: Workspace) -> bytes:
    return workspace.read("a").data


def test_an_answer_ends_the_wait(workspace: Workspace) -> None:
    questions = ApprovalQueue()
    writer = Writer(workspace, questions.ask)

    question = asked(questions)
    assert content(workspace) == b"old\n"
    questions.answer_question(question.id, Approval(allowed=True))
    writer.join(HANG_SECONDS)

    assert (writer.error, content(workspace), questions.list_open()) == (None, b"new\n", ())


def test_a_question_that_nobody_answers_is_given_up(workspace: Workspace) -> None:
    questions = ApprovalQueue(seconds=0.3)
    writer = Writer(workspace, questions.ask)
    writer.join(HANG_SECONDS)

    assert isinstance(writer.error, PermissionRequired)
    assert writer.error.reason == "approval_timeout"
    assert (content(workspace), questions.list_open()) == (b"old\n", ())


def test_a_server_that_ends_gives_up_what_waits(workspace: Workspace) -> None:
    questions = ApprovalQueue()
    writer = Writer(workspace, questions.ask)
    asked(questions)
    questions.close()
    writer.join(HANG_SECONDS)

    assert isinstance(writer.error, PermissionRequired)
    assert content(workspace) == b"old\n"
    with pytest.raises(PermissionRequired):
        workspace.session(mode="default", approver=questions.ask).edit("a", ("old", "new"))


def test_a_cancelled_call_is_not_waited_for(workspace: Workspace) -> None:
    questions, gone = ApprovalQueue(), threading.Event()

    def ask(request: PermissionRequest) -> Approval:
        return questions.ask(request, cancelled=gone.is_set)

    writer = Writer(workspace, ask)
    asked(questions)
    gone.set()
    writer.join(HANG_SECONDS)

    assert isinstance(writer.error, Cancelled)
    assert content(workspace) == b"old\n"


def test_a_question_is_answered_once(workspace: Workspace) -> None:
    questions = ApprovalQueue()
    writer = Writer(workspace, questions.ask)
    question = asked(questions)
    questions.answer_question(question.id, Approval(allowed=False))
    writer.join(HANG_SECONDS)

    with pytest.raises(NotFound):
        questions.answer_question(question.id, Approval(allowed=True))
    assert content(workspace) == b"old\n"


def test_an_answer_that_comes_while_a_question_is_given_up_counts(workspace: Workspace) -> None:
    questions = ApprovalQueue()

    def answered_meanwhile() -> bool:
        for question in questions.list_open():
            questions.answer_question(question.id, Approval(allowed=True))
        return True

    writer = Writer(workspace, lambda request: questions.ask(request, cancelled=answered_meanwhile))  # type: ignore[arg-type]
    writer.join(HANG_SECONDS)

    assert writer.error is None
    assert content(workspace) == b"new\n"


def test_a_page_that_misses_a_change_asks_for_it_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    page: Any = ReviewPage(workspace, ApprovalQueue(), SignIn("t", key=b"k"))
    session, render = workspace.session(), markup.render_overview

    def render_slowly(*given: Any, **more: Any) -> str:
        body = render(*given, **more)
        session.edit("a", ("old", "new"))
        return body

    monkeypatch.setattr(markup, "render_overview", render_slowly)
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
    shown = anyio.run(page._show_overview, request).body.decode()

    assert 'data-state="' in shown
    assert f'data-state="{anyio.run(page._state_mark)}"' not in shown


def test_an_open_question_is_never_marked_as_an_ended_one(workspace: Workspace) -> None:
    def may_begin_with_a_dash(size: int) -> str:
        return "-" + "x" * size

    questions = ApprovalQueue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secrets.token_urlsafe", may_begin_with_a_dash)  # one in 64 does
        Writer(workspace, questions.ask)
        question = asked(questions)

    assert not question.id.startswith("-")
    questions.answer_question(question.id, Approval(allowed=False))
