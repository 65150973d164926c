"""Which changes are allowed, and which require approval.

The first that applies decides:
 1 a deny rule, for the name or for what it resolves to: refused in every mode
 2 a path outside of every root: refused in every mode, by the disk
 3 a protected path: requires approval; refused in `dontAsk` and without an approver; free in `bypassPermissions` only
 4 `bypassPermissions`: free
 5 `plan`: refused
 6 an ask rule: requires approval
 7 an allow rule, for the name and for what it resolves to: free
 8 `acceptEdits`, or an earlier "always" in this session: free
 9 otherwise requires approval; `dontAsk` refuses instead

The approver is never called while a lock is held. An approval is valid only for the exact bytes that were shown: if the
file or the plan has changed by then, nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from surehold.errors import InvalidArgument, PermissionDenied, PermissionRequired, ProtectedPath, StaleFile
from surehold.stores.base import Call
from surehold.text.plan import EditPlan, diff_between
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.policy import PathRules
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import AllOf, ChangeRecord, FileReceipt, Proposal, Receipt
from surehold.workspace.settings import Mode

_DIFF_PREVIEW_CHARS = 8 * 1024
"""How much of a diff a refusal shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A change that was worked out and requires approval."""

    call: Call
    """Who asks: tool, operation, agent, session, and the audit note."""
    files: tuple[FileReceipt, ...]
    """What would happen: path, plan with both versions, and the change with its diff and both hashes."""
    why: str
    """Why approval is required, in one sentence."""

    @property
    def diff(self) -> str:
        return "".join(one.change.diff for one in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The answer of a person to a request."""

    allowed: bool
    always: bool = False
    """Later changes of this session need no approval either, unless a rule or a protected path requires it."""
    contents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whole texts that the person wants instead, by the paths of the request's files."""
    note: str = ""
    """A message for the model."""


class Approver(Protocol):
    """Asks a person. It may take minutes; no lock is held while it does."""

    def __call__(self, request: PermissionRequest) -> Approval:
        """Return the person's answer. Raise `PermissionRequired` when there is no answer or no one to ask."""
        ...


@dataclass(slots=True)
class PermissionState:
    """What a session may do by now."""

    mode: Mode
    always: bool = False
    """The person allowed later changes too."""


class Permission:
    """What one conversation may change, and whom it asks."""

    def __init__(
        self,
        mode: Mode = "acceptEdits",
        *,
        approver: Approver | None = None,
        agreement: PermissionState | None = None,
        record: ChangeRecord | None = None,
    ) -> None:
        self._agreed = agreement or PermissionState(mode)
        self._approver = approver
        self.record = record
        """Where the changes made with it are recorded."""

    @property
    def mode(self) -> Mode:
        """The mode that decides where no rule does."""
        return self._agreed.mode

    def switch_mode(self, mode: Mode) -> None:
        """Go on in another mode; an earlier "always" is forgotten."""
        self._agreed.mode = mode
        self._agreed.always = False

    def with_approver(self, approver: Approver | None) -> "Permission":
        return Permission(approver=approver, agreement=self._agreed, record=self.record)

    def with_record(self, record: ChangeRecord) -> "Permission":
        return Permission(approver=self._approver, agreement=self._agreed, record=record)

    def reason_to_ask(self, standings: Sequence[PathRules], *, dry_run: bool = False) -> str:
        """Say why approval is required, or nothing when it is not. Refuse what no approval can allow."""
        strictest = sorted(standings, key=lambda one: (not one.protected_by, not one.asked_by))
        reason = next((why for one in strictest if (why := self._reason_for_path(one, dry_run=dry_run))), "")
        if self.record and not reason:
            self.record.on_free()
        return reason

    def _reason_for_path(self, standing: PathRules, *, dry_run: bool) -> str:
        path, mode = standing.path, self.mode
        if mode == "bypassPermissions" or (mode == "plan" and dry_run):
            return ""
        if mode == "plan":
            raise PermissionDenied(
                "This is plan mode, which changes nothing.",
                path=path,
                reason="plan_mode",
                action="Describe the change instead, or ask a person to start in another mode.",
            )
        why = self._reason_by_rules(standing)
        if why and mode == "dontAsk":
            raise PermissionDenied(
                f"Changing `{path}` requires approval, and mode `dontAsk` never asks.",
                path=path,
                reason="dont_ask",
                action="Work on another file, or ask a person to start in another mode.",
            )
        return why

    def _reason_by_rules(self, standing: PathRules) -> str:
        path, asked_by, program = standing.path, standing.asked_by, standing.program
        if rule := standing.protected_by:
            why = f"`{path}` is protected: `{rule}` configures {program}."
            if directory := standing.git_directory:
                why = f"`{path}` is protected: with it, `{directory}` is a git repository, whose configuration and hooks git runs."
            if self._approver is None or self.mode == "dontAsk":
                raise ProtectedPath(why, path=path, rule=rule)
            return why
        if asked_by:
            return f"The rule `{asked_by}` of this workspace asks before `{path}` is changed."
        if standing.allowed or self.mode == "acceptEdits" or self._agreed.always:
            return ""
        return f"The mode {self.mode} asks before `{path}` is changed."

    def request_approval(
        self, proposals: Sequence[Proposal], rehearsal: Receipt, call: Call, why: str
    ) -> "ApprovedProposals":
        """Ask the approver, and return the proposals bound to what was shown, or to what the person wants instead."""
        request = PermissionRequest(call=call, files=rehearsal.files, why=why)
        if self._approver is None:
            raise _no_approver_error(request)
        mode = self.mode
        approval = self._approver(request)
        if not approval.allowed:
            raise PermissionDenied(
                _denial_message(approval.note),
                path=request.files[0].path,
                reason="approval_denied",
                action="Do not try it again in another way; ask the person what they want instead.",
                note=approval.note,
            )
        if strange := set(approval.contents) - {one.path for one in request.files if one.plan.after.exists}:
            raise InvalidArgument(
                f"The approval contains content for `{min(strange)}`, which this change does not write.",
                reason="strange_content",
            )
        pairs = zip(proposals, request.files, strict=True)
        bound = [_bind_to_approval(proposal, one, approval.contents.get(one.path)) for proposal, one in pairs]
        self._agreed.always |= approval.always and self.mode == mode  # it was said about the mode that asked
        return ApprovedProposals(proposals=tuple(bound), note=approval.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedProposals:
    proposals: tuple[Proposal, ...]
    note: str = ""
    """A message for the model."""

    def with_note(self, receipt: Receipt) -> Receipt:
        """Return the receipt with the note of the person, and whether they changed the content."""
        first, *others = receipt.files or (None,)
        if self.note and first:
            said = f"The person who allowed this says: {self.note}"
            receipt = replace(receipt, files=(replace(first, warnings=(*first.warnings, said)), *others))
        return replace(receipt, user_modified=any(isinstance(one.edit, ApproverText) for one in self.proposals))


class ApproverText(WriteText):
    """The text of the person who was asked. The caller has not seen it."""


@dataclass(frozen=True, slots=True)
class ApprovedVersion:
    """The version that was shown to the person who approved the change."""

    before: Snapshot

    def check(self, file: KnownFile) -> None:
        """Refuse when the file is another one by now; the caller's own proof was checked for the version shown."""
        path, current = file.path, file.current
        if current.exists == self.before.exists and current.sha256 == self.before.sha256:
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


def _bind_to_approval(proposal: Proposal, one: FileReceipt, content: str | None) -> Proposal:
    """Tie a proposal to what was shown; the person's own content needs none of the checks of the caller's."""
    there = ApprovedDestination(one.change.displaced.sha256 if one.change.displaced else "")
    proposal = replace(proposal, proof=ApprovedVersion(one.plan.before), to_proof=AllOf((proposal.to_proof, there)))
    if content is not None:
        own = ApproverText(_as_proposed(content, one.plan))
        if own.plan(one.plan.before).after != one.plan.after:
            return replace(proposal, edit=own, checks=())
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


def _denial_message(note: str) -> str:
    if not note:
        return "The change was not allowed."
    return f"The change was not allowed: {note}" if note.endswith(".") else f"The change was not allowed: {note}."


def _no_approver_error(request: PermissionRequest) -> PermissionRequired:
    diff = request.diff
    return PermissionRequired(
        f"Changing `{request.files[0].path}` requires approval, and no approver is available.",
        path=request.files[0].path,
        action="Ask a person to make this change, to start with `--mode acceptEdits`, or to name the path with `--allow`.",
        why=request.why,
        diff=diff[:_DIFF_PREVIEW_CHARS],
        diff_truncated=len(diff) > _DIFF_PREVIEW_CHARS,
    )
