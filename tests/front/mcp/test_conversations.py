"""Whole conversations with our own loop and with the SDK's server: every message and the exit code are the same.

Answers come in the order of their requests. News of resources may be doubled and may come at any time between two answers,
so they are compared as a set.
"""

import array
import fcntl
import hashlib
import json
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from front.mcp.client import MODERN, Json, StdioClient, Version
from front.mcp.site import Site
from front.mcp.traffic import PARAMS
from front.mcp.twins import ERAS, Twins
from spec.marks import requirement
from waiting import wait_until

SETTINGS = ".vscode/settings.json"
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01")
REPLIES: tuple[Json, ...] = (
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept", "content": {}},
    {"action": "accept", "content": {"decision": "no such"}},
    {"foo": 1},
    {"action": "accept", "content": {"decision": "allow once"}},
)
FILTERS: tuple[Any, ...] = (
    *({}, 5, None, {"resourceSubscriptions": ["x"]}, {"resourceSubscriptions": "x"}, {"unknown": True}),
    {"resourceSubscriptions": [], "toolsListChanged": True},
)
_PIPE_BYTES = 60_000
"""So much unread output means that a server waits for its reader."""


class Talk:
    """One client of one server, and what it says."""

    def __init__(self, client: StdioClient, site: Site) -> None:
        self.client, self.site = client, site
        self.is_modern = client.version == MODERN

    def ask(self, method: str, params: Json | None = None) -> Json:
        return self.client.raw_answer(self.client.start(method, params))

    def fence(self) -> None:
        """Wait for an answer: what was said before it has been heard."""
        self.ask("tools/list" if self.is_modern else "ping")

    def edit_arguments(self, name: str, old: str, new: str) -> Json:
        sha256 = hashlib.sha256(self.site.get(name)).hexdigest()
        return {"path": name, "expectedSha256": sha256, "edits": [{"oldText": old, "newText": new}]}

    def edit(self, name: str, old: str, new: str) -> None:
        self.ask("tools/call", {"name": "edit_file", "arguments": self.edit_arguments(name, old, new)})

    def start_protected_write(self) -> int:
        """Begin to change a file that is never changed unasked; return the request when the question was asked."""
        sha256 = hashlib.sha256(self.site.get(SETTINGS)).hexdigest()
        arguments = {"path": SETTINGS, "content": '{"a": 1}\n', "expectedSha256": sha256}
        known = len(self.questions())
        request = self.client.start_call("write_file", arguments)
        if not self.is_modern:
            self.client.wait_for(lambda _: len(self.questions()) > known)
        return request

    def questions(self) -> list[Json]:
        return [note for note in self.client.notifications if note["method"] == "elicitation/create"]

    def write_with_reply(self, reply: Json) -> None:
        request = self.start_protected_write()
        if not self.is_modern:
            self.client.send({"jsonrpc": "2.0", "id": self.questions()[-1]["id"], "result": reply})
            self.client.raw_answer(request)
            return
        asked = self.client.raw_answer(request)["result"]
        sha256 = hashlib.sha256(self.site.get(SETTINGS)).hexdigest()
        again: Json = {
            "name": "write_file",
            "arguments": {"path": SETTINGS, "content": '{"a": 1}\n', "expectedSha256": sha256},
            "inputResponses": dict.fromkeys(asked["inputRequests"], reply),
            "requestState": asked["requestState"],
        }
        self.ask("tools/call", again)

    def wait_for_news(self, *uris: str, known: int) -> None:
        """Wait until each of these was named by a notification after the first `known` ones."""
        self.client.wait_for(lambda notes: set(uris) <= {note["params"].get("uri") for note in notes[known:]})


def ask_and_answer(talk: Talk) -> None:
    for reply in REPLIES:
        talk.write_with_reply(reply)


def take_a_question_back(talk: Talk) -> None:
    request = talk.start_protected_write()
    if talk.is_modern:
        talk.client.raw_answer(request)
    talk.client.notify("notifications/cancelled", {"requestId": request, "reason": "enough"})
    if not talk.is_modern:
        talk.client.wait_for(lambda notes: notes[-1]["method"] == "notifications/cancelled")
    talk.fence()


def leave_in_a_question(talk: Talk) -> None:
    request = talk.start_protected_write()
    if talk.is_modern:
        talk.client.raw_answer(request)


def hear_of_changes(talk: Talk) -> None:
    file, log, client = talk.site.root.joinpath("a.txt").as_uri(), "surehold://log", talk.client
    listening = 0
    if talk.is_modern:
        wanted = {"notifications": {"resourceSubscriptions": [file, log], "toolsListChanged": True}}
        listening = client.start("subscriptions/listen", wanted)
        client.reaction_to(listening)
    else:
        talk.ask("resources/subscribe", {"uri": file})
        talk.ask("resources/subscribe", {"uri": log})
    known = len(client.notifications)
    talk.edit("a.txt", "no such text", "A")
    talk.edit("a.txt", "alpha", "A")
    talk.wait_for_news(file, log, known=known)
    known = len(client.notifications)
    talk.site.put("a.txt", "outside\n")
    talk.wait_for_news(file, known=known)
    if talk.is_modern:
        client.cancel(listening)
    else:
        talk.ask("resources/unsubscribe", {"uri": file})
        talk.ask("resources/unsubscribe", {"uri": "surehold://never"})
    talk.edit("a.txt", "outside", "B")
    talk.fence()


def leave_while_listening(talk: Talk) -> None:
    request = talk.client.start("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    talk.client.reaction_to(request)


def listen_to_odd_things(talk: Talk) -> None:
    for wanted in FILTERS:
        talk.client.reaction_to(talk.client.start("subscriptions/listen", {"notifications": wanted}))
    talk.client.reaction_to(talk.client.start("subscriptions/listen"))


def ask_everything(talk: Talk) -> None:
    root = talk.site.root
    refs: tuple[Json, ...] = (
        {"type": "ref/resource", "uri": "file:///{+path}"},
        {"type": "ref/prompt", "name": "surehold"},
        {"type": "ref/resource", "uri": "no such"},
        {"type": "ref/resource", "uri": "surehold://log"},
    )
    for ref in refs:
        argument = {"name": "path", "value": f"{root}/".lstrip("/")}
        talk.ask("completion/complete", {"ref": ref, "argument": argument})
    for method in sorted(PARAMS.keys() - {"initialize", "subscriptions/listen"}):
        talk.ask(method)
        talk.ask(method, json.loads(json.dumps(PARAMS[method]).replace("ROOT", str(root).lstrip("/"))))
    for uri in (
        "surehold://status",
        (root / "a.txt").as_uri(),
        (root / "none").as_uri(),
        "surehold://no",
        root.as_uri(),
    ):
        talk.ask("resources/read", {"uri": uri})


def follow_progress(talk: Talk) -> None:
    sections = "".join(f"*** Add File: new/{number}.txt\n+{number}\n" for number in range(5))
    patch = {"name": "apply_patch", "arguments": {"patch": f"*** Begin Patch\n{sections}*** End Patch"}}
    talk.ask("tools/call", {**patch, "_meta": {"progressToken": "mine"}})
    read = {"name": "read_file", "arguments": {"path": "a.txt"}}
    for token in (7, "", {"x": 1}, None):
        talk.ask("tools/call", {**read, "_meta": {"progressToken": token}})


def use_an_id_again(talk: Talk) -> None:
    for method in ("tools/list", "prompts/list", "tools/list"):
        message: Json = {"jsonrpc": "2.0", "id": 50, "method": method}
        params = {"_meta": envelope(talk)} if talk.is_modern else {}
        talk.client.send({**message, "params": params})
        talk.client.raw_answer(50)


def envelope(talk: Talk) -> Json:
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": MODERN,
        f"{prefix}clientCapabilities": talk.client.capabilities,
        f"{prefix}clientInfo": {"name": talk.client.client, "version": "1"},
    }


def flood(talk: Talk) -> None:
    requests = [talk.client.start_call("read_file", {"path": "a.txt"}) for _ in range(300)]
    for request in requests:
        talk.client.raw_answer(request)


def flood_without_reading(talk: Talk) -> None:
    talk.site.put("big.txt", "0123456789\n" * 2_000)
    talk.client.reads.clear()
    requests = [talk.client.start_call("read_file", {"path": "big.txt"}) for _ in range(40)]
    wait_until(lambda: unread_bytes(talk.client) > _PIPE_BYTES)
    talk.client.reads.set()
    for request in requests:
        talk.client.raw_answer(request)


def unread_bytes(client: StdioClient) -> int:
    assert client.process.stdout
    found = array.array("i", [0])
    fcntl.ioctl(client.process.stdout.fileno(), termios.FIONREAD, found)
    return found[0]


def open_with_every_version(talk: Talk) -> None:
    for version in VERSIONS:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        talk.ask("initialize", hello)
    talk.ask("tools/list")


def speak_without_a_handshake(talk: Talk) -> None:
    for method in ("tools/list", "ping", "resources/list"):
        talk.ask(method)
    talk.ask("tools/call", {"name": "read_file", "arguments": {"path": "a.txt"}})
    for line in (b"[]", b'{"jsonrpc":"2.0","id":77}', b"nonsense", b'{"jsonrpc":"2.0","method":"no/such"}'):
        talk.client.send_line(line)
    talk.ask("tools/list")
    talk.client.send_line(b'[{"jsonrpc":"2.0","id":78,"method":"ping"},{"jsonrpc":"2.0","id":79,"method":"ping"}]')
    talk.ask("tools/list")


Scenario = Callable[[Talk], None]
OPENED: tuple[Scenario, ...] = (
    *(ask_and_answer, take_a_question_back, leave_in_a_question, hear_of_changes, leave_while_listening),
    *(listen_to_odd_things, ask_everything, follow_progress, use_an_id_again, flood, flood_without_reading),
)
UNOPENED: tuple[Scenario, ...] = (open_with_every_version, speak_without_a_handshake)
UNORDERED = (flood, flood_without_reading, listen_to_odd_things)
"""Here several requests are on their way at once, whose answers may overtake each other."""


@requirement("front:mcp:same_as_sdk")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("scenario", [*OPENED, *UNOPENED], ids=lambda scenario: scenario.__name__)
def test_a_conversation_is_the_same(tmp_path: Path, scenario: Scenario, version: Version) -> None:
    twins = Twins(tmp_path, version, capabilities={"elicitation": {"form": {}}})
    for site in twins.sites.values():
        site.put(SETTINGS, "{}\n")
    twins.start(handshake=scenario in OPENED)
    talks = {name: Talk(client, twins.sites[name]) for name, client in twins.clients.items()}
    try:
        for talk in talks.values():
            scenario(talk)
    finally:
        codes = twins.close()

    own, sdk = (compared(twins.plain(name, talk.client.heard), scenario) for name, talk in talks.items())
    assert own == sdk
    assert codes == [0, 0]
    assert [talk.client.junk for talk in talks.values()] == [[], []]
    assert talks["own"].site.get(SETTINGS) == talks["sdk"].site.get(SETTINGS)


def compared(heard: list[Json], scenario: Scenario) -> tuple[list[str], set[str]]:
    """Return the messages of a conversation in their order, as far as it is promised, and the news of resources."""
    texts = [json.dumps(message, sort_keys=True) for message in heard]
    news = {text for text in texts if '"method": "notifications/resources/updated"' in text}
    others = [text for text in texts if text not in news]
    return sorted(others) if scenario in UNORDERED else others, news
