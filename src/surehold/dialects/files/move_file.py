"""`move_file`: move or rename a file."""

from dataclasses import dataclass
from typing import ClassVar

from surehold.dialects.files.trash import trash_name
from surehold.dialects.shared.params import ChangeResult, CheckedParams, receipt_fields, required_proof, submit_change
from surehold.dialects.shared.wire import WIRE
from surehold.errors import AlreadyExists, InvalidArgument, StaleFile, argument, spell
from surehold.text.escape import escape_text
from surehold.text.plan import Keep
from surehold.tools.call import CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import DestinationPath, SubjectPath
from surehold.tools.spec import tool
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import Proof, Proposal, Unproven, proof_of


class MoveParams(CheckedParams):
    ALIASES: ClassVar = {
        "source": "fromPath",
        "from": "fromPath",
        "path": "fromPath",
        "destination": "toPath",
        "to": "toPath",
    }

    from_path: SubjectPath
    to_path: DestinationPath
    overwrite: bool = False
    """Replace an existing file, which goes to the trash."""
    expected_dest_sha256: str = ""
    """sha256 of the file to be replaced."""


class MoveResult(ChangeResult):
    moved: bool
    from_path: str
    to_path: str
    sha256: str
    overwrote_trashed_to: str | None = None

    def headline(self) -> str:
        return f"{escape_text(self.from_path)} moved to {escape_text(self.to_path)}."


_DESTINATION = argument("expectedDestSha256")


@dataclass(frozen=True, slots=True)
class _ExpectedDestination:
    """Nothing is at the destination, or what the caller says it saw there."""

    proof: Proof | None
    action: str = spell("To replace it, send its sha256 as {}.", _DESTINATION)

    def check(self, file: KnownFile) -> None:
        path, sha256 = file.path, file.current.sha256
        if not file.current.exists:
            return
        if self.proof is None:
            raise AlreadyExists(f"`{path}` exists already.", path=path, action=self.action, actual_sha256=sha256)
        try:
            self.proof.check(file)
        except StaleFile:
            raise StaleFile(
                f"`{path}`, which would be replaced, is not the version you saw.",
                path=path,
                action=spell("Read it, and send its sha256 as {} if it may go.", _DESTINATION),
                actual_dest_sha256=sha256,
            ) from None


@tool(
    "move_file", hints=Hints(kind="move", title="Move or rename a file", destructive=True, operation="move"), wire=WIRE
)
def move_file(context: CallContext, params: MoveParams) -> MoveResult:
    """Move or rename a file; missing directories are made. An existing destination is refused, unless overwrite."""
    workspace = context.session.workspace
    if not params.to_path:
        message = spell("`{}` is empty.", argument("toPath"))
        raise InvalidArgument(message, path=params.from_path, reason="no_destination")
    source, destination = workspace.target(params.from_path), workspace.target(params.to_path)
    if source == destination:
        message = f"`{params.from_path}` and `{params.to_path}` are the same file."
        raise InvalidArgument(message, path=params.from_path, reason="same_path")
    proposal = Proposal(
        path=source,
        to_path=destination,
        edit=Keep(),
        proof=required_proof(context, params.expected_sha256, path=params.from_path),
        to_proof=_destination_proof(context, params),
    )
    receipt = submit_change(context, params, proposal, tool="move_file", operation="move")
    one = receipt.files[0]
    return MoveResult(
        **receipt_fields(receipt),
        moved=not receipt.dry_run,
        from_path=one.path,
        to_path=one.change.to_path,
        sha256=one.after_sha256 or "",
        overwrote_trashed_to=trash_name(receipt, one) if one.change.displaced else None,
    )


def _destination_proof(context: CallContext, params: MoveParams) -> Proof:
    stated = proof_of(params.expected_dest_sha256, Unproven())
    if not params.overwrite:
        action = spell(
            "Choose another path; or, to replace the file, send overwrite and its sha256 as {}.", _DESTINATION
        )
        return _ExpectedDestination(None, action)
    if params.expected_dest_sha256 or context.unchecked:
        return _ExpectedDestination(stated)
    return _ExpectedDestination(None)
