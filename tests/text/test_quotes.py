import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.strategies import Sample, samples
from spec.marks import requirement
from surehold.text.encoding import RAW, encoding_named
from surehold.text.quoted.matching import DOUBLE_QUOTES, SINGLE_QUOTES, Haystack, TextMatches, straighten_quotes
from surehold.text.snapshot import Snapshot


def find_quoted(snapshot: Snapshot, needle: str) -> TextMatches:
    return Haystack(snapshot, quotes=True).find(needle)


def texts(data: bytes, needle: str, encoding: str | None = None) -> list[str]:
    """Return what is at every place, as characters."""
    snapshot = Snapshot(data, encoding=encoding)
    found = find_quoted(snapshot, needle)
    return [snapshot.encoding.decode(data[slice(*match)]) for match in found.found]


@requirement("claude:edit:tiers")
@pytest.mark.parametrize("curly", SINGLE_QUOTES)
def test_every_single_quote_is_found_by_a_straight_one(curly: str) -> None:
    assert texts(f"it{curly}s me".encode(), "it's me") == [f"it{curly}s me"]
    assert texts(b"it's me", f"it{curly}s me") == ["it's me"]


@requirement("claude:edit:tiers")
@pytest.mark.parametrize("curly", DOUBLE_QUOTES)
def test_every_double_quote_is_found_by_a_straight_one(curly: str) -> None:
    assert texts(f"a {curly}b".encode(), 'a "b') == [f"a {curly}b"]
    assert texts(b'a "b', f"a {curly}b") == ['a "b']


@requirement("claude:edit:tiers")
def test_a_single_quote_is_not_a_double_one() -> None:
    assert not texts("say ‘hello’".encode(), 'say "hello"')


@requirement("claude:edit:tiers")
def test_the_first_tier_that_finds_anything_decides() -> None:
    data = 'say "yes"\r\nsay “yes”\r\n'.encode()

    exact = find_quoted(Snapshot(data), 'say "yes"')
    endings = find_quoted(Snapshot(data), 'say "yes"\n')
    quotes = find_quoted(Snapshot(data), 'say "yes"\nsay "yes"\n')

    assert (exact.tier, exact.found) == ("exact", ((0, 9),))
    assert (endings.tier, endings.found) == ("line_endings", ((0, 11),))
    assert (quotes.tier, quotes.found) == ("quotes", ((0, len(data)),))


@requirement("claude:edit:tiers")
@pytest.mark.parametrize("needle", ["'a'", '""""', "' ' '", "\n'\n\t'\n", "''''''"])
def test_a_text_that_says_nothing_is_not_looked_for_by_quotes(needle: str) -> None:
    data = "‘a’ ““““ ‘ ’ ‘ \n’\n\t’\n ‘‘‘‘‘‘".encode()

    assert find_quoted(Snapshot(data), needle).count == 0


@requirement("claude:edit:unique")
def test_places_that_overlap_count_as_two() -> None:
    found = find_quoted(Snapshot("’ab’ab’".encode()), "'ab'")

    assert (found.tier, len(found.found), found.count) == ("quotes", 1, 2)


@pytest.mark.parametrize(
    "codec", ["cp1252", "gbk", "shift_jis", "big5", "utf-16-le", "utf-16-be", "utf-32-le", "euc-kr"]
)
def test_curly_quotes_are_found_in_every_encoding_that_has_them(codec: str) -> None:
    text = "first ’\r\n中 “quoted” text\n" if codec not in ("cp1252", "euc-kr") else "first ’\r\né “quoted” text\n"
    text = text.replace("é", "한") if codec == "euc-kr" else text
    data = text.encode(codec)
    snapshot = Snapshot(data, encoding=encoding_named(codec))

    found = find_quoted(snapshot, '"quoted" text\n')

    (match,) = found.found
    assert data[slice(*match)] == "“quoted” text\n".encode(codec)


def test_a_quote_is_not_found_between_two_characters_of_gbk() -> None:
    data = b"x\xb0\xa1\xae\x40 tail"  # the inner bytes of two characters are those of a curly quote
    snapshot = Snapshot(data, encoding=encoding_named("gbk"))

    assert find_quoted(snapshot, "\u2018@ tail").count == find_quoted(snapshot, "'@ tail").count == 0


def test_a_search_after_one_that_ended_inside_of_a_character_begins_anew() -> None:
    haystack = Haystack(Snapshot("a表".encode("shift_jis"), encoding=encoding_named("shift_jis")))

    assert haystack.find("\\").count == 0  # the second byte of the character
    assert haystack.find("a").found == ((0, 1),)


def test_bytes_without_an_encoding_are_searched_as_ascii() -> None:
    data = b"caf\xe9\xff say 'hi' \xfe\n"
    found = find_quoted(Snapshot(data, encoding=RAW), "say ‘hi’")

    assert [data[slice(*match)] for match in found.found] == [b"say 'hi'"]


def test_a_place_far_inside_of_a_long_line_has_the_right_bytes() -> None:
    row = "表é😀" * 5_000
    text = f"{row}it’s here{row}"
    data = text.encode()

    (match,) = find_quoted(Snapshot(data), "it's here").found

    assert data[slice(*match)] == "it’s here".encode()


@requirement("claude:edit:tiers", "claude:edit:no_similarity")
@given(samples(("utf-8", "cp1252", "gbk", "utf-16-le")), st.data())
def test_whatever_is_found_says_the_same_but_for_quotes_and_line_ends(sample: Sample, data: st.DataObject) -> None:
    needle = data.draw(st.text("ab'\"“’\n\r é", min_size=1, max_size=6))
    snapshot = Snapshot(sample.data, encoding=sample.encoding)

    for match in find_quoted(snapshot, needle).found:
        there = sample.encoding.decode(sample.data[slice(*match)])
        assert _plain(there) == _plain(needle)


def _plain(text: str) -> str:
    return straighten_quotes(text).replace("\r\n", "\n").replace("\r", "\n")


@requirement("claude:edit:tiers", "claude:edit:unique")
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8", "cp1252", "cp932"])
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_a_line_break_is_one_break_and_overlapping_places_are_two(codec: str, end: str) -> None:
    snapshot = Snapshot("a\n\n\nb\n}\n}\n}\nend\n".replace("\n", end).encode(codec), encoding=encoding_named(codec))
    counts = {
        text: find_quoted(snapshot, text).count
        for text in ("a\n\n\n\nb", "\n\n\n\n", "a\n\n\nb\n", "\n\n", "}\n}\n", "}\n}")
    }

    assert counts == {"a\n\n\n\nb": 0, "\n\n\n\n": 0, "a\n\n\nb\n": 1, "\n\n": 2, "}\n}\n": 2, "}\n}": 2}
