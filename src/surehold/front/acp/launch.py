"""From what was chosen on the command line to an agent that runs, and to its end.

It ends when the client closes its end, or on SIGTERM or SIGINT. A question that is open then is answered by that: no.
A change that has begun goes on to its end first.
"""

import asyncio
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

from acp import run_agent

from surehold import __version__
from surehold.dialects.families import tools_of
from surehold.errors import InvalidArgument
from surehold.front.acp.agent import Profile, SureholdAgent
from surehold.front.acp.pipe import Pipe
from surehold.front.acp.rooms import check_roots
from surehold.front.mcp.pipes import Pipes, divert
from surehold.front.mcp.pump import Pump
from surehold.text.visible import safe

if TYPE_CHECKING:
    from acp.interfaces import Agent

_INTERRUPTED = 130
_AT_ONCE = 64
"""Calls that may wait for their people at the same time; each holds a thread."""


def launch(profile: Profile, *, tools: str) -> int:
    """Serve one client until it leaves; return the exit code."""
    found = tools_of(tools)
    check_roots(profile.roots)
    try:
        pipes = divert()
    except InvalidArgument as error:
        error.action = "Let an editor start it."
        raise
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surehold: %(message)s")
    agent = SureholdAgent(profile, {one.name: one for one in found})
    where = ", ".join(map(safe, profile.roots)) or "the directory of each session"
    sys.stderr.write(f"surehold {__version__}: {len(found)} tools on {where} (mode {profile.mode}); Ctrl-C ends it.\n")
    sys.stderr.flush()
    try:
        return asyncio.run(_serve(agent, pipes))  # waits for the threads of its calls
    finally:
        agent.close()


async def _serve(agent: SureholdAgent, pipes: Pipes) -> int:
    pipe, codes = Pipe(Pump(pipes.incoming, pipes.outgoing)), list[int]()
    loop = asyncio.get_running_loop()

    def leave(code: int) -> None:
        codes.append(code)
        pipe.end()

    loop.set_default_executor(ThreadPoolExecutor(_AT_ONCE, "call"))
    loop.add_signal_handler(signal.SIGTERM, leave, 0)
    loop.add_signal_handler(signal.SIGINT, leave, _INTERRUPTED)
    await run_agent(cast("Agent", agent), pipe)
    return codes[0] if codes else 0
