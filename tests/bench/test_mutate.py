"""The mutation run itself: which mutants there are, which are drawn, and that a mutant is made in a copy and noticed."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mutate
import mutate_plugin
import pytest
from equivalent_mutants import EQUIVALENT
from mutants import WEIGHTS, all_mutants, draw_sample, find_mutants
from mutate import PROJECT, KillMemory, PrivateCopy, TracedTest, pick_tests
from mutate_plugin import MutationPlugin

PACKAGE = PROJECT / "src" / "surehold"
MODULE = '''"""A module."""

_LIMIT = 10
_LEAST, _MOST = 1, 2


@decorate(True)
def wait(fd: int, *, times: int = 3) -> bool:
    """Wait."""
    if fd < 0 or not ready(fd):
        raise ValueError(f"{fd} of {times + 1}")
    with lock(fd):
        sync(fd)
    assert times > 1
    state.dirty = True
    return [n for n in range(times) if n] == []
'''


def mutants_of(source: str) -> list[tuple[int, str, str]]:
    return [(one.line, one.original, one.mutated) for one in find_mutants("a.py", source.encode())]


def test_every_kind_of_mutant_is_found_and_messages_limits_and_assertions_are_left_alone() -> None:
    no_lock = '__import__("contextlib").nullcontext()'
    assert sorted(mutants_of(MODULE)) == sorted(
        [
            (8, "3", "4"),
            (10, "fd < 0 or not ready(fd)", "True"),
            (10, "fd < 0 or not ready(fd)", "False"),
            (10, "fd < 0 or not ready(fd)", "((fd < 0) and (not ready(fd)))"),
            (10, "fd < 0 or not ready(fd)", "((not ready(fd)))"),
            (10, "fd < 0 or not ready(fd)", "((fd < 0))"),
            (10, "fd < 0", "(fd <= 0)"),
            (10, "0", "1"),
            (10, "not ready(fd)", "(ready(fd))"),
            (12, "lock(fd)", no_lock),
            (13, "sync(fd)", "pass"),
            (15, "state.dirty = True", "pass"),
            (15, "True", "False"),
            (16, "[n for n in range(times) if n] == []", "(not ([n for n in range(times) if n] == []))"),
            (16, "[n for n in range(times) if n] == []", "([n for n in range(times) if n] != [])"),
            (16, "n", "True"),
            (16, "n", "False"),
        ]
    )


@pytest.mark.parametrize(
    ("statement", "mutated"),
    [
        ("def f() -> str:\n    return g()", '""'),
        ("def f() -> tuple[int, ...]:\n    return g()", "()"),
        ("def f() -> int:\n    return g()", "((g()) + 1)"),
        ("def f() -> Path | None:\n    return g()", "None"),
        ("while g():\n    ...", "False"),
        ("n += m", "pass"),
        ("x = a if b else c", "True"),
        ("if (a := b):\n    ...", "((a := b), True)[1]"),
        ("match a:\n    case b if c:\n        ...", "True"),
        ("x = 'é' if a in b else c", "(a not in b)"),
        ("x = a is not b is c", "(a is not b is not c)"),
        ("x = (a == b) != (c or d)", "((a == b) == (c or d))"),
    ],
)
def test_more_kinds_of_mutants_are_found(statement: str, mutated: str) -> None:
    assert mutated in [new for _, _, new in mutants_of(statement)]


def test_a_mutant_changes_its_own_place_and_is_valid_python() -> None:
    source = MODULE.replace('"""Wait."""', '"""Wärt."""').encode()
    for mutant in find_mutants("a.py", source):
        changed = mutant.apply(source)
        compile(changed, "mutant", "exec")
        assert changed[mutant.start :].startswith(mutant.mutated.encode())
        assert changed.replace(mutant.mutated.encode(), b"", 1) != changed


def test_a_larger_sample_contains_the_smaller_one_and_another_seed_draws_others() -> None:
    mutants = list(all_mutants(PACKAGE))
    few, many, others = (draw_sample(mutants, seed=seed, count=count) for seed, count in ((1, 30), (1, 90), (2, 30)))

    assert many[:30] == few
    assert len(set(many)) == 90
    assert len(set(few) & set(others)) < 10
    assert {mutant.path.split("/")[0] for mutant in many} == set(WEIGHTS)


def test_every_mutant_that_is_called_equivalent_names_its_module_and_a_reason() -> None:
    assert [path for path, _, _, _ in EQUIVALENT if not (PACKAGE / path).is_file()] == []
    assert all(reason.strip() for reason in EQUIVALENT.values())


def test_a_mutant_meets_the_fastest_tests_that_execute_it_first_and_the_others_later() -> None:
    (mutant,) = find_mutants("text/a.py", b"def f():\n    go()\n")
    tests = [
        TracedTest(id="quick", seconds=0.1, lines={"text/a.py": frozenset({2})}),
        TracedTest(id="elsewhere", seconds=0.2, lines={"text/a.py": frozenset({1})}),
        TracedTest(id="slow", seconds=1_000, lines={"text/a.py": frozenset({2})}),
    ]

    assert pick_tests(mutant, tests) == (["quick"], ["slow"], ["tests/dialects"])
    assert pick_tests(mutant, tests[1:2]) == (["elsewhere"], [], ["tests/dialects"])
    assert pick_tests(mutant, []) == ([], [], ["tests/dialects"])


def test_a_mutant_meets_many_tests_before_the_cases_of_one() -> None:
    (mutant,) = find_mutants("text/a.py", b"def f():\n    go()\n")
    ids = ["tests/disk/t.py::b", "tests/text/t.py::a[1]", "tests/text/t.py::a[2]", "tests/text/t.py::c"]
    tests = [TracedTest(id=one, seconds=1, lines={"text/a.py": frozenset({2})}) for one in ids]

    assert pick_tests(mutant, tests)[0] == [ids[1], ids[3], ids[0], ids[2]]


def test_what_was_traced_holds_until_the_tests_or_a_mutated_module_that_they_execute_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "PROJECT", tmp_path)
    monkeypatch.setattr(mutate, "PACKAGE", tmp_path / "src" / "surehold")
    monkeypatch.setattr(mutate, "NOTES", tmp_path / "notes")
    name, traced = "tests/text/test_a.py", list[str]()
    for path, text in ((name, "1"), ("src/surehold/a.py", "2"), ("src/surehold/b.py", "3")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    class TracingCopy(PrivateCopy):
        def __init__(self) -> None:
            """Copy nothing."""

        def run_tests(self, tests: Sequence[str], **_: object) -> dict[str, Any]:
            traced.extend(tests)
            return {"failed": [], "seconds": {f"{name}::t": 1.0}, "lines": {f"{name}::t": {"a.py": [1]}}}

    def end_early(*_: object, **__: object) -> dict[str, Any]:
        return {"failed": ["the start of pytest"]}

    def trace() -> int:
        traced.clear()
        assert [one.id for one in mutate.trace_tests([TracingCopy()], [name], {"a.py", "b.py"})] == [f"{name}::t"]
        return len(traced)

    with monkeypatch.context() as patch:
        patch.setattr(TracingCopy, "run_tests", end_early)
        assert mutate.trace_tests([TracingCopy()], [name], ()) == []  # said, and traced again next time
    assert (trace(), trace()) == (1, 0)
    for path, count in (("src/surehold/b.py", 0), ("src/surehold/a.py", 1), (name, 1)):
        (tmp_path / path).write_text("changed")
        assert (trace(), trace()) == (count, 0)
    (tmp_path / "src/surehold/a.py").write_text("changed again")
    traced.clear()
    mutate.trace_tests([TracingCopy()], [name], {"b.py"})
    assert (len(traced), trace()) == (0, 1)


def test_a_mutant_is_made_in_a_copy_noticed_there_and_gone_afterwards(tmp_path: Path) -> None:
    path, tests = "text/snapshot.py", ["tests/workspace/test_reading.py"]
    source = (PACKAGE / path).read_bytes()
    mutant = next(one for one in find_mutants(path, source) if one.scope == "merge_ranges" and one.mutated == "None")
    copy = PrivateCopy(tmp_path / "copy")
    file = tmp_path / "copy" / "src" / "surehold" / path

    with copy.mutated(mutant):
        assert (file.read_bytes(), (PACKAGE / path).read_bytes()) == (mutant.apply(source), source)
        noticed = copy.run_tests(tests, seconds=60)["failed"]
    clean = copy.run_tests(tests, seconds=60, trace=True)
    draft = find_mutants("workspace/draft.py", (PACKAGE / "workspace" / "draft.py").read_bytes())
    on_import = next(one for one in draft if one.scope == "Draft")
    forked = list(copy.try_in_forks([(mutant, noticed), (on_import, noticed)], {}))

    assert len(noticed) == 1
    assert forked == [noticed[0], None]
    assert noticed[0].startswith("tests/workspace/test_reading.py::")
    assert (file.read_bytes(), clean["failed"]) == (source, [])
    assert mutant.line in clean["lines"][noticed[0]][path]


def test_a_mutant_that_ends_or_keeps_pytest_is_tried_alone_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "_SILENT_SECONDS", 2)
    mutants = find_mutants("text/snapshot.py", (PACKAGE / "text" / "snapshot.py").read_bytes())[:6]
    results, started = tmp_path / "results", list["subprocess.Popen[bytes]"]()
    # Two are tried, and pytest ends; then one, and it hangs; then the last one.
    scripts = [f'echo \'"a"\n"b"\' > {results}', f"echo '\"d\"' > {results}; sleep 1000", f"echo '\"f\"' > {results}"]

    class StuckCopy(PrivateCopy):
        def __init__(self) -> None:
            """Copy nothing."""
            self._directory = tmp_path

        def _start_pytest(self, *_: object, **__: object) -> "subprocess.Popen[bytes]":
            started.append(subprocess.Popen(["sh", "-c", scripts[len(started)]], start_new_session=True))
            return started[-1]

    file = tmp_path / "src" / "surehold" / "text" / "snapshot.py"
    file.parent.mkdir(parents=True)
    file.write_bytes((PACKAGE / "text" / "snapshot.py").read_bytes())

    assert list(StuckCopy().try_in_forks([(one, ()) for one in mutants], {})) == ["a", "b", None, "d", None, "f"]
    assert [process.poll() is not None for process in started] == [True] * 3


def test_a_killed_mutant_is_remembered_until_its_module_or_the_test_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, path in (("PROJECT", tmp_path), ("PACKAGE", tmp_path / "src"), ("NOTES", tmp_path)):
        monkeypatch.setattr(mutate, name, path)
    files = [tmp_path / "src" / "text" / "a.py", tmp_path / "tests" / "test_a.py"]
    (mutant,) = find_mutants("text/a.py", b"def f():\n    go()\n")
    for file in files:
        file.parent.mkdir(parents=True)
    for file in files:
        for each in files:
            each.write_text("as it was")
        KillMemory().keep(mutant, "tests/test_a.py::test_it")
        assert KillMemory().find_killer(mutant) == "tests/test_a.py::test_it"
        file.write_text("changed")
        assert KillMemory().find_killer(mutant) == ""


def test_a_fork_whose_tests_leave_a_process_behind_still_tells_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = MutationPlugin({"seconds": 60, "wall_seconds": 60, "trace": False})

    def leave_process(*_: object) -> str:
        if os.fork() == 0:
            time.sleep(1000)  # it has the pipe open, and would never end by itself
        return "found"

    monkeypatch.setattr(MutationPlugin, "_run_mutated", leave_process)
    assert plugin.try_in_fork({}, []) == "found"


def test_tests_that_the_time_was_too_short_for_are_told_of(tmp_path: Path) -> None:
    copy = PrivateCopy(tmp_path / "copy")
    tests = ["tests/text/test_lines.py"]

    cut, whole = (copy.run_tests(tests, seconds=seconds) for seconds in (0.001, 60))

    assert (cut["unfinished"], cut["failed"]) == (True, [])
    assert (whole["unfinished"], whole["failed"]) == (False, [])
    assert len(cut["seconds"]) < len(whole["seconds"])


def test_every_place_that_a_mutant_is_sent_to_has_tests() -> None:
    places = [PROJECT / "tests" / path for paths in mutate.WIDE.values() for path in paths]

    assert [place for place in places if not (place.is_file() or any(place.rglob("test_*.py")))] == []
    assert [name for name in mutate.WIDE if not (PACKAGE / name).is_dir()] == []


def test_what_noticed_a_mutant_of_a_module_comes_first_for_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, forks = MutationPlugin({"seconds": 60, "wall_seconds": 60, "trace": False}), list[list[str]]()

    def fork(_: MutationPlugin, mutant: dict[str, Any], items: list[SimpleNamespace]) -> str:
        forks.append([one.nodeid for one in items])
        return mutant["killer"]

    monkeypatch.setattr(MutationPlugin, "try_in_fork", fork)
    for path, killer in (("a.py", "c"), ("a.py", "b"), ("a.py", "c"), ("a.py", ""), ("b.py", "")):
        plugin.try_mutant({"path": path, "killer": killer}, [SimpleNamespace(nodeid=name) for name in "abcd"])

    assert forks[-2:] == [["c", "b", "a", "d"], ["a", "b", "c", "d"]]


def test_a_test_that_takes_many_times_as_long_with_a_mutant_has_noticed_it(tmp_path: Path) -> None:
    path, tests = "text/snapshot.py", ["tests/workspace/test_reading.py"]
    mutants = find_mutants(path, (PACKAGE / path).read_bytes())
    mutant = next(one for one in mutants if one.scope == "merge_ranges" and one.mutated == "None")
    copy = PrivateCopy(tmp_path / "copy")
    with copy.mutated(mutant):
        noticed = copy.run_tests(tests, seconds=60)["failed"]

    assert (
        list(copy.try_in_forks([(replace(mutant, mutated="max(iter(int, 1))"), noticed)], {noticed[0]: 0.1})) == noticed
    )


def test_a_fork_that_hangs_is_tried_again_test_by_test(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = MutationPlugin({"seconds": 60, "wall_seconds": 60, "trace": False})
    monkeypatch.setattr(mutate_plugin, "_WALL_SECONDS", 0)

    def hang(*_: object) -> None:
        time.sleep(1000)

    monkeypatch.setattr(MutationPlugin, "_run_mutated", hang)

    assert plugin.try_in_fork({}, []) is None
