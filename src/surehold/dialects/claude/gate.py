"""Submit a change of the claude family: the session must have read what it changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from surehold.dialects.claude.located_file import LocatedFile
from surehold.errors import FileTooLarge
from surehold.stores.base import Operation
from surehold.text.lines import LineRanges
from surehold.text.plan import Edit, EditPlan
from surehold.tools.call import CallContext
from surehold.workspace.access.read_gate import Needs, ReadGate
from surehold.workspace.proposal import AllOf, Proposal, Receipt, Sha256


class _ChangeArguments(Protocol):
    @property
    def expected_sha256(self) -> str: ...

    @property
    def dry_run(self) -> bool: ...

    @property
    def reason(self) -> str: ...


def submit_gated(
    context: CallContext,
    place: LocatedFile,
    edit: Edit,
    params: _ChangeArguments,
    *,
    needs: Needs,
    tool: str,
    operation: Operation,
    shows: Callable[[EditPlan], LineRanges] = lambda _: (),
) -> Receipt:
    """Make the change if the session has seen enough of the file: the touched lines, all of it, or this version."""
    session = context.session
    gate = ReadGate(edit, needs=needs, settings=context.gate or session.workspace.gate)
    expected = params.expected_sha256.strip().lower()
    proposal = Proposal(
        path=place.target,
        edit=edit,
        proof=AllOf((gate, Sha256(expected))) if expected else gate,  # the gate first: it says what changed
        checks=(gate, _SizeLimit(session.workspace.limits.max_file_bytes)),
        shows=shows,
    )
    return session.submit(proposal, tool=tool, operation=operation, reason=params.reason, dry_run=params.dry_run)


@dataclass(frozen=True, slots=True)
class _SizeLimit:
    """Refuses a result that no tool could read whole again."""

    limit: int

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        if plan.after.size > self.limit:
            raise FileTooLarge(
                f"The file would be {plan.after.size:,} bytes; the limit is {self.limit:,}.",
                action="Write less, or several files.",
            )
        return ()
