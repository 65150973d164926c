import pytest

from media.samples import decoded, pdf, pdf_of_stream
from spec.marks import requirement
from surehold.errors import PdfBadRange, PdfEncrypted, PdfInvalid
from surehold.media import workers
from surehold.media.documents import Document, DocumentFacts, OutlineEntry, decode_document, page_numbers


def shown(data: bytes, *numbers: int, room: int = 1 << 30) -> Document:
    return decode_document(data, lambda _: numbers, path="a.pdf", room=room)


@requirement("claude:read:pdf_parts")
def test_every_page_has_its_text_and_its_picture() -> None:
    found = shown(pdf(["Hello (one)\nsecond line", "Page two"]), 1, 2)

    assert [(page.number, page.text) for page in found.pages] == [(1, "Hello (one)\nsecond line"), (2, "Page two")]
    for page in found.pages:
        assert page.image is not None
        assert page.display is not None
        picture = decoded(page.image)
        assert (picture.format, picture.size) == ("JPEG", (page.display.width, page.display.height))
        assert max(picture.size) <= 1568
    assert found.unfinished == ()


def test_a_document_says_what_it_is_before_any_page_is_shown() -> None:
    data = pdf([f"page {number}" for number in range(1, 13)], outline=[("Intro", 1), ("The end", 12)])

    found = decode_document(data, lambda _: (), path="a.pdf", density_above=10)

    outline = (OutlineEntry(title="Intro", level=0, page=1), OutlineEntry(title="The end", level=0, page=12))
    assert found.facts == DocumentFacts(
        count=12, title="", outline=outline, outline_cut=False, characters=(6,) * 9 + (7,) * 3
    )
    assert found.pages == ()


@pytest.mark.parametrize("size", [(14_400, 14_400), (14_400, 3), (2, 2)])
def test_a_page_of_any_size_costs_no_more_than_a_page(size: tuple[int, int]) -> None:
    (page,) = shown(pdf(["x"], size=size), 1).pages

    assert page.image is not None
    assert max(decoded(page.image).size) <= 1568


def test_where_the_room_for_pictures_ends_pages_are_text_alone() -> None:
    found = shown(pdf(["a", "b", "c"]), 1, 2, 3, room=50_000)

    assert [(page.text, page.image is None, page.left_out) for page in found.pages] == [
        ("a", False, False),
        ("b", True, True),
        ("c", True, True),
    ]


@pytest.mark.parametrize(
    "data",
    [b"%PDF-1.7\nnothing else", b"<html>not one</html>", b"", pdf([]), pdf(["x"])[:60]],
    ids=["fake", "html", "empty", "no pages", "cut"],
)
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(PdfInvalid) as refused:
        shown(data, 1)

    assert refused.value.details == {"cause": "it has no pages that can be read"}


def test_headings_that_are_too_many_are_not_left_out_silently() -> None:
    found = decode_document(pdf(["one"], outline=[("again", 1)] * 61), lambda _: (), path="a.pdf")

    assert (len(found.facts.outline), found.facts.outline_cut) == (60, True)


def test_a_document_with_a_password_is_refused_as_such() -> None:
    with pytest.raises(PdfEncrypted) as refused:
        shown(pdf(["secret"], password=True), 1)

    assert refused.value.action == "Ask a person for a copy without a password."


def test_the_trouble_of_one_document_is_not_told_of_the_next() -> None:
    with pytest.raises(PdfEncrypted):
        shown(pdf(["secret"], password=True), 1)

    with pytest.raises(PdfInvalid):
        shown(pdf([]), 1)


def test_a_refusal_of_who_chooses_comes_through_and_the_next_call_works() -> None:
    data = pdf(["a", "b"])

    with pytest.raises(PdfBadRange):
        decode_document(data, lambda facts: page_numbers("9", facts.count, path="a.pdf"), path="a.pdf")

    assert [page.text for page in shown(data, 2).pages] == ["b"]


def test_pages_in_the_middle_of_a_long_document_are_found() -> None:
    data = pdf([f"this is page {number}" for number in range(1, 801)])

    assert [page.text for page in shown(data, 400, 800).pages] == ["this is page 400", "this is page 800"]


def test_a_document_of_endless_strokes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PROCESSOR_SECONDS", 2.0)
    strokes = b"0 0 m 600 700 l S 600 0 m 0 700 l S " * 600_000

    with pytest.raises(PdfInvalid) as refused:
        shown(pdf_of_stream(strokes), 1)

    assert (refused.value.reason, refused.value.message) == ("timeout", "The pages of `a.pdf` take too long to draw.")
