"""Where the guard of `surehold run` finds a person: on a review page, at the client of an MCP server, in an editor, by a program."""

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from capture.desk import RunDesk
from capture.test_run_terminal import run_at_terminal, talk_at_terminal
from front.mcp.site import HttpServer, Site
from spec.marks import requirement
from surehold import Settings, aio, open_workspace
from surehold.capture.filter import can_listen
from surehold.errors import InvalidArgument
from surehold.front.shared.command_channels import find_channels
from surehold.stores.base import ApprovalRecord
from surehold.workspace.access.permission import Approval, PermissionRequest
from waiting import wait_until

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def fill(desk: RunDesk, count: int) -> None:
    for number in range(count):
        (desk.root / f"f{number:03}").write_text("x")


def count_left(desk: RunDesk) -> int:
    return len(list(desk.root.glob("f*")))


def start_alone(desk: RunDesk, script: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a command without a terminal, as hosts do."""
    command = [*desk.words(*options), "bash", "-c", script]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=desk.root, stdin=quiet, stderr=subprocess.PIPE, start_new_session=True)


def approval_of(desk: RunDesk) -> ApprovalRecord:
    """Return what the ledger has about the question."""
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        approval = workspace.history.log()[0].call.approval
    assert approval is not None
    return approval


class PageVisitor:
    """A person at the review page, without a browser."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._own = {"Origin": f"http://127.0.0.1:{server.port}"}
        sent = f"token={server.token}".encode()
        _, headers, _ = server.send("POST", "/review/sign-in", body=sent, headers=self._own)
        self._own["Cookie"] = headers["set-cookie"].partition(";")[0]

    def look(self) -> str:
        return self._server.send("GET", "/", headers=self._own)[2].decode()

    def wait_for_question(self) -> tuple[str, str]:
        """Return the page that shows a question, and the question's id."""
        page = wait_until(lambda: text if 'id="question-' in (text := self.look()).replace("question-list", "") else "")
        return page, page.split('class="card question" id="question-')[1].split('"')[0]

    def answer(self, question: str, decision: str, note: str = "") -> None:
        body = urlencode({"decision": decision, "note": note}).encode()
        status, _, _ = self._server.send("POST", f"/review/question/{question}", body=body, headers=self._own)
        assert status == 303


@contextmanager
def serving(desk: RunDesk) -> Generator[PageVisitor]:
    with Site(root=desk.root, state=desk.state).serve("serve", "--port", "0") as server:
        yield PageVisitor(server)


@requirement("run:guard:page")
@pytest.mark.parametrize(("decision", "left"), [("allow", 0), ("refuse", 21)])
def test_on_the_review_page_a_person_is_asked_before_the_hundredth_deletion(
    desk: RunDesk, decision: str, left: int
) -> None:
    fill(desk, 120)
    with serving(desk) as person:
        running = start_alone(desk, "rm f*", "--agent", "mover")
        page, question = person.wait_for_question()
        assert "mover wants to delete more than 99 paths" in page
        assert "deleted: f000" in page
        assert "next: f099" in page
        assert "Allow for this session" not in page
        assert count_left(desk) == 21, "the command waits"

        person.answer(question, decision, "look first")
        _, said = running.communicate()

    assert (running.returncode, count_left(desk)) == (left > 0, left)
    approval = approval_of(desk)
    assert (approval.asked, approval.rule, approval.where) == (True, "guard 100", "page")
    assert approval.note == ("look first" if not left else "refused: look first")
    assert (b"not allowed to delete more (`f099`): look first" in said) == (left > 0)
    assert find_channels(str(desk.state)) == [], "a server that ended is asked nothing"


@requirement("run:guard:page")
def test_a_question_of_a_command_that_was_killed_is_marked_on_the_page(desk: RunDesk) -> None:
    fill(desk, 9)
    with serving(desk) as person:
        running = start_alone(desk, "rm f*", "--guard", "4")
        person.wait_for_question()
        os.killpg(running.pid, signal.SIGKILL)
        wait_until(lambda: "The agent has gone." in person.look())
        running.communicate()
    assert count_left(desk) == 6


@requirement("run:guard:page", "run:guard:refuses")
def test_a_signal_ends_a_command_that_waits_for_an_answer(desk: RunDesk) -> None:
    fill(desk, 9)
    with serving(desk) as person:
        running = start_alone(desk, "rm f*", "--guard", "4")
        person.wait_for_question()
        running.terminate()
        running.communicate()
        wait_until(lambda: 'class="card question"' not in person.look(), "it was withdrawn")
    assert (running.returncode, count_left(desk)) == (128 + signal.SIGTERM, 6)


@requirement("run:guard:page", "run:guard:refuses")
def test_a_question_at_the_terminal_can_be_answered_on_the_page_instead(desk: RunDesk) -> None:
    fill(desk, 120)
    shown = list[bytes]()
    with serving(desk) as person:
        terminal = threading.Thread(target=lambda: shown.append(run_at_terminal(desk, "rm f*", b"")[1]))
        terminal.start()
        _, question = person.wait_for_question()
        person.answer(question, "allow")
        terminal.join()
    assert b"It can be answered here or where else it is shown" in shown[0]
    assert b"surehold: allowed by" in shown[0]
    assert (count_left(desk), approval_of(desk).where) == (0, "page")


@requirement("run:guard:page")
def test_a_terminal_of_another_program_is_left_alone(desk: RunDesk) -> None:
    """A host has a terminal, and gives its commands pipes: the question is for the page alone."""
    fill(desk, 120)
    shown = list[bytes]()
    with serving(desk) as person:
        script = f"exec 2> {desk.root.parent}/errors; exec {shlex.join([*desk.words(), 'sh', '-c', 'rm f*'])}"
        words = ["/bin/sh", "-c", f"cd {desk.root}; {script}"]
        terminal = threading.Thread(target=lambda: shown.append(talk_at_terminal(words, [])[1]))
        terminal.start()
        _, question = person.wait_for_question()
        person.answer(question, "allow")
        terminal.join()
    assert (shown, count_left(desk), approval_of(desk).where) == ([b""], 0, "page")


@requirement("run:guard:page")
def test_a_guard_of_none_asks_nobody(desk: RunDesk) -> None:
    fill(desk, 120)
    with serving(desk):
        running = start_alone(desk, "rm f*", "--guard", "0")
        running.communicate()
    assert (running.returncode, count_left(desk)) == (0, 0)


@requirement("run:guard:form")
@pytest.mark.parametrize(("answer", "left"), [("allow once", 0), ("refuse", 6)])
def test_the_client_of_the_host_that_runs_the_command_is_asked(desk: RunDesk, answer: str, left: int) -> None:
    fill(desk, 9)
    with Site(root=desk.root, state=desk.state).start(capabilities=FORMS) as client:
        wait_until(lambda: find_channels(str(desk.state)))
        running = start_alone(desk, "rm f*", "--guard", "4")
        (form,) = client.wait_for(lambda rows: any(row["method"] == "elicitation/create" for row in rows))
        message = form["params"]["message"]
        assert "delete more than 3 paths" in message
        assert [row for row in message.splitlines() if "f000" in row or "f003" in row][-2:] == [
            "deleted: f000",
            "next: f003",
        ]
        assert form["params"]["requestedSchema"]["properties"]["decision"]["enum"] == ["allow once", "refuse"]
        client.send(
            {"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"decision": answer}}}
        )
        running.communicate()
    assert (running.returncode, count_left(desk)) == (left > 0, left)
    assert approval_of(desk).where == "form"


@requirement("run:guard:page", "run:guard:form")
@pytest.mark.parametrize("capabilities", [{}, FORMS], ids=["page alone", "page and form"])
def test_a_page_beside_stdio_is_asked_too(desk: RunDesk, capabilities: dict[str, Any]) -> None:
    with Site(root=desk.root, state=desk.state).start("--review", capabilities=capabilities):
        (channel,) = wait_until(lambda: find_channels(str(desk.state)))
        host = os.getpid() if capabilities else 0
        wait_until(lambda: [(one.host, one.has_page) for one in find_channels(str(desk.state))] == [(host, True)])
    assert channel.has_page
    assert find_channels(str(desk.state)) == []


@requirement("run:guard:form")
def test_the_client_of_another_host_is_not_asked_about_a_command(desk: RunDesk) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        folder = desk.state / "questions"
        folder.mkdir(parents=True)
        for name in (f"{os.getpid()}.{bystander.pid}.form", "not a channel"):
            (folder / name).touch()
        assert find_channels(str(desk.state)) == []
        (folder / f"{os.getpid()}.{os.getppid()}.form").touch()
        assert [channel.host for channel in find_channels(str(desk.state))] == [os.getppid()]
    finally:
        bystander.kill()
        bystander.wait()


@requirement("run:guard:refuses")
def test_a_server_that_was_killed_is_forgotten_and_the_answer_is_no(desk: RunDesk) -> None:
    fill(desk, 9)
    folder = desk.state / "questions"
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead, contextlib.chdir(folder):
        dead.bind("1.0.page")  # the path of the directory may be too long for an address

    running = start_alone(desk, "rm f*", "--guard", "4")
    _, said = running.communicate()

    assert (running.returncode, count_left(desk), list(folder.iterdir())) == (1, 6, [])
    assert b"no person could be asked" in said


@requirement("run:guard:refuses")
def test_a_command_cannot_answer_for_itself(desk: RunDesk, tmp_path: Path) -> None:
    fill(desk, 9)
    server = tmp_path / "server.py"
    server.write_text(
        "import os, socket, sys\n"
        "post = socket.socket(socket.AF_UNIX)\n"
        f"post.bind({str(desk.state / 'questions' / '1.0.page')!r})\n"
        "post.listen()\n"
        "if not os.fork():\n"
        "    link, _ = post.accept()\n"
        "    link.sendall(b'{\"answer\": true}\\n')\n"
    )
    (desk.state / "questions").mkdir(parents=True)

    running = start_alone(desk, f"python3 {server} >/dev/null 2>&1; rm f*", "--guard", "4")
    running.communicate()

    assert count_left(desk) == 6


@requirement("run:guard:callback", "run:library:receipt")
@pytest.mark.parametrize(("allowed", "left"), [(True, 0), (False, 6)])
def test_the_approver_of_a_program_is_asked_while_the_command_waits(desk: RunDesk, allowed: bool, left: int) -> None:
    fill(desk, 9)
    asked = list[PermissionRequest]()

    def approve(request: PermissionRequest) -> Approval:
        asked.append(request)
        assert count_left(desk) == 6
        return Approval(allowed=allowed, who="me")

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        session = workspace.session(agent="mover", approver=approve)
        with session.turn("tidy up") as turn:
            done = workspace.run(["sh", "-c", "rm f*; echo done"], session=session, guard=4)
        call = workspace.history.show(done.change_id).entries[0].call
    assert (done.stdout, count_left(desk)) == (b"done\n", left)
    (request,) = asked
    assert request.command is not None
    assert (request.command.removed, request.command.next) == (("f000", "f001", "f002"), "f003")
    assert (call.session, call.turn, call.agent) == (session.id, turn.id, "mover")
    assert call.approval is not None
    assert (call.approval.where, call.approval.who) == ("callback", "me")


@requirement("run:guard:callback", "run:guard:refuses")
def test_an_approver_that_fails_allows_nothing(desk: RunDesk) -> None:
    fill(desk, 9)

    def fail(request: PermissionRequest) -> Approval:
        raise KeyError(request.files[0].path)

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        done = workspace.run(["sh", "-c", "rm f*"], guard=4, approver=fail)
        with pytest.raises(InvalidArgument, match="number of deletions"):
            workspace.run(["true"], guard=-1)
    assert (done.exit_code, count_left(desk)) == (1, 6)
    assert b"the question could not be asked (IndexError" in done.stderr


@requirement("run:library:awaitable")
def test_a_command_is_awaited_undone_and_made_again(desk: RunDesk) -> None:
    async def scenario() -> None:
        async with aio.open_workspace(desk.root, settings=Settings(state_dir=desk.state)) as workspace:
            done = await workspace.run(["sh", "-c", "cat; rm a.txt; exit 3"], agent="me", stdin=b"in")
            assert (done.exit_code, done.stdout, done.deleted) == (3, b"in", 1)
            await workspace.undo(done.change_id)
            assert (desk.root / "a.txt").read_text() == "one\n"
            await workspace.redo()
            assert not (desk.root / "a.txt").exists()
            assert [change.id for change in await workspace.changes(agent="me")] == [done.change_id]

    asyncio.run(scenario())


@requirement("run:library:awaitable", "run:guard:callback")
def test_a_coroutine_is_asked_while_the_awaited_command_waits(desk: RunDesk) -> None:
    fill(desk, 9)

    async def approve(request: PermissionRequest) -> bool:
        return request.summary == "delete more than 3 paths"

    async def scenario() -> None:
        async with aio.open_workspace(desk.root, settings=Settings(state_dir=desk.state)) as workspace:
            session = workspace.session(agent="mover", approver=approve)
            assert (await workspace.run(["sh", "-c", "rm f00?"], session=session, guard=4)).deleted == 9
            fill(desk, 9)
            refuse = await workspace.run(["sh", "-c", "rm f00?"], guard=3, approver=approve)
            assert (refuse.exit_code, refuse.deleted) == (1, 2)

    asyncio.run(scenario())


@requirement("run:library:awaitable")
def test_to_cancel_an_awaited_command_ends_it_and_records_what_it_did(desk: RunDesk) -> None:
    (gate,) = desk.make_gates("gate")

    async def scenario() -> None:
        async with aio.open_workspace(desk.root, settings=Settings(state_dir=desk.state)) as workspace:
            running = asyncio.ensure_future(workspace.run(["sh", "-c", f"rm a.txt; echo > {gate}; exec sleep 600"]))
            await asyncio.to_thread(gate.read_bytes)
            running.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await running
            (change,) = await workspace.changes()
            assert cancelled.value.__notes__ == [f"The command was ended; what it did is change {change.id}."]
            assert (change.entries[0].change.path, change.entries[0].call.exit_code) == ("a.txt", 128 + signal.SIGTERM)

    asyncio.run(scenario())


@requirement("run:library:awaitable")
def test_to_cancel_ends_everything_that_the_command_started(desk: RunDesk) -> None:
    (gate,) = desk.make_gates("gate")
    stubborn = f"trap '' TERM; echo $$ > {gate}; while :; do sleep 600 & wait; done"

    async def scenario() -> int:
        async with aio.open_workspace(desk.root, settings=Settings(state_dir=desk.state)) as workspace:
            command = ["sh", "-c", f'rm a.txt; (setsid sh -c "{stubborn}") & wait'.replace("$$", "\\$\\$")]
            running = asyncio.ensure_future(workspace.run(command))
            pid = int(await asyncio.to_thread(gate.read_text))
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            (change,) = await workspace.changes()
            assert change.entries[0].change.path == "a.txt"
            return pid

    command_line = Path(f"/proc/{asyncio.run(scenario())}/cmdline")
    # A process that was killed is there a moment longer, without its memory.
    wait_until(lambda: not command_line.exists() or not command_line.read_bytes())


@requirement("run:library:receipt")
@pytest.mark.parametrize("words", [["a\0b"], [1], "make", [], None, [b"make"]], ids=repr)
def test_what_is_not_a_list_of_words_is_refused(desk: RunDesk, words: Any) -> None:
    with (
        open_workspace(desk.root, settings=desk.settings()) as workspace,
        pytest.raises(InvalidArgument, match=r"list of (words|texts)"),
    ):
        workspace.run(words)
