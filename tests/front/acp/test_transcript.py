"""Whole conversations about the multi-edit tool, frame by frame, in both spellings.

`transcript.jsonl` is what passed between a client and the agent. To record it anew, delete it and run the test.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from acp.schema import (
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
)
from pydantic import BaseModel

from front.acp.editor import Editor, Json, choosing, run
from front.acp.place import Place, call
from spec.marks import requirement

GOLDEN = Path(__file__).parent / "transcript.jsonl"
CONFIG = '[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'
CHANGED = '[server]\nhost = "0.0.0.0"\nport = 3000\n\n[app]\ndebug = true\n'
EDITS = [
    {"old_string": "port = 8080", "new_string": "port = 3000"},
    {"old_string": 'host = "localhost"', "new_string": 'host = "0.0.0.0"'},
    {"old_string": "debug = false", "new_string": "debug = true"},
]
MODELS: dict[str, tuple[type[BaseModel], type[BaseModel] | None]] = {
    "initialize": (InitializeRequest, InitializeResponse),
    "session/new": (NewSessionRequest, NewSessionResponse),
    "session/prompt": (PromptRequest, PromptResponse),
    "session/update": (SessionNotification, None),
    "session/request_permission": (RequestPermissionRequest, RequestPermissionResponse),
}


async def converse(place: Place, *options: str, answer: str = "allow_once") -> Editor:
    """Make the three edits of the contract's first example, with a person who is asked."""
    path = place.put("config.toml", CONFIG)
    async with place.editor(*options, answer=choosing(answer)) as editor:
        await editor.say(call("multi_edit_text_file", path=str(path), edits=EDITS))
    return editor


@requirement(
    "multi_edit:acp:pending", "multi_edit:acp:permission", "multi_edit:acp:in_progress", "multi_edit:acp:completed"
)
def test_an_edit_that_is_asked_about_passes_as_recorded(place: Place) -> None:
    async def scenario() -> None:
        editor = await converse(place)
        frames = "".join(f"{json.dumps(one)}\n" for one in masked(editor, place))
        if not GOLDEN.exists():
            GOLDEN.write_text(frames, encoding="utf-8")
            pytest.fail("The transcript was recorded anew: look at it, then run the test again.")
        assert frames == GOLDEN.read_text(encoding="utf-8")

    run(scenario())
    assert place.get("config.toml") == CHANGED.encode()


@requirement("multi_edit:acp:v1_schema")
def test_every_recorded_frame_is_one_of_the_schema() -> None:
    frames = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    methods = dict[tuple[str, Any], str]()
    for direction, message in ((one["direction"], one["message"]) for one in frames):
        if "method" in message:
            methods[direction, message.get("id")] = message["method"]
            checked(MODELS[message["method"]][0], message["params"])
            continue
        other = "client" if direction == "agent" else "agent"
        answer = MODELS[methods[other, message["id"]]][1]
        assert answer
        checked(answer, message["result"])
    assert set(methods.values()) == set(MODELS)


@requirement("multi_edit:acp:contract_dialect")
def test_the_contract_spelling_is_the_contracts_own_json(place: Place) -> None:
    path = str(place.root / "config.toml")

    async def scenario() -> None:
        editor = await converse(place, "--dialect", "contract")
        spelled = [one["params"] for one in editor.received if one.get("method") == "session/update"]
        begin, running, end = (one for one in spelled if "type" in one["update"])
        id_ = begin["update"]["id"]
        assert begin == {
            "sessionId": editor.session,
            "update": {
                "type": "toolCall",
                "id": id_,
                "kind": "edit",
                "status": "pending",
                "title": "multi_edit_text_file (3 edits)",
                "locations": [{"path": path}],
                "rawInput": {"path": path, "edits": EDITS},
            },
        }
        assert running["update"] == {"type": "toolCallUpdate", "id": id_, "fields": {"status": "in_progress"}}
        result = end["update"]["fields"]["rawOutput"]
        assert end == {
            "sessionId": editor.session,
            "update": {
                "type": "toolCallUpdate",
                "id": id_,
                "fields": {
                    "status": "completed",
                    "rawOutput": {
                        "success": True,
                        "diff": result["diff"],
                        "applied_count": 3,
                        "line_ranges": [
                            {"edit_index": 0, "start": 3, "end": 3},
                            {"edit_index": 1, "start": 2, "end": 2},
                            {"edit_index": 2, "start": 6, "end": 6},
                        ],
                    },
                    "content": [{"type": "text", "text": result["diff"]}],
                },
            },
        }
        assert result["diff"].startswith("--- config.toml\n+++ config.toml\n@@ ")

    run(scenario())
    assert place.get("config.toml") == CHANGED.encode()


@pytest.mark.parametrize("dialect", ["v1", "contract"])
def test_a_refused_edit_fails_in_both_spellings(place: Place, dialect: str) -> None:
    async def scenario() -> None:
        editor = await converse(place, "--dialect", dialect, answer="reject_once")
        last = editor.events[-1]
        fields = last if dialect == "v1" else last["fields"]
        assert fields["status"] == "failed"
        assert fields["rawOutput"]["error"]["code"] == -32002
        (block,) = fields["content"]
        assert "The change was not allowed" in (block if dialect == "contract" else block["content"])["text"]

    run(scenario())
    assert place.get("config.toml") == CONFIG.encode()


def masked(editor: Editor, place: Place) -> list[Json]:
    """Return every frame, with placeholders for what differs from run to run."""
    frames = [
        {"direction": "agent" if one.direction.value == "incoming" else "client", "message": one.message}
        for one in editor.frames
    ]
    text = json.dumps(frames).replace(str(place.root), "/test").replace(editor.session, "<session-id>")
    call_id = editor.events[0]["toolCallId"]
    text = text.replace(call_id, "<tool-call-id>")
    for number, name in enumerate(dict.fromkeys(re.findall(r"\b[0-9a-f]{64}\b", text))):
        text = text.replace(name, f"<sha256-{number}>")
    for number, name in enumerate(dict.fromkeys(re.findall(r"\b[0-9a-hjkmnp-tv-z]{26}\b", text))):
        text = text.replace(name, f"<id-{number}>")
    return json.loads(re.sub(r'"version": "[\d.]+"', '"version": "<version>"', text))


def checked(model: type[BaseModel], value: Json) -> None:
    """The models drop what they do not understand; so what they say of it must be all of it."""
    assert model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True) == value
