"""The tools of a session as frameworks want tools: a name, a description, a schema, and something to call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from surehold import SureholdError, tools_for
from surehold.adapters.shell import AnySession, plain_session, run_shell
from surehold.errors import InvalidArgument
from surehold.library.async_session import call_in_thread
from surehold.library.families import DEFAULT_FAMILIES
from surehold.library.model_calls import parse_json_arguments, spell_refusal
from surehold.library.session import AgentSession

Json = dict[str, Any]

_RUN_COMMAND: Json = {
    "name": "run_command",
    "description": "Run a shell command in the workspace. What it changes is recorded, and a person can take it back.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeoutSeconds": {"type": "number", "default": 120, "description": "The command is ended after so long."},
        },
        "required": ["command"],
    },
    "annotations": {"readOnlyHint": False},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What a tool answers to a model."""

    ok: bool
    text: str
    images: tuple[Json, ...] = ()
    """As MCP spells them: `mimeType`, and `data` in base64."""
    error: SureholdError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTool:
    """One tool of one session."""

    name: str
    description: str
    schema: Json
    read_only: bool
    session: AgentSession
    answer: Callable[[AgentSession, Mapping[str, Any]], ToolReply]

    def call(self, arguments: object, *, call_id: str = "") -> ToolReply:
        """Do what a model asks for, in JSON or as plain data; a refusal is a reply too."""
        session = self.session.with_call_id(call_id) if call_id else self.session
        return self.call_in(session, arguments)

    def call_in(self, session: AgentSession, arguments: object) -> ToolReply:
        """Do it in another session than its own, such as one with another approver."""
        try:
            return self.answer(session, parse_json_arguments(arguments))
        except SureholdError as error:
            return refusal(error, reads=self.read_only)

    async def call_async(self, arguments: object, *, call_id: str = "") -> ToolReply:
        """Do it in a thread; when the task is cancelled, it is done or not done, never half."""
        return await call_in_thread(self.call, arguments, call_id=call_id)


def session_tools(session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False) -> list[SessionTool]:
    """Return the tools of the named families; with `shell` also `run_command`, which runs under capture."""
    plain = plain_session(session)
    listed = [(entry, _answer_of(entry["name"])) for entry in tools_for("mcp", tools)]
    return [
        SessionTool(
            name=entry["name"],
            description=entry["description"],
            schema=entry["inputSchema"],
            read_only=entry["annotations"]["readOnlyHint"],
            session=plain,
            answer=answer,
        )
        for entry, answer in [*listed, *([(_RUN_COMMAND, _run_command)] if shell else [])]
    ]


def refusal(error: SureholdError, *, reads: bool = False) -> ToolReply:
    """Spell an error as the tools spell a refusal, of a call that writes or only reads: what is wrong, what to do next."""
    return ToolReply(ok=False, text=spell_refusal(error, reads=reads).text, error=error)


def _answer_of(name: str) -> Callable[[AgentSession, Mapping[str, Any]], ToolReply]:
    def answer(session: AgentSession, arguments: Mapping[str, Any]) -> ToolReply:
        found = session.answer(name, arguments)
        images = tuple(block for block in found.content if block.get("type") == "image")
        unseen = sorted({str(block.get("type")) for block in found.content} - {"image", "text"})
        notes = [f"[{kind}: not shown here]" for kind in unseen]
        return ToolReply(ok=found.ok, text="\n".join([found.text, *notes]), images=images, error=found.error)

    return answer


def _run_command(session: AgentSession, arguments: Mapping[str, Any]) -> ToolReply:
    command, seconds = arguments.get("command"), arguments.get("timeoutSeconds", 120)
    if not isinstance(command, str) or not command or not isinstance(seconds, int | float) or seconds <= 0:
        action = 'Send {"command": "make test"}, and a positive number as `timeoutSeconds` if it takes long.'
        raise InvalidArgument(
            "`command` must be a text, and `timeoutSeconds` a number.", reason="bad_command", action=action
        )
    outcome = run_shell(session, command, timeout=seconds)
    return ToolReply(ok=True, text=outcome.to_text())
