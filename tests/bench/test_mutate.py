"""The mutation run itself: which mutants there are, which are drawn, and that a mutant is made in a copy and noticed."""

from pathlib import Path

import pytest
from equivalent_mutants import EQUIVALENT
from mutants import WEIGHTS, all_mutants, draw_sample, find_mutants
from mutate import PROJECT, PrivateCopy, TracedTest, pick_tests

PACKAGE = PROJECT / "src" / "surehold"
MODULE = '''"""A module."""

_LIMIT = 10


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
            (7, "3", "4"),
            (9, "fd < 0 or not ready(fd)", "True"),
            (9, "fd < 0 or not ready(fd)", "False"),
            (9, "fd < 0 or not ready(fd)", "((fd < 0) and (not ready(fd)))"),
            (9, "fd < 0 or not ready(fd)", "((not ready(fd)))"),
            (9, "fd < 0 or not ready(fd)", "((fd < 0))"),
            (9, "fd < 0", "(fd <= 0)"),
            (9, "0", "1"),
            (9, "not ready(fd)", "(ready(fd))"),
            (11, "lock(fd)", no_lock),
            (12, "sync(fd)", "pass"),
            (14, "state.dirty = True", "pass"),
            (14, "True", "False"),
            (15, "[n for n in range(times) if n] == []", "(not ([n for n in range(times) if n] == []))"),
            (15, "[n for n in range(times) if n] == []", "([n for n in range(times) if n] != [])"),
            (15, "n", "True"),
            (15, "n", "False"),
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

    assert pick_tests(mutant, tests) == (["quick"], ["slow", "tests/dialects"])
    assert pick_tests(mutant, tests[1:2]) == (["elsewhere"], ["tests/dialects"])
    assert pick_tests(mutant, []) == ([], ["tests/dialects"])


def test_a_mutant_is_made_in_a_copy_noticed_there_and_gone_afterwards(tmp_path: Path) -> None:
    path, tests = "text/lines.py", ["tests/workspace/test_reading.py"]
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
    forked = list(copy.try_in_forks([(mutant, noticed), (on_import, noticed)]))

    assert len(noticed) == 1
    assert forked == [noticed[0], None]
    assert noticed[0].startswith("tests/workspace/test_reading.py::")
    assert (file.read_bytes(), clean["failed"]) == (source, [])
    assert mutant.line in clean["lines"][noticed[0]][path]
