"""Lines of small texts are found again as they always were: every decision for a whole table of texts, counted by kind.

What may be found is proven by the tests of `test_relocate.py`; this one notices that something is decided differently.
Where that is meant, the new counts are in the message of the test that fails.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from surehold.text import relocate
from surehold.text.relocate import LineBlock, LostLines, MovedLines, relocate_lines

Texts = tuple[list[bytes], list[bytes]]
WORDS = (b"alpha_one", b"beta_two", b"}", b"gamma_three")
"""One of them says too little to be told from others."""


def every_range(count: int) -> list[LineBlock]:
    return [
        LineBlock(start=start, end=end) for start in range(count + 1) for end in range(start, min(start + 4, count + 1))
    ]


def small_texts() -> Iterator[Texts]:
    """Yield texts of up to four lines with all that have one line more, less, or another one."""
    for size in range(5):
        for text in product(WORDS[:3], repeat=size):
            base = list[bytes](text)
            for at in range(size + 1):
                for new in ([], [b"new_line_here"], [WORDS[0]], [WORDS[2]]):
                    for gone in (0, 1):
                        yield base, base[:at] + new + base[at + gone :]


def edited_texts(count: int, *, kinds: int) -> Iterator[Texts]:
    """Yield texts with edits and moves of blocks that draw from the same lines."""
    choose = Random(kinds)
    lines = [b"line of kind %d" % kind if kind % 3 else b"%d" % kind for kind in range(kinds + 1)]
    for _ in range(count):
        base = [lines[choose.randrange(kinds)] for _ in range(choose.randrange(1, 40))]
        current = list(base)
        for _ in range(choose.randrange(1, 4)):
            at = choose.randrange(len(current) + 1)
            current[at : at + choose.randrange(3)] = [
                lines[choose.randrange(kinds + 1)] for _ in range(choose.randrange(3))
            ]
        if choose.random() < 0.4:
            at, to = sorted(choose.randrange(len(current) + 1) for _ in range(2))
            block = current[at:to]
            del current[at:to]
            if choose.random() < 0.5:
                at = choose.randrange(len(current) + 1)
                current[at:at] = block
        yield base, current


def decisions(texts: Iterator[Texts]) -> str:
    """Return how often something was decided, and a digest of where it was and by how much context it was found."""
    counts, found = Counter[str](), list[tuple[object, ...]]()
    for base, current in texts:
        wanted = every_range(len(base))
        for block, place in zip(wanted, relocate_lines(base, current, wanted), strict=True):
            match place:
                case MovedLines():
                    assert current[place.start : place.end] == base[block.start : block.end]
                    assert (place.start - block.start, place.end - block.end) == (place.shift, place.shift)
                    counts[place.evidence] += 1
                    found.append((place.shift, place.context))
                case LostLines():
                    counts[place.reason] += 1
                    found.append((place.reason,))
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    return f"{kinds}; {zlib.crc32(repr(found).encode())}"


def test_every_range_of_a_small_text_with_one_edit() -> None:
    assert (
        decisions(small_texts())
        == "3239 above, 11549 ambiguous, 3570 below, 12559 block, 10213 changed, 2141 context, 136 disagree, 12041 same; 3900184100"
    )


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (
            2,
            "111 above, 1855 ambiguous, 112 below, 29 block, 1023 changed, 1482 context, 14 disagree, 254 same; 3763550155",
        ),
        (
            4,
            "133 above, 1297 ambiguous, 132 below, 530 block, 906 changed, 1251 context, 80 disagree, 164 same; 1764586069",
        ),
        (
            9,
            "145 above, 692 ambiguous, 149 below, 1999 block, 894 changed, 1188 context, 63 disagree, 30 same; 4022078049",
        ),
        (
            20,
            "119 above, 198 ambiguous, 104 below, 2063 block, 1018 changed, 534 context, 110 disagree, 13 same; 2554360197",
        ),
        (
            60,
            "93 above, 73 ambiguous, 93 below, 2807 block, 1153 changed, 383 context, 144 disagree, 130 same; 1292839700",
        ),
    ],
)
def test_every_range_of_texts_with_several_edits(kinds: int, wanted: str) -> None:
    assert decisions(edited_texts(60, kinds=kinds)) == wanted


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        pytest.param(
            "_MAX_CANDIDATES",
            2,
            "41 above, 3109 ambiguous, 25 below, 77 block, 981 changed, 92 context, 4 disagree, 164 same; 4184071612",
            id="what occurs more than twice proves nothing",
        ),
        pytest.param(
            "_CONTEXT_STEPS",
            (0, 1, 2),
            "65 above, 2631 ambiguous, 47 below, 217 block, 905 changed, 384 context, 80 disagree, 164 same; 158199079",
            id="context of two lines at most",
        ),
        pytest.param(
            "_AMPLE_CONTEXT_LINES",
            1,
            "147 above, 918 ambiguous, 138 below, 626 block, 906 changed, 1514 context, 80 disagree, 164 same; 865632804",
            id="context of a line is ample",
        ),
        pytest.param(
            "_LINES_OF_A_COPY",
            2,
            "129 above, 1336 ambiguous, 123 below, 530 block, 906 changed, 1225 context, 80 disagree, 164 same; 3368742138",
            id="two lines are a copy",
        ),
        pytest.param(
            "_TELLING_BYTES",
            1,
            "131 above, 1295 ambiguous, 130 below, 540 block, 906 changed, 1247 context, 80 disagree, 164 same; 2825893878",
            id="every line says enough",
        ),
    ],
)
def test_limits_decide_what_they_are_for(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, wanted: str
) -> None:
    monkeypatch.setattr(relocate, name, value)

    assert decisions(edited_texts(60, kinds=4)) == wanted
