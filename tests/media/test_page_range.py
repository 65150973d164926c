import pytest

from spec.marks import requirement
from surehold.errors import PdfBadRange
from surehold.media.documents import page_numbers, page_ranges


@requirement("claude:read:pdf_pages")
@pytest.mark.parametrize(
    ("pages", "numbers"),
    [
        ("3", (3,)),
        ("1-5", (1, 2, 3, 4, 5)),
        ("1,4,7-9", (1, 4, 7, 8, 9)),
        (" 2 , 1 ", (1, 2)),
        ("1-3,2-4", (1, 2, 3, 4)),
        ("10-20", tuple(range(10, 21))),
        ("1-20", tuple(range(1, 21))),
        ("30", (30,)),
        ("2–3", (2, 3)),
    ],
)
def test_numbers_ranges_and_lists_name_pages(pages: str, numbers: tuple[int, ...]) -> None:
    assert page_numbers(pages, 30, path="a.pdf") == numbers


@requirement("claude:read:pdf_pages")
@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ("0", "counted from 1"),
        ("5-3", "5 is after 3"),
        ("3-", "neither a page nor a range"),
        ("-3", "neither a page nor a range"),
        ("1-21", "at most 20 pages"),
        ("1-20,25", "at most 20 pages"),
        ("900", "the last page is 30"),
        ("1-999999999", "the last page is 30"),
        ("1,,2", "neither a page nor a range"),
        ("all", "neither a page nor a range"),
        ("१", "neither a page nor a range"),
        ("9" * 5000, "neither a page nor a range"),
    ],
)
def test_pages_that_make_no_sense_are_refused_with_the_reason(pages: str, why: str) -> None:
    with pytest.raises(PdfBadRange) as refused:
        page_numbers(pages, 30, path="a.pdf")

    assert why in refused.value.message
    assert refused.value.action == "Name at most 20 of the pages 1 to 30, such as '1-5'."
    assert refused.value.details == {"page_count": 30}


def test_pages_are_named_back_as_a_caller_would_name_them() -> None:
    assert page_ranges((1, 2, 3, 5, 7, 8)) == "1-3,5,7-8"
    assert page_ranges(()) == ""
