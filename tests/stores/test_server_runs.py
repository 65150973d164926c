"""Which session a new server process goes on with."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from stores.scenes import Clock, sighting
from surehold.stores.base import Store
from surehold.stores.conversations import SessionRow
from surehold.stores.owner import Owner, current_owner, parent_owner
from surehold.stores.server_runs import ServerRun

PARENT = Owner(host="here", boot="b", pid=77, started="100")
RUN = ServerRun(id="", server=current_owner(), parent=PARENT, roots=("/work",), began="", client="host")


def dead_owner() -> Owner:
    """Return this process at another start: a pid that was used again."""
    return replace(current_owner(), started="1")


class Parent:
    """A process that starts servers, one after the other; they are as old as the clock says."""

    def __init__(self, store: Store, clock: Clock, **more: object) -> None:
        self.store, self.clock, self.more, self.count = store, clock, more, 0

    def start(self, *, dies: bool = False, **more: object) -> ServerRun:
        """Start a server and call it once; one that dies does so at once."""
        self.count += 1
        run = replace(RUN, id=f"{self.more}-{self.count}", began=self.clock.text, **{**self.more, **more})
        if dies:
            run = replace(run, server=dead_owner())
        return replace(run, session=self.store.claim_session(run, fresh=f"fresh {self.count}"))

    def list_tools(self) -> None:
        """Start a server that is never called, and end it."""
        self.count += 1
        self.store.end_server(replace(RUN, id=f"listing-{self.count}", began=self.clock.text, **self.more))


@pytest.fixture
def parent(store: Store, clock: Clock) -> Parent:
    return Parent(store, clock)


@requirement("session:stdio:died")
def test_the_session_of_a_server_that_died_is_taken_up_once(parent: Parent) -> None:
    parent.start(dies=True)

    second, third = parent.start(), parent.start()

    assert (second.session, third.session) == ("fresh 1", "fresh 3")


@requirement("session:stdio:died")
def test_of_two_servers_that_died_each_is_taken_up_by_one(parent: Parent) -> None:
    first = parent.start()
    other = parent.start()
    assert first.session != other.session
    for run in (first, other):
        parent.store.claim_session(replace(run, id=f"{run.id} again", server=dead_owner()), fresh=run.session)

    assert parent.start().session not in {first.session, other.session}  # both are held by living servers


@requirement("session:stdio:died", "session:stdio:process")
@pytest.mark.parametrize(
    "other",
    [
        {"parent": replace(PARENT, pid=78)},
        {"parent": replace(PARENT, started="101")},
        {"parent": replace(PARENT, boot="c")},
        {"parent": replace(PARENT, host="there")},
        {"client": "another host"},
        {"roots": ("/work", "/more")},
    ],
    ids=["pid", "start", "boot", "host", "client", "roots"],
)
def test_a_server_of_another_parent_client_or_roots_has_a_session_of_its_own(
    parent: Parent, other: dict[str, Any]
) -> None:
    parent.start(dies=True)

    assert parent.start(**other).session == "fresh 2"
    assert parent.start().session == "fresh 1"


@requirement("session:stdio:process")
def test_a_server_that_ended_properly_took_its_session_with_it(parent: Parent, clock: Clock) -> None:
    first = parent.start()
    clock.turn(minutes=5)
    parent.store.end_server(first)

    assert parent.start().session == "fresh 2"


@requirement("session:stdio:process")
def test_a_session_that_was_taken_up_and_then_ended_properly_is_over(parent: Parent, clock: Clock) -> None:
    parent.start(dies=True)
    second = parent.start()
    clock.turn(minutes=5)
    parent.store.end_server(second)

    assert second.session == "fresh 1"
    assert parent.start().session == "fresh 3"


@requirement("session:stdio:per_call")
def test_from_the_third_server_on_a_parent_that_starts_one_per_call_has_one_session(
    parent: Parent, clock: Clock
) -> None:
    for name, shown in (("a", (1, 2)), ("b", (3, 4))):
        run = parent.start()
        parent.store.open_session(SessionRow(id=run.session, agent="", opened=clock.text))
        parent.store.record_sightings([sighting(name, b"one", shown, session=run.session)])
        parent.store.record_sightings([sighting("both", b"one", shown, session=run.session)])
        clock.turn(seconds=2)
        parent.store.end_server(run)

    third = parent.start()
    parent.store.end_server(third)
    fourth = parent.start()

    assert (third.session, fourth.session) == ("fresh 1", "fresh 1")
    assert [one.spans for name in ("a", "b", "both") for one in parent.store.list_sightings("fresh 1", name)] == [
        ((1, 2),),
        ((3, 4),),
        ((1, 4),),
    ]
    assert parent.store.list_sightings("fresh 2", "b") == ()


@requirement("session:stdio:per_call")
def test_a_server_that_only_listed_its_tools_counts(parent: Parent, clock: Clock) -> None:
    parent.list_tools()
    clock.turn(seconds=1)
    second = parent.start()
    parent.store.end_server(second)

    assert parent.start().session == second.session == "fresh 2"


@requirement("session:stdio:per_call")
def test_a_long_call_of_such_a_parent_does_not_end_the_session(parent: Parent, clock: Clock) -> None:
    parent.list_tools()
    parent.store.end_server(parent.start())
    long = parent.start()
    clock.turn(minutes=5)
    parent.store.end_server(long)

    assert parent.start().session == long.session


@requirement("session:stdio:per_call")
def test_two_servers_that_ran_for_long_show_nothing(parent: Parent, clock: Clock) -> None:
    for _ in range(2):
        run = parent.start()
        clock.turn(seconds=61)
        parent.store.end_server(run)

    assert parent.start().session == "fresh 3"


@requirement("session:stdio:living")
def test_the_session_of_a_living_server_is_never_taken_up(parent: Parent, clock: Clock) -> None:
    parent.list_tools()
    parent.list_tools()
    living = parent.start()

    beside = parent.start()
    clock.turn(seconds=1)
    parent.store.end_server(beside)
    again = parent.start()

    assert living.session != beside.session == again.session


@requirement("session:store:idle")
def test_what_a_session_was_shown_is_forgotten_a_day_after_its_last_use(parent: Parent, clock: Clock) -> None:
    run = parent.start(dies=True)
    for name in (run.session, "busy"):
        parent.store.open_session(SessionRow(id=name, agent="", opened=clock.text))
        parent.store.record_sightings([sighting("a", b"one", (1, 1), session=name)])
    clock.turn(hours=23)
    parent.store.record_sightings([sighting("a", b"one", (2, 2), session="busy")])
    clock.turn(hours=2)

    later = parent.start()
    parent.store.open_session(SessionRow(id="new", agent="", opened=clock.text))

    assert later.session == "fresh 2"
    assert parent.store.list_sightings(run.session, "a") == ()
    assert len(parent.store.list_sightings("busy", "a")) == 1


def test_the_parent_is_named_with_its_start() -> None:
    found = parent_owner()

    assert found is None or (found.pid, found.started.isdigit()) == (os.getppid(), True)


def test_a_launcher_is_not_the_parent(tmp_path: Path) -> None:
    launcher = tmp_path / "uvx"
    launcher.symlink_to(Path(sys.executable).resolve())
    ask = "from surehold.stores.owner import parent_owner; print(parent_owner().pid)"
    launch = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"

    found = subprocess.run(
        [launcher, "-I", "-c", launch, sys.executable, "-c", ask], capture_output=True, text=True, check=True
    )

    assert int(found.stdout) == os.getpid()
