"""Submit a change of the claude family: check what the session has read, and record what it is shown."""

from dataclasses import dataclass

from surehold.errors import FileTooLarge, MultipleMatches, OldTextNotFound, SureholdError
from surehold.stores.base import Operation, Sighting
from surehold.text.line_ranges import LineRanges, merge_ranges
from surehold.text.plan import Edit, EditPlan
from surehold.text.quoted.near_miss import MAX_SHOWN_CHARS
from surehold.text.snapshot import Snapshot
from surehold.tools.context import CallContext
from surehold.workspace.access.read_gate import Needs, ReadGate
from surehold.workspace.proposal import AllOf, Proof, Proposal, Sha256
from surehold.workspace.receipt import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedChange:
    """What a call wants of one file."""

    path: str
    edit: Edit
    needs: Needs
    """What must have been shown: the touched lines, the whole file, or anything of this version."""
    expected_sha256: str = ""
    reason: str = ""
    dry_run: bool = False


def submit_gated(context: CallContext, wish: GatedChange, *, tool: str, operation: Operation) -> Receipt:
    """Make it happen if the session has seen enough of the file; what a refusal shows counts as shown."""
    session = context.session
    reading = ReadGate(
        session.workspace.store, session.id, wish.edit, needs=wish.needs, gate=context.gate or session.workspace.gate
    )
    proof: Proof = reading
    if wish.expected_sha256:
        proof = AllOf((reading, Sha256(wish.expected_sha256.strip().lower())))  # the first one says what changed
    size = _SizeLimit(session.workspace.limits.max_file_bytes)
    proposal = Proposal(path=wish.path, edit=wish.edit, proof=proof, checks=(reading, size))
    try:
        receipt = session.submit(proposal, tool=tool, operation=operation, reason=wish.reason, dry_run=wish.dry_run)
    except SureholdError as error:
        _remember_sighting(context, reading.shows, reading.current)
        if reading.was_read and (shown := _lines_shown_by(error)):
            session.record_shown_lines(wish.path, reading.current, spans=shown)
        raise
    if receipt.change_id and not receipt.user_modified:
        plan = receipt.files[0].plan
        _remember_sighting(context, reading.sighting_after_change(plan), plan.after)
    return receipt


@dataclass(frozen=True, slots=True)
class _SizeLimit:
    """Refuses a result that no tool could read whole again."""

    limit: int

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        if plan.after.size > self.limit:
            raise FileTooLarge(
                f"The file would have {plan.after.size:,} bytes, and {self.limit:,} is the most.",
                action="Write less, or several files.",
            )
        return ()


def _lines_shown_by(error: SureholdError) -> LineRanges:
    """Return the lines that a refusal of the edit itself shows whole: the next call may quote them."""
    match error:
        case OldTextNotFound():
            near = [(row["line"], row["text"]) for row in error.details["closest"]]
            # Of a text that was cut the last line is not whole.
            ends = [(line, line + text.count("\n") - (len(text) >= MAX_SHOWN_CHARS)) for line, text in near]
            return merge_ranges([(first, last) for first, last in ends if first <= last])
        case MultipleMatches():
            rows = [row for place in error.details["places"] for row in place["context"].split("\n")]
            numbers = [int(row.partition("→")[0]) for row in rows if not row.endswith("…")]
            return merge_ranges([(number, number) for number in numbers])
        case _:
            return ()


def _remember_sighting(context: CallContext, sighting: Sighting | None, version: Snapshot) -> None:
    session = context.session
    if sighting is not None and sighting.sha256:
        session.record_shown_lines(sighting.path, version, spans=sighting.spans, whole=sighting.whole)
    elif sighting is not None:  # it was said that nothing is there
        session.workspace.store.record_sightings([sighting])
