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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from surehold.errors import (
    InvalidArgument,
    PermissionDenied,
    PermissionRequired,
    ProtectedPath,
    StaleFile,
    SureholdError,
)
from surehold.stores.approval import ApprovalRecord
from surehold.stores.base import Call
from surehold.text.plan import EditPlan, diff_between
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.policy import PathRules
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import AllOf, ChangeRecord, FileReceipt, Proof, Proposal, Receipt
from surehold.workspace.settings import Mode, check_mode

if TYPE_CHECKING:
    from surehold.workspace.runs.questions import CommandQuestion

_DIFF_PREVIEW_CHARS = 8 * 1024
"""How much of a diff a refusal shows."""
_UNASKED_REASONS = frozenset({"cannot_be_shown", "too_many_questions"})
"""Why a question never reached a person."""

AnswerPlace = Literal["page", "form", "editor", "terminal", "callback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionVerdict:
    """What the rules and the mode say about a change."""

    rule: str
    """What decided, in the words of the ledger."""
    why: str = ""
    """Why approval is required, in one sentence; empty when it is not."""
    is_protected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A change that was worked out and requires approval."""

    call: Call
    """Who asks: tool, operation, agent, session, and the audit note."""
    files: tuple[FileReceipt, ...]
    """What would happen: path, plan with both versions, and the change with its diff and both hashes."""
    why: str
    """Why approval is required, in one sentence."""
    is_protected: bool = False
    """Whether a protected path is among the files: then everything must have been shown before it can be allowed."""
    command: "CommandQuestion | None" = None
    """What a running command is about to do; then there are no files, and a yes is for this command."""

    @property
    def summary(self) -> str:
        """What is asked for, to follow "wants to"."""
        if self.command:
            return self.command.summary
        return next(iter(self.files)).summary if len(self.files) == 1 else f"change {len(self.files)} files"

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
    where: AnswerPlace = "callback"
    who: str = ""
    """Who answered, for the ledger."""


class Approver(Protocol):
    """Asks a person. It may take minutes; no lock is held while it does."""

    def __call__(self, request: PermissionRequest) -> Approval | bool:
        """Return the person's answer, or just whether it is allowed. Raise `PermissionRequired` when there is no answer or no one to ask."""
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
        self._agreed = agreement or PermissionState(check_mode(mode))
        self._approver = approver
        self.record = record
        """Where the changes made with it are recorded."""

    @property
    def mode(self) -> Mode:
        """The mode that decides where no rule does."""
        return self._agreed.mode

    @property
    def approver(self) -> Approver | None:
        """Who is asked; None for no one."""
        return self._approver

    def switch_mode(self, mode: Mode) -> None:
        """Go on in another mode; an earlier "always" is forgotten."""
        self._agreed.mode = check_mode(mode)
        self._agreed.always = False

    def with_approver(self, approver: Approver | None) -> "Permission":
        return Permission(approver=approver, agreement=self._agreed, record=self.record)

    def with_record(self, record: ChangeRecord) -> "Permission":
        return Permission(approver=self._approver, agreement=self._agreed, record=record)

    def judge_paths(self, standings: Sequence[PathRules], *, dry_run: bool = False) -> PermissionVerdict:
        """Say whether approval is required, and which rule decides that. Refuse what no approval can allow."""
        strictest = sorted(standings, key=lambda one: (not one.protected_by, not one.asked_by))
        verdicts = [self._judge_path(one, dry_run=dry_run) for one in strictest]
        verdict = next((one for one in verdicts if one.why), verdicts[0])
        if self.record and not verdict.why:
            self.record.on_free()
        return verdict

    def _judge_path(self, standing: PathRules, *, dry_run: bool) -> PermissionVerdict:
        path, mode = standing.path, self.mode
        if mode == "bypassPermissions" or (mode == "plan" and dry_run):
            return PermissionVerdict(rule=f"mode {mode}")
        if mode == "plan":
            raise PermissionDenied(
                "This is plan mode, which changes nothing.",
                path=path,
                reason="plan_mode",
                action="Describe the change instead, or ask a person to start in another mode.",
            )
        verdict = self._judge_by_rules(standing)
        if verdict.why and mode == "dontAsk":
            raise PermissionDenied(
                f"Changing `{path}` requires approval, and mode `dontAsk` never asks.",
                path=path,
                reason="dont_ask",
                action="Work on another file, or ask a person to start in another mode.",
            )
        return verdict

    def _judge_by_rules(self, standing: PathRules) -> PermissionVerdict:
        path, asked_by, allowed_by = standing.path, standing.asked_by, standing.allowed_by
        program = standing.program
        if rule := standing.protected_by:
            why = f"`{path}` is protected: `{rule}` configures {program}."
            if directory := standing.git_directory:
                why = f"`{path}` is protected: with it, `{directory}` is a git repository, whose configuration and hooks git runs."
            if self._approver is None or self.mode == "dontAsk":
                raise ProtectedPath(why, path=path, rule=rule)
            return PermissionVerdict(rule=f"protected {rule}", why=why, is_protected=True)
        if asked_by:
            why = f"The rule `{asked_by}` of this workspace asks before `{path}` is changed."
            return PermissionVerdict(rule=f"ask {asked_by}", why=why)
        if allowed_by:
            return PermissionVerdict(rule=f"allow {allowed_by}")
        if self.mode != "acceptEdits" and self._agreed.always:
            return PermissionVerdict(rule="allowed for this session")
        why = "" if self.mode == "acceptEdits" else f"The mode {self.mode} asks before `{path}` is changed."
        return PermissionVerdict(rule=f"mode {self.mode}", why=why)

    def request_approval(
        self,
        proposals: Sequence[Proposal],
        rehearsal: Receipt,
        call: Call,
        verdict: PermissionVerdict,
        *,
        timestamp: Callable[[], str],
    ) -> "AnsweredProposals":
        """Ask the approver, and return what came of it: a refusal too is an answer, which the ledger keeps."""
        request = PermissionRequest(
            call=call, files=rehearsal.files, why=verdict.why, is_protected=verdict.is_protected
        )
        asked = ApprovalRecord(asked=self._approver is not None, rule=verdict.rule)
        mode = self.mode
        try:
            if self._approver is None:
                raise _no_approver_error(request)
            approval = read_answer(self._approver(request))
        except SureholdError as error:
            if error.reason in _UNASKED_REASONS:
                return AnsweredProposals(record=replace(asked, asked=False), refusal=error)
            return AnsweredProposals(record=replace(asked, at=timestamp()), refusal=error)
        record = replace(asked, where=approval.where, who=approval.who, at=timestamp(), note=approval.note)
        try:
            bound = _bind_proposals(proposals, request, approval)
        except SureholdError as error:
            return AnsweredProposals(record=record, refusal=error)
        self._agreed.always |= approval.always and self.mode == mode  # it was said about the mode that asked
        return AnsweredProposals(record=record, approved=bound)


def read_answer(answer: object) -> Approval:
    """Return the answer of an approver; nothing but True and an `Approval` allows anything."""
    if isinstance(answer, bool):
        return Approval(allowed=answer)
    if isinstance(answer, Approval):
        return answer
    message = f"The approver answered with {type(answer).__name__}, so nothing is allowed."
    raise PermissionDenied(message, reason="bad_approval", action="Return True, False or `Approval(allowed=…)`.")


def _bind_proposals(
    proposals: Sequence[Proposal], request: PermissionRequest, approval: Approval
) -> tuple[Proposal, ...]:
    """Return the proposals bound to what was shown, or to what the person wants instead; refuse them if they said no."""
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
    return tuple(_bind_to_approval(proposal, one, approval.contents.get(one.path)) for proposal, one in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredProposals:
    """What the person made of the proposals: approved and bound to what was shown, or refused."""

    record: ApprovalRecord
    approved: tuple[Proposal, ...] = ()
    refusal: SureholdError | None = None

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The proposals to make happen; raises the refusal when there is one."""
        if self.refusal:
            raise self.refusal
        return self.approved

    def with_note(self, receipt: Receipt) -> Receipt:
        """Return the receipt with the note of the person, and whether they changed the content."""
        first, *others = receipt.files or (None,)
        if self.record.note and first:
            said = f"The person who allowed this says: {self.record.note}"
            receipt = replace(receipt, files=(replace(first, warnings=(*first.warnings, said)), *others))
        return replace(receipt, user_modified=any(one.instead_of is not None for one in self.approved))


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


def _bind_to_approval(proposal: Proposal, one: FileReceipt, content: str | None) -> Proposal:
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


def _denial_message(note: str) -> str:
    if not note:
        return "The change was not allowed."
    return f"The change was not allowed: {note}" if note.endswith(".") else f"The change was not allowed: {note}."


def _no_approver_error(request: PermissionRequest) -> PermissionRequired:
    diff = request.diff
    return PermissionRequired(
        f"Changing `{request.files[0].path}` requires approval, and no approver is available.",
        path=request.files[0].path,
        action="Ask a person to make this change, to start with `--mode acceptEdits`, or to name the path with `--allow`. "
        'A Python program passes `approver=` or `mode="acceptEdits"` to `session()`.',
        why=request.why,
        diff=diff[:_DIFF_PREVIEW_CHARS],
        diff_truncated=len(diff) > _DIFF_PREVIEW_CHARS,
    )
