"""Approval in the stateless era: a call ends with a question, and is made again with the answer.

1. What was asked about is stored here under a random name; the client only carries the name.
2. An answer counts once, for the session that was asked, and for exactly the change that was shown.
3. A call that was answered starts again from the beginning. So only calls that make a single change can ask: anything
   done
   before the question would happen twice.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from surehold.errors import StaleFile
from surehold.front.mcp.approval_form import ElicitationForm, ElicitationReply
from surehold.text.snapshot import Snapshot
from surehold.tools.spec import Json
from surehold.workspace.access.permission import ApprovedVersion, PermissionRequest
from surehold.workspace.receipt import FileReceipt

PERMISSION_KEY = "permission"
_MAX_ROUNDS = 256
_MAX_SNAPSHOT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInput:
    """What a call of this era brings along, from a client that can ask."""

    state: str = ""
    """The name of the question that was asked before."""
    replies: Mapping[str, ElicitationReply] = field(default_factory=dict[str, ElicitationReply])


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRound:
    """A question that waits for its call to be made again."""

    session: str
    handle: str
    """What brings the caller back to that session, when nothing else does."""
    tool: str
    outlines: tuple[tuple[object, ...], ...]
    befores: tuple[Snapshot, ...]
    expires: float

    def check_same_change(self, request: PermissionRequest) -> None:
        """Refuse another change than the one that was shown."""
        for before, one in zip(self.befores, request.files, strict=False):
            ApprovedVersion(before).check(one.path, one.plan.before, ())
        if self.outlines != _request_outlines(request):
            raise StaleFile(
                "The change is not the one that somebody was asked about.",
                path=request.files[0].path,
                reason="changed_while_asked",
                action="Make the call again, without the answer.",
            )


class InputRequired(Exception):
    """A call cannot go on before somebody answers; not an error, and nothing was written."""

    def __init__(self, question: ElicitationForm, state: str) -> None:
        super().__init__("A question waits for its answer.")
        self._question = question
        self._state = state

    def to_result(self) -> Json:
        """Return the result that asks."""
        params: Json = {
            "mode": "form",
            "message": self._question.message,
            "requestedSchema": self._question.schema,
        }
        return {
            "resultType": "input_required",
            "inputRequests": {PERMISSION_KEY: {"method": "elicitation/create", "params": params}},
            "requestState": self._state,
        }


class ApprovalRounds:
    """Keeps what was asked about; the oldest go when there are too many."""

    def __init__(self, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._kept = OrderedDict[str, PendingRound]()
        self._lock = threading.Lock()

    def keep_request(self, request: PermissionRequest, *, tool: str, handle: str) -> str:
        """Keep what is asked about; return its name."""
        asked = PendingRound(
            session=request.call.session,
            handle=handle,
            tool=tool,
            outlines=_request_outlines(request),
            befores=tuple(one.plan.before for one in request.files),
            expires=self._clock() + self._seconds,
        )
        state = secrets.token_urlsafe(24)
        with self._lock:
            self._kept[state] = asked
            while len(self._kept) > _MAX_ROUNDS or (len(self._kept) > 1 and self._total_bytes() > _MAX_SNAPSHOT_BYTES):
                self._kept.popitem(last=False)
        return state

    def take_round(self, state: str) -> PendingRound | None:
        """Return what was asked about under this name, once; None when there is no such question any more."""
        with self._lock:
            asked = self._kept.pop(state, None)
        return asked if asked and self._clock() < asked.expires else None

    def _total_bytes(self) -> int:
        return sum(before.size for asked in self._kept.values() for before in asked.befores)


def _request_outlines(request: PermissionRequest) -> tuple[tuple[object, ...], ...]:
    """Return what makes a change this one: what was said of it, both versions, what a move overwrites, and the mode."""
    return tuple(_file_outline(one) for one in request.files)


def _file_outline(one: FileReceipt) -> tuple[object, ...]:
    change = one.change
    kept = change.after.meta.mode if change.after and change.after.meta else None
    displaced = change.displaced.sha256 if change.displaced else ""
    return (one.path, one.summary, one.before_sha256, one.after_sha256, displaced, kept, one.mode)
