"""What the MCP conformance suite wants to find on a server: tools, resources and prompts with fixed names.

They are tools, resources and prompts of ours like any others, so what the suite checks is our adapter and its binding.
"""

import base64
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from surehold.dialects.shared.wire import WIRE
from surehold.errors import SureholdError
from surehold.front.mcp.catalog import Prompt, as_user_message
from surehold.front.mcp.resources import ResourceProvider
from surehold.text.rewrite import WriteText
from surehold.tools.call import Answer, AnswerBudget, CallContext, Json
from surehold.tools.listing import Hints
from surehold.tools.params import Params
from surehold.tools.spec import Result, Tool
from surehold.workspace.proposal import Absent, Proposal

_BLINK = 0.05
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _png() -> str:
    """Return a red pixel, as PNG in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(image).decode()


def _wav() -> str:
    """Return one sample of silence, as WAV in base64."""
    body = (
        b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 2) + b"\x80\x80"
    )
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


_IMAGE: Json = {"type": "image", "data": _png(), "mimeType": "image/png"}
_AUDIO: Json = {"type": "audio", "data": _wav(), "mimeType": "audio/wav"}


def _embedded(uri: str, kind: str, text: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


class Anything(Params):
    """No arguments of its own."""


class Region(Params):
    """One argument, which a schema of its own ties to a header."""

    region: str = ""


class Nothing(Result):
    """The answer is in the content."""

    def text(self, budget: AnswerBudget) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class FixtureTool(Tool[Params, Nothing]):
    """A tool whose answer is fixed."""

    text: str = ""
    content: tuple[Json, ...] = ()
    fails: bool = False
    steps: tuple[int, ...] = ()
    """What it reports as progress, of 100, with a pause after each."""
    asks: bool = False
    """It changes a file, and so asks the person first: the one question that our tools have."""
    schema: Json = field(default_factory=dict[str, Any])
    """Listed as it is, in place of the schema of the arguments."""

    @cached_property
    def input_schema(self) -> Json:
        return self.schema or super().input_schema

    def call(self, context: CallContext, arguments: Mapping[str, Any]) -> Answer:
        for step in self.steps:
            context.progress(step, 100, f"{step} of 100")
            time.sleep(_BLINK)
        try:
            self._act(context)
        except SureholdError as error:
            return Answer(ok=False, text=error.message, data=self.wire.failure(error), error=error)
        return Answer(ok=True, text=self.text, data={"ok": True}, content=self.content)

    def _act(self, context: CallContext) -> None:
        if self.fails:
            raise SureholdError(self.text)
        if self.asks:
            proposal = Proposal(path=f"{self.name}.txt", edit=WriteText("Asked.\n"), proof=Absent())
            context.session.submit(proposal, tool=self.name, operation="create")


def _tool(name: str, description: str, *, params: type[Params] = Anything, **how: Any) -> FixtureTool:
    looks, changes = Hints(kind="other", read_only=True), Hints(kind="edit", operation="create")
    return FixtureTool(
        name=name,
        description=description,
        params=params,
        result=Nothing,
        hints=changes if how.get("asks") else looks,
        wire=WIRE,
        run=lambda _context, _params: Nothing(),
        **how,
    )


_KEYWORDS: Json = {
    "$schema": _DRAFT,
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_HEADERS: Json = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

TOOLS = (
    _tool("test_simple_text", "Answers with a text.", text="This is a simple text response for testing."),
    _tool("test_image_content", "Answers with an image.", content=(_IMAGE,)),
    _tool("test_audio_content", "Answers with a sound.", content=(_AUDIO,)),
    _tool(
        "test_embedded_resource",
        "Answers with a resource.",
        content=(_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),),
    ),
    _tool(
        "test_multiple_content_types",
        "Answers with a text, an image and a resource.",
        text="Multiple content types test:",
        content=(_IMAGE, _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')),
    ),
    _tool(
        "test_error_handling", "Always fails.", text="This tool intentionally returns an error for testing", fails=True
    ),
    _tool("test_tool_with_progress", "Reports progress.", text="Done.", steps=(0, 50, 100)),
    _tool("test_logging_tool", "Could log; we log to standard error only.", text="Done."),
    _tool("test_elicitation", "Asks the person through the client.", text="Done.", asks=True),
    _tool("test_input_required_result_elicitation", "Asks between two calls.", text="Done.", asks=True),
    _tool("test_input_required_result_request_state", "Asks between two calls.", text="Done.", asks=True),
    _tool("test_input_required_result_tampered_state", "Asks between two calls.", text="Done.", asks=True),
    _tool("test_streaming_elicitation", "Could ask the client; we ask nothing.", text="Done."),
    _tool("json_schema_2020_12_tool", "Has a schema with every keyword.", text="Done.", schema=_KEYWORDS),
    _tool(
        "test_custom_headers", "Has an argument that is also a header.", params=Region, text="Done.", schema=_HEADERS
    ),
)


class FixtureResources(ResourceProvider):
    """Resources with fixed addresses, one of them by template, one that is watched."""

    def list_page(self, after: str) -> tuple[Sequence[Json], str]:
        entries: list[Json] = [
            {"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched-resource", "mimeType": "text/plain"},
        ]
        return entries, ""

    def list_templates(self) -> Sequence[Json]:
        return [{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}]

    def read_resource(self, uri: str) -> Sequence[Json] | None:
        head, tail = "test://template/", "/data"
        if uri.startswith(head) and uri.endswith(tail):
            number = uri.removeprefix(head).removesuffix(tail)
            return [{"uri": uri, "mimeType": "application/json", "text": f'{{"id": "{number}", "templateTest": true}}'}]
        match uri:
            case "test://static-text":
                text = "This is the content of the static text resource."
                return [{"uri": uri, "mimeType": "text/plain", "text": text}]
            case "test://static-binary":
                return [{"uri": uri, "mimeType": "image/png", "blob": _png()}]
            case "test://watched-resource":
                return [{"uri": uri, "mimeType": "text/plain", "text": "Watched."}]
            case _:
                return None

    def content_mark(self, uri: str) -> str | None:
        return "unchanged" if uri.startswith("test://") else None


def _with_arguments(given: Mapping[str, str]) -> Sequence[Json]:
    return as_user_message(f"Prompt with arguments: arg1='{given.get('arg1', '')}', arg2='{given.get('arg2', '')}'")


def _with_resource(given: Mapping[str, str]) -> Sequence[Json]:
    uri = given.get("resourceUri", "test://example-resource")
    return [
        {"role": "user", "content": _embedded(uri, "text/plain", "Embedded.")},
        *as_user_message("Look at the resource."),
    ]


def _argument(name: str) -> Json:
    return {"name": name, "description": f"The argument {name}.", "required": True}


PROMPTS = (
    Prompt(
        name="test_simple_prompt",
        title="Simple",
        description="A text.",
        render=lambda _: as_user_message("This is a simple prompt for testing."),
    ),
    Prompt(
        name="test_prompt_with_arguments",
        title="Arguments",
        description="A text with arguments.",
        render=_with_arguments,
        arguments=(_argument("arg1"), _argument("arg2")),
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        title="Resource",
        description="A text with a resource.",
        render=_with_resource,
        arguments=(_argument("resourceUri"),),
    ),
    Prompt(
        name="test_prompt_with_image",
        title="Image",
        description="A text with an image.",
        render=lambda _: [{"role": "user", "content": _IMAGE}, *as_user_message("Look at the image.")],
    ),
)
