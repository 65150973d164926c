"""The life of an edit, as a client lives it: read, edit, be refused after an outside change, read again, edit.

The steps are the same for every client. Clients in other languages report them as JSON under the same names.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tool_names import DEFAULT_TOOLS

NAME = "notes.txt"
BEFORE = "alpha\nbeta\ngamma\n"
STEPS = (
    "both sides agree on the newest revision of the era",
    "tools/list names the default tools",
    "read_file shows the text and its sha256",
    "edit_file with that sha256 changes the file",
    "after an outside change the sha256 is refused, and nothing is written",
    "reading again shows the outside change and a new sha256",
    "edit_file with the new sha256 changes the file",
    "the structured content of refusals fits the tool's output schema",
    "an unknown argument is ignored with a warning",
    "an unknown tool is a protocol error, -32602",
)

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
"""What a client's mode should come to."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, whether it went as it should, and what was seen if not."""

    name: str
    ok: bool
    seen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a tool call, in the terms of the protocol."""

    text: str
    structured: Json | None
    is_error: bool
    result: Json
    """What programs read: `_meta["surehold/result"]`, or the structured content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What the life of an edit needs from a client."""

    revisions: tuple[str, str]
    """The revision that was expected, and the one that was agreed on."""
    tools: Callable[[], Awaitable[dict[str, Json | None]]]
    """Every tool's name with its output schema."""
    call: Callable[[str, Json], Awaitable[Reply]]
    refused_code: Callable[[str], Awaitable[int | None]]
    """Calls a tool that does not exist; the code of the protocol error, or None when there was none."""


async def live(connection: Connection, root: Path) -> list[Step]:
    """Go through all steps in a root with only `notes.txt`; the first exception ends it."""
    life = _Life(connection=connection, path=root / NAME)
    life.path.write_text(BEFORE, encoding="utf-8")
    try:
        await life.edit_twice()
        await life.misuse()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
        life.steps.append(Step(name=STEPS[len(life.steps)], ok=False, seen=f"{type(error).__name__}: {error}"))
    return complete(life.steps)


def complete(steps: list[Step]) -> list[Step]:
    """Return the steps with those that were never reached."""
    done = {step.name for step in steps}
    return steps + [Step(name=name, ok=False, seen="not reached") for name in STEPS if name not in done]


class _Life:
    def __init__(self, *, connection: Connection, path: Path) -> None:
        self.connection, self.path = connection, path
        self.steps = list[Step]()
        self.schemas = dict[str, Json | None]()

    def note(self, seen: object, *, ok: bool) -> None:
        self.steps.append(Step(name=STEPS[len(self.steps)], ok=ok, seen="" if ok else repr(seen)[:600]))

    async def edit_twice(self) -> None:
        expected, agreed = self.connection.revisions
        self.note(agreed, ok=agreed == expected)
        self.schemas = await self.connection.tools()
        self.note(sorted(self.schemas), ok=set(self.schemas) >= set(DEFAULT_TOOLS))
        first = await self.read()
        self.note(first, ok="beta" in first.text and self.sha256 in first.text and not first.is_error)
        seen = self.sha256
        edited = await self.edit(seen, "beta", "BETA")
        self.note(edited, ok=self.changed(edited, seen, "alpha\nBETA\ngamma\n"))
        seen = self.sha256
        outside = "alpha\nBETA\ngamma\nan outside line\n"
        self.path.write_text(outside, encoding="utf-8")
        stale = await self.edit(seen, "gamma", "GAMMA")
        self.note(stale, ok=self.is_stale(stale, seen) and self.path.read_text(encoding="utf-8") == outside)
        again = await self.read()
        self.note(again, ok="an outside line" in again.text and self.sha256 in again.text)
        seen = sha256_in(again.text)
        edited = await self.edit(seen, "gamma", "GAMMA")
        self.note(edited, ok=self.changed(edited, seen, "alpha\nBETA\nGAMMA\nan outside line\n"))

    async def misuse(self) -> None:
        refusals = {
            "edit_file": {"path": NAME, "expectedSha256": "0" * 64, "edits": [{"oldText": "a", "newText": "b"}]},
            "create_file": {"path": NAME, "content": "x"},
            "apply_patch": {"patch": "no patch at all"},
            "delete_file": {"path": "missing.txt", "expectedSha256": "0" * 64},
            "move_file": {"fromPath": "missing.txt"},
        }
        replies = {tool: await self.connection.call(tool, arguments) for tool, arguments in refusals.items()}
        misfits = [tool for tool, reply in replies.items() if not reply.is_error or self.misfit(tool, reply)]
        self.note({tool: replies[tool] for tool in misfits}, ok=not misfits)
        warned = await self.connection.call("read_file", {"path": NAME, "wait_for_previous": True})
        self.note(warned, ok=not warned.is_error and "wait_for_previous" in warned.text)
        code = await self.connection.refused_code("no_such_tool")
        self.note(code, ok=code == -32602)

    async def read(self) -> Reply:
        return await self.connection.call("read_file", {"path": NAME})

    async def edit(self, sha256: str, old: str, new: str) -> Reply:
        edits = [{"oldText": old, "newText": new}]
        return await self.connection.call("edit_file", {"path": NAME, "expectedSha256": sha256, "edits": edits})

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def changed(self, reply: Reply, before: str, text: str) -> bool:
        data = cast("Json", (reply.structured or {}).get("data", {}))
        hashes = (data.get("beforeSha256"), data.get("afterSha256"))
        return (
            not reply.is_error
            and reply.structured == reply.result
            and hashes == (before, self.sha256)
            and self.sha256 in reply.text
            and self.path.read_text(encoding="utf-8") == text
        )

    def is_stale(self, reply: Reply, expected: str) -> bool:
        error = cast("Json", (reply.structured or {}).get("error", {}))
        details = cast("Json", error.get("details", {}))
        hashes = (details.get("expectedSha256"), details.get("actualSha256"))
        return (
            reply.is_error
            and reply.text.startswith("Nothing was written.")
            and error.get("kind") == "stale_file"
            and hashes == (expected, self.sha256)
        )

    def misfit(self, tool: str, reply: Reply) -> bool:
        """Whether the structured content breaks the schema of the tool, or is missing though there is a schema."""
        from jsonschema import ValidationError, validate

        schema = self.schemas[tool]
        if schema is None:
            return True
        try:
            validate(reply.structured, schema)
        except ValidationError:
            return True
        return False


def sha256_in(text: str) -> str:
    """Return the hash that a model would copy from a text."""
    found = re.search(r"\b[0-9a-f]{64}\b", text)
    return found.group() if found else ""
