import json
from json import JSONDecodeError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text.notebook.json_spans import JsonText

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def walked(text: str, at: int = 0) -> tuple[Any, int]:
    """Read a value by walking through everything, and put it together again from the places."""
    here = JsonText(text)
    if text.startswith("{", at):
        found = here.read_object(at, lambda key, start: walked(text, start)[1])
        return {one.key: walked(text, one.start)[0] for one in found.members}, found.end
    if text.startswith("[", at):
        array = here.read_array(at, lambda start: walked(text, start)[1])
        return [walked(text, one.start)[0] for one in array.members], array.end
    return here.read_value(at)


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_place_holds_the_value_that_json_reads_there(value: Any, indent: int | str | None, wide: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=not wide)

    assert walked(text) == (value, len(text))


def test_a_member_knows_its_key_and_its_value() -> None:
    text = '{ "a" : 1,\r\n\t"b\\u0062":[ true ] }'
    json_text = JsonText(text)

    found = json_text.read_object(0, lambda key, at: json_text.read_value(at)[1])

    assert [(one.key, text[one.at : one.key_end], text[one.start : one.end]) for one in found.members] == [
        ("a", '"a"', "1"),
        ("bb", '"b\\u0062"', "[ true ]"),
    ]
    assert (found.start, found.end) == (0, len(text))


@pytest.mark.parametrize(
    "text", ["{", "{}}", '{"a"}', '{"a":}', '{"a":1,}', '{"a":1 "b":2}', "{a:1}", '{"a":1', "{,}", '{"a\n":1}', "[", ""]
)
def test_what_json_refuses_is_refused(text: str) -> None:
    with pytest.raises(JSONDecodeError):
        json.loads(text)

    here = JsonText(text)
    with pytest.raises(JSONDecodeError):
        here.expect_end(here.read_object(0, lambda key, at: here.read_value(at)[1]).end)


@pytest.mark.parametrize("text", ["[1,]", "[,1]", "[1 2]", "[1", "[}"])
def test_what_json_refuses_in_an_array_is_refused(text: str) -> None:
    here = JsonText(text)

    with pytest.raises(JSONDecodeError):
        here.read_array(0, lambda at: here.read_value(at)[1])


def test_a_key_that_stands_twice_is_named() -> None:
    here = JsonText('{"a": 1, "b": 2, "\\u0061": 3}')

    assert here.read_object(0, lambda key, at: here.read_value(at)[1]).repeated_key == "a"
