"""One session of the agent: the directory it works in, its permission modes, and its turns.

A session may only open directories inside the roots that the agent was started for.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from surehold.errors import InvalidArgument, NotFound, OutsideWorkspace, PermissionDenied
from surehold.front.acp.reporter import CancelToken, Reporter
from surehold.text.escape import escape_text
from surehold.tools.call import Answer, Json
from surehold.tools.spec import Tool
from surehold.workspace.settings import Mode
from surehold.workspace.workspace import Workspace
from surehold_acp_agent.script import ScriptCall, ScriptError, ScriptParser

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.library.workspace import AgentWorkspace


MODES: tuple[tuple[Mode, str, str], ...] = (
    ("default", "Ask", "Every change is asked about."),
    ("acceptEdits", "Accept edits", "Changes happen without a question; protected paths are still asked about."),
    ("plan", "Plan", "Nothing is changed."),
    ("dontAsk", "Don't ask", "What would need a question is refused."),
    ("bypassPermissions", "Bypass permissions", "Everything is allowed, protected paths too."),
)


def mode_named(name: str) -> Mode | None:
    """Return the mode of this name."""
    return next((mode for mode, _, _ in MODES if mode == name), None)


def mode_state(current: Mode) -> Json:
    """Return the modes as ACP spells them."""
    modes = [{"id": mode, "name": name, "description": help_} for mode, name, help_ in MODES]
    return {"currentModeId": current, "availableModes": modes}


def open_session_workspace(
    cwd: str, others: Sequence[str], *, roots: Sequence[str], settings: "Settings"
) -> "AgentWorkspace":
    """Open the directory of a session. Its history is that of the directory; the roots only say what may be opened."""
    from surehold.app import default_state_dir, open_workspace

    allowed = [os.path.realpath(root) for root in roots]
    for directory in (cwd, *others):
        _check_directory(directory, allowed)
    room, state_dir = os.path.realpath(cwd), settings.state_dir
    if state_dir is not None and allowed and room != allowed[0]:
        state_dir = state_dir / default_state_dir(room).name  # paths are recorded relative to their own root
    return open_workspace(cwd, *others, settings=replace(settings, state_dir=state_dir))


def check_roots(roots: Sequence[str]) -> None:
    """Refuse a root that no session could ever begin in."""
    for root in roots:
        if not Path(root).is_dir():
            raise NotFound(f"`{root}` is not a directory.", reason="no_such_root", action="Name a directory.")


def _check_directory(directory: str, allowed: Sequence[str]) -> None:
    if not os.path.isabs(directory) or "\0" in directory:  # noqa: PTH117 - names need not be UTF-8
        raise InvalidArgument(
            f"`{directory}` is not an absolute path.", reason="relative_cwd", action="Send an absolute path as cwd."
        )
    real = Path(os.path.realpath(directory))
    if allowed and not any(real.is_relative_to(root) for root in allowed):
        raise OutsideWorkspace(
            f"`{directory}` lies outside of the directories that this agent was started for.",
            path=directory,
            reason="outside_roots",
            action="Start it for that directory: surehold acp ROOT",
        )


StopReason = Literal["end_turn", "cancelled"]


class Conversation:
    """Runs prompts one after the other; a prompt that comes while another runs waits."""

    def __init__(self, workspace: Workspace, reporter: Reporter, tools: Mapping[str, Tool[Any, Any]]) -> None:
        self.workspace = workspace
        self.reporter = reporter
        self._tools = tools
        self._reader = ScriptParser(tools, root=reporter.root)
        self._turn = asyncio.Lock()
        self._tokens = set[CancelToken]()

    def list_commands(self) -> list[Json]:
        """Return what can be typed, as ACP spells it."""
        typed = [(one.name, one.help, one.usage) for one in self._reader.shortcuts]
        rows = [*typed, ("tool", "Call any tool.", "NAME {JSON}")]
        found: list[Json] = [
            {"name": name, "description": text, "input": {"hint": usage}} for name, text, usage in rows
        ]
        return [*found, {"name": "help", "description": "Say what can be typed here."}]

    async def run_prompt(self, text: str) -> tuple[StopReason, str]:
        """Run a prompt; return why the turn ended, and the message that says what happened."""
        token = CancelToken()
        self._tokens.add(token)
        try:
            async with self._turn:
                return await self._run_turn(text, token)
        finally:
            self._tokens.discard(token)

    def cancel(self) -> None:
        """Stop everything that runs or waits; what was written stays."""
        for token in self._tokens:
            token.cancel()

    async def _run_turn(self, text: str, token: CancelToken) -> tuple[StopReason, str]:
        try:
            calls = self._reader.parse_prompt(text)
        except ScriptError as trouble:
            return "end_turn", f"Nothing was run. {trouble}\n\n{self.help_text()}"
        if not calls:
            return "end_turn", self.help_text()
        answers = list[Answer]()
        async with self.reporter.turn(text):
            for call in calls:
                if token.is_cancelled:
                    break
                answers.append(await self.reporter.call(call.tool, call.arguments, cancel=token))
                if not answers[-1].ok:
                    break
        return ("cancelled" if token.is_cancelled else "end_turn"), summarize_calls(
            calls, answers, stopped=token.is_cancelled
        )

    def help_text(self) -> str:
        """Say what can be typed."""
        rows = [f"/{one.name} {one.usage}\n    {one.help}" for one in self._reader.shortcuts]
        return "\n".join(
            [
                "This agent has no model: it runs the tool calls that you write.",
                "",
                *rows,
                "/tool NAME {JSON}\n    Call any tool.",
                "",
                'Or JSON, one call, several, or a list of them: {"tool": "read_file", "arguments": {"path": "a.py"}}',
                f"Tools: {', '.join(self._tools)}.",
            ]
        )


def summarize_calls(calls: tuple[ScriptCall, ...], answers: list[Answer], *, stopped: bool) -> str:
    """Say what happened to every call."""
    rows = [
        f"{_verdict_word(one)} {call.tool.name}: {_first_line(one)}" for call, one in zip(calls, answers, strict=False)
    ]
    left = len(calls) - len(answers)
    if left:
        why = "was cancelled" if stopped else "failed"
        rows.append(f"{left} more {'call was' if left == 1 else 'calls were'} not run, since the turn {why}.")
    return "\n".join(rows or ["Cancelled; nothing was run."])


def _verdict_word(answer: Answer) -> str:
    return "Done." if answer.ok else "Failed."


def _first_line(answer: Answer) -> str:
    error = answer.error
    if error is None:
        return escape_text(answer.text.split("\n", 1)[0])
    why = error.details.get("explanation") if isinstance(error, (PermissionDenied, OutsideWorkspace)) else None
    return escape_text(" ".join(_end_sentence(one) for one in (error.message, why, error.action) if one))


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
