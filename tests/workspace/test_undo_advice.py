"""What is said when an undo is refused: the next step, as a command and as a call."""

# What is offered for more changes than a test wants to make.
# pyright: reportPrivateUsage=false

from collections.abc import Sequence

import pytest

from surehold.errors import to_python
from surehold.workspace.undo import planner
from surehold.workspace.undo.planner import UndoCommand, outside_advice, since_advice
from surehold.workspace.undo.replay import Obstacle, ObstacleKind


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("taken", "Move `a b` away first."),
        ("directory", "Move `a b` away first."),
        ("removed", "`surehold diff a b` shows what it held; bring the file back first."),
        (
            "changed",
            "`surehold revert a b` removes the outside edit; `surehold read a b --before CHANGE` has the earlier bytes.",
        ),
        ("lines", "`surehold diff a b` shows the outside edit; bring those lines back by hand first."),
        ("moved", "`surehold diff a b` shows the outside edit; bring those lines back by hand first."),
    ],
)
def test_each_outside_edit_has_its_own_way_out(kind: ObstacleKind, advice: str) -> None:
    assert outside_advice(Obstacle(change_id="", key="a b", kind=kind)) == advice


def test_everything_since_a_moment_is_undone_by_a_command_or_a_call() -> None:
    advice = since_advice("2026-01-01T00:00:00Z")

    assert advice == "Together with everything after it: surehold undo --since 2026-01-01T00:00:00Z"
    assert to_python(advice) == 'Together with everything after it: workspace.undo(since="2026-01-01T00:00:00Z")'


@pytest.mark.parametrize(
    ("commands", "listed"),
    [
        ([("undo", "c1")], "surehold undo c1"),
        ([("undo", "c2"), ("redo", "c1")], "surehold undo c2, surehold redo c1"),
        ([("undo", f"c{one}") for one in range(10)], ", ".join(f"surehold undo c{one}" for one in range(10))),
        (
            [("undo", f"c{one}") for one in range(12)],
            ", ".join(f"surehold undo c{one}" for one in range(10)) + ", and 2 more",
        ),
    ],
    ids=["one", "both kinds", "as many as are listed", "more"],
)
def test_the_commands_to_give_first_are_listed_up_to_a_number(commands: Sequence[UndoCommand], listed: str) -> None:
    assert planner._advise_commands(commands, instead=False) == f"First, in this order: {listed}."
    assert planner._advise_commands(commands, instead=True) == f"Instead, in this order: {listed}."
