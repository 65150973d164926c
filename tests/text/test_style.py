import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.strategies import Sample, samples
from spec.marks import requirement
from surehold.errors import InvalidArgument, MultipleMatches, NotEncodable, SureholdError
from surehold.text.encoding import encoding_named
from surehold.text.quoted.matching import straighten_quotes
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.snapshot import Snapshot


def edited(text: str, old: str, new: str, *, codec: str = "utf-8", replace_all: bool = False) -> str:
    snapshot = Snapshot(text.encode(codec), encoding=encoding_named(codec))
    return StyledEdit(old=old, new=new, replace_all=replace_all).plan(snapshot).after.data.decode(codec)


@requirement("claude:edit:style_kept")
@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("He said “hello”.", 'said "hello".', 'said "goodbye".', "He said “goodbye”."),
        ("say “a1” and “b2” now", 'say "a1" and "b2" now', 'say "c" and "d" now', "say “c” and “d” now"),
        ("it’s “fine”\n", 'it\'s "fine"', 'it\'s "fine" = re("x")', 'it’s “fine” = re("x")\n'),
        ("x “abc” y", '"abc"', 'f("b")', 'x f("b") y'),
        ("don’t stop", "don't stop", "can't stop", "can’t stop"),
        ("don’t stop", "don't stop", "never stop", "never stop"),
        ("‘one’ two", "'one' two", "two", "two"),
    ],
)
def test_what_both_texts_share_keeps_the_quotes_of_the_file(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new) == expected


@requirement("claude:edit:quote_purpose")
@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("say “hi you”", "“hi you”", '"hi you"', 'say "hi you"'),
        ('say "hi you"', '"hi you"', "“hi you”", "say “hi you”"),
        ("say “hi you”", '"hi you"', "'hi you'", "say 'hi you'"),
        ("say “hi you”", '"hi you"', "«hi you»", "say «hi you»"),
    ],
)
def test_an_edit_of_the_quotes_themselves_is_made(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new) == expected


@requirement("claude:edit:style_kept")
@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nX\nb\nc\n", b"a\r\nX\r\nb\nc\r\nd\n"),
        (b"a\nb\r\nc\n", "b", "1\n2", b"a\n1\r\n2\r\nc\n"),
        (b"a\r\nb\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\n"),
        (b"a\rb\rc", "a\nb", "x\ny\nz", b"x\ry\rz\rc"),
        (b"a\r\nb", "a\r\n", "a\n", b"a\nb"),
        (b"a\r\nb\nc\n", "a\r\nb", "a\nb", b"a\nb\nc\n"),
        (b"one", "one", "one\ntwo", b"one\ntwo"),
        (b"x\rinside\ny\n", "inside", "a\rb", b"x\ra\rb\ny\n"),
    ],
)
def test_line_endings_stay_and_new_ones_follow_the_line_above(data: bytes, old: str, new: str, expected: bytes) -> None:
    assert StyledEdit(old=old, new=new).plan(Snapshot(data)).after.data == expected


@requirement("claude:edit:literal")
@pytest.mark.parametrize("new", ["$1", "\\1", "\\n", "\\\\title", "$&", "\\g<0>", "{0}"])
def test_the_replacement_is_written_literally(new: str) -> None:
    assert edited("put it here", "it", new) == f"put {new} here"


@requirement("claude:edit:unique")
def test_all_places_are_replaced_once_also_when_the_new_text_holds_the_old_one() -> None:
    assert edited("a b a", "a", "aa", replace_all=True) == "aa b aa"
    assert edited("it’s, it‘s, it's!", "it’s, it'", "X", replace_all=True) == "Xs, it's!"
    assert edited("say ‘it’ and ’it‛ x", "'it'", "'IT'", replace_all=True) == "say ‘IT’ and ’IT‛ x"


@requirement("claude:edit:unique")
@pytest.mark.parametrize(("text", "old"), [("aaa", "aa"), ("“ab” ”ab„", '"ab"'), ("x\r\nx\r\n", "x\n")])
def test_a_text_in_several_places_is_refused(text: str, old: str) -> None:
    with pytest.raises(MultipleMatches) as caught:
        edited(text, old, "y")

    assert caught.value.details["count"] == 2


def test_bytes_that_would_not_be_encoded_the_same_way_again_are_copied() -> None:
    data = b"\xfa\x54 \x81\x67quoted\x81\x68 \xfa\x54 end\n"  # Python's cp932 would write FA54 as 81CA
    snapshot = Snapshot(data, encoding=encoding_named("cp932"))

    sign = b"\xfa\x54".decode("cp932")

    plan = StyledEdit(old=f'{sign} "quoted" {sign} end', new=f'{sign} "quoted" {sign} END').plan(snapshot)

    assert plan.applied[0].tier == "quotes"
    assert plan.after.data == b"\xfa\x54 \x81\x67quoted\x81\x68 \xfa\x54 END\n"
    plain = StyledEdit(old=f"{sign} end", new=f"{sign} END").plan(snapshot)
    assert plain.applied[0].tier == "exact"
    assert plain.after.data == b"\xfa\x54 \x81\x67quoted\x81\x68 \xfa\x54 END\n"


def test_new_characters_that_the_encoding_cannot_hold_are_named() -> None:
    with pytest.raises(NotEncodable) as caught:
        edited("naïve text", "text", "✓ 😀", codec="latin-1")

    assert caught.value.details["characters"] == ["U+2713", "U+1F600"]
    assert edited("it's naïve", "it’s naïve", "it’s so naïve", codec="latin-1") == "it's so naïve"


@requirement("claude:edit:no_change")
def test_the_same_text_is_no_edit() -> None:
    with pytest.raises(InvalidArgument) as caught:
        StyledEdit(old="a", new="a")

    assert caught.value.reason == "same_text"


def test_an_empty_old_text_fills_an_empty_file_only() -> None:
    assert StyledEdit(old="", new="text\n").plan(Snapshot(b"")).after.data == b"text\n"
    assert StyledEdit(old="", new="text\n").plan(Snapshot(b"\xef\xbb\xbf")).after.data == b"\xef\xbb\xbftext\n"
    with pytest.raises(InvalidArgument) as caught:
        StyledEdit(old="", new="text\n").plan(Snapshot(b"\n"))
    assert caught.value.reason == "empty_old_text"


@requirement("claude:edit:style_kept")
@given(samples(("utf-8", "cp1252", "gbk", "shift_jis", "utf-16-le")), st.data())
def test_bytes_outside_of_the_replaced_text_stay(sample: Sample, data: st.DataObject) -> None:
    assume(any(sample.rows))
    old = data.draw(st.sampled_from([row for row in sample.rows if row]))
    new = data.draw(st.text("ab \n", max_size=6).filter(lambda text: text != old))
    snapshot = Snapshot(sample.data, encoding=sample.encoding)
    try:
        plan = StyledEdit(old=old, new=new, replace_all=True).plan(snapshot)
    except SureholdError as error:
        raise AssertionError(f"{old!r} is a row of {sample.data!r}") from error

    kept, at = b"", 0
    for span in plan.spans:
        kept += sample.data[at : span.start] + span.new
        at = span.end
    assert kept + sample.data[at:] == plan.after.data


_WORDS = st.lists(
    st.sampled_from(["one", "two", "three", "'four'", '"five"', "it's", "(", ")"]), min_size=2, max_size=8
)


@requirement("claude:edit:style_kept")
@given(_WORDS, _WORDS, st.data())
def test_the_result_says_what_was_sent_and_only_quotes_differ(
    old: list[str], new: list[str], data: st.DataObject
) -> None:
    assume(old != new)
    sent, wanted = " ".join(old), " ".join(new)
    curly = {"'": "‘’‚‛'", '"': '“”„‟"'}
    there = "".join(data.draw(st.sampled_from(curly[sign])) if sign in curly else sign for sign in sent)

    after = edited(f"<{there}>", sent, wanted)[1:-1] if len(sent) >= 4 else wanted

    assert straighten_quotes(after) == wanted


@requirement("claude:edit:style_kept")
@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("two", "2", b"one\r\n2\n2 three\r\n2"),
        ("two\n", "", b"one\r\ntwo three\r\ntwo"),
        ("one\ntwo\n", "1 ", b"1 two three\r\ntwo"),
    ],
)
def test_a_text_without_line_breaks_goes_into_a_file_of_mixed_endings(old: str, new: str, after: bytes) -> None:
    before = Snapshot(b"one\r\ntwo\ntwo three\r\ntwo")

    assert StyledEdit(old=old, new=new, replace_all=True).plan(before).after.data == after
