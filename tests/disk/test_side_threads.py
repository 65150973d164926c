"""Work beside other work: it is done once, its errors arrive, and no one waits for a thread that is not there."""

import os
import threading

import pytest

from surehold.disk import side_threads
from surehold.disk.side_threads import WorkerThreads, begin_aside, leave_aside
from waiting import HANG_SECONDS


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_result_is_worked_out_once_and_can_be_asked_for_twice() -> None:
    done = list[int]()

    def work() -> str:
        done.append(1)
        return "found"

    wait = begin_aside(work)

    assert (wait(), wait(), done) == ("found", "found", [1])


def test_an_error_is_raised_where_the_result_is_wanted() -> None:
    def fail() -> None:
        raise OSError("the disk is gone")

    wait = begin_aside(fail)

    with pytest.raises(OSError, match="the disk is gone"):
        wait()


def test_work_that_no_thread_has_begun_is_done_by_who_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_threads, "_side", WorkerThreads(1))
    gate, began = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        gate.wait(HANG_SECONDS)

    leave_aside(hold)
    began.wait(HANG_SECONDS)

    assert begin_aside(threading.current_thread)() is threading.current_thread()
    gate.set()


def test_where_no_thread_can_be_had_everything_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_threads, "_side", WorkerThreads(1))
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    done = list[str]()
    leave_aside(lambda: done.append("left"))

    assert begin_aside(lambda: "found")() == "found"
    assert done == ["left"]


def test_too_much_that_is_left_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_threads, "_side", WorkerThreads(0))
    monkeypatch.setattr(side_threads, "_MAX_BACKLOG", 2)
    done = list[int]()
    for number in range(3):
        leave_aside(lambda number=number: done.append(number))

    assert done == [2]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    begin_aside(lambda: None)()
    child = os.fork()
    if child == 0:
        came = threading.Event()
        leave_aside(came.set)
        os._exit(0 if came.wait(HANG_SECONDS) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
