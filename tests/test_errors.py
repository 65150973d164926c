import json
import pickle
from collections.abc import Iterator

import pytest

from spec.marks import requirement
from surehold import errors
from surehold.errors import SureholdError

CLOSED_SET = {
    "not_found",
    "already_exists",
    "permission_denied",
    "outside_workspace",
    "binary_file",
    "file_too_large",
    "stale_file",
    "old_text_not_found",
    "multiple_matches",
    "overlapping_edits",
    "patch_parse_error",
    "patch_apply_error",
    "command_failed",
    "timeout",
    "unknown",
}


def tree(kind: type[SureholdError]) -> Iterator[type[SureholdError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


ALL = tuple(tree(SureholdError))


@requirement("engine:errors:same_everywhere")
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_prints_pickles_and_serialises_the_same_way(kind: type[SureholdError]) -> None:
    error = kind("It went wrong.", path="a.txt", action="Try again.", lines=[1, 2])

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert str(again) == str(error) == "It went wrong. Try again."
    assert again.as_dict() == error.as_dict() == json.loads(json.dumps(error.as_dict()))


@requirement("engine:errors:kinds")
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_kind_is_of_the_closed_set_and_every_error_stands_in_the_drawn_tree(kind: type[SureholdError]) -> None:
    assert kind.kind in CLOSED_SET
    assert errors.__doc__ is not None
    assert kind.__name__ in errors.__doc__


@requirement("engine:errors:sentence", "promise:refusal:next_step")
def test_an_error_carries_what_to_do_next_apart_from_what_is_wrong() -> None:
    error = errors.StaleFile("`a` is not the version you saw.", path="a", expected_sha256="x")

    assert error.as_dict() == {
        "kind": "stale_file",
        "reason": "hash_mismatch",
        "code": -32009,
        "message": "`a` is not the version you saw.",
        "path": "a",
        "suggested_action": "Re-read the file to obtain the current sha256 and re-apply your edit.",
        "recoverable": True,
        "details": {"expected_sha256": "x"},
    }


@requirement("promise:refusal:next_step")
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_refusal_says_what_to_do_next(kind: type[SureholdError]) -> None:
    assert kind("It went wrong.").action.endswith((".", "`."))
