"""Puts Surehold into the settings of a host, and takes it out again; each is one change, which can be undone.

1. A file that is still as the last setup left it gets back the exact bytes from before the first one.
2. A file that was changed since loses what is ours, and nothing else.
3. Settings of a user have a history of their own: the home directory does not become a workspace by this.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, NotFound, SureholdError
from surehold.front.hosts.agent_host import AgentHost, HostPlace, SetupScope
from surehold.front.hosts.settings_files import SettingsFile
from surehold.stores.base import Call, LedgerQuery
from surehold.text.plan import Delete
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.proposal import Absent, Proposal, Receipt, Sha256

if TYPE_CHECKING:
    from surehold.stores.base import Entry
    from surehold.workspace.workspace import Workspace

_TOOL = "setup"
_MAX_ENTRIES = 1000
_TEMPORARY = ("/uv/archive-", "/uv/environments-", "/pipx/.cache/", "/_npx/")
"""Where programs lie that are fetched for one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetup:
    """One host in one scope: where its files are, and what belongs in them."""

    host: AgentHost
    scope: SetupScope
    base: Path
    """The directory that the names of the files start from."""
    files: Sequence[SettingsFile]

    @property
    def reason(self) -> str:
        return f"surehold setup {self.host.key} --{self.scope}"

    @property
    def state_dir(self) -> Path | None:
        """Where the history of these files is; None for the one of the project."""
        if self.scope == "project":
            return None
        from surehold.app import default_state_dir

        usual = default_state_dir(str(self.base))
        return usual.with_name(f"settings-{usual.name}")

    def apply(self, workspace: "Workspace", *, author: str, dry_run: bool) -> Receipt | None:
        """Write what is missing; None if everything is there already."""
        found = ((one, _read_file(workspace, one)) for one in self.files)
        wanted = [(one.name, now, Snapshot(one.put_into(now.data if now.exists else b""))) for one, now in found]
        return _write_files(workspace, wanted, author=author, reason=self.reason, dry_run=dry_run)

    def remove(self, workspace: "Workspace", *, author: str, dry_run: bool) -> Receipt | None:
        """Take out what is there; None if nothing is."""
        wanted = [(one.name, *self._without_ours(workspace, one)) for one in self.files]
        reason = f"{self.reason} --remove"
        receipt = _write_files(workspace, wanted, author=author, reason=reason, dry_run=dry_run)
        if not dry_run:
            self._remove_empty_directories([name for name, now, then in wanted if now.exists and not then.exists])
        return receipt

    def _remove_empty_directories(self, names: Sequence[str]) -> None:
        """Remove the directories of files that were ours alone, as far as nothing else is in them."""
        for name in names:
            for above in Path(name).parents[:-1]:
                with suppress(OSError):
                    (self.base / above).rmdir()

    def _without_ours(self, workspace: "Workspace", file: SettingsFile) -> tuple[Snapshot, Snapshot]:
        now = _read_file(workspace, file)
        if not now.exists:
            return now, now
        ours = list(self._own_entries(workspace, file))
        before = _read_recorded(workspace, ours[-1]) if ours else now
        if ours and ours[0].change.after and ours[0].change.after.sha256 == now.sha256:
            return now, before
        rest = file.take_out_of(now.data, before.data if before.exists else b"")
        is_empty = not before.exists and rest.strip() in {b"", b"{}"}
        return now, ABSENT if is_empty else Snapshot(rest)

    def _own_entries(self, workspace: "Workspace", file: SettingsFile) -> Iterator["Entry"]:
        """Yield the entries of this setup for a file, newest first, up to the last removal."""
        target = workspace.target(file.name)
        query = LedgerQuery(path=target.key, ok_only=True, limit=_MAX_ENTRIES)
        for entry in workspace.history.log(query):
            if entry.call.tool == _TOOL and entry.call.reason == f"{self.reason} --remove":
                return
            if entry.call.tool == _TOOL and entry.call.reason == self.reason:
                if workspace.history.undone_by(entry.change_id):
                    continue
                yield entry


def _write_files(
    workspace: "Workspace", wanted: Sequence[tuple[str, Snapshot, Snapshot]], *, author: str, reason: str, dry_run: bool
) -> Receipt | None:
    proposals = [_propose(name, now, then) for name, now, then in wanted if now != then]
    if not proposals:
        return None
    call = Call(tool=_TOOL, operation="edit", writer=_TOOL, agent=author, reason=reason)
    return workspace.write(*proposals, call=call, dry_run=dry_run)


def _read_file(workspace: "Workspace", file: SettingsFile) -> Snapshot:
    try:
        return workspace.read(file.name)
    except NotFound:
        return ABSENT


def _read_recorded(workspace: "Workspace", entry: "Entry") -> Snapshot:
    try:
        return workspace.history.read_version(entry.change.before)
    except SureholdError:  # its bytes were pruned
        return ABSENT


def _propose(name: str, now: Snapshot, then: Snapshot) -> Proposal:
    proof = Sha256(now.sha256) if now.exists else Absent()
    return Proposal(path=name, edit=WriteBytes(then.data) if then.exists else Delete(), proof=proof)


def plan_setup(host: AgentHost, scope: SetupScope, *, root: str, environment: Mapping[str, str]) -> HostSetup:
    """Return what belongs where for a host."""
    program = find_program()
    place = HostPlace(scope=scope, executable=program, program=_shared_name(program) if scope == "project" else program)
    files = host.settings(place)
    if scope == "project":
        return HostSetup(host=host, scope=scope, base=Path(os.path.realpath(root)), files=files)
    for variable, folder in host.moved_by.items():
        if moved := environment.get(variable):
            names = [one.name.removeprefix(f"{folder}/") for one in files]
            files = [SettingsFile(name=name, edits=one.edits) for name, one in zip(names, files, strict=True)]
            return HostSetup(host=host, scope=scope, base=Path(moved), files=files)
    return HostSetup(host=host, scope=scope, base=Path.home(), files=files)


def find_program() -> str:
    """Return the path of this program, for a host to start it; refuse one that may be gone tomorrow."""
    started = Path(sys.argv[0])
    program = started if started.name == "surehold" else Path(sys.executable).with_name("surehold")
    program = Path(os.path.abspath(program))  # noqa: PTH100 - a link stays a link: it outlives an upgrade
    if any(part in str(program) for part in _TEMPORARY) or not program.is_file():
        raise InvalidArgument(
            "This Surehold is installed for one run only, and a host needs one that stays.",
            reason="not_installed",
            action="Install it first, for example with: uv tool install surehold",
        )
    return str(program)


def _shared_name(program: str) -> str:
    """Return how a file that others may share should name this program: by its name, where that is enough."""
    on_path = shutil.which("surehold")
    return "surehold" if on_path and os.path.realpath(on_path) == os.path.realpath(program) else program
