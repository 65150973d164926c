"""Run every check with programs that others wrote, print each, and renew docs/conformance.md.

`python -m conformance.run [part …]` with `tests` on the path; the parts are python, typescript, inspector, suite,
wheel, hosts and routes, and each host by its name, such as codex. The exit code is 1 when something failed that was not foreseen,
and 2 when a part does not exist. The document has a block for clients and one for hosts; each is renewed by a run of all of
them in which nothing failed. With SUREHOLD_STDIO=sdk the server on standard input and output is the SDK's, the parts are
those that use it, and they have a block of their own.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from pathlib import Path

from conformance import node_clients, page, python_client, suite, wheel
from conformance.hosts import checks as host_checks
from conformance.hosts import routes
from conformance.hosts.table import HOSTS, Host
from conformance.report import Check, table, unexpected
from conformance.servers import THROUGH_SDK

_THROUGH_SDK = ("python", "typescript", "inspector", "hosts")


def main(names: list[str]) -> int:
    start = time.monotonic()
    seen = list[host_checks.Seen]()

    def run_hosts(folder: Path, hosts: tuple[Host, ...] = HOSTS) -> list[Check]:
        found, more = host_checks.checks(folder, hosts)
        seen.extend(more)
        return found

    clients = {
        "python": python_client.checks,
        "typescript": node_clients.typescript_checks,
        "inspector": node_clients.inspector_checks,
        "suite": suite.checks,
        "wheel": wheel.checks,
    }
    parts = {**clients, "hosts": run_hosts, "routes": routes.checks}
    if THROUGH_SDK:
        parts = {name: parts[name] for name in _THROUGH_SDK}
    every = {**parts, **{host.key: partial(run_hosts, hosts=(host,)) for host in HOSTS}}
    if unknown := [name for name in names if name not in every]:
        print(f"There is no part `{unknown[0]}`; there are {', '.join(every)}.", file=sys.stderr)
        return 2
    found = dict[str, list[Check]]()
    folder = Path(tempfile.mkdtemp(prefix="surehold-conformance-"))
    for name in names or parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        found[name] = every[name](folder / name)
        print(table(found[name]))
    for one in seen:
        print(f"\n{one.part}: calls itself {one.client}; wanted to reach {', '.join(one.elsewhere) or 'nothing else'}")
        print("\n".join(f"  {arrival.name}: {arrival}" for arrival in one.arrivals))
    failed = unexpected(chain(*found.values()))
    print(f"\n{_count(list(chain(*found.values())))} {time.monotonic() - start:.0f} s.")
    if failed:
        print(f"The logs are kept: {folder}")
    else:
        shutil.rmtree(folder)
    if _renew(found, seen, clients.keys()):
        print("docs/conformance.md was renewed; look at what changed.")
    return 1 if failed else 0


def _renew(found: dict[str, list[Check]], seen: list[host_checks.Seen], clients: AbstractSet[str]) -> bool:
    """Renew the blocks that this run knows all about; tell whether that changed anything."""
    if THROUGH_SDK:
        every = list(chain(*(found.get(name, []) for name in _THROUGH_SDK)))
        is_whole = found.keys() >= set(_THROUGH_SDK) and not unexpected(every)
        return is_whole and page.renew("sdk", page.describe_sdk(every))
    renewed = list[bool]()
    of_clients = list(chain(*(found.get(name, []) for name in clients)))
    if clients <= found.keys() and not unexpected(of_clients):
        renewed.append(page.renew("clients", page.describe_clients(of_clients)))
    if "hosts" in found and not unexpected(found["hosts"]):
        renewed.append(page.renew("hosts", page.describe_hosts(found["hosts"], seen)))
    return any(renewed)


def _count(checks: list[Check]) -> str:
    outcomes = ("passed", "failed", "expected failure", "not scored")
    counts = {one: sum(check.outcome == one for check in checks) for one in outcomes}
    return ", ".join(f"{count} {one}" for one, count in counts.items()) + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
