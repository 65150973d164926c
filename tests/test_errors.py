import ast
import importlib
import json
import pickle
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import surehold
from spec.marks import requirement
from surehold import errors
from surehold.errors import SureholdError

SOURCE = Path(errors.__file__).parent
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
    "schema_invalid",
    "anchor_stale",
    "range_unseen",
    "anchor_low_entropy",
    "anchor_ambiguous",
    "anchor_context_ambiguous",
    "invalid_range_order",
    "overlapping_operations",
    "no_change",
    "safety_check_failed",
    "image_invalid",
    "image_too_large",
    "pdf_invalid",
    "pdf_encrypted",
    "pdf_pages_required",
    "pdf_bad_range",
    "use_notebook_edit",
    "notebook_invalid",
    "cell_not_found",
    "cell_ambiguous",
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


def drawn() -> dict[str, tuple[str, str]]:
    """Read the drawing at the top of the module: the name of every error, its parent, and what is said about it."""
    assert errors.__doc__ is not None
    rows, branch = dict[str, tuple[str, str]](), dict[int, str]()
    for row in re.findall(r"^    ((?:[│├└ ]  ?|[├└]─ )*)(\w+)(.*)$", errors.__doc__.split("\n\n")[1], re.MULTILINE):
        indent, name, facts = row
        depth = len(indent) // 3
        branch[depth] = name
        rows[name] = (branch.get(depth - 1, ""), facts)
    return rows


@requirement("engine:errors:tree", "engine:errors:kinds")
def test_the_tree_is_drawn_as_it_is() -> None:
    for module in pkgutil.walk_packages(surehold.__path__, "surehold."):
        if not module.name.endswith("__main__") and not module.name.startswith("surehold.adapters."):
            importlib.import_module(module.name)
    known = tuple(tree(SureholdError))

    rows = drawn()

    assert {kind.__module__ for kind in known} == {"surehold.errors"}
    assert {name: parent for name, (parent, _) in rows.items()} == {
        kind.__name__: kind.__base__.__name__ if kind.__base__ and kind is not SureholdError else "" for kind in known
    }
    for kind in known:
        _, facts = rows[kind.__name__]
        if not kind.__subclasses__() or kind.kind in facts:  # a branch is described in words instead
            assert kind.kind in facts
            assert kind.default_reason in facts or "·" not in facts
            assert str(kind.code) in facts or not re.search(r"-\d{5}", facts)


@requirement("engine:errors:sentence")
def test_every_message_in_the_source_is_one_sentence_without_the_next_step() -> None:
    names = {kind.__name__ for kind in ALL}
    own_words = [file for file in SOURCE.rglob("*.py") if "multi_edit" not in file.parts]  # that contract has its own
    texts = [text for file in own_words for text in messages(ast.parse(file.read_text()), names)]

    assert len(texts) > 50
    assert [text for text in texts if not re.fullmatch(r"[^a-z\s].*[^.]\.", text) or ". " in text] == []


def messages(module: ast.Module, names: set[str]) -> Iterator[str]:
    """Yield the first argument of every error that is made here, with X for what is filled in."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text)), *_]) if name in names:
                yield text
            case ast.Call(func=ast.Name(id=name), args=[ast.JoinedStr(values=values), *_]) if name in names:
                yield "".join(str(value.value) if isinstance(value, ast.Constant) else "X" for value in values)
            case _:
                pass
