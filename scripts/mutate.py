"""Ask whether the tests notice: a sample of small wrong changes, each made in a private copy, and tests run against it.

1. Once, the tests of TRACED run on the unchanged source, and what lines each of them executes is kept in `.mutate`. A file
   of tests runs again for that when it changed, or a mutated module that it executes.
2. A mutant first meets the tests that execute its lines; then, if they all pass, the slow ones among them, and those of
   its package in WIDE, until the time is over. Time is that of the processor, so a busy machine decides nothing; a mutant
   whose tests were not all run counts as one that survived, and it is said.
3. A mutant is killed when a test fails that passes on the unchanged source. Mutants that change nothing, by judgement,
   are listed in `equivalent_mutants.py`, with the reason, and do not count.
4. A run that was interrupted goes on where it was: what was traced and killed holds until the module or the test changes.

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
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from equivalent_mutants import EQUIVALENT
from mutants import Mutant, all_mutants, draw_sample
from wide_tests import WIDE

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "surehold"
NOTES = PROJECT / ".mutate"
GOAL_PERCENT = 95

TRACED = ("workspace", "disk", "stores", "text", "properties", "search", "dialects", "tools", "capture", "front")
"""The folders of tests whose lines are recorded, where they run in the same process."""
_TALKS_TO_SERVER = re.compile(
    r"\bStdioClient\b|^from (dialects|front)[^()]* import [^)\n]*\b(Desk|Place)\b|\"serve\"|needs_browser", re.MULTILINE
)
_NARROW_SECONDS, _WIDE_SECONDS = 30, 150
"""How much time of the processor a mutant's first tests may take; and each kind of those that it meets afterwards."""
_TRACE_SECONDS, _SILENT_SECONDS = 3600, 1200
"""How long the tests of one batch may be traced; and for how long pytest may work on one mutant."""
_TEST_SECONDS, _BUSY_FACTOR = 120, 6
"""How long one test may take; and how many times its share of the processor a run may last on a busy machine."""
_TRACED_AT_ONCE = 12
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
        directory.parent.chmod(0o755)  # some tests become another user
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

    def run_tests(
        self, tests: Sequence[str], *, seconds: float, first_only: bool = True, trace: bool = False
    ) -> dict[str, Any]:
        """Run tests, and return what failed, what took how long, and which lines were executed."""
        report = self._directory / "report.json"
        report.unlink(missing_ok=True)
        process = self._start_pytest(tests, *(["-x"] if first_only else []), seconds=seconds, trace=trace)
        try:
            process.wait(timeout=seconds * _BUSY_FACTOR + 2 * _TEST_SECONDS)
        except subprocess.TimeoutExpired:
            return {"failed": ["a test that hangs"]}
        finally:
            _end_group(process)
        return json.loads(report.read_text("utf-8")) if report.exists() else {"failed": ["the start of pytest"]}

    def try_in_forks(
        self, mutants: Sequence[tuple[Mutant, Sequence[str]]], seconds: Mapping[str, float]
    ) -> Iterator[str | None]:
        """Yield which test noticed each mutant, empty if none did; None where it must be tried with a fresh start."""
        done = 0
        while done < len(mutants):
            for killer in self._fork_until_stuck(mutants[done:], seconds):
                yield killer
                done += 1
            if done < len(mutants):  # this one ended pytest, or kept it: the others are tried without it
                yield None
                done += 1

    def _fork_until_stuck(
        self, mutants: Sequence[tuple[Mutant, Sequence[str]]], seconds: Mapping[str, float]
    ) -> Iterator[str | None]:
        rows, results, package = self._directory / "mutants.json", self._directory / "results", "src/surehold"
        results.unlink(missing_ok=True)
        sources = {one.path: (self._directory / package / one.path).read_bytes() for one, _ in mutants}
        told = [
            {
                "path": one.path,
                "source": one.apply(sources[one.path]).decode(),
                "tests": {test: seconds.get(test, _TEST_SECONDS) for test in tests},
            }
            for one, tests in mutants
        ]
        rows.write_text(json.dumps(told), encoding="utf-8")
        files = sorted({test.partition("::")[0] for _, tests in mutants for test in tests})
        process = self._start_pytest(files, seconds=1 << 30, mutants=str(rows), results=str(results))
        done, since = 0, time.monotonic()
        try:
            while done < len(mutants) and time.monotonic() < since + _SILENT_SECONDS:
                has_ended = process.poll() is not None
                lines = results.read_text("utf-8").splitlines() if results.exists() else []
                if lines[done:]:
                    since = time.monotonic()
                yield from (json.loads(line) for line in lines[done:])
                done = len(lines)
                if has_ended:
                    return
                time.sleep(0.1)
        finally:
            _end_group(process)

    def _start_pytest(self, tests: Sequence[str], *options: str, **wish: Any) -> "subprocess.Popen[bytes]":
        named = self._directory / "tests.txt"
        named.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutate_plugin", "-p", "no:randomly", *options]
        command += ["-p", "no:cacheprovider", "--timeout", str(_TEST_SECONDS)]
        command += ["--basetemp", str(self._directory / "pytest"), f"@{named}"]
        path = os.pathsep.join(str(self._directory / folder) for folder in ("src", "scripts"))
        wish = {"report": str(self._directory / "report.json"), "trace": False, "mutants": "", **wish}
        wish["wall_seconds"] = wish["seconds"] * _BUSY_FACTOR
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MUTATE": json.dumps(wish)}
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=self._directory, env=environment, start_new_session=True, **quiet)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all that it started: servers of a test that failed may be left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def trace_tests(copies: Sequence[PrivateCopy], names: Sequence[str], modules: Collection[str]) -> list[TracedTest]:
    """Return every test of these files that passes, the fastest first.

    A file is traced again when it changed, or one of these modules if its tests execute it.
    """
    free = SimpleQueue[PrivateCopy]()
    for copy in copies:
        free.put(copy)
    NOTES.mkdir(exist_ok=True)
    digests = {str(file.relative_to(PACKAGE)): _digest(file) for file in PACKAGE.rglob("*.py")}
    wanted = {path: digest for path, digest in digests.items() if path in modules}
    changed = [name for name in names if not _is_valid(name, wanted)]

    def trace(batch: Sequence[str]) -> None:
        copy = free.get()
        try:
            report = copy.run_tests(batch, seconds=_TRACE_SECONDS, first_only=False, trace=True)
        finally:
            free.put(copy)
        if "lines" not in report:
            print(f"Not traced, since pytest did not come to its end: {', '.join(batch)}", flush=True)
            return
        for name in batch:
            parts = {part: _of_file(name, report.get(part, {})) for part in ("seconds", "lines")}
            executed = sorted({path for lines in parts["lines"].values() for path in lines})
            note = {
                "of": _digest(PROJECT / name),
                "modules": {path: digests[path] for path in executed},
                "failed": [test for test in report["failed"] if test.startswith(name)],
                **parts,
            }
            _note_path(name).write_text(json.dumps(note), encoding="utf-8")

    with ThreadPoolExecutor(len(copies)) as pool:
        count = -(-len(changed) // _TRACED_AT_ONCE)
        list(pool.map(trace, (changed[number::count] for number in range(count))))
    return sorted((test for name in names for test in _passing_tests(_note_of(name))), key=lambda one: one.seconds)


def _traced_files() -> list[str]:
    return [
        str(file.relative_to(PROJECT))
        for folder in TRACED
        for file in sorted((PROJECT / "tests" / folder).rglob("test_*.py"))
        if not _TALKS_TO_SERVER.search(file.read_text("utf-8"))
    ]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _is_valid(name: str, digests: Mapping[str, str]) -> bool:
    """Tell whether what was traced of a file of tests holds: it is as it was, and so are these modules where it executes them."""
    note = _note_of(name)
    known = {path: digest for path, digest in note.get("modules", {}).items() if path in digests}
    return note.get("of") == _digest(PROJECT / name) and known.items() <= digests.items()


def _note_path(name: str) -> Path:
    return NOTES / f"{name.replace('/', '-')}.json"


def _note_of(name: str) -> dict[str, Any]:
    return json.loads(_note_path(name).read_text("utf-8")) if _note_path(name).exists() else {}


def _of_file(name: str, by_test: dict[str, Any]) -> dict[str, Any]:
    return {test: value for test, value in by_test.items() if test.startswith(f"{name}::")}


def _passing_tests(note: dict[str, Any]) -> Iterator[TracedTest]:
    if not note:
        return
    if note["failed"]:
        print(f"Fail on the unchanged source, and are not used: {', '.join(note['failed'])}", flush=True)
    for test in set(note["lines"]) - set(note["failed"]):
        lines = {path: frozenset(rows) for path, rows in note["lines"][test].items()}
        yield TracedTest(id=test, seconds=note["seconds"][test], lines=lines)


def pick_tests(mutant: Mutant, tests: Sequence[TracedTest]) -> tuple[list[str], list[str], list[str]]:
    """Return the tests that a mutant meets first, the others that execute it, and those of its package in WIDE.

    They execute its lines; or those of its statement, or of its module, if what runs on import is mutated. Each test
    comes first with one of its cases, those of the mutant's own package before others, and the fastest of them.
    """
    found = list[TracedTest]()
    executed = [(one, one.lines[mutant.path]) for one in tests if mutant.path in one.lines]
    for wanted in (range(mutant.line, mutant.last_line + 1), [mutant.statement_line]):
        found = found or [one for one, lines in executed if not lines.isdisjoint(wanted)]
    package, cases = mutant.path.split("/")[0], Counter[str]()
    ranks = dict[str, tuple[bool, bool]]()
    for one in found or [one for one, _ in executed]:
        name = one.id.partition("[")[0]
        ranks[one.id] = cases[name] > 0, not name.startswith(f"tests/{package}/")
        cases[name] += 1
    found = sorted((one for one, _ in executed if one.id in ranks), key=lambda one: ranks[one.id])
    total, narrow = 0.0, list[str]()
    for one in found:
        total += one.seconds
        if total > _NARROW_SECONDS:
            break
        narrow.append(one.id)
    rest = [one.id for one in found[len(narrow) :]]
    folder = max((one for one in WIDE if mutant.path.startswith(f"{one}/")), key=len)
    return narrow, rest, [f"tests/{path}" for path in WIDE[folder]]


class MutationRun:
    """Tries mutants, as many at once as there are copies."""

    def __init__(self, copies: Sequence[PrivateCopy], tests: Sequence[TracedTest]) -> None:
        self.killers: dict[Mutant, str] = {}
        """The test that noticed a mutant; empty when none did."""
        self.unfinished = set[Mutant]()
        """Those for which the time was over before all tests were run."""
        self._tests, self._copies = tests, copies
        self._memory = KillMemory()
        self._free = SimpleQueue[PrivateCopy]()
        for copy in copies:
            self._free.put(copy)

    def try_all(self, sample: Sequence[Mutant], *, with_slow: bool) -> None:
        """Let all mutants meet the tests that execute them, and then, where wished, those that are left the slow ones."""
        known = {one: killer for one in sample if (killer := self._memory.find_killer(one))}
        self.killers |= known
        left = [one for one in sample if one not in known]
        print(f"{len(known)} were killed before, by tests that are the same.", flush=True)
        shares = [left[number :: len(self._copies)] for number in range(len(self._copies))]
        with ThreadPoolExecutor(len(self._copies)) as pool:
            list(pool.map(self._try_share, self._copies, shares))
            if with_slow:
                print(f"The slow tests for those that are left: {len(self.survivors())}.", flush=True)
                list(pool.map(self._try_wide, self.survivors()))
        self._forget_flaky()

    def survivors(self) -> list[Mutant]:
        return sorted((mutant for mutant, killer in self.killers.items() if not killer), key=str)

    def _try_share(self, copy: PrivateCopy, share: Sequence[Mutant]) -> None:
        picked, later = [(mutant, pick_tests(mutant, self._tests)[0]) for mutant in share], list[int]()
        seconds = {test.id: test.seconds for test in self._tests}
        for index, killer in enumerate(copy.try_in_forks(picked, seconds)):
            if killer is None:
                later.append(index)
            else:
                self._note(picked[index][0], killer)
        for mutant, tests in (picked[index] for index in later):
            self._note(mutant, self._try_tests(copy, mutant, tests, _NARROW_SECONDS * 2))

    def _try_wide(self, mutant: Mutant) -> None:
        copy = self._free.get()
        try:
            _, slow, wide = pick_tests(mutant, self._tests)
            killer = self._try_tests(copy, mutant, slow, _WIDE_SECONDS)
            killer = killer or self._try_tests(copy, mutant, wide, _WIDE_SECONDS)
        finally:
            self._free.put(copy)
        self._note(mutant, killer)

    def _try_tests(self, copy: PrivateCopy, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
        if not tests:
            return ""
        with copy.mutated(mutant):
            report = copy.run_tests(tests, seconds=seconds)
        if report.get("unfinished"):
            self.unfinished.add(mutant)
        return next(iter(report["failed"]), "")

    def _note(self, mutant: Mutant, killer: str) -> None:
        self.killers[mutant] = killer
        self._memory.keep(mutant, killer)
        print(f"{mutant}: {f'killed by {killer}' if killer else 'survives'}", flush=True)

    def _forget_flaky(self) -> None:
        """Take back what was killed by a test that fails on the unchanged source too."""
        tests = sorted({killer for killer in self.killers.values() if "::" in killer})
        flaky = set(self._copies[0].run_tests(tests, seconds=3600, first_only=False)["failed"]) if tests else set[str]()
        for mutant in [mutant for mutant, killer in self.killers.items() if killer in flaky]:
            print(f"Undecided, since its killer fails without it: {mutant}: {self.killers.pop(mutant)}")


class KillMemory:
    """Which test killed which mutant, in this run and in earlier ones; forgotten when the module or the test changes."""

    def __init__(self) -> None:
        self._lock, self._file = Lock(), NOTES / "killed.json"
        self._rows: dict[str, list[str]] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}

    def find_killer(self, mutant: Mutant) -> str:
        module, test, killer = self._rows.get(str(mutant), ("", "", ""))
        return killer if killer and [module, test] == self._digests(mutant, killer) else ""

    def keep(self, mutant: Mutant, killer: str) -> None:
        if "::" in killer:
            with self._lock:
                self._rows[str(mutant)] = [*self._digests(mutant, killer), killer]
                self._file.write_text(json.dumps(self._rows), encoding="utf-8")

    def _digests(self, mutant: Mutant, killer: str) -> list[str]:
        files = PACKAGE / mutant.path, PROJECT / killer.partition("::")[0]
        return [_digest(file) if file.exists() else "" for file in files]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=60, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many are tried at once")
    parser.add_argument("--only", default="", help="the beginning of a path in src/surehold: draw from there alone")
    parser.add_argument("--tests", nargs="+", default=[], help="files of tests: let the mutants meet these alone")
    options = parser.parse_args()
    mutants = [one for one in all_mutants(PACKAGE) if one.path.startswith(options.only)]
    drawn = draw_sample(mutants, seed=options.seed, count=options.mutants)
    sample = [one for one in drawn if one.key not in EQUIVALENT]
    for path, scope, original, mutated in EQUIVALENT.keys() - {one.key for one in mutants}:
        if path.startswith(options.only):
            print(f"No longer a mutant, so not to be listed as equivalent: {path} {scope}: {original}  ->  {mutated}")
    print(
        f"Seed {options.seed}: {len(drawn)} of {len(mutants)} mutants, {len(drawn) - len(sample)} of them equivalent."
    )
    with tempfile.TemporaryDirectory(prefix="mutate-") as directory:
        copies = [PrivateCopy(Path(directory) / str(number)) for number in range(options.jobs)]
        tests = trace_tests(copies, options.tests or _traced_files(), {mutant.path for mutant in sample})
        print(f"{len(tests)} tests are traced.", flush=True)
        run = MutationRun(copies, tests)
        run.try_all(sample, with_slow=not options.tests)
    survivors, decided = run.survivors(), len(run.killers)
    percent = 100 * (decided - len(survivors)) / max(decided, 1)
    print(f"\n{decided - len(survivors)} of {decided} killed: {percent:.1f} % (seed {options.seed}).")
    for mutant in survivors:
        left = " (the time was over before all its tests were run)" if mutant in run.unfinished else ""
        print(f"survives: {mutant}{left}")
    return 0 if percent >= GOAL_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
