"""Work beside other work: it is done once, its errors arrive, and no one waits for a thread that is not there."""

import os
import threading

import pytest

from surehold.disk import side_threads
from surehold.disk.side_threads import WorkerThreads, begin_aside, leave_aside
from waiting import HANG_SECONDS, wait_until


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


class Gate:
    """Work that goes on until it is let go."""

    def __init__(self, threads: WorkerThreads) -> None:
        self.began, self.end = threading.Event(), threading.Event()
        threads.start(self.hold)

    def hold(self) -> None:
        self.began.set()
        self.end.wait(HANG_SECONDS)


def test_threads_are_added_up_to_their_limit_and_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, added = WorkerThreads(2), list[str]()
    start = threading.Thread.start

    def count(thread: threading.Thread) -> None:
        added.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", count)
    for _ in range(2):  # the second time with the threads of the first
        gates = list[Gate]()
        backlogs = list[int]()
        for _ in range(4):
            gates.append(Gate(threads))
            backlogs.append(threads.backlog)
        assert backlogs == [0, 0, 1, 2]
        for gate in gates:
            gate.end.set()
        wait_until(lambda: threads._idle == 2, "a thread did not come back")  # pyright: ignore[reportPrivateUsage]
        assert threads.backlog == 0
    assert added == ["call-1", "call-2"]


def test_where_no_further_thread_can_be_had_the_work_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = WorkerThreads(2)
    first = Gate(threads)
    first.began.wait(HANG_SECONDS)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        second, third = Gate(threads), Gate(threads)
        assert threads.backlog == 2
    fourth = Gate(threads)
    fourth.end.set()
    for gate in (first, second, third):
        assert gate.end.set() is None
    wait_until(lambda: fourth.began.is_set() and threads.backlog == 0, "work was left")
