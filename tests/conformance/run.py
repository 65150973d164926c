"""Run every check with programs that others wrote, print each, and renew docs/conformance.md.

`python -m conformance.run [part …]` with `tests` on the path; the parts are python, typescript, inspector, suite,
hosts and wheel, and each host by its name, such as codex. The exit code is 1 when something failed that was not foreseen, and 2 when a part does not exist.
The document is renewed only by a run of all parts.
"""

import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from conformance import node_clients, page, python_client, suite, wheel
from conformance.hosts import checks as host_checks
from conformance.hosts.table import HOSTS, Host
from conformance.report import Check, table, unexpected


def main(names: list[str]) -> int:
    start = time.monotonic()
    seen = list[host_checks.Seen]()

    def run_hosts(folder: Path, hosts: tuple[Host, ...] = HOSTS) -> list[Check]:
        found, more = host_checks.checks(folder, hosts)
        seen.extend(more)
        return found

    parts = {
        "python": python_client.checks,
        "typescript": node_clients.typescript_checks,
        "inspector": node_clients.inspector_checks,
        "suite": suite.checks,
        "hosts": run_hosts,
        "wheel": wheel.checks,
    }
    single = {host.key: partial(run_hosts, hosts=(host,)) for host in HOSTS}
    if unknown := [name for name in names if name not in parts | single]:
        print(f"There is no part `{unknown[0]}`; there are {', '.join(parts | single)}.", file=sys.stderr)
        return 2
    found = list[Check]()
    folder = Path(tempfile.mkdtemp(prefix="surehold-conformance-"))
    for name in names or parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        found += (parts | single)[name](folder / name)
    print(table(found))
    for one in seen:
        print(f"\n{one.part}: calls itself {one.client}; wanted to reach {', '.join(one.elsewhere) or 'nothing else'}")
        print("\n".join(f"  {arrival.name}: {arrival}" for arrival in one.arrivals))
    failed = unexpected(found)
    print(f"\n{_count(found)} {time.monotonic() - start:.0f} s.")
    if failed:
        print(f"The logs are kept: {folder}")
    else:
        shutil.rmtree(folder)
    if not names and not failed and page.renew(found, seen):
        print("docs/conformance.md was renewed; look at what changed.")
    return 1 if failed else 0


def _count(checks: list[Check]) -> str:
    outcomes = ("passed", "failed", "expected failure", "not scored")
    counts = {one: sum(check.outcome == one for check in checks) for one in outcomes}
    return ", ".join(f"{count} {one}" for one, count in counts.items()) + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
