"""Limits, modes and names that cannot be, and what a session is allowed by now."""

import math

import pytest

from surehold.errors import InvalidArgument
from surehold.workspace.settings import Limits, Mode, PermissionState, check_mode, check_session_name

LONGEST = 200


class Agreements:
    """What a person allowed for the rest of a session, kept as a store does."""

    def __init__(self) -> None:
        self.modes: dict[str, str] = {}
        self.asked = 0

    def is_session_allowed(self, session: str, mode: str) -> bool:
        self.asked += 1
        return self.modes.get(session) == mode

    def allow_session(self, session: str, mode: str) -> None:
        self.modes[session] = mode


def state(mode: Mode, kept: Agreements | None) -> PermissionState:
    return PermissionState(mode=mode, session="s", kept=kept)  # type: ignore[arg-type]  # of a store it is two calls


def test_an_agreement_holds_at_every_process_of_the_session_in_that_mode() -> None:
    kept = Agreements()
    here, there, other = (state(mode, kept) for mode in ("default", "default", "plan"))
    assert (here.recall_always(), there.recall_always()) == (False, False)

    here.allow_always("form")

    assert (kept.modes, kept.asked) == ({"s": "default"}, 2)
    assert (here.recall_always(), kept.asked) == (True, 2)
    assert (there.recall_always(), there.always, other.recall_always()) == (True, True, False)


def test_what_is_said_at_the_terminal_is_about_one_call() -> None:
    kept = Agreements()
    here = state("default", kept)
    here.allow_always("terminal")

    assert (here.recall_always(), kept.modes) == (True, {})


def test_another_mode_ends_an_agreement_for_all_processes() -> None:
    kept = Agreements()
    here = state("default", kept)
    here.change_mode("plan")
    assert (here.mode, kept.modes) == ("plan", {})
    here.allow_always("form")
    here.change_mode("default")

    assert (here.mode, here.always, kept.modes) == ("default", False, {"s": ""})


def test_a_process_by_itself_remembers_its_own_agreement() -> None:
    here = state("default", None)
    assert not here.recall_always()
    here.allow_always("form")
    assert here.recall_always()
    here.change_mode("plan")
    assert not here.recall_always()


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, True, "10", None])
@pytest.mark.parametrize("name", ["max_file_bytes", "lock_timeout", "fence", "session_idle", "sighting_bytes", "lease"])
def test_a_limit_is_a_number_that_is_not_below_zero(name: str, value: float) -> None:
    if name == "lease" and value in (-1, -0.5):
        assert Limits(lease=value).lease == value  # one that is over at once
        return
    with pytest.raises(InvalidArgument) as refused:
        Limits(**{name: value})  # type: ignore[arg-type]

    assert (refused.value.reason, refused.value.action) == ("bad_setting", f"For example: Limits({name}=10)")
    assert Limits(**{name: 0}) != Limits()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a" * (LONGEST + 1), "a\n", "\x1b"])
def test_a_session_has_a_name_that_can_be_shown(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_session_name(name)

    assert refused.value.reason == "bad_session"
    check_session_name("a" * LONGEST)
    check_session_name("")


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_mode("yolo")  # type: ignore[arg-type]

    assert refused.value.reason == "bad_mode"
    assert check_mode("plan") == "plan"
