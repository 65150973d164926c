"""Several servers on one database: whatever one of them was asked, another can go on with."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from databases.counting_proxy import CountingProxy
from databases.schemas import PostgresSchema
from front.mcp.client import Json, surehold
from front.mcp.site import HttpServer, Site, text_of
from spec.marks import requirement
from surehold import Settings, Workspace, open_workspace
from surehold.stores.base import LedgerQuery
from waiting import HANG_SECONDS, wait_until

TOKEN = "a-token-of-both-replicas"
LEGACY = "2025-11-25"
YES: Json = {"permission": {"action": "accept", "content": {"decision": "allow once"}}}
FORMS: Json = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


class Replicas:
    """Two servers that share a root and a database, and nothing else."""

    def __init__(self, folder: Path, url: str, end: ExitStack) -> None:
        self.site = Site(root=folder / "root", state=folder / "unused")
        self.site.root.mkdir()
        self._folder, self._url, self._end = folder, url, end

    def start(self, name: str, *flags: str) -> HttpServer:
        place = ("--state", self._url, "--state-dir", str(self._folder / name))
        command = surehold(
            "serve", self.site.root, *place, "--port", "0", "--mode", "default", *flags, "--ask-seconds", "100"
        )
        server = HttpServer(command, {"SUREHOLD_TOKEN": TOKEN})
        server.token = TOKEN
        return self._end.enter_context(server)

    def open(self) -> Workspace:
        settings = Settings(state=self._url, state_dir=self._folder / "looking")
        return open_workspace(self.site.root, settings=settings)

    def entries(self, name: str) -> list[tuple[bool, str, str]]:
        """Return what the ledger says about a file: whether it happened, why not, and the difference."""
        with self.open() as workspace:
            found = workspace.store.list_entries(LedgerQuery(path=name))
            return [(one.ok, one.message, one.change.diff) for one in found]

    def count_open(self) -> int:
        place = ("--root", str(self.site.root), "--state", self._url, "--state-dir", str(self._folder / "looking"))
        command = [sys.executable, *surehold("status", *place, "--json")]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["questions"]


class WaitingAgent(threading.Thread):
    """Calls one tool, and waits for the answer; a server that is killed answers nothing."""

    def __init__(self, server: HttpServer, arguments: Json, **how: Any) -> None:
        super().__init__(daemon=True)
        self._work = lambda: server.call("create_file", arguments, seconds=None, **how)
        self.result: Json = {}
        self.start()

    def run(self) -> None:
        try:
            self.result = self._work()
        except (OSError, ValueError):
            self.result = {"gone": True}

    def answer(self) -> Json:
        self.join(HANG_SECONDS)
        assert self.result, "the call is still waiting"
        return self.result


class Reviewer:
    """A person at the page of one replica, without a browser."""

    def __init__(self, server: HttpServer) -> None:
        self._server, self._own = server, {"Origin": f"http://127.0.0.1:{server.port}"}
        sent = f"token={TOKEN}".encode()
        _, headers, _ = server.send("POST", "/review/sign-in", body=sent, headers=self._own)
        self._own["Cookie"] = headers["set-cookie"].partition(";")[0]

    def look(self, path: str = "/") -> str:
        return self.answer_of(path)[1]

    def answer_of(self, path: str) -> tuple[int, str]:
        status, _, body = self._server.send("GET", path, headers=self._own)
        return status, body.decode()

    def wait_for_question(self) -> str:
        """Return the id of the only open question, once it is shown."""
        wait_until(lambda: 'id="answer-' in self.look())
        (found,) = re.findall(r'id="answer-([\w-]+)"', self.look())
        return found

    def decide(self, question: str, decision: str, **more: str) -> str:
        """Answer a question; return what the page says about it."""
        body = "&".join(f"{name}={value}" for name, value in {"decision": decision, **more}.items()).encode()
        _, headers, _ = self._server.send("POST", f"/review/question/{question}", body=body, headers=self._own)
        said = re.search(r'role="status"[^>]*>(.*?)</', self.look(headers["location"]))
        return unescape(said[1]) if said else ""


def kill(server: HttpServer) -> None:
    server.process.kill()
    server.process.communicate(timeout=HANG_SECONDS)


@pytest.fixture
def replicas(tmp_path: Path, postgres_schema: PostgresSchema) -> Iterator[Replicas]:
    with ExitStack() as end:
        yield Replicas(tmp_path, postgres_schema.url, end)


@requirement("fleet:questions:store", "fleet:questions:once")
def test_a_question_of_one_replica_is_seen_and_answered_once_at_another(replicas: Replicas) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    agent = WaitingAgent(one, {"path": "a.txt", "content": "hello\n", "reason": "to greet"})
    here, there = Reviewer(one), Reviewer(other)
    question = there.wait_for_question()

    shown = there.look()
    assert ("to greet" in shown, "hello" in shown, "Asked" in shown) == (True, True, True)
    assert here.wait_for_question() == question
    assert replicas.count_open() == 1
    assert there.decide(question, "allow", unseen="0") == "Allowed."
    assert not agent.answer().get("isError"), agent.result
    assert "no longer open" in here.decide(question, "refuse")
    assert replicas.site.get("a.txt") == b"hello\n"
    assert [ok for ok, *_ in replicas.entries("a.txt")] == [True]
    assert replicas.count_open() == 0


@requirement("fleet:questions:once")
def test_what_another_replica_has_not_shown_is_not_allowed_there(replicas: Replicas) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    content = "".join(f"{number} {'x' * 90}\n" for number in range(2000))
    agent = WaitingAgent(one, {"path": "a.txt", "content": content})
    here, there = Reviewer(one), Reviewer(other)
    question = there.wait_for_question()

    assert "Allow 1," in there.look()
    assert "Allowed" not in there.decide(question, "allow", unseen="0")
    assert "Allowed" not in there.decide(question, "always", unseen="0")
    (pages,) = {int(found) for found in re.findall(r"Show everything \((\d+) page", there.look())}
    for page in range(1, pages + 1):
        (here, there)[page % 2].look(f"/review/question/{question}?page={page}")
    assert not (replicas.site.root / "a.txt").exists()
    assert here.decide(question, "allow", unseen="0") == "Allowed."
    assert not agent.answer().get("isError"), agent.result


@requirement("fleet:questions:gone")
@pytest.mark.parametrize("answered", [False, True])
def test_a_question_of_a_replica_that_was_killed_is_closed_and_written_down(replicas: Replicas, answered: bool) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    agent = WaitingAgent(one, {"path": "a.txt", "content": "hello\n"})
    there = Reviewer(other)
    question = there.wait_for_question()
    if answered:
        one.process.send_signal(signal.SIGSTOP)  # the answer does not reach it
        assert there.decide(question, "allow", unseen="0") == "Allowed."
    kill(one)

    assert agent.answer() == {"gone": True}
    wait_until(lambda: question not in there.look())
    assert "no longer open" in there.decide(question, "allow", unseen="0")
    wait_until(lambda: there.look() and len(replicas.entries("a.txt")) == 1)
    ((ok, message, diff),) = replicas.entries("a.txt")
    assert (ok, "+hello" in diff) == (False, True)
    assert ("after a person answered" in message) == answered, message
    assert not (replicas.site.root / "a.txt").exists()
    assert replicas.count_open() == 0


@requirement("fleet:questions:parked")
def test_the_answer_to_a_question_of_one_replica_may_come_to_another(replicas: Replicas) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    wanted: Json = {"path": "a.txt", "content": "hello\n"}

    def call(server: HttpServer, arguments: Json, **more: Any) -> Json:
        given = {"name": "create_file", "arguments": arguments, **more, "_meta": FORMS}
        return server.rpc("tools/call", given)[2]

    asked = call(one, wanted)["result"]
    assert asked["resultType"] == "input_required"
    state = asked["requestState"]
    kill(one)
    another = call(
        other,
        {**wanted, "content": "evil\n"},
        requestState=call(other, wanted)["result"]["requestState"],
        inputResponses=YES,
    )
    assert "not the change that was shown" in text_of(another["result"])
    assert not (replicas.site.root / "a.txt").exists()
    done = call(other, wanted, requestState=state, inputResponses=YES)["result"]
    assert not done.get("isError"), done
    assert replicas.site.get("a.txt") == b"hello\n"
    again = call(other, wanted, requestState=state, inputResponses=YES)
    assert "No question is open" in again["error"]["message"]


@requirement("fleet:questions:away")
def test_a_page_whose_database_is_away_says_so_and_comes_back(
    replicas: Replicas, postgres_schema: PostgresSchema
) -> None:
    line = CountingProxy(postgres_schema.url)
    reviewer = Reviewer(replicas.start("a", "--state", line.url))
    assert reviewer.answer_of("/")[0] == 200
    line.is_down = True
    line.cut_all()

    status, shown = reviewer.answer_of("/")
    assert (status, "database" in shown) == (503, True)
    line.is_down = False
    wait_until(lambda: reviewer.answer_of("/")[0] == 200)
    line.close()


@requirement("fleet:questions:always")
def test_what_is_allowed_for_a_session_counts_at_every_replica(replicas: Replicas) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    first = WaitingAgent(one, {"path": "a.txt", "content": "1\n", "session": "new"})
    there = Reviewer(other)
    assert there.decide(there.wait_for_question(), "always", unseen="0") == "Allowed."
    handle = first.answer()["_meta"]["surehold/session"]

    second = other.call("create_file", {"path": "b.txt", "content": "2\n", "session": handle})
    assert not second.get("isError"), text_of(second)
    stranger = WaitingAgent(other, {"path": "c.txt", "content": "3\n", "session": "new"})
    assert there.decide(there.wait_for_question(), "refuse") == "Refused."
    assert stranger.answer()["isError"]
    assert sorted(path.name for path in replicas.site.root.iterdir()) == ["a.txt", "b.txt"]


@requirement("fleet:workers:sessions")
def test_a_large_answer_of_one_replica_is_read_in_parts_from_another(replicas: Replicas) -> None:
    flags = ("--mode", "acceptEdits", "--max-chars", "2000")
    one, other = replicas.start("a", *flags), replicas.start("b", *flags)
    files = [f"{number:03}-{'n' * 60}.txt" for number in range(100)]
    patch = "".join(f"*** Add File: {name}\n+x\n" for name in files)
    made = one.call("apply_patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"})
    assert not made["isError"], made
    address, parts = re.findall(r"surehold://answer/[\w-]+", json.dumps(made))[-1], 0
    text = ""
    while address:
        (content,) = other.rpc("resources/read", {"uri": address})[2]["result"]["contents"]
        named = re.match(r"\[goes on: the resource (\S+)\]\n", content["text"])
        part = content["text"].partition("\n")[2].rpartition("\n")[0] if named else content["text"]
        address, text, parts = named[1] if named else "", text + part, parts + 1
    assert parts > 1
    assert [name for name in files if name not in text] == []


@requirement("fleet:replicas:older_protocol")
def test_a_session_of_the_older_protocol_begins_again_at_another_replica(replicas: Replicas) -> None:
    one, other = replicas.start("a"), replicas.start("b")
    session = one.initialize(LEGACY)

    assert one.rpc("tools/list", era=LEGACY, headers=session)[0] == 200
    assert other.rpc("tools/list", era=LEGACY, headers=session)[0] == 404
    assert other.rpc("tools/list", era=LEGACY, headers=other.initialize(LEGACY))[0] == 200
