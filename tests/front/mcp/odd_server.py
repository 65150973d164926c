"""Our server with tools that no sane server has: they print, hang, fail and talk too much.

`python odd_server.py ROOT STATE` over standard input and output, `… sdk` the same through the SDK,
`… http [SESSIONS [GONE_SECONDS]]` over HTTP.
"""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from surehold.app import Settings, open_workspace
from surehold.dialects.shared.wire import WIRE
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.options import ServerOptions
from surehold.front.mcp.sdk.http import serve_http
from surehold.front.mcp.sdk.server import BoundServer, make_server
from surehold.front.mcp.sdk.stdio import serve_through_sdk
from surehold.front.mcp.stdio import serve_stdio
from surehold.front.shared.http_server import open_port
from surehold.front.shared.http_settings import HttpSettings
from surehold.front.shared.stdio_lines import claim_stdio
from surehold.text.plan import EditPlan
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import LineRanges
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import Params, SubjectPath
from surehold.tools.spec import Result, tool
from surehold.workspace.proposal import Absent, Proposal

LOOKS = Hints(kind="other", title="Odd", read_only=True)
CHANGES = Hints(kind="edit", title="Odd", operation="create")


class Said(Result):
    said: str

    def text(self, budget: AnswerBudget) -> str:
        return self.said


class Nothing(Params):
    pass


class Size(Params):
    characters: int


class Steps(Params):
    steps: int


class Name(Params):
    path: SubjectPath


@tool("noisy", hints=LOOKS, wire=WIRE)
def noisy(context: CallContext, params: Nothing) -> Said:
    """Print where a protocol is spoken, and read from where one comes."""
    print("a stray print")
    sys.stdout.flush()
    sys.__stdout__.write("another\n") if sys.__stdout__ else None
    return Said(said=f"read {sys.stdin.read()!r}")


@tool("broken", hints=LOOKS, wire=WIRE)
def broken(context: CallContext, params: Nothing) -> Said:
    """Fail in an unforeseen way."""
    raise ZeroDivisionError("\udcff")


@tool("long_answer", hints=LOOKS, wire=WIRE)
def long_answer(context: CallContext, params: Size) -> Said:
    """Ignore every budget."""
    return Said(said="0123456789\n" * (params.characters // 11))


@tool("long_change", hints=CHANGES, wire=WIRE)
def long_change(context: CallContext, params: Size) -> Said:
    """Ignore every budget, in structured content."""
    return Said(said="x" * params.characters)


@tool("surrogates", hints=LOOKS, wire=WIRE)
def surrogates(context: CallContext, params: Nothing) -> Said:
    """Answer with what UTF-8 cannot spell."""
    return Said.model_construct(said="name-\udcff half \ud83d whole \U0001f600")


@tool("stepwise", hints=LOOKS, wire=WIRE)
def stepwise(context: CallContext, params: Steps) -> Said:
    """Report progress much too often."""
    for step in range(params.steps):
        context.progress(step, params.steps, f"step {step}")
    return Said(said="done")


@tool("endless", hints=LOOKS, wire=WIRE)
def endless(context: CallContext, params: Name) -> Said:
    """Look until cancelled, and leave a note then."""
    note = Path(context.session.workspace.roots[0]) / params.path
    (note.with_suffix(".began")).touch()
    while not context.cancelled():
        time.sleep(0.01)
    note.touch()
    return Said(said="cancelled")


@tool("late_write", hints=CHANGES, wire=WIRE)
def late_write(context: CallContext, params: Name) -> Said:
    """Begin, wait for a sign, and only then ask whether to go on, and write."""
    _wait_for_sign(context, params.path)
    context.raise_if_cancelled()
    return _written(context, params.path)


@tool("stubborn_write", hints=CHANGES, wire=WIRE)
def stubborn_write(context: CallContext, params: Name) -> Said:
    """Be past the point of asking, wait for a sign, and write."""

    def shows(_: EditPlan) -> LineRanges:
        _wait_for_sign(context, params.path)
        return ()

    return _written(context, params.path, shows=shows)


@tool("slow_plan", hints=CHANGES, wire=WIRE)
def slow_plan(context: CallContext, params: Name) -> Said:
    """Plan until there is a sign, and write."""

    def check(_: EditPlan) -> tuple[str, ...]:
        _wait_for_sign(context, params.path)
        return ()

    return _written(context, params.path, checks=(check,))


def _wait_for_sign(context: CallContext, name: str) -> None:
    place = Path(context.session.workspace.roots[0]) / name
    place.with_suffix(".began").touch()
    while not place.with_suffix(".go").exists():
        if context.cancelled():
            place.with_suffix(".cancelled").touch()
        time.sleep(0.01)


def _written(context: CallContext, name: str, **how: Any) -> Said:
    proposal = Proposal(path=name, edit=WriteText("whole\n" * 100_000), proof=Absent(), **how)
    context.session.submit(proposal, operation="create")
    return Said(said="written")


LOOKS_AT = Counter[str]()
"""How often the server looked whether a resource that a client subscribed to has changed."""


class CountingAdapter(Adapter):
    def resource_mark(self, uri: str) -> str:
        LOOKS_AT[uri] += 1
        return super().resource_mark(uri)


@tool("count_looks", hints=LOOKS, wire=WIRE)
def count_looks(context: CallContext, params: Name) -> Said:
    """Tell how often a resource was looked at."""
    return Said(said=str(LOOKS_AT[params.path]))


TOOLS = (
    *(
        count_looks,
        noisy,
        broken,
        long_answer,
        long_change,
        surrogates,
        stepwise,
        endless,
        late_write,
        slow_plan,
        stubborn_write,
    ),
)


def main(root: str, state: str, way: str = "", sessions: str = "1000", gone_seconds: str = "60") -> int:
    pipes = claim_stdio()
    with open_workspace(root, settings=Settings(state_dir=Path(state))) as workspace:
        adapter = CountingAdapter(workspace=workspace, tools=TOOLS, options=ServerOptions(meta=True))
        if not way:
            return serve_stdio(adapter.catalog, lambda: adapter, pipes)
        bound = make_server(adapter)
        try:
            if way == "sdk":
                return serve_through_sdk(bound, pipes)
            return over_http(bound, int(sessions), float(gone_seconds))
        finally:
            bound.calls.wait_for_changes(30)


def over_http(bound: BoundServer, sessions: int, gone_seconds: float) -> int:
    listener, settings = open_port(HttpSettings(port=0, max_sessions=sessions, gone_seconds=gone_seconds))
    print(f"http://{settings.address}/mcp", file=sys.stderr, flush=True)
    return serve_http(bound, listener, settings)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
