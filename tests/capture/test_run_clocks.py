"""File systems whose clock goes in steps: what changes twice within one keeps its times."""

import json

import pytest

from capture.desk import RunDesk
from capture.driver import call
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen
from surehold.capture.kept import keeper, stash
from surehold.capture.settled import present

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_LATER_NS = 4_000_000_000_000_000_000


@pytest.fixture(autouse=True)
def _one_step(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Let every file have changed last at the same moment, a short time ago at most."""
    real = stash.facts_of
    for module in (keeper, present):
        monkeypatch.setattr(module, "facts_of", lambda status: real(status)._replace(ctime_ns=_LATER_NS))  # type: ignore[no-untyped-call]


def run(desk: RunDesk, script: str) -> None:
    where = ("--root", str(desk.root), "--state-dir", str(desk.state), "--report", str(desk.report))
    code, said = call("run", *where, "--", "sh", "-c", f"cd '{desk.root}'; {script}")
    assert (code, said) == (0, "")


@requirement("run:report:complete")
@pytest.mark.parametrize(
    "script",
    [
        "echo ONE > a.txt",
        "echo longer >> a.txt",
        "chmod 600 a.txt",
        "touch -d @1 a.txt",
        "cp a.txt c; echo x > c; cat c > a.txt; rm c",
        "ln a.txt c; echo ONE > c",
    ],
)
def test_a_change_in_the_same_step_as_the_one_before_is_taken_back(desk: RunDesk, script: str) -> None:
    before = take_fingerprint(desk.root)

    run(desk, script)

    report = desk.read_report()
    assert (report["changed"], report["complete"]) == (1, True)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:report:complete")
def test_what_was_only_opened_for_writing_is_still_no_change(desk: RunDesk) -> None:
    run(desk, ": >> a.txt; mv sub s; mv s sub; : >> sub/b.txt")

    assert json.loads(desk.report.read_text())["change_id"] is None
