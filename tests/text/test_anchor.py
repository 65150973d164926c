import pytest

from spec.marks import requirement
from surehold.errors import SchemaInvalid
from surehold.text.anchored.anchor import Anchor, parse_anchor


@requirement("anchored:anchor:spellings")
@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("5da3f1", Anchor(hash="5da3f1")),
        ("5DA3F1", Anchor(hash="5da3f1")),
        ("d41d", Anchor(hash="d41d")),
        ("1234", Anchor(hash="1234")),
        ("a" * 64, Anchor(hash="a" * 64)),
        ("5da3f1.7", Anchor(hash="5da3f1", occurrence=7)),
        ("118#5da3f1", Anchor(hash="5da3f1", line=118)),
        ("118#5DA3F1.7", Anchor(hash="5da3f1", line=118, occurrence=7)),
        ("  118#5da3f1 \n", Anchor(hash="5da3f1", line=118)),
        ("118#5da3f1.7!", Anchor(hash="5da3f1", line=118, occurrence=7)),
        ("118#5da3f1|  text", Anchor(hash="5da3f1", line=118, tail="  text")),
        ("118#5da3f1.7~|a | b", Anchor(hash="5da3f1", line=118, occurrence=7, tail="a | b")),
        ("118#5da3f1!|", Anchor(hash="5da3f1", line=118, tail="")),
        ("118#5da3f1|text\r\n", Anchor(hash="5da3f1", line=118, tail="text")),
        ("119#c812f1+2", Anchor(hash="c812f1", line=119, offset=2)),
        ("119#c812f1-1", Anchor(hash="c812f1", line=119, offset=-1)),
        ("c812f1.2+10", Anchor(hash="c812f1", occurrence=2, offset=10)),
        ("5da3f1@CAFEBABE", Anchor(hash="5da3f1", context="cafebabe")),
        ("BOF", Anchor(hash="", edge="BOF")),
        (" eof ", Anchor(hash="", edge="EOF")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_spelling_of_an_anchor_is_read(text: str, anchor: Anchor) -> None:
    assert parse_anchor(text, field="hash") == anchor


@requirement("anchored:anchor:malformed")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12:a1b2c3", "12#a1b2c3"),
        ("12 # a1b2c3", "12#a1b2c3"),
        (">>> 12#a1b2c3|x = 1", "12#a1b2c3"),
        ("+12#a1b2c3.2|x = 1", "12#a1b2c3.2"),
        ("- 12#a1b2c3", "12#a1b2c3"),
        ("12#a1b2c3 [high]|x = 1", "12#a1b2c3"),
        ("`a1b2c3`", "a1b2c3"),
        ("#a1b2c3", "a1b2c3"),
        ("0xa1b2c3", "a1b2c3"),
        ("hash: A1B2C3", "a1b2c3"),
        ("12|a1b2c3", "12#a1b2c3"),
        ("0#a1b2c3", "a1b2c3"),
        ("a1b2c3.x", "a1b2c3"),
    ],
)
def test_a_decorated_anchor_is_refused_with_the_one_that_was_meant(text: str, meant: str) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        parse_anchor(text, field="start_hash")

    assert caught.value.details["did_you_mean"] == meant
    assert caught.value.details["field"] == "start_hash"
    assert meant in caught.value.message
    assert meant in caught.value.action


@requirement("anchored:anchor:malformed")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("a1b", "at least 4 digits"),
        ("12#a1b", "at least 4 digits"),
        ("118", "needs the hash"),
        ("118#", "needs the hash"),
        ("a" * 65, ""),
        ("zzzzzz", ""),
        ("the added line", ""),
        ("1#a1b2c3|one\n2#b1b2c3|two", ""),
        ("12#a1b2c3 and 13#b1b2c3", ""),
    ],
)
def test_what_is_no_anchor_is_refused_without_a_guess(text: str, reason: str) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        parse_anchor(text, field="hash")

    assert caught.value.details["did_you_mean"] is None
    assert reason in caught.value.message
    assert "118#5da3f1" in caught.value.details["accepted"]
    assert caught.value.message.endswith((".", "?"))


def test_a_very_long_value_is_named_by_its_beginning() -> None:
    with pytest.raises(SchemaInvalid) as caught:
        parse_anchor("x" * 10_000, field="hash")

    assert len(caught.value.message) < 200
