"""The part of `make mutate` that runs inside pytest: it traces lines, tries mutants in forks, and reports what failed.

A start of pytest takes longer than most tests. So one process collects all tests, and each mutant is tried in a fork of
it, where the functions that the mutant changes get their new code.
"""

import gc
import importlib
import json
import math
import mmap
import os
import resource
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from hypothesis import Phase, settings

PACKAGE = Path(__file__).parents[1] / "src" / "surehold"
_SPARE_SECONDS, _SLOWER, _WALL_SECONDS = 5, 4, 600
"""How much more of the processor a test may take with a mutant than without; and how long all tests of one may wait."""


def pytest_configure(config: Any) -> None:
    plain = settings.get_profile("default")
    settings.register_profile("mutate", settings(plain, phases=[Phase.explicit, Phase.generate]))
    settings.load_profile("mutate")  # the smallest case that fails is of no interest
    config.pluginmanager.register(MutationPlugin(json.loads(os.environ["MUTATE"])))


class MutationPlugin:
    """Does what the script asked for when it started pytest."""

    def __init__(self, wish: dict[str, Any]) -> None:
        self._wish, self._until = wish, time.monotonic() + wish["wall_seconds"]
        self._failed, self._seconds, self._is_cut = list[str](), dict[str, float](), False
        self._test_began = 0.0
        self._killers: dict[str, list[str]] = {}
        self._functions: dict[str, list[FunctionType]] = {}
        self._under_way = mmap.mmap(-1, 4)
        """Which test a fork is at, counted from 1."""
        self._coverage: Any = None
        if wish["trace"]:
            import coverage

            self._coverage = coverage.Coverage(data_file=None, include=[f"{PACKAGE}/*"], config_file=False)
            self._coverage.start()

    def pytest_runtestloop(self, session: Any) -> bool | None:
        """Try mutants instead of running all tests, if there are any."""
        if not self._wish["mutants"]:
            return None
        items = {item.nodeid: item for item in session.items}
        mutants = json.loads(Path(self._wish["mutants"]).read_text("utf-8"))
        for path in {mutant["path"] for mutant in mutants}:
            importlib.import_module("surehold." + path.removesuffix(".py").replace("/", "."))
        self._functions = find_functions()
        gc.freeze()  # what all forks share is not looked through in each of them
        with Path(self._wish["results"]).open("w", encoding="utf-8") as results:
            for mutant in mutants:
                found = self.try_mutant(mutant, [items[test] for test in mutant["tests"] if test in items])
                results.write(f"{json.dumps(found)}\n")
                results.flush()
        return True

    def try_mutant(self, mutant: dict[str, Any], items: list[Any]) -> str | None:
        """Return the first test that fails or does not end, also alone; empty if all pass; None where no function can be changed.

        Tests that noticed other mutants of the module come first, the last one before others.
        """
        killers = self._killers.setdefault(mutant["path"], [])
        items = sorted(items, key=lambda item: -killers.index(item.nodeid) if item.nodeid in killers else 1)
        found = self.try_in_fork(mutant, items)
        while found is None and (late := self._test_under_way(items)):
            if self.try_in_fork(mutant, [late]) != "":
                return late.nodeid  # it takes many times as long as without the mutant
            items = items[items.index(late) + 1 :]
            found = self.try_in_fork(mutant, items)
        names = [item.nodeid for item in items]
        while found in names[1:] and self.try_in_fork(mutant, [items[names.index(found)]]) == "":
            names, items = names[(after := names.index(found) + 1) :], items[after:]  # the tests before it disturbed it
            found = self.try_in_fork(mutant, items)
        if found in names:
            killers[:] = [*(one for one in killers if one != found), found]
        return found

    def try_in_fork(self, mutant: dict[str, Any], items: list[Any]) -> str | None:
        """Return the first test that fails; None where no function can be changed, or one of the tests does not end."""
        reader, writer = os.pipe()
        self._under_way[:] = (0).to_bytes(4)
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                os.close(reader)
                os.write(writer, json.dumps(self._run_mutated(mutant, items)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        was_killed = _wait_or_kill(child)
        # What the tests left running has the other end open too, so the end of what is told may never come.
        os.set_blocking(reader, False)
        with os.fdopen(reader, "rb", buffering=0) as told:
            answer = told.read() or b"null"
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        return None if was_killed else json.loads(answer)

    def _test_under_way(self, items: list[Any]) -> Any:
        """Return the test that the last fork did not come to the end of; None if it began none."""
        return next(iter(items[number - 1 : number]), None) if (number := int.from_bytes(self._under_way)) else None

    def _run_mutated(self, mutant: dict[str, Any], items: list[Any]) -> str | None:
        file = PACKAGE / mutant["path"]
        if not patch_functions(self._functions, str(file), file.read_bytes(), mutant["source"].encode()):
            return None
        for index, item in enumerate(items):
            self._under_way[:] = (index + 1).to_bytes(4)
            most = _SPARE_SECONDS + _SLOWER * mutant["tests"][item.nodeid]
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + most), resource.RLIM_INFINITY))
            following = next(iter(items[index + 1 :]), None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return self._failed[0]
        return ""

    def pytest_runtest_logstart(self) -> None:
        self._test_began = _processor_seconds()

    def pytest_runtest_setup(self, item: Any) -> None:
        if self._coverage:
            self._coverage.switch_context(item.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] = _processor_seconds() - self._test_began
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_teardown(self, item: Any, nextitem: Any) -> None:
        is_over = _processor_seconds() > self._wish["seconds"] or time.monotonic() > self._until
        if is_over and nextitem is not None:
            self._is_cut, item.session.shouldstop = True, "the time is over"

    def pytest_sessionfinish(self) -> None:
        found: dict[str, Any] = {"failed": self._failed, "seconds": self._seconds, "unfinished": self._is_cut}
        if self._coverage:
            self._coverage.stop()
            found["lines"] = _lines_by_test(self._coverage.get_data())
        Path(self._wish["report"]).write_text(json.dumps(found), encoding="utf-8")


def _processor_seconds() -> float:
    """Return what this process and those that it waited for took of the processor: it is the same on a busy machine."""
    return sum(os.times()[:4])


def _wait_or_kill(child: int) -> bool:
    """Wait for a process; tell whether it was killed, by its limit or since it waited for too long."""
    give_up = time.monotonic() + _WALL_SECONDS
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > give_up:
            with suppress(ProcessLookupError):  # it may not have its own group yet
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.01)
    return os.WIFSIGNALED(ended[1])


def find_functions() -> dict[str, list[FunctionType]]:
    """Return all functions that there are, by the file of their code."""
    found: dict[str, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            found.setdefault(one.__code__.co_filename, []).append(one)
    return found


def patch_functions(functions: Mapping[str, list[FunctionType]], file: str, source: bytes, mutated: bytes) -> bool:
    """Give every function of a file the code that it has in the mutated file; tell whether that changed any."""
    old, new = (list(_all_codes(compile(text, file, "exec"))) for text in (source, mutated))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    changed = {(a.co_qualname, a.co_firstlineno): b for a, b in zip(old, new, strict=True) if a != b}
    patched = False
    for function in functions.get(file, ()):
        if code := changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno)):
            function.__code__ = code
            patched = True
    return patched


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_codes(constant)


def _lines_by_test(data: Any) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in filter(None, tests):
                found.setdefault(test, {}).setdefault(str(Path(file).relative_to(PACKAGE)), []).append(line)
    return found
