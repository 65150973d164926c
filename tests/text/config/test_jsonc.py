"""Setting and taking out one value of a JSON file with comments, while every other byte stays."""

import json
from json import JSONDecodeError
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text.config.jsonc import JsoncText

HANDWRITTEN = """\
// my settings
{
    "a": 1, // one
    /* two */ "b": [1, 2,], "c": {},
    "servers": {
        "other": {"command": "x"} // theirs
    } // end
}
"""


def value_of(text: str) -> Any:
    return JsoncText(text).top.value


def test_a_value_is_added_below_the_last_one_and_comments_stay_where_they_are() -> None:
    text = JsoncText(HANDWRITTEN).set_value(("servers", "ours"), {"command": "y"})

    assert text == HANDWRITTEN.replace(
        '{"command": "x"} // theirs\n',
        '{"command": "x"}, // theirs\n        "ours": {\n            "command": "y"\n        }\n',
    )
    assert JsoncText(text).remove_member(("servers", "ours")) == HANDWRITTEN


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 2}', '{"x": 2, "a": {"b": 1}}'),
        ('{"a": {}}', '{"a": {\n    "b": 1\n  }}'),
        ('{\r\n\t"x": 2,\r\n}\r\n', '{\r\n\t"x": 2,\r\n\t"a": {\r\n\t\t"b": 1\r\n\t},\r\n}\r\n'),
        ('{"a": {"b": 2}}', '{"a": {"b": 1}}'),
        ("{ // empty\n}", '{ // empty\n  "a": {\n    "b": 1\n  }\n}'),
    ],
)
def test_a_value_is_written_as_the_file_writes(before: str, after: str) -> None:
    assert JsoncText(before).set_value(("a", "b"), 1) == after


def test_items_are_added_to_a_list_and_taken_out_again() -> None:
    before = '{"hooks": {"Stop": [{"theirs": 1}]}}'
    text = JsoncText(before).add_item(("hooks", "Stop"), {"ours": 1})

    assert text == '{"hooks": {"Stop": [{"theirs": 1}, {"ours": 1}]}}'
    assert JsoncText(text).remove_items(("hooks", "Stop"), lambda item: "ours" in item) == before


def test_a_comment_beside_the_only_member_stays_when_that_is_taken_out() -> None:
    before = '{"servers": {\n  // mine\n  "ours": 1\n}}'

    assert JsoncText(before).remove_member(("servers", "ours")) == '{"servers": {\n  // mine\n}}'
    assert JsoncText('{"servers": {\n  "ours": 1\n}}').remove_member(("servers", "ours")) == '{"servers": {}}'


@pytest.mark.parametrize("text", ["{", '{"a" 1}', "{'a': 1}", '{"a": 1} x', "[1 2]", '{"a": nul}', "{,}", "/*"])
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(JSONDecodeError):
        JsoncText(text)


def test_a_value_is_not_set_inside_something_that_is_no_object() -> None:
    with pytest.raises(JSONDecodeError):
        JsoncText('{"a": [1]}').set_value(("a", "b"), 1)
    with pytest.raises(JSONDecodeError):
        JsoncText('{"a": {}}').add_item(("a",), 1)


keys = st.sampled_from(["a", "b", "ours"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
spellings = st.sampled_from([None, 1, 2, "\t"])


@given(value=st.dictionaries(keys, values, max_size=3), indent=spellings, place=st.lists(keys, min_size=1, max_size=3))
def test_a_value_that_was_added_and_taken_out_leaves_the_exact_bytes(
    value: dict[str, Any], indent: Any, place: list[str]
) -> None:
    text, where = json.dumps(value, indent=indent), tuple(place)
    inner, count = cast("Any", value), 0
    while count < len(where) and isinstance(inner, dict) and where[count] in inner:
        inner, count = cast("Any", inner[where[count]]), count + 1
    if count == len(where) or not isinstance(inner, dict):
        return  # it is there already, or there is no such place
    added = JsoncText(text).set_value(where, {"new": [1]})

    assert value_of(added) != value
    assert JsoncText(added).find_node(where) is not None
    assert value_of(JsoncText(added).remove_member(where[: count + 1])) == value
    empty = inner == {}
    assert JsoncText(added).remove_member(where[: count + 1]) == text or empty
