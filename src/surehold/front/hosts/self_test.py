"""`surehold doctor --host HOST`: tries, in a directory of its own, what is recorded of a host, and says what is not."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surehold.capture.filter import can_listen
from surehold.errors import SureholdError
from surehold.front.hosts.agent_host import AgentHost, HookEvent, SetupScope
from surehold.front.hosts.hook import HookRun, locate_state
from surehold.front.hosts.hook_notes import HookNotes
from surehold.front.hosts.setup import plan_setup

_SCOPES: Sequence[SetupScope] = ("project", "user")
_EARLIER, _LATER = "one\n", "two\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCoverage:
    """What is recorded of a host on this machine, and what is not."""

    host: str
    setup: tuple[str, ...]
    """Where everything is in its files."""
    covered: tuple[str, ...]
    not_covered: Mapping[str, str]
    """What, and why."""
    failures: tuple[str, ...]
    """What hooks logged, oldest first."""

    @property
    def works(self) -> bool:
        return bool(self.setup and self.covered)


def examine_host(host: AgentHost, *, root: str, state_dir: str = "") -> HostCoverage:
    """Look for the setup, and let an edit go through the hooks in a directory of its own."""
    found = tuple(scope for scope in _SCOPES if _is_set_up(host, scope, root))
    covered, missing = list[str](), dict[str, str]()
    if found:
        covered.append("our own tools, by the server")
    else:
        missing["everything"] = f"it is not set up; run: surehold setup {host.key}"
    try:
        _try_edit(host)
        covered.append("its own edit tools: recorded by hooks and undone in a trial")
        covered.append("turns: marked by its prompts")
    except (SureholdError, OSError) as error:
        missing["its own edit tools"] = f"the trial failed: {error}"
    if why := can_listen():
        missing["its shell"] = f"what commands change cannot be captured here: {why}"
    else:
        covered.append("its shell: what commands change is captured")
    failures = HookNotes(locate_state(root, state_dir) / "hooks").failures()
    return HostCoverage(
        host=host.key,
        setup=found,
        covered=tuple(covered) if found else (),
        not_covered={**missing, **host.not_covered},
        failures=tuple(failures),
    )


def _is_set_up(host: AgentHost, scope: SetupScope, root: str) -> bool:
    try:
        plan = plan_setup(host, scope, root=root, environment=os.environ)
        contents = [(one, (plan.base / one.name).read_bytes()) for one in plan.files]
        return all(one.put_into(data) == data for one, data in contents)
    except (SureholdError, OSError):
        return False


def _try_edit(host: AgentHost) -> None:
    """Mark a turn, note a file, change it as a host would, record it, and take it back."""
    from surehold.app import Settings, open_workspace

    with tempfile.TemporaryDirectory(prefix="surehold-doctor-") as folder:
        root, state = Path(folder, "root"), Path(folder, "state")
        root.mkdir()
        path = root / "trial.txt"
        path.write_text(_EARLIER, encoding="utf-8")
        for kind in ("prompt", "before_edit", "after_edit"):
            event = HookEvent(
                kind=kind, session="trial", call_id="trial", tool="trial", directory=str(root), paths=(str(path),)
            )
            notes = HookNotes(state / "hooks")
            HookRun(host=host, event=event, root=str(root), state_dir=state, notes=notes).answer()
            if kind == "before_edit":
                path.write_text(_LATER, encoding="utf-8")
        with open_workspace(root, settings=Settings(state_dir=state)) as workspace:
            workspace.history.undo()
        if path.read_text(encoding="utf-8") != _EARLIER:
            raise OSError("the edit was not undone")
