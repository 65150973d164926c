"""Ask whether the tests notice: a sample of small wrong changes, each made in a private copy, and tests run against it.

1. Once, the tests of TRACED run on the unchanged source, and what lines each of them executes is kept in `.mutate`.
2. A mutant first meets the tests that execute its lines, the fastest first; then, if they all pass, those of its package
   in WIDE, and the slow rest, until the time is over.
3. A mutant is killed when a test fails that passes on the unchanged source. Mutants that change nothing, by judgement,
   are listed in `equivalent_mutants.py`, with the reason, and do not count.

Exits with 1 when fewer than 95 % are killed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from equivalent_mutants import EQUIVALENT
from mutants import Mutant, all_mutants, draw_sample

PROJECT = Path(__file__).parents[1]
NOTES = PROJECT / ".mutate"
GOAL_PERCENT = 95

TRACED = ("workspace", "disk", "stores", "text", "properties", "dialects")
"""The folders of tests whose lines are recorded, where they run in the same process."""
_TALKS_TO_SERVER = re.compile(r"\b(StdioClient|Desk|Place)\b")
WIDE = {
    "workspace": ("workspace/test_durable.py", "dialects/claude", "concurrency", "crash"),
    "disk": ("workspace/test_durable.py", "workspace/test_editor.py", "concurrency", "crash"),
    "stores": ("workspace/test_durable.py", "stores/test_many_writers.py", "concurrency"),
    "text": ("dialects",),
}
"""The tests that start processes, whose lines are not known: what a mutant of a package meets then."""
_NARROW_SECONDS, _WIDE_SECONDS, _TEST_SECONDS = 20, 240, 60
_NOT_COPIED = (".git", ".venv", ".mutate", ".conformance", ".hypothesis", ".*_cache", "build", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTest:
    """A test, how long it takes, and which lines of which files it executes."""

    id: str
    seconds: float
    lines: dict[str, frozenset[int]]


class PrivateCopy:
    """A copy of the project, in which one mutant at a time is made."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        shutil.copytree(PROJECT, directory, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        file = self._directory / "src" / "surehold" / mutant.path
        source, status = file.read_bytes(), file.stat()
        file.write_bytes(mutant.apply(source))
        os.utime(file, ns=(0, 0))  # compiled bytes are valid for a time of change and a size, which may be the same
        try:
            yield
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run_tests(self, tests: Sequence[str], *, seconds: float, first_only: bool = True, trace: bool = False) -> Any:
        """Run tests, and return what the plugin below reports; an empty report when pytest did not come that far."""
        report, named = self._directory / "report.json", self._directory / "tests.txt"
        report.unlink(missing_ok=True)
        named.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutate", "-p", "no:randomly", "-p", "no:cacheprovider"]
        command += ["--timeout", str(_TEST_SECONDS), "--basetemp", str(self._directory / "tmp"), f"@{named}"]
        path = os.pathsep.join(str(self._directory / folder) for folder in ("src", "scripts"))
        wish = {"report": str(report), "seconds": seconds, "trace": trace}
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTATE": json.dumps(wish)}
        process = subprocess.Popen(
            [*command, "-x"] if first_only else command,
            cwd=self._directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=seconds + 3 * _TEST_SECONDS)
        except subprocess.TimeoutExpired:
            return {"failed": ["a test that hangs"]}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return json.loads(report.read_text("utf-8")) if report.exists() else {"failed": ["the start of pytest"]}


class MutationPlugin:
    """Runs inside pytest: stops in time, and reports what failed, and which lines each test executed if that is asked."""

    def __init__(self, wish: dict[str, Any]) -> None:
        self._wish, self._until = wish, time.monotonic() + wish["seconds"]
        self._failed, self._seconds = list[str](), dict[str, float]()
        self._coverage: Any = None
        if wish["trace"]:
            import coverage

            source = PROJECT / "src" / "surehold"
            self._coverage = coverage.Coverage(data_file=None, include=[f"{source}/*"], config_file=False)
            self._coverage.start()

    def pytest_runtest_setup(self, item: Any) -> None:
        if self._coverage:
            self._coverage.switch_context(item.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_teardown(self, item: Any) -> None:
        if time.monotonic() > self._until:
            item.session.shouldstop = "the time is over"

    def pytest_sessionfinish(self) -> None:
        found: dict[str, Any] = {"failed": self._failed, "seconds": self._seconds}
        if self._coverage:
            self._coverage.stop()
            found["lines"] = _lines_by_test(self._coverage.get_data())
        Path(self._wish["report"]).write_text(json.dumps(found), encoding="utf-8")


def pytest_configure(config: Any) -> None:
    """Make this script a plugin of pytest: it reports to the script that started it."""
    config.pluginmanager.register(MutationPlugin(json.loads(os.environ["MUTATE"])))


def _lines_by_test(data: Any) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    package = PROJECT / "src" / "surehold"
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in filter(None, tests):
                found.setdefault(test, {}).setdefault(str(Path(file).relative_to(package)), []).append(line)
    return found


def trace_tests(copies: Sequence[PrivateCopy]) -> list[TracedTest]:
    """Return every test of TRACED that passes, the fastest first; a file is traced again when it or the source changed."""
    source = hashlib.sha256(b"".join(file.read_bytes() for file in sorted((PROJECT / "src").rglob("*.py"))))
    NOTES.mkdir(exist_ok=True)
    digests = {
        str(file.relative_to(PROJECT)): hashlib.sha256(source.digest() + file.read_bytes()).hexdigest()
        for folder in TRACED
        for file in sorted((PROJECT / "tests" / folder).rglob("test_*.py"))
        if not _TALKS_TO_SERVER.search(file.read_text("utf-8"))
    }
    changed = [name for name, digest in digests.items() if _note_of(name).get("of") != digest]

    def trace(copy: PrivateCopy, names: Sequence[str]) -> None:
        report = copy.run_tests(names, seconds=3600, first_only=False, trace=True) if names else {}
        for name in names:
            parts = {part: _of_file(name, report.get(part, {})) for part in ("seconds", "lines")}
            note = {
                "of": digests[name],
                "failed": [test for test in report["failed"] if test.startswith(name)],
                **parts,
            }
            _note_path(name).write_text(json.dumps(note), encoding="utf-8")

    with ThreadPoolExecutor(len(copies)) as pool:
        shares = [changed[number :: len(copies)] for number in range(len(copies))]
        list(pool.map(trace, copies, shares))
    return sorted((test for name in digests for test in _passing_tests(_note_of(name))), key=lambda one: one.seconds)


def _note_path(name: str) -> Path:
    return NOTES / f"{name.replace('/', '-')}.json"


def _note_of(name: str) -> dict[str, Any]:
    return json.loads(_note_path(name).read_text("utf-8")) if _note_path(name).exists() else {}


def _of_file(name: str, by_test: dict[str, Any]) -> dict[str, Any]:
    return {test: value for test, value in by_test.items() if test.startswith(f"{name}::")}


def _passing_tests(note: dict[str, Any]) -> Iterator[TracedTest]:
    if note["failed"]:
        print(f"Fail on the unchanged source, and are not used: {', '.join(note['failed'])}", flush=True)
    for test in set(note["lines"]) - set(note["failed"]):
        lines = {path: frozenset(rows) for path, rows in note["lines"][test].items()}
        yield TracedTest(id=test, seconds=note["seconds"][test], lines=lines)


def pick_tests(mutant: Mutant, tests: Sequence[TracedTest]) -> tuple[list[str], list[str]]:
    """Return the tests that a mutant meets first, and those that it meets if they all pass."""
    lines, found = frozenset(range(mutant.line, mutant.last_line + 1)), list[TracedTest]()
    for wanted in (lines, frozenset({mutant.statement_line})):
        found = found or [one for one in tests if wanted & one.lines.get(mutant.path, frozenset())]
    package, narrow, total = mutant.path.split("/")[0], list[str](), 0.0
    for one in found:
        total += one.seconds
        if total > _NARROW_SECONDS:
            break
        narrow.append(one.id)
    rest = [one.id for one in found[len(narrow) :]] if found else [f"tests/{package}"]
    return narrow, [*rest, *(f"tests/{path}" for path in WIDE[package])]


def find_killer(mutant: Mutant, copy: PrivateCopy, tests: Sequence[TracedTest]) -> str:
    """Return the test that notices a mutant; empty when none does."""
    narrow, wide = pick_tests(mutant, tests)
    with copy.mutated(mutant):
        for chosen, seconds in ((narrow, _NARROW_SECONDS * 5), (wide, _WIDE_SECONDS)):
            if chosen and (failed := copy.run_tests(chosen, seconds=seconds)["failed"]):
                return failed[0]
    return ""


def try_mutants(sample: Sequence[Mutant], copies: Sequence[PrivateCopy]) -> dict[Mutant, str]:
    """Return who killed each mutant; kills by tests that fail on the unchanged source are left out."""
    tests = trace_tests(copies)
    print(f"{len(tests)} tests are traced.", flush=True)
    free, done = SimpleQueue[PrivateCopy](), dict[Mutant, str]()
    for copy in copies:
        free.put(copy)
    printing = threading.Lock()

    def try_one(mutant: Mutant) -> None:
        copy = free.get()
        began = time.monotonic()
        try:
            done[mutant] = find_killer(mutant, copy, tests)
        finally:
            free.put(copy)
        with printing:
            word = "killed" if done[mutant] else "SURVIVES"
            print(f"{len(done):4} {word:8} {time.monotonic() - began:4.0f} s  {mutant}  {done[mutant]}", flush=True)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(try_one, sample))
    killers = sorted({killer for killer in done.values() if "::" in killer})
    flaky = set(copies[0].run_tests(killers, seconds=3600, first_only=False)["failed"]) if killers else set[str]()
    for mutant in [mutant for mutant, killer in done.items() if killer in flaky]:
        print(f"undecided: {mutant}, since its killer fails without it: {done.pop(mutant)}")
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=60, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many are tried at once")
    parser.add_argument("--only", default="", help="the beginning of a path in src/surehold: draw from there alone")
    options = parser.parse_args()
    mutants = [one for one in all_mutants(PROJECT / "src" / "surehold") if one.path.startswith(options.only)]
    drawn = draw_sample(mutants, seed=options.seed, count=options.mutants)
    sample = [one for one in drawn if one.key not in EQUIVALENT]
    print(
        f"Seed {options.seed}: {len(drawn)} of {len(mutants)} mutants, {len(drawn) - len(sample)} of them equivalent."
    )
    with tempfile.TemporaryDirectory(prefix="mutate-") as directory:
        copies = [PrivateCopy(Path(directory) / str(number)) for number in range(options.jobs)]
        done = try_mutants(sample, copies)
    survivors = [mutant for mutant, killer in done.items() if not killer]
    killed = len(done) - len(survivors)
    print(f"\n{killed} of {len(done)} killed: {100 * killed / max(len(done), 1):.1f} % (seed {options.seed}).")
    for mutant in sorted(survivors, key=str):
        print(f"survives: {mutant}")
    return 0 if 100 * killed >= GOAL_PERCENT * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
