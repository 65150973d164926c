"""Submit a change of the claude family: the session must have read what it changes."""

from collections.abc import Callable
from functools import partial

from pydantic import Field

from surehold.dialects.claude.located_file import LocatedFile
from surehold.errors import FileTooLarge
from surehold.stores.base import Operation
from surehold.text.plan import Edit, EditPlan
from surehold.text.snapshot import LineRanges
from surehold.tools.call import CallContext
from surehold.tools.params import Params
from surehold.workspace.access.read_gate import Needs, ReadGate
from surehold.workspace.proposal import AllOf, Proposal, Receipt, Sha256


class GatedParams(Params):
    """The arguments that all changes of the family have, after their own."""

    expected_sha256: str = ""
    """Refuse unless the file is exactly this version."""
    dry_run: bool = False
    reason: str = Field(default="", max_length=2_000)
    """For the audit log."""


def submit_gated(
    context: CallContext,
    place: LocatedFile,
    edit: Edit,
    params: GatedParams,
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
        checks=(gate, partial(_check_size, session.workspace.limits.max_file_bytes)),
        shows=shows,
    )
    return session.submit(proposal, tool=tool, operation=operation, reason=params.reason, dry_run=params.dry_run)


def _check_size(limit: int, plan: EditPlan) -> tuple[str, ...]:
    """Refuse a result that no tool could read whole again."""
    if plan.after.size > limit:
        message = f"The file would be {plan.after.size:,} bytes; the limit is {limit:,}."
        raise FileTooLarge(message, action="Write less, or several files.")
    return ()
