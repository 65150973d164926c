"""`apply_patch`: apply a patch to many files as one change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from surehold.dialects.files.trash import trash_name
from surehold.dialects.shared.params import CamelResultPart, ChangeParams, ChangeResult, receipt_fields, submit_change
from surehold.dialects.shared.wire import WIRE
from surehold.errors import PatchApplyError, StaleFile, SureholdError, argument, spell
from surehold.text.escape import escape_lines, escape_text
from surehold.text.patch.apply import FilePatch, Patch
from surehold.text.patch.parse import parse_patch
from surehold.text.plan import Delete
from surehold.tools.call import AnswerBudget, CallContext, Json
from surehold.tools.listing import Hints
from surehold.tools.spec import tool
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import Absent, Exact, FileReceipt, Proof, Proposal, Receipt, proof_of
from surehold.workspace.workspace import Workspace

Operation = Literal["add", "update", "delete", "move"]
_EXPECTED = argument("expectedSha256ByPath")
_HOW_TO_PROVE = spell(
    "Read it, then send the same patch again, or its sha256 in {};"
    " a unified or git diff that deletes every line needs neither.",
    _EXPECTED,
)
_UNITS_PER_FILE = 500
"""What the paths and hashes of a file take, as text and as data."""
_SIGNS: dict[Operation, str] = {"add": "A", "update": "M", "delete": "D", "move": "R"}


class PatchParams(ChangeParams):
    """The patch, and what its files were when the caller saw them."""

    ALIASES: ClassVar = {"input": "patch", "patch_text": "patch", "patchText": "patch", "diff": "patch"}

    patch: str
    expected_sha256_by_path: dict[str, str] = Field(default_factory=dict[str, str])
    """sha256 per path; "" for a file that must not exist. Needed to delete or move a file that was not read or quoted."""
    atomic: bool = True
    """All files or none; false: each file for itself."""
    format: Literal["auto", "envelope", "unified", "git"] = "auto"

    @classmethod
    def named_paths(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return every path of the patch; none of one that cannot be read."""
        try:
            files = parse_patch(str(arguments.get("patch", ""))).files
        except SureholdError:  # the tool itself says what is wrong with it
            return ()
        return tuple(path for one in files for path in (one.path, one.to_path) if path)


class ChangedFile(CamelResultPart):
    path: str
    operation: Operation
    to_path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    diff: str = ""
    trashed_to: str | None = None

    @property
    def sha256(self) -> str:
        """Name of the bytes as they are now, or of those that were deleted."""
        return self.after_sha256 or self.before_sha256 or ""

    def summary_line(self) -> str:
        name = escape_text(self.path) + (f" -> {escape_text(self.to_path)}" if self.to_path else "")
        after = f" sha256 {self.after_sha256}" if self.after_sha256 else f" {self.trashed_to or ''}"
        return f"{_SIGNS[self.operation]} {name}{after}"


class FailedFile(CamelResultPart):
    path: str
    error: Json


class PatchResult(ChangeResult):
    format: Literal["envelope", "unified", "git"]
    hunk_count: int
    changed_files: tuple[ChangedFile, ...]
    failed_files: tuple[FailedFile, ...] | None = None
    change_ids: tuple[str, ...] | None = None
    """With `atomic: false`: one per file."""

    @property
    def sha256(self) -> dict[str, str]:
        """Name of the bytes of each file, by its path."""
        return {one.to_path or one.path: one.sha256 for one in self.changed_files}

    def changes_made(self) -> tuple[str, ...]:
        return self.change_ids or super().changes_made()

    @property
    def ok(self) -> bool:
        return not self.failed_files

    def failure_details(self) -> Json:
        """Return the first failure, in the name of all."""
        failed = self.failed_files or ()
        total = len(failed) + len(self.changed_files)
        first = next(iter(failed)).error
        return {**first, "message": f"{len(failed)} of {total} files stayed as they were. {first['message']}"}

    def headline(self) -> str:
        files = _count_files(len(self.changed_files))
        if failed := len(self.failed_files or ()):
            return f"{files} changed; {_count_files(failed)} failed and stayed as before."
        if not self.change_id and not self.change_ids and not self.dry_run:
            return f"Nothing had to be written: {files} already changed."
        hunks = f"{self.hunk_count} {'hunk' if self.hunk_count == 1 else 'hunks'}"
        return f"Patch applied: {files}, {hunks} ({self.format})."

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        """Return it with the diff of each file once, as far as all of them fit."""
        room, rows = budget.change_room, list[ChangedFile]()
        for row in self.changed_files:
            size = room.measure(row.diff) + _UNITS_PER_FILE
            fits = size <= room.size
            room = room.less(size if fits else _UNITS_PER_FILE)
            rows.append(row if fits else row.model_copy(update={"diff": ""}))
        cut = any(one.diff != other.diff for one, other in zip(rows, self.changed_files, strict=True))
        update = {"changed_files": tuple(rows), "diff": "", "diff_truncated": self.diff_truncated or cut}
        return self.model_copy(update=update)

    def text(self, budget: AnswerBudget) -> str:
        """List the files; the caller wrote the difference itself, so that only a dry run shows it."""
        rows = [f"Dry run, nothing was written. {self.headline()}" if self.dry_run else self.headline()]
        rows += [row.summary_line() for row in self.changed_files]
        for row in self.failed_files or ():
            rows += [f"! {escape_text(row.path)}: {row.error['message']}", row.error["suggestedNextAction"]]
            rows += WIRE.detail_rows(row.error["details"])
        rows += [f"changeId: {name}" for name in (self.change_ids or (self.change_id,)) if name]
        rows += [f"Warning: {warning}" for warning in self.warnings]
        if self.dry_run:
            rows += [row.diff.rstrip("\n") for row in self.cut_to_budget(budget).changed_files if row.diff]
        return "\n".join(rows)


@tool(
    "apply_patch",
    hints=Hints(
        kind="edit",
        title="Apply a patch",
        verb="Apply a patch",
        destructive=True,
        atomic_argument="atomic",
        operation="patch",
    ),
    wire=WIRE,
)
def apply_patch(context: CallContext, params: PatchParams) -> PatchResult:
    """Apply a patch to many files: all or none, even if the machine dies in the middle.

    Three notations: `*** Begin Patch` … `*** End Patch` with `*** Add File: p`, `*** Update File: p` (then `*** Move to: q`),
    `*** Delete File: p`, `@@ context line`; unified diff; git diff (new, deleted, renamed, mode). Context must match exactly
    and occur once; line numbers only decide between equal places.
    """
    patch = parse_patch(params.patch, format=params.format)
    proposals = _build_proposals(context, patch, params.expected_sha256_by_path)
    context.progress(0, len(proposals), "applying")
    if params.atomic:
        receipt = submit_change(context, params, *proposals, tool="apply_patch", operation="patch")
        pairs = [pair for pair in zip(patch.files, receipt.files, strict=True) if not pair[1].left_out]
        return PatchResult(
            **receipt_fields(receipt),
            format=patch.format,
            hunk_count=sum(len(file.hunks) for file, _ in pairs),
            changed_files=tuple(_changed_file(receipt, file, one) for file, one in pairs),
        )
    return _apply_one_by_one(context, params, patch, proposals)


def _count_files(count: int) -> str:
    return f"{count} {'file' if count == 1 else 'files'}"


def _apply_one_by_one(
    context: CallContext, params: PatchParams, patch: Patch, proposals: list[Proposal]
) -> PatchResult:
    changed, failed, receipts = list[ChangedFile](), list[FailedFile](), list[Receipt]()
    for number, (file, proposal) in enumerate(zip(patch.files, proposals, strict=True), start=1):
        try:
            context.raise_if_cancelled()  # what was changed before stays, and is in the result
            receipt = submit_change(context, params, proposal, tool="apply_patch", operation="patch")
        except SureholdError as error:
            failed.append(FailedFile(path=file.path, error=WIRE.failure(error)["error"]))
        else:
            receipts.append(receipt)
            changed.append(_changed_file(receipt, file, receipt.files[0]))
        context.progress(number, len(proposals), file.path)
    return PatchResult(
        diff="".join(row.diff for row in changed),
        warnings=tuple(warning for receipt in receipts for warning in receipt.warnings),
        dry_run=True if params.dry_run else None,
        format=patch.format,
        hunk_count=patch.hunk_count,
        changed_files=tuple(changed),
        failed_files=tuple(failed) or None,
        change_ids=tuple(receipt.change_id for receipt in receipts if receipt.change_id),
    )


def _build_proposals(context: CallContext, patch: Patch, expected_by_path: Mapping[str, str]) -> list[Proposal]:
    """Return a proposal for each file, with what the caller says about it by whatever spelling of its path."""
    workspace = context.session.workspace
    expected = {workspace.target(path).key: value for path, value in expected_by_path.items()}
    named = (name for file in patch.files for name in (file.path, file.to_path) if name)
    keys = {name: workspace.target(name).key for name in named}
    if foreign := sorted(set(expected) - set(keys.values())):
        raise PatchApplyError(
            spell("`{}` names `{}`, which the patch does not touch.", _EXPECTED, foreign[0]),
            path=foreign[0],
            reason="unknown_expected_path",
            action="Leave it out, or correct the path.",
            touched=sorted(set(keys.values())),
        )
    return [
        Proposal(
            path=file.path,
            to_path=file.to_path,
            edit=Delete() if file.operation == "delete" and not file.quotes_file else file.edit,
            proof=_source_proof(file, expected.get(keys[file.path]), unchecked=context.unchecked),
            to_proof=_absence_proof(file.to_path, expected.get(keys.get(file.to_path, ""))),
            mode=_requested_mode(workspace, file),
        )
        for file in patch.files
    ]


def _requested_mode(workspace: Workspace, file: FilePatch) -> int | None:
    """Return the permission bits that a patch asks for: it knows only whether a file can be run, the rest stays."""
    if file.mode is None or file.operation == "add":
        return file.mode
    meta = workspace.read(file.path).meta
    if meta is None:
        return file.mode
    return meta.mode | (meta.mode & 0o444) >> 2 if file.mode & 0o111 else meta.mode & ~0o111


def _source_proof(file: FilePatch, expected: str | None, *, unchecked: bool) -> Proof:
    if file.operation == "add":
        return _absence_proof(file.path, expected)
    if expected is None:
        needs_sighting = file.operation in {"delete", "move"} and not (file.quotes_file or unchecked)
        return _SeenUnquoted(file) if needs_sighting else Exact()
    if not expected:
        raise StaleFile(
            f'"" says that `{file.path}` does not exist, but the patch wants to {file.operation} it.',
            path=file.path,
            reason="sentinel_mismatch",
            action="Send the sha256 that read_file returned.",
        )
    return proof_of(expected)


@dataclass(frozen=True, slots=True)
class _SeenUnquoted:
    """The session was shown the version that the patch deletes or moves without quoting it."""

    file: FilePatch

    def check(self, file: KnownFile) -> None:
        Exact().check(file)
        if file.shown is not None or (self.file.quotes_content and not file.current.size):
            return
        verb = self.file.operation
        if not file.seen:
            raise StaleFile(
                f"The patch would {verb} `{file.path}`, which was not shown in this session, without quoting it.",
                path=file.path,
                reason="not_seen",
                action=_HOW_TO_PROVE,
            )
        raise StaleFile(
            f"The patch would {verb} `{file.path}`, which changed since it was shown in this session.",
            path=file.path,
            reason="changed_since",
            action=_HOW_TO_PROVE,
            expected_sha256=file.seen[0].sha256,
            actual_sha256=file.current.sha256,
        )


def _absence_proof(path: str, expected: str | None) -> Proof:
    if expected:
        raise StaleFile(
            f"The patch makes `{path}` new, so no version of it can have been seen.",
            path=path,
            reason="sentinel_mismatch",
            action='Send "" for a file that must not exist.',
            expected_sha256=expected,
        )
    return Absent()


def _changed_file(receipt: Receipt, file: FilePatch, one: FileReceipt) -> ChangedFile:
    return ChangedFile(
        path=one.path,
        operation=file.operation,
        to_path=one.change.to_path or None,
        before_sha256=one.before_sha256,
        after_sha256=one.after_sha256,
        diff=escape_lines(one.change.diff),
        trashed_to=trash_name(receipt, one),
    )
