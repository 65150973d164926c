"""A chat model of LangChain that follows a script."""

from collections.abc import Callable
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Call = tuple[str, dict[str, Any]]
Step = Call | Callable[[list[str]], Call | None]
"""A tool call, or what makes one of the answers so far."""


class ScriptedChat(BaseChatModel):
    """Makes one tool call after the other, and ends when the script does."""

    steps: list[Any]
    answers: list[str]
    statuses: list[str]

    @classmethod
    def of(cls, steps: list[Step]) -> "ScriptedChat":
        return cls(steps=list(steps), answers=[], statuses=[])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        results = [one for one in messages if isinstance(one, ToolMessage)]
        self.answers[:] = [str(one.text) for one in results]
        self.statuses[:] = [one.status for one in results]
        step = self.steps.pop(0) if self.steps else None
        call = cast("Call | None", step(self.answers) if callable(step) else step)
        message = AIMessage(content="done")
        if call:
            calls: Any = [{"name": call[0], "args": call[1], "id": f"c{len(results)}", "type": "tool_call"}]
            message = AIMessage(content="", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])
