"""Who holds an intent, and when a process is provably gone."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from spec.marks import requirement
from surehold.stores import owner as owner_module
from surehold.stores.owner import Owner, current_owner, is_dead, parent_owner


def start_sleeper() -> tuple[subprocess.Popen[str], Owner]:
    code = (
        "from surehold.stores.owner import current_owner; import time;"
        "o = current_owner(); print(o.host, o.boot, o.pid, o.started, flush=True); time.sleep(99)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    host, boot, pid, started = child.stdout.readline().split()
    return child, Owner(host=host, boot=boot, pid=int(pid), started=started)


def test_this_process_is_alive_and_named_alike_each_time() -> None:
    owner = current_owner()

    assert owner == current_owner()
    assert owner.pid == os.getpid()
    assert owner.started.isdigit()
    assert len(owner.boot) == 36
    assert not is_dead(owner)


@requirement("engine:store:living_owner")
def test_another_process_is_dead_once_it_was_killed_even_before_it_is_reaped() -> None:
    child, owner = start_sleeper()
    with child:
        assert not is_dead(owner)
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(owner)  # a zombie
        child.wait()
        assert is_dead(owner)


def test_a_pid_that_was_given_to_another_process_is_dead() -> None:
    assert is_dead(replace(current_owner(), started="1"))


def test_a_process_from_before_the_last_boot_is_dead() -> None:
    assert is_dead(replace(current_owner(), boot="another boot"))


def test_nothing_is_said_about_another_machine() -> None:
    assert not is_dead(replace(current_owner(), host="another", boot="another", pid=2**22 + 5))


def test_without_a_start_time_a_living_pid_is_alive() -> None:
    assert not is_dead(replace(current_owner(), started="", boot=""))


def test_a_pid_that_cannot_be_is_dead() -> None:
    assert is_dead(replace(current_owner(), pid=2**40))


def test_a_forked_child_has_a_name_of_its_own() -> None:
    parent = current_owner()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, repr(current_owner()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()

    assert f"pid={pid}," in text
    assert text != repr(parent)


@pytest.mark.parametrize(
    ("host", "pid", "started", "is_told"),
    [
        ("machine", 77, "5", True),
        ("machine", 77, "", False),
        ("machine", 1, "5", False),
        ("machine", 1, "", False),
        ("machine/container", 1, "5", True),
    ],
    ids=["usual", "no start time", "init", "nothing known", "first in its container"],
)
def test_a_parent_is_told_only_if_it_cannot_be_another_one(
    monkeypatch: pytest.MonkeyPatch, host: str, pid: int, started: str, is_told: bool
) -> None:
    parent = Owner(host=host, boot="b", pid=pid, started=started)

    def describe(_: int) -> Owner:
        return parent

    monkeypatch.setattr(owner_module, "_describe_process", describe)

    assert parent_owner() == (parent if is_told else None)
