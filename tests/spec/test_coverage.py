"""The contract and the tests, checked against each other in both directions."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from spec.divergences import DIVERGENCES
from spec.marks import requirement
from spec.model import AREAS, SOURCES
from spec.page import contract_page
from spec.requirements import IDS, REQUIREMENTS
from spec.uses import Use, uses_below, uses_in

TESTS = Path(__file__).parents[1]


@cache
def uses() -> tuple[Use, ...]:
    return uses_below(TESTS)


def listed(headline: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write rows below each other, with a gap between areas."""
    blocks = groupby(sorted(rows), key=lambda row: row[0].partition(":")[0])
    text = "\n\n".join("\n".join(f"  {name:<40} {what}" for name, what in block) for _, block in blocks)
    return f"{headline}\n\n{text}\n"


def test_every_requirement_has_a_test() -> None:
    tested = {use.id for use in uses()}
    missing = [(r.id, r.statement) for r in REQUIREMENTS if r.id not in tested]
    assert not missing, listed(f"{len(missing)} of {len(REQUIREMENTS)} requirements have no test:", missing)


def test_every_id_that_a_test_names_exists() -> None:
    unknown = [(use.id, use.where) for use in uses() if use.id not in IDS]
    assert not unknown, listed("These ids are not in the requirements:", unknown)


def test_ids_are_unique_and_well_formed() -> None:
    twice = [(id_, f"{count} times") for id_, count in Counter(r.id for r in REQUIREMENTS).items() if count > 1]
    assert not twice, listed("These ids are given more than once:", twice)
    area = "|".join(AREAS)
    odd = [(id_, "should be area:topic:detail") for id_ in IDS if not re.fullmatch(rf"({area})(:[a-z0-9_]+){{2}}", id_)]
    assert not odd, listed("These ids are badly formed:", odd)
    assert {id_.partition(":")[0] for id_ in IDS} == set(AREAS)


def test_statements_and_divergences_are_single_sentences() -> None:
    texts = [*((r.id, r.statement) for r in REQUIREMENTS), *DIVERGENCES.items()]
    bad = [(id_, text) for id_, text in texts if not re.fullmatch(r"[^a-z\s].*[^.]\.", text)]
    assert not bad, listed("These are not sentences (capital letter or sign, one full stop at the end):", bad)
    same = Counter(r.statement for r in REQUIREMENTS)
    repeated = [(r.id, r.statement) for r in REQUIREMENTS if same[r.statement] > 1]
    assert not repeated, listed("These say the same:", repeated)


def test_every_requirement_names_its_source() -> None:
    sourceless = [(r.id, r.source) for r in REQUIREMENTS if r.source not in SOURCES]
    assert not sourceless, listed("These name no source:", sourceless)
    assert {r.source for r in REQUIREMENTS} == SOURCES


def test_a_heading_belongs_to_one_source() -> None:
    sources = {(r.id.partition(":")[0], r.heading): set[str]() for r in REQUIREMENTS}
    for r in REQUIREMENTS:
        sources[r.id.partition(":")[0], r.heading].add(r.source)
    assert {key: found for key, found in sources.items() if len(found) > 1} == {}


def test_the_contract_in_the_documents_is_this_one() -> None:
    page = TESTS.parent / "docs" / "contract.md"
    assert page.read_text(encoding="utf-8") == contract_page(), "Run `make fix`."


def test_every_divergence_belongs_to_a_requirement() -> None:
    lost = [(id_, text) for id_, text in DIVERGENCES.items() if id_ not in IDS]
    assert not lost, listed("These divergences belong to nothing:", lost)


def test_uses_are_found_on_functions_classes_modules_and_parameters() -> None:
    source = """
pytestmark = [pytest.mark.slow, requirement("a:b:module")]

@requirement("a:b:one", "a:b:two")
@given(x)
def test_it(): ...

@requirement("a:b:not_a_test")
def helper(): ...

@requirement("a:b:suite")
class Suite:
    @requirement("a:b:method")
    async def test_me(self): ...

    @pytest.mark.parametrize("x", [pytest.param(1, marks=requirement("a:b:parameter"))])
    def test_parametrised(self, x): ...
"""
    found = {(use.id.rpartition(":")[2], use.where) for use in uses_in(source, TESTS / "x.py", TESTS)}
    assert found == {
        ("module", "tests/x.py:2"),
        ("one", "tests/x.py:4"),
        ("two", "tests/x.py:4"),
        ("suite", "tests/x.py:11"),
        ("method", "tests/x.py:13"),
        ("parameter", "tests/x.py:16"),
    }


def test_ids_that_cannot_be_read_from_the_source_are_refused() -> None:
    with pytest.raises(TypeError, match=r"tests/x\.py:1: name requirements as plain strings"):
        list(uses_in("@requirement(NAME)\ndef test_it(): ...\n", TESTS / "x.py", TESTS))


def test_a_mark_with_an_unknown_id_fails_at_import_with_the_nearest_one() -> None:
    misspelt = ["text:line:lone_crs"]
    with pytest.raises(ValueError, match="Did you mean `text:line:lone_cr`"):
        requirement(*misspelt)


def test_a_mark_carries_its_ids() -> None:
    ids = ["text:line:lone_cr", "text:line:count"]
    assert requirement(*ids).mark.args == tuple(ids)
