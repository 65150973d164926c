"""What is going on in a workspace: servers that run, and files that other programs changed."""

from surehold.errors import SureholdError
from surehold.stores.owner import is_dead
from surehold.stores.server_runs import ServerRun
from surehold.workspace.workspace import Workspace


def working_agents(workspace: Workspace) -> list[ServerRun]:
    """Return the servers that run and were called, newest first."""
    runs = workspace.store.list_servers()
    return [run for run in runs if run.session and not run.ended and not is_dead(run.server)]


def outside_edits(workspace: Workspace) -> list[str]:
    """Return the files that are not what the ledger last knew, in the order of their names."""
    changed = list[str]()
    for head in workspace.store.list_heads():
        try:
            known = head.version.sha256 if head.version else ""
            if workspace.fingerprint(head.path) != known:
                changed.append(head.path)
        except SureholdError:
            continue  # what the rules hide, or what is no file any more
    return sorted(changed)
