"""The form of packed bytes, and where their limits are."""

import random

import pytest

from surehold.stores import packing
from surehold.stores.packing import UnpackError, base_of, pack_full, pack_smallest, unpack_blob, with_base, without_base

NAME = "ab" * 32
NOISE = random.Random(3).randbytes(2_000)


def delta(data: bytes, base: bytes) -> bytes:
    packed = pack_smallest(data, base=base, base_sha256=NAME)
    assert packed[:1] == b"\x01", "this should have been packed as a difference"
    return packed


def test_a_packing_says_which_base_it_needs() -> None:
    assert (pack_full(b"x")[:1], base_of(pack_full(b"x"))) == (b"\x00", "")
    assert base_of(delta(NOISE + b"x", NOISE)) == NAME
    shortest = b"\x01" + bytes.fromhex(NAME) + bytes(16)
    assert base_of(shortest) == NAME
    for rubbish in (shortest[:-1], b"", b"\x02" + shortest[1:], b"\x02"):
        with pytest.raises(UnpackError):
            base_of(rubbish)


def test_the_name_of_the_base_is_taken_out_and_put_in_again() -> None:
    packed, full = delta(NOISE + b"x", NOISE), pack_full(b"x")
    stored = without_base(packed, NAME)
    assert (len(packed) - len(stored), stored[:1]) == (32, b"\x01")
    assert with_base(stored, bytes.fromhex(NAME)) == packed
    assert (without_base(full, ""), with_base(full, None)) == (full, full)


@pytest.mark.parametrize(
    ("data", "base"),
    [
        (NOISE, NOISE),
        (NOISE[:-1], NOISE),
        (NOISE[1:], NOISE),
        (NOISE + b"end", NOISE),
        (b"begin" + NOISE, NOISE),
        (NOISE[:900] + b"middle" + NOISE[900:], NOISE),
        (NOISE[:900] + NOISE[990:], NOISE),
        (NOISE[:900] + NOISE[1100:1163] + NOISE[963:], NOISE),
        (NOISE[:900] + NOISE[1100:1164] + NOISE[964:], NOISE),
        (NOISE[:900] + NOISE[1100:1165] + NOISE[965:], NOISE),
    ],
)
def test_a_difference_unpacks_on_its_base_alone(data: bytes, base: bytes) -> None:
    packed = delta(data, base)
    assert unpack_blob(packed, size=len(data), base=base) == data
    for size, other in ((len(data) + 1, base), (len(data) - 1, base), (len(data), b"")):
        with pytest.raises(UnpackError):
            unpack_blob(packed, size=size, base=other)


@pytest.mark.parametrize(("kept", "whole"), [(0, True), (900, True), (1_000, True), (1_100, False), (1_900, False)])
def test_a_difference_is_used_when_it_saves_half(kept: int, *, whole: bool) -> None:
    data = NOISE[:kept] + random.Random(4).randbytes(2_000 - kept)
    packed = pack_smallest(data, base=NOISE, base_sha256=NAME)
    assert (base_of(packed) == "") is whole
    assert unpack_blob(packed, size=2_000, base=b"" if whole else NOISE) == data


def test_an_obvious_difference_is_not_compared_with_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: bytes) -> bytes:
        pytest.fail("the whole was packed too")

    monkeypatch.setattr(packing, "pack_full", fail)
    base = NOISE * 10
    assert base_of(pack_smallest(base + b"x", base=base, base_sha256=NAME)) == NAME


def test_what_is_known_of_both_ends_is_used_and_no_more_than_that() -> None:
    data = NOISE[:900] + b"middle" + NOISE[900:]
    for shared in ((0, 0), (10, 10), (900, 1_100), (900, 0), (0, 1_100)):
        packed = pack_smallest(data, base=NOISE, base_sha256=NAME, shared=shared)
        assert packed == delta(data, NOISE)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 1])
def test_bytes_of_any_size_come_back_with_and_without_a_base(size: int) -> None:
    noise = random.Random(size)
    base, data = noise.randbytes(size), noise.randbytes(size // 3)
    data = data + base[: size // 3] + b"-" + base[size // 3 + 7 :]
    packed = pack_smallest(data, base=base, base_sha256=NAME)
    needed = base if base_of(packed) else b""
    assert unpack_blob(packed, size=len(data), base=needed) == data
    assert unpack_blob(pack_full(data), size=len(data)) == data


@pytest.mark.parametrize("size", [63, 64])
def test_a_short_middle_of_the_base_is_no_dictionary(size: int) -> None:
    assert packing._usable_dictionary(NOISE[:size]) == (None if size < 64 else NOISE[:size])  # pyright: ignore[reportPrivateUsage]
    assert packing._usable_dictionary(bytes(8 << 20)) is not None  # pyright: ignore[reportPrivateUsage]
    assert packing._usable_dictionary(bytes((8 << 20) + 1)) is None  # pyright: ignore[reportPrivateUsage]


def test_rubbish_and_a_wrong_size_are_damage() -> None:
    for packed, size in (
        (b"\x00rubbish", 7),
        (pack_full(b"abc"), 4),
        (pack_full(b"abc"), 2),
        (pack_full(b"abc")[:-1], 3),
    ):
        with pytest.raises(UnpackError):
            unpack_blob(packed, size=size)
