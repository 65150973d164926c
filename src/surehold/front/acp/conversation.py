"""One session of the agent without a model: prompts come in, their calls run, and a message says how it went."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from surehold.errors import OutsideWorkspace, PermissionDenied
from surehold.front.acp.halt import Halt
from surehold.front.acp.reporter import Reporter
from surehold.front.acp.script import Reader, ScriptCall, Unreadable
from surehold.text.visible import safe
from surehold.tools.spec import Answer, Json, Tool
from surehold.workspace.workspace import Workspace

StopReason = Literal["end_turn", "cancelled"]


class Conversation:
    """Runs prompts one after the other; a prompt that comes meanwhile waits."""

    def __init__(self, workspace: Workspace, reporter: Reporter, tools: Mapping[str, Tool[Any, Any]]) -> None:
        self.workspace = workspace
        self.reporter = reporter
        self._tools = tools
        self._reader = Reader(tools, root=reporter.root)
        self._turn = asyncio.Lock()
        self._halts = set[Halt]()

    def commands(self) -> list[Json]:
        """Return what can be typed, as ACP spells it."""
        typed = [(one.name, one.help, one.usage) for one in self._reader.shortcuts]
        rows = [*typed, ("tool", "Call any tool.", "NAME {JSON}")]
        found: list[Json] = [
            {"name": name, "description": text, "input": {"hint": usage}} for name, text, usage in rows
        ]
        return [*found, {"name": "help", "description": "Say what can be typed here."}]

    async def say(self, text: str) -> tuple[StopReason, str]:
        """Run a prompt; return why the turn ended, and the message that says what happened."""
        halt = Halt()
        self._halts.add(halt)
        try:
            async with self._turn:
                return await self._turn_of(text, halt)
        finally:
            self._halts.discard(halt)

    def cancel(self) -> None:
        """Stop everything that runs or waits; what was written stays."""
        for halt in self._halts:
            halt.pull()

    async def _turn_of(self, text: str, halt: Halt) -> tuple[StopReason, str]:
        try:
            calls = self._reader.read(text)
        except Unreadable as trouble:
            return "end_turn", f"Nothing was run. {trouble}\n\n{self.help()}"
        if not calls:
            return "end_turn", self.help()
        answers = list[Answer]()
        for call in calls:
            if halt.is_pulled:
                break
            answers.append(await self.reporter.call(call.tool, call.arguments, halt=halt))
            if not answers[-1].ok:
                break
        return ("cancelled" if halt.is_pulled else "end_turn"), summary(calls, answers, stopped=halt.is_pulled)

    def help(self) -> str:
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


def summary(calls: tuple[ScriptCall, ...], answers: list[Answer], *, stopped: bool) -> str:
    """Say what happened to every call."""
    rows = [f"{_verdict(one)} {call.tool.name}: {_first_line(one)}" for call, one in zip(calls, answers, strict=False)]
    left = len(calls) - len(answers)
    if left:
        why = "was cancelled" if stopped else "failed"
        rows.append(f"{left} more {'call was' if left == 1 else 'calls were'} not run, since the turn {why}.")
    return "\n".join(rows or ["Cancelled; nothing was run."])


def _verdict(answer: Answer) -> str:
    return "Done." if answer.ok else "Failed."


def _first_line(answer: Answer) -> str:
    error = answer.error
    if error is None:
        return safe(answer.text.split("\n", 1)[0])
    why = error.details.get("explanation") if isinstance(error, (PermissionDenied, OutsideWorkspace)) else None
    return safe(" ".join(_sentence(one) for one in (error.message, why, error.action) if one))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
