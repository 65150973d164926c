"""Ties a proposal to what a person was shown and allowed: another version of the file, or another plan, is refused."""

from dataclasses import dataclass, replace

from surehold.errors import StaleFile
from surehold.text.plan import EditPlan, diff_between
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import AllOf, FileReceipt, Proof, Proposal

_DIFF_PREVIEW_CHARS = 8 * 1024
"""How much of a diff a refusal shows."""


@dataclass(frozen=True, slots=True)
class ApprovedVersion:
    """The version that was shown to the person who approved the change."""

    before: Snapshot
    proof: Proof | None = None
    """The caller's own, which held for this version. Asked again, it finds the lines of earlier versions that still count."""

    def check(self, file: KnownFile) -> None:
        """Refuse when the file is another one by now."""
        path, current = file.path, file.current
        if current.exists == self.before.exists and current.sha256 == self.before.sha256:
            if self.proof:
                self.proof.check(file)
            return
        raise StaleFile(
            f"`{path}` changed while waiting for approval.",
            path=path,
            reason="changed_while_asked",
            action="Look at what changed, and make the change again if it is still right.",
            expected_sha256=self.before.sha256,
            actual_sha256=current.sha256,
            changes_since=diff_between(
                self.before, current, from_name=path, to_name=path, limit=_DIFF_PREVIEW_CHARS
            ).text,
        )


@dataclass(frozen=True, slots=True)
class ApprovedDestination:
    """The version at the destination of a move, as it was shown to the person who approved it."""

    sha256: str
    """Empty when nothing was there."""

    def check(self, file: KnownFile) -> None:
        if file.current.sha256 != self.sha256:
            raise StaleFile(
                f"`{file.path}` changed while waiting for approval to overwrite it.",
                path=file.path,
                reason="changed_while_asked",
                action="Look at what is there now, and make the change again if it is still right.",
            )


def bind_to_approval(proposal: Proposal, one: FileReceipt, content: str | None) -> Proposal:
    """Tie a proposal to what was shown; the person's own content needs none of the checks of the caller's."""
    there = ApprovedDestination(one.change.displaced.sha256 if one.change.displaced else "")
    proof = ApprovedVersion(one.plan.before, proposal.proof) if one.changed else proposal.proof
    proposal = replace(proposal, proof=proof, to_proof=AllOf((proposal.to_proof, there)))
    if content is not None:
        own = WriteText(_as_proposed(content, one.plan))
        if own.plan(one.plan.before).after != one.plan.after:
            return replace(proposal, edit=own, checks=(), instead_of=one.plan.after)
    wanted = one.plan.after.sha256

    def check_same_plan(plan: EditPlan) -> tuple[str, ...]:
        if plan.after.sha256 != wanted:
            raise StaleFile(
                f"The change of `{one.path}` is not the one that was allowed.", reason="changed_while_asked"
            )
        return ()

    return replace(proposal, checks=(*proposal.checks, check_same_plan))


def _as_proposed(content: str, plan: EditPlan) -> str:
    """Give a new file the line endings and the byte order mark that it would have had; an old one keeps its own."""
    after = plan.after
    if plan.before.size or not after.is_text:
        return content
    if after.lines.style == "crlf":
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    return "\ufeff" + content.removeprefix("\ufeff") if after.encoding.bom else content
