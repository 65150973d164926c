"""What those who run a server need: `/healthz`, `/readyz` and `/metrics`, a log of calls, and an orderly end.

1. These paths need no sign-in and no name of ours in the request: a balancer asks by address. They show numbers and words of
   ours, never a path, a name or a secret.
2. From the signal to end on, `/readyz` answers 503 and new calls are turned away with 503; those that run get their answers.
3. The metrics are text of Prometheus. It is a few lines, so no library is needed.
"""

import json
import logging
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import anyio
import anyio.to_thread
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from surehold import __version__
from surehold.errors import SureholdError
from surehold.front.mcp.sdk.call_threads import CallThreads
from surehold.front.mcp.sdk.workers import WorkerPlace, add_up, ask_others
from surehold.front.mcp.tool_calls import FinishedCall
from surehold.workspace.workspace import Workspace

_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LOST_LEASE = "intent_gone"
_OWN_METRICS = "/metrics/worker"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATE_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_LOOKS_WITHOUT_CALLS = 10
_calls_log = logging.getLogger("surehold.calls")


class CallMetrics:
    """Counts calls: how many, how they ended, and how long they took."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._calls = Counter[tuple[str, str]]()
        self._refusals = Counter[str]()
        self._buckets = {kind: [0] * (len(_BUCKETS_SECONDS) + 1) for kind in ("read", "change")}
        self._seconds = {"read": 0.0, "change": 0.0}
        self._edits = self._lost = 0

    def note_call(self, call: FinishedCall) -> None:
        kind = "change" if call.changes else "read"
        with self._guard:
            self._calls[call.tool, "refused" if call.refusal else "ok"] += 1
            self._buckets[kind][bisect_left(_BUCKETS_SECONDS, call.seconds)] += 1
            self._seconds[kind] += call.seconds
            self._edits += call.changed
            if call.refusal:
                self._refusals[call.refusal] += 1
            self._lost += call.reason == _LOST_LEASE

    def text(self, *, running: int, open_intents: int | None, is_ready: bool) -> str:
        """Return everything as Prometheus reads it."""
        with self._guard:
            calls, refusals = sorted(self._calls.items()), sorted(self._refusals.items())
            seconds, edits, lost = dict(self._seconds), self._edits, self._lost
            buckets = {kind: list(counts) for kind, counts in self._buckets.items()}
        rows = [
            *_family("surehold_info", "gauge", "The version of Surehold.", [(f'{{version="{__version__}"}}', 1)]),
            *_family("surehold_ready", "gauge", "Whether this server takes calls.", [("", int(is_ready))]),
            *_family("surehold_running_requests", "gauge", "Requests that are being answered.", [("", running)]),
            *_family("surehold_edits_total", "counter", "Changes that were written.", [("", edits)]),
            *_family(
                "surehold_calls_total",
                "counter",
                "Calls of tools, by tool and outcome.",
                [(f'{{tool="{tool}",outcome="{outcome}"}}', count) for (tool, outcome), count in calls],
            ),
            *_family(
                "surehold_refusals_total",
                "counter",
                "Refused calls, by kind.",
                [(f'{{kind="{kind}"}}', count) for kind, count in refusals],
            ),
            *_family("surehold_lease_losses_total", "counter", "Changes that another process settled.", [("", lost)]),
        ]
        if open_intents is not None:
            sentence = "Changes of this workspace that are under way, on any server."
            rows += _family("surehold_open_intents", "gauge", sentence, [("", open_intents)])
        rows += _family("surehold_call_seconds", "histogram", "How long calls took, in seconds.", [])
        for kind, counts in buckets.items():
            total = 0
            for limit, count in zip((*_BUCKETS_SECONDS, "+Inf"), counts, strict=True):
                total += count
                rows.append(f'surehold_call_seconds_bucket{{kind="{kind}",le="{limit}"}} {total}')
            rows += [
                f'surehold_call_seconds_sum{{kind="{kind}"}} {seconds[kind]:.6f}',
                f'surehold_call_seconds_count{{kind="{kind}"}} {total}',
            ]
        return "\n".join(rows) + "\n"


def _family(name: str, kind: str, sentence: str, samples: list[tuple[str, int]]) -> list[str]:
    head = [f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"]
    return head + [f"{name}{labels} {value}" for labels, value in samples]


def log_call(call: FinishedCall) -> None:
    """Write a call into the log, where that is structured."""
    _calls_log.info(
        "call",
        extra={
            "facts": {
                "tool": call.tool,
                "session": call.session,
                "outcome": "refused" if call.refusal else "ok",
                "refusal": call.refusal,
                "reason": call.reason,
                "ms": round(call.seconds * 1000, 1),
            }
        },
    )


class JsonLogFormat(logging.Formatter):
    """One JSON document for each line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            facts["trace"] = self.formatException(record.exc_info)
        return json.dumps(facts)


class ServerOperations:
    """Answers those who watch a server, and turns calls away while it ends."""

    def __init__(
        self, workspace: Workspace, metrics: CallMetrics, *, mcp_path: str, place: WorkerPlace | None = None
    ) -> None:
        """`place`: which worker this is, if several serve the port."""
        self._workspace, self._metrics, self._mcp_path, self.place = workspace, metrics, mcp_path, place
        self._answers: dict[str, Callable[[], Any]] = {
            "/healthz": self._answer_health,
            "/readyz": self._answer_ready,
            "/metrics": self._answer_metrics,
            _OWN_METRICS: self._answer_own_metrics,
        }
        self.is_draining = False
        self._running = 0
        self._all_answered: anyio.Event | None = None

    def wrap(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            path = str(scope.get("path", ""))
            if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and path in self._answers:
                response: Response = await self._answers[path]()
                await response(scope, receive, send)
            elif scope["type"] == "http" and scope["method"] == "POST" and path.rstrip("/") == self._mcp_path:
                await self._pass_call(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return answer

    async def drain(self, seconds: float, calls: CallThreads) -> None:
        """Take no more calls, and wait for those that run, within some seconds.

        A request without a call, such as a half one, is not waited for; what other workers do for us cannot be told.
        """
        self.is_draining = True
        self._all_answered = anyio.Event()
        looks_left = _LOOKS_WITHOUT_CALLS
        with anyio.move_on_after(seconds):
            while self._running and looks_left:
                with anyio.move_on_after(_LOOK_SECONDS):
                    await self._all_answered.wait()
                looks_left = _LOOKS_WITHOUT_CALLS if calls.under_way or self.place else looks_left - 1

    async def _pass_call(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        if self.is_draining:
            headers = {"Retry-After": "1", "Connection": "close"}
            status = HTTPStatus.SERVICE_UNAVAILABLE
            await PlainTextResponse("This server is ending.\n", status, headers)(scope, receive, send)
            return
        self._running += 1
        try:
            await app(scope, receive, send)
        finally:
            self._running -= 1
            if not self._running and self._all_answered is not None:
                self._all_answered.set()

    async def _answer_health(self) -> Response:
        return JSONResponse({"ok": True, "version": __version__})

    async def _answer_ready(self) -> Response:
        problem = "draining" if self.is_draining else await self._find_problem()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return JSONResponse({"ready": not problem, "problem": problem}, status)

    async def _answer_metrics(self) -> Response:
        own = await self._answer_own_metrics()
        if self.place is None:
            return own
        others = await ask_others(self.place, _OWN_METRICS)
        return PlainTextResponse(add_up([bytes(own.body).decode(), *others]), media_type=_METRICS_TYPE)

    async def _answer_own_metrics(self) -> Response:
        found = await self._ask(self._workspace.count_open_changes)
        is_ready = found is not None and not self.is_draining
        text = self._metrics.text(running=self._running, open_intents=found, is_ready=is_ready)
        return PlainTextResponse(text, media_type=_METRICS_TYPE)

    async def _find_problem(self) -> str:
        return "" if await self._ask(self._workspace.check_history) else "state"

    async def _ask(self, work: Callable[[], Any]) -> Any:
        """Ask the history something; None if it does not answer, or not in time."""
        with anyio.move_on_after(_STATE_SECONDS):
            try:
                return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            except SureholdError:
                return None
        return None
