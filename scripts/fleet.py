"""Run a small fleet on this machine, kill parts of it while agents edit, and check that no edit is lost.

One PostgreSQL, one object store, three replicas, a balancer, some agents; everything on loopback, and gone at the end.
"""

import argparse
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep

from fleet_agents import FILES, HANG_SECONDS, TOKEN, Agent, Tally
from fleet_balancer import Balancer

from concurrency.checker import Recording, violations
from databases.postgres_server import PostgresServer
from doubles.object_service import ObjectService
from surehold.app import Settings, locate_workspace, open_store
from surehold.stores.base import LedgerQuery, Store

SUREHOLD = str(Path(sys.executable).with_name("surehold"))


@dataclass
class Replica:
    port: int
    command: Sequence[str]
    environment: dict[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                (*self.command, "--port", str(self.port)),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we end it
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


@dataclass
class Fleet:
    """Everything that runs, and what was done to it."""

    folder: Path
    database: PostgresServer
    objects: ObjectService
    stack: ExitStack
    replicas: list[Replica] = field(default_factory=list[Replica])
    kills: int = 0
    restarts: int = 0
    problems: list[str] = field(default_factory=list[str])

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def places(self) -> tuple[str, ...]:
        return ("--state", f"{self.database.url}/postgres", "--blobs", "s3://fleet/versions")

    @classmethod
    @contextmanager
    def started(cls) -> "Generator[Fleet]":
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surehold-fleet-")))
            objects = ObjectService()
            stack.callback(objects.close)
            database = PostgresServer.create()
            stack.callback(database.remove)
            database.start()
            fleet = cls(folder, database, objects, stack)
            (fleet.root / "notes").mkdir(parents=True)
            fleet.run_command("state", "init", f"{database.url}/postgres")
            yield fleet

    def start_replicas(self, count: int) -> Balancer:
        for number in range(count):
            words = (SUREHOLD, "serve", str(self.root), *self.places, "--meta", "--allow-host", "127.0.0.1")
            one = Replica(_free_port(), words, self._environment(f"replica-{number}"), self.folder / f"log-{number}")
            one.start()
            self.stack.callback(one.close)
            self.replicas.append(one)
        balancer = Balancer([one.port for one in self.replicas])
        self.stack.callback(balancer.close)
        balancer.wait_for(count)
        return balancer

    def disturb(self, seconds: float, *, kill_every: float, restarts: int) -> None:
        """Kill and start replicas and the database until the time is over."""
        begin = monotonic()
        kills = [(kill_every * number, "kill") for number in range(1, int(seconds / kill_every) + 1)]
        moments = [(seconds * (number + 0.5) / restarts, "restart") for number in range(restarts)]
        for moment, what in sorted((*kills, *moments)):
            if moment >= seconds - 0.5:
                break
            sleep(max(0.0, begin + moment - monotonic()))
            if what == "kill":
                one = self.replicas[self.kills % len(self.replicas)]
                self._look_at(one)
                one.kill()
                one.start()
                self.kills += 1
            else:
                self.database.kill()
                self.database.start()
                self.restarts += 1
        sleep(max(0.0, begin + seconds - monotonic()))

    def end_replicas(self) -> None:
        for one in self.replicas:
            self._look_at(one)
            one.close()
            self._look_at(one)
            if b"Traceback" in (log := one.log.read_bytes()):
                self.problems.append(f"a replica failed inside: {log[log.index(b'Traceback') :][-2000:].decode()}")

    def run_command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        environment = self._environment("command")
        return subprocess.run((SUREHOLD, *words), env=environment, capture_output=True, text=True, check=False)

    def _look_at(self, one: Replica) -> None:
        assert one.process is not None
        if one.process.poll():
            self.problems.append(
                f"a replica ended by itself with {one.process.returncode}: {one.log.read_text()[-500:]}"
            )

    def _environment(self, name: str) -> dict[str, str]:
        """Give each process a cache and settings of its own, as on a machine of its own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "XDG_", "SUREHOLD_"))}
        places = {f"XDG_{kind}_HOME": str(self.folder / name / kind) for kind in ("CACHE", "CONFIG", "STATE")}
        return {**kept, **places, **self.objects.environment, "SUREHOLD_TOKEN": TOKEN}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_edit(tally: Tally) -> None:
    """Let a run that was too short for a busy machine go on until an edit was made."""
    end = monotonic() + 2 * HANG_SECONDS
    while not tally.count_acknowledged() and monotonic() < end:
        sleep(0.05)


def _judge(fleet: Fleet, tally: Tally) -> list[str]:
    """List everything that must not be; an intent that a dead replica left is settled first."""
    told = fleet.run_command("status", "--root", str(fleet.root), *fleet.places)
    problems = [] if told.returncode == 0 else [f"status failed: {told.stdout}{told.stderr}"]
    checked = fleet.run_command("verify", "--root", str(fleet.root), *fleet.places)
    if checked.returncode:
        problems.append(f"verify failed: {checked.stdout}{checked.stderr}")
    os.environ.update(fleet.objects.environment | {"XDG_CACHE_HOME": str(fleet.folder / "cache")})
    settings = Settings(state=fleet.places[1], blobs=fleet.places[3], state_dir=fleet.folder / "state")
    (root,), state_dir = locate_workspace([str(fleet.root)], settings)
    store = open_store(state_dir, settings, root=root)
    try:
        paths = sorted({event.path for event in tally.recording.events})
        files = {path: (fleet.root / path).read_bytes() for path in paths}
        problems += violations(_with_places(tally.recording, store), store, files)
    finally:
        store.close()
    if not tally.count_acknowledged():
        problems.append("no edit was made")
    return [*fleet.problems, *problems]


def _with_places(recording: Recording, store: Store) -> Recording:
    """Return the events with their places in the ledger, which the answers do not name."""
    places = dict[str, int]()
    for entry in store.list_entries(LedgerQuery(limit=1 << 30)):
        if entry.ok:
            places |= {line[1:]: entry.seq for line in entry.change.diff.splitlines()[2:] if line.startswith("+")}
    known = [replace(event, seq=places.get(event.marker, 0)) for event in recording.events]
    return Recording(events=known, readings=recording.readings, complaints=recording.complaints)


def _table(fleet: Fleet, tally: Tally, traffic: str, problems: Sequence[str]) -> str:
    edits = tally.count_acknowledged()
    ordered = sorted(tally.seconds) or [0.0]
    p50, p99 = (ordered[int(len(ordered) * part)] * 1e3 for part in (0.5, 0.99))
    rows = [
        ("edits acknowledged", f"{edits:,}"),
        ("edits refused", f"{tally.refused_share:.1%}"),
        *((f"refused: {kind}", f"{count:,}") for kind, count in tally.refused.most_common()),
        ("an edit, p50 / p99 / longest", f"{p50:,.0f} / {p99:,.0f} / {ordered[-1] * 1e3:,.0f} ms"),
        ("answers lost, asked again", f"{tally.asked_again:,}, {tally.settled:,} then acknowledged"),
        ("reads checked", f"{len(tally.recording.readings):,}"),
        ("objects put / fetched", traffic),
        ("replicas killed", f"{fleet.kills:,}"),
        ("database restarted", f"{fleet.restarts:,}"),
        ("violations", f"{len(problems):,}"),
    ]
    return "\n".join(f"  {name:<32}{value}" for name, value in rows)


def main() -> int:
    """Run once; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=20, help="how long agents work (default: 20)")
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--files", type=int, default=FILES, help=f"how many files they share (default: {FILES})")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--kill-every", type=float, help="seconds between kills (default: 5, or a third of the run)")
    parser.add_argument("--restarts", type=int, default=1, help="how often the database is killed and started")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(chosen)
    except KeyboardInterrupt:
        print("Interrupted: everything was ended.", file=sys.stderr)
        return 130


def _run(chosen: argparse.Namespace) -> int:
    tally, stop = Tally(), threading.Event()
    with Fleet.started() as fleet:
        balancer = fleet.start_replicas(chosen.replicas)
        print(f"PostgreSQL, an object store, {chosen.replicas} replicas and {chosen.agents} agents run on loopback.")
        slots = [itertools.count() for _ in range(chosen.files)]
        agents = [Agent(f"a{number}", balancer.port, tally, stop, slots) for number in range(chosen.agents)]
        threads = [threading.Thread(target=agent.work, daemon=True) for agent in agents]
        fleet.stack.callback(stop.set)
        for thread in threads:
            thread.start()
        kill_every = chosen.kill_every or min(5.0, chosen.seconds / 3)
        fleet.disturb(chosen.seconds, kill_every=kill_every, restarts=chosen.restarts)
        _wait_for_edit(tally)
        stop.set()
        end = monotonic() + 2 * HANG_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - monotonic()))
        if hanging := sum(thread.is_alive() for thread in threads):
            fleet.problems.append(f"{hanging} agents still wait for an answer")
        fleet.end_replicas()
        traffic = f"{fleet.objects.count('PUT'):,} / {fleet.objects.count('GET'):,}"  # verify fetches all of them
        problems = _judge(fleet, tally)
        print(_table(fleet, tally, traffic, problems))
        for problem in problems[:20]:
            print(f"violation: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
