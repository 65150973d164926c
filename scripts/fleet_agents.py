"""The agents of `make fleet`: they add lines to shared files, and keep account of what they were told."""

import http.client
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from concurrency.checker import Answer, Event, Reading, Recording

Json = dict[str, Any]

TOKEN = "a-token-that-only-this-run-knows"
HANG_SECONDS = 120
"""A call that has no answer by then hangs."""
FILES = 4
"""How many the agents share, unless told; the last one is large: its versions go to the object store."""
_UNKNOWN_KINDS = frozenset({"outcome_unknown", "recovery_required"})
_MOST_ATTEMPTS = 30
_PAUSE_SECONDS = 0.1
_ERA = "2026-07-28"
_EDITS_PER_FILE = 200
_LARGE = "".join(f"begin-{number} {random.Random(number).randbytes(24).hex()}\n" for number in range(1200))


class Unheard(Exception):
    """The connection was lost before the answer came."""


@dataclass
class Tally:
    """What the agents were told, beside the events that the checker judges."""

    refused: Counter[str] = field(default_factory=Counter[str])
    seconds: list[float] = field(default_factory=list[float])
    asked_again: int = 0
    settled: int = 0
    """Calls whose answer was lost, that were made again with their key; those of them that were then answered."""
    recording: Recording = field(default_factory=Recording)

    def count_acknowledged(self) -> int:
        return self._count("acknowledged")

    @property
    def refused_share(self) -> float:
        """The part of the edits with a known fate that were refused."""
        refused = self._count("refused")
        return refused / max(1, refused + self._count("acknowledged"))

    def _count(self, answer: Answer) -> int:
        return sum(event.answer == answer for event in tuple(self.recording.events))


@dataclass
class Agent:
    """Adds lines that no other agent writes, through the stateless protocol; each call is a new connection."""

    name: str
    port: int
    tally: Tally
    stop: threading.Event
    slots: Sequence["itertools.count[int]"]
    """How many edits each file has had; a new file is begun after some."""

    def work(self) -> None:
        chance = random.Random(self.name)
        for number in itertools.count():
            if self.stop.is_set():
                return
            slot = chance.randrange(len(self.slots))
            path = f"notes/{slot}-{next(self.slots[slot]) // _EDITS_PER_FILE}.txt"
            try:
                self._edit(path, f"{self.name}-{number}", large=slot == len(self.slots) - 1)
            except Exception as error:  # noqa: BLE001 - an agent that ends early would hide what is wrong
                self.tally.recording.complain(f"{self.name} failed: {error!r}")
                return

    def _edit(self, path: str, marker: str, *, large: bool) -> None:
        """Read, then add a line; again with what the refusal says, until it is in the file."""
        digest = self._digest(path, large=large)
        tries = 0
        while digest and not (self.stop.is_set() and tries):
            tries += 1
            name = f"{marker}.{tries}"
            edits = [{"oldText": "begin\n", "newText": f"begin\n{name}\n"}]
            arguments = {"path": path, "expectedSha256": digest, "edits": edits, "idempotencyKey": name}
            invoked = monotonic()
            result = self._call_until_known(arguments)
            if result is None:
                self._note(path, name, invoked, "unknown")
                return
            if result["ok"]:
                self._note(path, name, invoked, "acknowledged")
                return
            self._refusal(result)
            self._note(path, name, invoked, "refused")
            digest = result["error"]["details"].get("retryWithSha256") or self._digest(path, large=large)

    def _call_until_known(self, arguments: Json) -> Json | None:
        """Make one call, and again with its key while its fate is unknown; None when it stays so."""
        for attempt in range(_MOST_ATTEMPTS):
            if attempt:
                self.stop.wait(_PAUSE_SECONDS)
                self.tally.asked_again += 1
            began = monotonic()
            try:
                result = self._call("edit_file", arguments)
            except Unheard:
                self.tally.refused["(no answer)"] += 1
                continue
            self.tally.seconds.append(monotonic() - began)
            if result["ok"] or not _UNKNOWN_KINDS & {self._kind_of(result), result["error"]["kind"]}:
                if attempt and result["ok"]:
                    self.tally.settled += 1
                return result
            self._refusal(result)
        return None

    def _digest(self, path: str, *, large: bool) -> str:
        """Read a file, or create it; return its digest, or nothing when the run is over."""
        while not self.stop.is_set():
            with suppress(Unheard):
                invoked = monotonic()
                result = self._call("read_file", {"path": path, "limit": 1})
                if result["ok"]:
                    self.tally.recording.see(Reading(path=path, sha256=result["data"]["sha256"], invoked=invoked))
                    return result["data"]["sha256"]
                if result["error"]["kind"] == "not_found":
                    content = f"begin\n{_LARGE if large else ''}"
                    self._call("create_file", {"path": path, "content": content})
                else:
                    self._refusal(result)
        return ""

    def _refusal(self, result: Json) -> None:
        self.tally.refused[self._kind_of(result)] += 1

    def _kind_of(self, result: Json) -> str:
        return result["error"]["details"].get("reason") or result["error"]["kind"]

    def _note(self, path: str, marker: str, invoked: float, answer: Answer) -> None:
        answered = inf if answer == "unknown" else monotonic()
        self.tally.recording.add(Event(path=path, marker=marker, invoked=invoked, answered=answered, answer=answer))

    def _call(self, tool: str, arguments: Json) -> Json:
        meta = {
            "io.modelcontextprotocol/protocolVersion": _ERA,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {TOKEN}",
            "MCP-Protocol-Version": _ERA,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse()
            raw = answer.read()
        except TimeoutError:
            self.tally.recording.complain(f"{tool} had no answer after {HANG_SECONDS} seconds")
            raise Unheard from None
        except (OSError, http.client.HTTPException):
            raise Unheard from None
        finally:
            connection.close()
        return _result_of(answer.status, raw)


def _result_of(status: int, raw: bytes) -> Json:
    """Return what a tool said, from JSON or from a stream; a server that takes no call refuses too."""
    rows = [row.removeprefix(b"data: ") for row in raw.splitlines() if row.startswith((b"data: {", b"{"))]
    if status == 503:
        return {"ok": False, "error": {"kind": "http 503", "details": {}}}
    if not rows:
        raise Unheard
    result = json.loads(rows[-1])["result"]
    return result["_meta"].get("surehold/result") or result["structuredContent"]
