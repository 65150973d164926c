"""What one `edit` costs in steady state, counted in a real server: a clock would tell of the machine."""

from house import GOALS, measure_edit, trace_edit

_MODULES = 60
"""How many may take part today; the goal is lower."""
_BACKGROUND_CALLS = 40
"""How many calls the thread that writes sightings may add, if its turn comes during the edit."""


def test_an_edit_resolves_reads_calls_and_commits_no_more_than_it_must() -> None:
    found = measure_edit(trace_edit())

    assert found.pop("edit: modules") <= _MODULES
    calls = found.pop("edit: Python calls")
    assert calls <= GOALS["edit: Python calls"] + _BACKGROUND_CALLS
    assert {name: value for name, value in found.items() if value > GOALS[name]} == {}
