"""The ACP agent without a model: it runs the tool calls that are written in a prompt."""

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from acp import PROTOCOL_VERSION, RequestError, update_agent_message_text
from acp.schema import (
    AgentCapabilities,
    AvailableCommandsUpdate,
    ClientCapabilities,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    SessionModeState,
    SetSessionModeResponse,
)

from surehold import __version__
from surehold.app import Settings
from surehold.errors import SureholdError
from surehold.front.acp.editor_files import AcpEditorFiles, can_edit, names_of
from surehold.front.acp.events import Dialect
from surehold.front.acp.reporter import Reporter
from surehold.front.shared.approval_queue import ANSWER_SECONDS
from surehold.stores.owner import new_id
from surehold.text.escape import ensure_utf8
from surehold.tools.spec import Tool
from surehold.workspace.settings import Mode
from surehold_acp_agent.conversation import Conversation, mode_named, mode_state, open_session_workspace

if TYPE_CHECKING:
    from acp.interfaces import Client

_INVALID_PARAMS = -32602
PromptBlock = Any
"""A piece of a prompt, as one of the package's models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Everything that can be chosen about the agent."""

    roots: tuple[str, ...] = ()
    """Sessions may begin in these directories; empty for any."""
    settings: Settings = field(default_factory=Settings)
    settings_of: Callable[[Sequence[str]], Settings] | None = None
    """Returns the settings for the directories of a session, which may have a `surehold.toml`; None for the above."""
    mode: Mode = "default"
    dialect: Dialect = "v1"
    patience: float = ANSWER_SECONDS
    unchecked: bool = False


class SureholdAgent:
    """Answers one client: it opens a workspace for each session, and runs what the prompts say."""

    def __init__(self, profile: AgentOptions, tools: Mapping[str, Tool[Any, Any]]) -> None:
        self._profile = profile
        self._tools = tools
        self._talks = dict[str, Conversation]()
        self._name = "acp"
        self._lends_files = False
        self._later = set[asyncio.Task[None]]()

    def on_connect(self, conn: "Client") -> None:
        """Remember whom to speak to."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002 - there is one version, and the client decides whether it is enough
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Say who this is, and learn what the client can do."""
        self._lends_files = can_edit(client_capabilities)
        self._name = ensure_utf8(client_info.name) if client_info else self._name
        info = Implementation(name="surehold", title="Surehold", version=__version__)
        can = AgentCapabilities(load_session=False)
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_capabilities=can, agent_info=info)

    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Open the directory that the client works in."""
        id_, profile = new_id(), self._profile
        loop = asyncio.get_running_loop()
        others = additional_directories or []
        names = names_of([cwd, *others])
        editor = AcpEditorFiles(self._client, id_, loop, names=names) if self._lends_files else None
        try:
            settings = profile.settings_of([cwd, *others]) if profile.settings_of else profile.settings
            workspace = await asyncio.to_thread(
                open_session_workspace, cwd, others, roots=profile.roots, settings=replace(settings, editor=editor)
            )
        except SureholdError as error:
            raise _request_error(error) from None
        mode = settings.mode or profile.mode
        reporter = Reporter(
            self._client,
            id_,
            workspace.session(agent=self._name, id=f"acp-{id_}", mode=mode),
            dialect=profile.dialect,
            patience=profile.patience,
            unchecked=profile.unchecked,
            root=cwd,
        )
        self._talks[id_] = talk = Conversation(workspace, reporter, self._tools)
        self._start_later(self._announce_commands(id_, talk))
        return NewSessionResponse(session_id=id_, modes=SessionModeState.model_validate(mode_state(mode)))

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Go on in another mode."""
        talk, mode = self._find_conversation(session_id), mode_named(mode_id)
        if mode is None:
            raise RequestError(_INVALID_PARAMS, f"There is no mode `{ensure_utf8(mode_id)}`.")
        talk.reporter.session.permission.switch_mode(mode)
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: Sequence[PromptBlock], **_: Any) -> PromptResponse:
        """Run the calls of a prompt, and say what happened."""
        reason, message = await self._find_conversation(session_id).run_prompt(prompt_text(prompt))
        with suppress(ConnectionError):
            await self._client.session_update(
                session_id=session_id, update=update_agent_message_text(ensure_utf8(message))
            )
        return PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop what a session is doing."""
        if talk := self._talks.get(session_id):
            talk.cancel()

    def close(self) -> None:
        """Let go of every workspace; nothing may be under way."""
        for talk in self._talks.values():
            talk.workspace.close()

    def _find_conversation(self, session_id: str) -> Conversation:
        if session_id not in self._talks:
            raise RequestError(_INVALID_PARAMS, f"There is no session `{ensure_utf8(session_id)[:100]}`.")
        return self._talks[session_id]

    def _start_later(self, work: Any) -> None:
        """Do something when the answer to the request at hand has left."""
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _announce_commands(self, session_id: str, talk: Conversation) -> None:
        commands = {"sessionUpdate": "available_commands_update", "availableCommands": talk.list_commands()}
        await asyncio.sleep(0)
        with suppress(ConnectionError):
            await self._client.session_update(
                session_id=session_id, update=AvailableCommandsUpdate.model_validate(commands)
            )


def prompt_text(prompt: Sequence[PromptBlock]) -> str:
    """Return what a prompt says; a file that was mentioned becomes its path."""
    return "".join(_block_text(one) for one in prompt)


def _block_text(block: PromptBlock) -> str:
    if block.type == "text":
        return block.text
    uri = getattr(block, "uri", None) or getattr(getattr(block, "resource", None), "uri", None) or block.type
    if not uri.startswith("file://"):
        return f" {uri} "
    path, _, _ = uri.removeprefix("file://").partition("#")  # after it come the selected lines
    return shlex.quote(unquote(path))


def _request_error(error: SureholdError) -> RequestError:
    data = {"kind": error.kind, "reason": error.reason, "suggestedAction": error.action}
    return RequestError(_INVALID_PARAMS, ensure_utf8(error.message), ensure_utf8(data))
