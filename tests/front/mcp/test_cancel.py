"""A call that is taken back leaves nothing half done, and nothing running."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from front.mcp.client import StdioClient
from front.mcp.site import Site
from spec.marks import requirement
from waiting import wait_until


@pytest.fixture(scope="module")
def odd(shared: Site) -> Iterator[StdioClient]:
    with shared.start_odd() as client:
        yield client


def children(pid: int) -> list[str]:
    """Return the names of a process's children."""
    found = list[str]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            pids = (task / "children").read_text().split()
            found += [Path(f"/proc/{each}/comm").read_text().strip() for each in pids]
        except OSError:  # gone by now
            continue
    return found


@requirement("front:mcp:cancel")
def test_a_cancelled_search_ends_ripgrep_and_is_not_answered(site: Site) -> None:
    large = site.put("0.txt", "lorem ipsum dolor sit amet\n" * 2_000_000)
    for number in range(1, 200):
        os.link(large, site.root / f"{number}.txt")  # much to read, little to store
    with site.start() as client:
        search = client.start_call("search_files", {"query": r"(\w+\s){9}\d+x", "mode": "regex"})
        wait_until(lambda: "rg" in children(client.process.pid), "ripgrep never began")
        client.cancel(search)

        wait_until(lambda: "rg" not in children(client.process.pid), "ripgrep goes on")
        assert client.call("glob", {"pattern": "0.*"})["isError"] is False
        assert not client.is_answered(search)


@requirement("front:mcp:cancel")
@pytest.mark.parametrize("tool", ["late_write", "slow_plan"])
def test_a_write_that_is_cancelled_before_it_begins_or_while_it_is_planned_does_not_happen(
    shared: Site, odd: StdioClient, tool: str
) -> None:
    name = f"{tool}.txt"
    write = odd.start_call(tool, {"path": name})
    wait_until((shared.root / f"{tool}.began").exists, "it never began")
    odd.cancel(write)
    assert odd.request("ping") == {}  # the cancellation has been read by now
    shared.put(f"{tool}.go", "")

    wait_until(lambda: shared.log(name), "the ledger never heard of it")
    assert shared.log(name) == [("create", False)]
    assert shared.messages(name) == ["The call was cancelled."]
    assert not (shared.root / name).exists()
    assert not odd.is_answered(write)


@requirement("front:mcp:cancel")
def test_a_write_that_is_cancelled_too_late_happens_completely(shared: Site, odd: StdioClient) -> None:
    write = odd.start_call("stubborn_write", {"path": "done.txt"})
    wait_until((shared.root / "done.began").exists, "it never began")
    odd.cancel(write)
    assert odd.request("ping") == {}
    shared.put("done.go", "")

    wait_until(lambda: shared.log("done.txt"), "the ledger never heard of it")
    assert shared.log("done.txt") == [("create", True)]
    assert shared.get("done.txt") == b"whole\n" * 100_000


@requirement("front:mcp:cancel")
def test_real_writes_cancelled_at_any_moment_happen_completely_or_not_at_all(site: Site) -> None:
    content = "0123456789abcde\n" * 40_000
    with site.start() as client:
        for number in range(20):
            name = f"{number}.txt"
            client.cancel(client.start_call("create_file", {"path": name, "content": content}))
            time.sleep(number * 0.002)
        client.call("create_file", {"path": "last.txt", "content": "x\n"})

    outcomes = {f"{n}.txt": (site.root / f"{n}.txt").exists() for n in range(20)}
    for name, exists in outcomes.items():
        assert not exists or site.get(name) == content.encode()
        assert [ok for _, ok in site.log(name) if ok] == [True] * exists
    with site.open() as workspace:
        assert workspace.store.open_intents() == ()


@requirement("front:mcp:cancel")
def test_a_look_that_is_cancelled_notices_it(shared: Site, odd: StdioClient) -> None:
    look = odd.start_call("endless", {"path": "noticed"})
    wait_until((shared.root / "noticed.began").exists, "it never began")
    odd.cancel(look)

    wait_until((shared.root / "noticed").exists, "it never noticed")
    assert not odd.is_answered(look)


def test_progress_is_told_to_whoever_asks_and_only_upwards(odd: StdioClient) -> None:
    odd.notifications.clear()
    odd.call("stepwise", {"steps": 20_000})
    assert odd.notifications == []

    odd.call("stepwise", {"steps": 20_000}, meta={"progressToken": "mine"})

    told = [note["params"] for note in odd.notifications if note["method"] == "notifications/progress"]
    steps = [note["progress"] for note in told]
    assert {note["progressToken"] for note in told} == {"mine"}
    assert {note["total"] for note in told} == {20_000}
    assert steps == sorted(set(steps))
    assert 2 <= len(steps) <= 200
