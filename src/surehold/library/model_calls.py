"""The tools for an agent loop of your own: their definitions for a model's API, and the answers to the calls it makes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from surehold.errors import InvalidArgument, SureholdError
from surehold.library.arguments import require_session
from surehold.library.families import DEFAULT_FAMILIES, list_tools, tool_named
from surehold.tools.export import export_tools

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.tools.call import Answer

Json = dict[str, Any]
ToolFormat = Literal["openai-chat", "openai-responses", "anthropic", "mcp"]
_EARLIER_FORMATS = {"openai": "openai-responses"}


def tools_for(format: ToolFormat, tools: str = DEFAULT_FAMILIES) -> list[Json]:  # noqa: A002 - the word that people type
    """Return the definitions of tools as `openai-chat`, `openai-responses`, `anthropic` or `mcp` takes them."""
    known = get_args(ToolFormat)
    if format in _EARLIER_FORMATS:
        from warnings import warn

        name = _EARLIER_FORMATS[format]
        warn(f"`tools_for({format!r})` is called `tools_for({name!r})` now.", DeprecationWarning, stacklevel=2)
    elif format not in known:
        action = f"Choose one of {', '.join(known)}."
        raise InvalidArgument(f"No API is called `{format}`.", reason="unknown_format", action=action)
    return export_tools(list_tools(tools), format)


def dispatch(session: "AgentSession", call: Any, tools: str = DEFAULT_FAMILIES) -> Json:
    """Do what a model asked for with a tool call, and return the message that answers it.

    The call is taken as its API sends it, as plain data or as an object of the API's package: OpenAI's chat and Responses
    APIs, Anthropic's and MCP's. A refusal is an answer too, so that the model can correct itself. `tools` are the families
    that the model was offered, as in `tools_for`; no other tool is called.
    """
    return dispatch_noting(session, call, tools, note=lambda _: None)


def dispatch_noting(session: "AgentSession", call: Any, tools: str, *, note: Callable[["Answer"], None]) -> Json:
    """Do what `dispatch` does, and tell what the tool answered, before that is spelled for the model's API."""
    names = frozenset(one.name for one in list_tools(tools))
    offered = OfferedTools(require_session(session), names, note)
    data = _plain_data(call)
    for fits, answer in _SHAPES:
        if fits(data):
            return answer(offered, data)
    action = "Pass one tool call of OpenAI's chat or Responses API, of Anthropic's or of MCP's, as it came."
    raise InvalidArgument("This is not a tool call.", reason="not_a_call", action=action)


def _answer_chat(offered: "OfferedTools", call: Json) -> Json:
    answer = offered.answer(call["function"].get("name"), call["function"].get("arguments"))
    return {"role": "tool", "tool_call_id": call.get("id", ""), "content": _text_alone(answer)}


def _answer_responses(offered: "OfferedTools", call: Json) -> Json:
    answer = offered.answer(call.get("name"), call.get("arguments"))
    output: Any = _text_alone(answer)
    if images := [block for block in answer.content if block.get("type") == "image"]:
        urls = [f"data:{block['mimeType']};base64,{block['data']}" for block in images]
        output = [{"type": "input_text", "text": answer.text}]
        output += [{"type": "input_image", "detail": "auto", "image_url": url} for url in urls]
    return {"type": "function_call_output", "call_id": call.get("call_id", ""), "output": output}


def _answer_anthropic(offered: "OfferedTools", call: Json) -> Json:
    answer = offered.answer(call.get("name"), call.get("input"))
    content: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
    for block in answer.content:
        if block.get("type") == "image":
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            content.append({"type": "image", "source": source})
    return {"type": "tool_result", "tool_use_id": call.get("id", ""), "content": content, "is_error": not answer.ok}


def _answer_mcp(offered: "OfferedTools", call: Json) -> Json:
    asked = call.get("params", call)
    answer = offered.answer(asked.get("name"), asked.get("arguments"))
    content = [*([{"type": "text", "text": answer.text}] if answer.text else []), *answer.content]
    result: Json = {"content": content, "isError": not answer.ok}
    return {**result, "structuredContent": answer.structured} if answer.structured is not None else result


_SHAPES: tuple[tuple[Callable[[Json], bool], Callable[["OfferedTools", Json], Json]], ...] = (
    (lambda call: isinstance(call.get("function"), dict), _answer_chat),
    (lambda call: call.get("type") == "function_call", _answer_responses),
    (lambda call: call.get("type") == "tool_use", _answer_anthropic),
    (lambda call: call.get("method") == "tools/call" and isinstance(call.get("params"), dict), _answer_mcp),
    (lambda call: isinstance(call.get("name"), str) and "type" not in call, _answer_mcp),
)


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools that a model was offered, in a session."""

    session: "AgentSession"
    names: frozenset[str]
    note: Callable[["Answer"], None]

    def answer(self, name: object, arguments: object) -> "Answer":
        """Call one of them with what a model sent; a call that reaches none is answered too."""
        if str(name) not in self.names:
            action = f"Choose from {', '.join(sorted(self.names))}."
            message = f"No tool is called `{name}`."
            return spell_refusal(InvalidArgument(message, reason="unknown_tool", action=action))
        try:
            answer = self.session.answer(str(name), parse_json_arguments(arguments))
        except InvalidArgument as error:
            return spell_refusal(error)
        self.note(answer)
        return answer


def parse_json_arguments(arguments: object, *, action: str = "Send one JSON object.") -> Mapping[str, Any]:
    """Return the arguments of a call, which most APIs send as JSON in a string."""
    if arguments is None:
        return {}
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments) if arguments else {}
        except RecursionError:
            message = "The arguments are nested too deeply."
            raise InvalidArgument(message, reason="bad_json", action=action) from None
        except ValueError as error:
            message = f"The arguments are not JSON: {error}."
            raise InvalidArgument(message, reason="bad_json", action=action) from None
    if not isinstance(arguments, dict):
        raise InvalidArgument("The arguments must be one JSON object.", reason="bad_json", action=action)
    return cast("dict[str, Any]", arguments)


def spell_refusal(error: SureholdError, *, reads: bool = False) -> "Answer":
    """Answer a call that reached no tool as the default tools answer; one that reads says nothing of writing."""
    return tool_named("read_file" if reads else "write_file").refusal_answer(error)


def _text_alone(answer: "Answer") -> str:
    """Return the text of an answer for an API whose answers are text, and name what it cannot show."""
    notes = [
        f"[{block.get('mimeType', block.get('type', ''))}: an answer in this API is text, so it is not shown here]"
        for block in answer.content
        if block.get("type") != "text"
    ]
    return "\n".join([answer.text, *notes]) if notes else answer.text


def _plain_data(call: Any) -> Json:
    if isinstance(call, dict):
        return cast("Json", call)
    if (dump := getattr(call, "model_dump", None)) is not None:
        return dump(mode="json")
    action = "Pass it as plain data, or as the object of the API's package."
    raise InvalidArgument("This is not a tool call.", reason="not_a_call", action=action)
