"""Run every check with programs that others wrote, print each, and renew docs/conformance.md.

`python -m conformance.run [part …]` with `tests` on the path; the parts are python, typescript, inspector, suite,
agents and wheel. The exit code is 1 when something failed that was not foreseen, and 2 when a part does not exist.
The document is renewed only by a run of all parts.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from conformance import agents, node_clients, page, python_client, suite, wheel
from conformance.report import Check, table, unexpected
from conformance.scripted_model import Shown


def main(names: list[str]) -> int:
    start = time.monotonic()
    shown = dict[str, list[Shown]]()

    def with_agents(folder: Path) -> list[Check]:
        found, seen = agents.checks(folder)
        shown.update(seen)
        return found

    parts = {
        "python": python_client.checks,
        "typescript": node_clients.typescript_checks,
        "inspector": node_clients.inspector_checks,
        "suite": suite.checks,
        "agents": with_agents,
        "wheel": wheel.checks,
    }
    if unknown := [name for name in names if name not in parts]:
        print(f"There is no part `{unknown[0]}`; there are {', '.join(parts)}.", file=sys.stderr)
        return 2
    found = list[Check]()
    folder = Path(tempfile.mkdtemp(prefix="surehold-conformance-"))
    for name in names or parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        found += parts[name](folder / name)
    print(table(found))
    failed = unexpected(found)
    print(f"\n{_count(found)} {time.monotonic() - start:.0f} s.")
    if failed:
        print(f"The logs are kept: {folder}")
    else:
        shutil.rmtree(folder)
    if not names and not failed and page.renew(found, shown):
        print("docs/conformance.md was renewed; look at what changed.")
    return 1 if failed else 0


def _count(checks: list[Check]) -> str:
    outcomes = ("passed", "failed", "expected failure", "not scored")
    counts = {one: sum(check.outcome == one for check in checks) for one in outcomes}
    return ", ".join(f"{count} {one}" for one, count in counts.items()) + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
