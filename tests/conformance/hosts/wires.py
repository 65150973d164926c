"""How four vendors' APIs spell what a scripted model needs: the offered tools, the results, and an answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool that a host offers to its model, under the host's own name for it."""

    name: str
    namespace: str = ""
    """Codex groups the tools of a server, and leaves their names alone."""
    is_free: bool = False
    """It takes one text instead of arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A tool call as the host gets it; the id comes back with the result."""

    id: str
    offer: Offer
    arguments: Mapping[str, Any]


Reply = Request | str
"""What the model answers: a call, or words."""


class Wire(Protocol):
    """One vendor's API."""

    def offered(self, body: Json) -> list[Offer]:
        """Return the tools in a request."""
        ...

    def results(self, body: Json) -> dict[str, str]:
        """Return the tool results in a request, by the id of their call."""
        ...

    def stream(self, reply: Reply) -> list[tuple[str, Json]]:
        """Return the events of an answer, each with its name."""
        ...

    def whole(self, reply: Reply) -> Json:
        """Return the same answer in one piece."""
        ...


class AnthropicMessages:
    """`/v1/messages`."""

    def offered(self, body: Json) -> list[Offer]:
        return [Offer(name=str(tool.get("name"))) for tool in rows(body.get("tools"))]

    def results(self, body: Json) -> dict[str, str]:
        blocks = [block for message in rows(body.get("messages")) for block in rows(message.get("content"))]
        return {
            str(block.get("tool_use_id")): text_of(block.get("content"))
            for block in blocks
            if block.get("type") == "tool_result"
        }

    def stream(self, reply: Reply) -> list[tuple[str, Json]]:
        message = self.whole(reply)
        block = cast("Json", message["content"][0])
        if isinstance(reply, str):
            start: Json = {**block, "text": ""}
            delta: Json = {"type": "text_delta", "text": reply}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events: list[Json] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return [(str(event["type"]), event) for event in events]

    def whole(self, reply: Reply) -> Json:
        if isinstance(reply, str):
            block: Json = {"type": "text", "text": reply}
        else:
            block = {"type": "tool_use", "id": reply.id, "name": reply.offer.name, "input": dict(reply.arguments)}
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [block],
            "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


class OpenAiResponses:
    """`/responses`."""

    def offered(self, body: Json) -> list[Offer]:
        tools = rows(body.get("tools"))
        inside = [
            Offer(name=str(tool.get("name")), namespace=str(group.get("name")))
            for group in tools
            for tool in rows(group.get("tools"))
        ]
        alone = [
            Offer(name=str(tool.get("name", tool.get("type"))), is_free=tool.get("type") == "custom")
            for tool in tools
            if "tools" not in tool
        ]
        return alone + inside

    def results(self, body: Json) -> dict[str, str]:
        return {
            str(item.get("call_id")): text_of(item.get("output"))
            for item in rows(body.get("input"))
            if item.get("type") in {"function_call_output", "custom_tool_call_output"}
        }

    def stream(self, reply: Reply) -> list[tuple[str, Json]]:
        response = self.whole(reply)
        item = cast("Json", response["output"][0])
        place: Json = {"output_index": 0, "item_id": item["id"]}
        if isinstance(reply, str):
            begun: Json = {**item, "status": "in_progress", "content": []}
            part: Json = {**place, "content_index": 0}
            empty: Json = {"type": "output_text", "text": "", "annotations": []}
            middle: list[tuple[str, Json]] = [
                ("response.content_part.added", {**part, "part": empty}),
                ("response.output_text.delta", {**part, "delta": reply}),
                ("response.output_text.done", {**part, "text": reply}),
                ("response.content_part.done", {**part, "part": item["content"][0]}),
            ]
        elif reply.offer.is_free:
            begun = {**item, "status": "in_progress", "input": ""}
            middle = [
                ("response.custom_tool_call_input.delta", {**place, "delta": item["input"]}),
                ("response.custom_tool_call_input.done", {**place, "input": item["input"]}),
            ]
        else:
            begun = {**item, "status": "in_progress", "arguments": ""}
            middle = [
                ("response.function_call_arguments.delta", {**place, "delta": item["arguments"]}),
                ("response.function_call_arguments.done", {**place, "arguments": item["arguments"]}),
            ]
        events: list[tuple[str, Json]] = [
            ("response.created", {"response": {**response, "status": "in_progress", "output": []}}),
            ("response.output_item.added", {"output_index": 0, "item": begun}),
            *middle,
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": response}),
        ]
        return [(name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in enumerate(events)]

    def whole(self, reply: Reply) -> Json:
        if isinstance(reply, str):
            part: Json = {"type": "output_text", "text": reply, "annotations": []}
            item: Json = {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        elif reply.offer.is_free:
            item = {
                "type": "custom_tool_call",
                "id": f"ctc_{reply.id}",
                "call_id": reply.id,
                "name": reply.offer.name,
                "input": str(reply.arguments["input"]),
                "status": "completed",
            }
        else:
            item = {
                "type": "function_call",
                "id": f"fc_{reply.id}",
                "call_id": reply.id,
                "name": reply.offer.name,
                "arguments": json.dumps(reply.arguments),
                "status": "completed",
            }
            item |= {"namespace": reply.offer.namespace} if reply.offer.namespace else {}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": "resp_scripted",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": "scripted",
            "output": [item],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details},
        }


class OpenAiChat:
    """`/chat/completions`."""

    def offered(self, body: Json) -> list[Offer]:
        functions = [cast("Json", tool.get("function") or {}) for tool in rows(body.get("tools"))]
        return [Offer(name=str(function.get("name"))) for function in functions]

    def results(self, body: Json) -> dict[str, str]:
        return {
            str(message.get("tool_call_id")): text_of(message.get("content"))
            for message in rows(body.get("messages"))
            if message.get("role") == "tool"
        }

    def stream(self, reply: Reply) -> list[tuple[str, Json]]:
        whole = self.whole(reply)
        choice = cast("Json", whole["choices"][0])
        delta = cast("Json", choice["message"])
        if calls := rows(delta.get("tool_calls")):
            delta = {**delta, "tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]}
        usage = whole.pop("usage")
        base: Json = {**whole, "object": "chat.completion.chunk"}
        end: Json = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        return [
            ("", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
            ("", {**base, "choices": [end]}),
            ("", {**base, "choices": [], "usage": usage}),
        ]

    def whole(self, reply: Reply) -> Json:
        message: Json = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
        if not isinstance(reply, str):
            function = {"name": reply.offer.name, "arguments": json.dumps(reply.arguments)}
            message["tool_calls"] = [{"id": reply.id, "type": "function", "function": function}]
        finish = "stop" if isinstance(reply, str) else "tool_calls"
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


class GeminiContent:
    """`generateContent`."""

    def offered(self, body: Json) -> list[Offer]:
        tools = rows(body.get("tools"))
        return [
            Offer(name=str(one.get("name")))
            for tool in tools
            for one in rows(tool.get("functionDeclarations") or tool.get("function_declarations"))
        ]

    def results(self, body: Json) -> dict[str, str]:
        parts = [part for content in rows(body.get("contents")) for part in rows(content.get("parts"))]
        answers = [cast("Json", part["functionResponse"]) for part in parts if "functionResponse" in part]
        return {
            str(answer.get("id") or f"call_{number}"): text_of(answer.get("response"))
            for number, answer in enumerate(answers, 1)
        }

    def stream(self, reply: Reply) -> list[tuple[str, Json]]:
        return [("", self.whole(reply))]

    def whole(self, reply: Reply) -> Json:
        if isinstance(reply, str):
            part: Json = {"text": reply}
        else:
            part = {"functionCall": {"id": reply.id, "name": reply.offer.name, "args": dict(reply.arguments)}}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate: Json = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


_WIRES: Mapping[str, Wire] = {
    "/messages": AnthropicMessages(),
    "/responses": OpenAiResponses(),
    "/chat/completions": OpenAiChat(),
    "enerateContent": GeminiContent(),
}


def wire_of(path: str) -> Wire | None:
    """Return the API that a path belongs to."""
    return next((wire for part, wire in _WIRES.items() if part in path and "count_tokens" not in path), None)


def rows(value: Any) -> list[Json]:
    """Return the objects of a list; nothing of anything else."""
    return [row for row in cast("list[Any]", value) if isinstance(row, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return the text of a result: joined text blocks, else the value as JSON, as a model would read it."""
    if isinstance(value, str):
        return value
    blocks = rows(value)
    if blocks and all(block.get("type") in {"text", "input_text"} for block in blocks):
        return "\n".join(str(block["text"]) for block in blocks)
    return json.dumps(value, ensure_ascii=False)
