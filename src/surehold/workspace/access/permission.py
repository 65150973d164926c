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
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from surehold.errors import (
    OTHER_MODE,
    InvalidArgument,
    PermissionDenied,
    PermissionRequired,
    ProtectedPath,
    SpelledText,
    SureholdError,
    spell,
)
from surehold.stores.base import ApprovalRecord, Call
from surehold.stores.questions import SessionAgreements
from surehold.text.plan import EditPlan, Keep, diff_of_plan
from surehold.workspace.access.approved import bind_to_approval
from surehold.workspace.paths import PathRules
from surehold.workspace.proposal import ChangeRecord, FileReceipt, Proposal, Receipt, Unproven
from surehold.workspace.settings import Mode, PermissionState, check_mode

if TYPE_CHECKING:
    from surehold.workspace.runs.questions import CommandQuestion

_DIFF_PREVIEW_CHARS = 8 * 1024
"""How much of a diff a refusal shows."""
_UNASKED_REASONS = frozenset({"cannot_be_shown", "too_many_questions"})
"""Why a question never reached a person."""

BEFORE_ASKING: ContextVar[Callable[[], None]] = ContextVar("BEFORE_ASKING", default=lambda: None)
"""Called in a context before it waits for a person, so that others can work in that time."""

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
        """The unified diffs of all files.

        Of a move over another file, or with a protected path, from what is there now to all that will be there.
        """
        return "".join(self._diff_of(one) for one in self.files)

    def _diff_of(self, one: FileReceipt) -> str:
        name = one.change.to_path
        if not name or not (one.displaced.exists or self.is_protected):
            return one.change.diff
        return diff_of_plan(EditPlan(before=one.displaced, after=one.plan.after), from_name=name, to_name=name).text


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The answer of a person to a request."""

    allowed: bool
    always: bool = False
    """Later changes of this session need no approval either, unless a rule or a protected path requires it."""
    contents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whole texts that the person wants instead, by the paths of the request's files."""
    left_out: tuple[str, ...] = ()
    """Paths of the request's files that stay as they are, though the rest is allowed; not those of a move."""
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


def check_approver(approver: Approver | None) -> Approver | None:
    """Return the approver; refuse what cannot be called, which a program without a type checker may send."""
    if approver is not None and not callable(approver):  # pyright: ignore[reportUnnecessaryComparison]
        action = "For example: approver=lambda request: True"
        raise InvalidArgument("An approver must be a function.", reason="bad_approver", action=action)
    return approver


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
        self._agreed = agreement or PermissionState(mode=check_mode(mode))
        self._approver = check_approver(approver)
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
        self._agreed.change_mode(check_mode(mode))

    def keep_for_session(self, session_id: str, kept: SessionAgreements) -> None:
        """Let what a person allows for the rest of a session count at every process."""
        self._agreed.session, self._agreed.kept = session_id, kept

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
                action=spell("Describe the change instead, or {}.", OTHER_MODE),
            )
        verdict = self._judge_by_rules(standing, mode)
        if verdict.why and mode == "dontAsk":
            raise PermissionDenied(
                f"Changing `{path}` requires approval, and mode `dontAsk` never asks.",
                path=path,
                reason="dont_ask",
                action=spell("Work on another file, or {}.", OTHER_MODE),
            )
        return verdict

    def _judge_by_rules(self, standing: PathRules, mode: Mode) -> PermissionVerdict:
        path, asked_by, allowed_by = standing.path, standing.asked_by, standing.allowed_by
        program = standing.program
        if rule := standing.protected_by:
            why = f"`{path}` is protected: `{rule}` configures {program}."
            if directory := standing.git_directory:
                why = f"`{path}` is protected: with it, `{directory}` is a git repository, whose configuration and hooks git runs."
            if self._approver is None or mode == "dontAsk":
                raise ProtectedPath(why, path=path, rule=rule)
            return PermissionVerdict(rule=f"protected {rule}", why=why, is_protected=True)
        if asked_by:
            why = f"The rule `{asked_by}` of this workspace asks before `{path}` is changed."
            return PermissionVerdict(rule=f"ask {asked_by}", why=why)
        if allowed_by:
            return PermissionVerdict(rule=f"allow {allowed_by}")
        if mode != "acceptEdits" and self._agreed.recall_always():
            return PermissionVerdict(rule="allowed for this session")
        why = "" if mode == "acceptEdits" else f"The mode {mode} asks before `{path}` is changed."
        return PermissionVerdict(rule=f"mode {mode}", why=why)

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
            BEFORE_ASKING.get()()
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
        if approval.always and self.mode == mode:  # it was said about the mode that asked
            self._agreed.allow_always(approval.where)
        return AnsweredProposals(record=record, approved=bound, left_out=frozenset(approval.left_out))


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
    left_out = {*approval.left_out}
    written = {one.path for one in request.files if one.plan.after.exists} - left_out
    unmoved = {one.path for one in request.files if not one.change.to_path}
    if strange := ({*approval.contents} - written) | (left_out - unmoved):
        message = f"The approval is about `{min(strange)}`, which this change does not write."
        raise InvalidArgument(message, reason="strange_content")
    if not any(one.changed and one.path not in left_out for one in request.files):
        message = "Every file was left out, so nothing is left to write."
        raise PermissionDenied(message, path=request.files[0].path, reason="nothing_left")
    return tuple(
        replace(proposal, edit=Keep(), proof=Unproven(), checks=(), mode=None)
        if one.path in left_out
        else bind_to_approval(proposal, one, approval.contents.get(one.path))
        for proposal, one in zip(proposals, request.files, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredProposals:
    """What the person made of the proposals: approved and bound to what was shown, or refused."""

    record: ApprovalRecord
    approved: tuple[Proposal, ...] = ()
    refusal: SureholdError | None = None
    left_out: frozenset[str] = frozenset()
    """The paths that stay as they are, although the rest was allowed."""

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The proposals to make happen; raises the refusal when there is one."""
        if self.refusal:
            raise self.refusal
        return self.approved

    def with_note(self, receipt: Receipt) -> Receipt:
        """Return the receipt with the note of the person, whether they changed the content, and what they left out."""
        note = self.record.note
        said = (f"The person who allowed this says: {note}",) if note else ()
        rows = [replace(one, left_out=one.path in self.left_out) for one in receipt.files]
        rows[:1] = [replace(one, warnings=(*one.warnings, *said)) for one in rows[:1]]
        left_out = tuple(f"`{one.path}` stays as it is: the person left it out." for one in rows if one.left_out)
        edited = bool(left_out) or any(one.instead_of is not None for one in self.approved)
        return replace(receipt, files=tuple(rows), user_modified=edited, left_out=left_out)


def _denial_message(note: str) -> str:
    if not note:
        return "The change was not allowed."
    return f"The change was not allowed: {note}" if note.endswith(".") else f"The change was not allowed: {note}."


def _no_approver_error(request: PermissionRequest) -> PermissionRequired:
    diff = request.diff
    return PermissionRequired(
        f"Changing `{request.files[0].path}` requires approval, and no approver is available.",
        path=request.files[0].path,
        action=SpelledText(
            "Ask a person to make this change, to start with `--mode acceptEdits`, or to name the path with `--allow`.",
            'Pass `approver=` or `mode="acceptEdits"` to `workspace.session()`, or name the path in `Settings(allow=[…])`.',
        ),
        why=request.why,
        diff=diff[:_DIFF_PREVIEW_CHARS],
        diff_truncated=len(diff) > _DIFF_PREVIEW_CHARS,
    )
