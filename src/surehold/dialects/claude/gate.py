"""The way from a tool of this family to the disk: what the session saw is asked first, what it is shown is remembered."""

from dataclasses import dataclass

from surehold.errors import FileTooLarge, InvalidArgument, SureholdError
from surehold.stores.base import Operation, Sighting
from surehold.text.plan import Edit, EditPlan
from surehold.text.snapshot import Snapshot
from surehold.tools.context import Context
from surehold.workspace.proposal import AllOf, Proof, Proposal, Sha256
from surehold.workspace.reading import Needs, Reading
from surehold.workspace.receipt import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a call wants of one file."""

    path: str
    edit: Edit
    needs: Needs
    """What must have been shown: the touched lines, the whole file, or anything of this version."""
    expected_sha256: str = ""
    reason: str = ""
    dry_run: bool = False


def submit(context: Context, wish: Wish, *, tool: str, operation: Operation) -> Receipt:
    """Make it happen if the session has seen enough of the file; what a refusal shows counts as shown."""
    session = context.session
    reading = Reading(
        session.workspace.store, session.id, wish.edit, needs=wish.needs, gate=context.gate or session.workspace.gate
    )
    proof: Proof = reading
    if wish.expected_sha256:
        proof = AllOf((Sha256(wish.expected_sha256.strip().lower()), reading))
    size = _Size(session.workspace.limits.max_file_bytes)
    proposal = Proposal(path=wish.path, edit=wish.edit, proof=proof, checks=(reading, size))
    try:
        receipt = session.submit(proposal, tool=tool, operation=operation, reason=wish.reason, dry_run=wish.dry_run)
    except SureholdError:
        _remember(context, reading.shows, reading.current)
        raise
    if receipt.change_id and not receipt.user_modified:
        plan = receipt.files[0].plan
        _remember(context, reading.remember(plan), plan.after)
    return receipt


def check_characters(text: str, name: str, *, path: str) -> None:
    """Refuse a zero byte: with it the file would be binary, and no text tool could open it again."""
    if "\0" in text:
        raise InvalidArgument(
            f"`{name}` holds a zero byte, which no text file holds.",
            path=path,
            reason="zero_byte",
            action="Leave it out; where it is meant as an escape, write the escape.",
        )


@dataclass(frozen=True, slots=True)
class _Size:
    """Refuses a result that no tool could read whole again."""

    limit: int

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        if plan.after.size > self.limit:
            raise FileTooLarge(
                f"The file would have {plan.after.size:,} bytes, and {self.limit:,} is the most.",
                action="Write less, or several files.",
            )
        return ()


def _remember(context: Context, sighting: Sighting | None, version: Snapshot) -> None:
    session = context.session
    if sighting is not None and sighting.sha256:
        session.saw(sighting.path, version, spans=sighting.spans, whole=sighting.whole)
    elif sighting is not None:  # it was said that nothing is there
        session.workspace.store.see([sighting])
