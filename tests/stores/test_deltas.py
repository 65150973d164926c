"""Packing and unpacking, as pure functions."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.stores import packing
from surehold.text.align import shared_ends

BASE_NAME = "ab" * 32
_pieces = st.lists(st.sampled_from([b"", b"a", b"line\n", b"x" * 70_000, b"\x00\xff" * 40]), max_size=6).map(b"".join)
_pairs = st.one_of(
    st.tuples(st.binary(max_size=300), st.binary(max_size=300)),
    st.tuples(_pieces, _pieces),
    st.tuples(_pieces, _pieces, _pieces, _pieces).map(
        lambda parts: (parts[0] + parts[1] + parts[3], parts[0] + parts[2] + parts[3])
    ),
)


@given(pair=_pairs)
def test_whatever_is_packed_unpacks_to_itself(pair: tuple[bytes, bytes]) -> None:
    base, data = pair
    packed = packing.pack_smallest(data, base=base, base_sha256=BASE_NAME)
    needed = packing.base_of(packed)

    assert needed in {"", BASE_NAME}
    assert packing.unpack_blob(packed, size=len(data), base=base if needed else b"") == data
    assert packing.unpack_blob(packing.pack_full(data), size=len(data)) == data


@given(pair=_pairs, known=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_what_is_known_of_both_ends_need_not_be_all_of_it(
    pair: tuple[bytes, bytes], known: tuple[float, float]
) -> None:
    base, data = pair
    shared = tuple(int(length * part) for length, part in zip(shared_ends(base, data), known, strict=True))
    packed = packing.pack_smallest(data, base=base, base_sha256=BASE_NAME, shared=(shared[0], shared[1]))

    assert packing.unpack_blob(packed, size=len(data), base=base if packing.base_of(packed) else b"") == data


@given(pair=_pairs)
def test_the_common_ends_are_exactly_that(pair: tuple[bytes, bytes]) -> None:
    left, right = pair
    prefix, suffix = shared_ends(left, right)
    limit = min(len(left), len(right)) - prefix

    assert left[:prefix] == right[:prefix]
    assert left[prefix : prefix + 1] != right[prefix : prefix + 1] or limit == 0
    assert left[len(left) - suffix :] == right[len(right) - suffix :]
    assert suffix == limit or left[-suffix - 1] != right[-suffix - 1]


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 20_000_000])
def test_one_changed_byte_in_a_large_file_costs_some_tens_of_bytes(size: int) -> None:
    base = random.Random(size).randbytes(size)
    for at in (0, 1, size // 2, size - 1):
        data = base[:at] + bytes([base[at] ^ 1]) + base[at + 1 :]
        packed = packing.pack_smallest(data, base=base, base_sha256=BASE_NAME)
        assert len(packed) < 100
        assert packing.unpack_blob(packed, size=size, base=base) == data


def test_a_moved_block_is_found_in_the_bases_middle() -> None:
    block = random.Random(3).randbytes(400_000)
    base, data = b"start" + block + b"end", b"other" + block[200_000:] + block[:200_000] + b"END"

    packed = packing.pack_smallest(data, base=base, base_sha256=BASE_NAME)

    assert packing.base_of(packed) == BASE_NAME
    assert len(packed) < 1_000
    assert packing.unpack_blob(packed, size=len(data), base=base) == data


def test_a_delta_that_saves_less_than_half_is_not_used() -> None:
    source = random.Random(4)
    base, data = source.randbytes(10_000), source.randbytes(10_000)

    assert packing.base_of(packing.pack_smallest(data, base=base + b"end", base_sha256=BASE_NAME)) == ""
    assert packing.base_of(packing.pack_smallest(b"ab" * 900, base=b"ba" * 900, base_sha256=BASE_NAME)) == ""


@given(rubbish=st.binary(max_size=100), size=st.integers(min_value=0, max_value=200))
def test_rubbish_is_damaged_and_nothing_else(rubbish: bytes, size: int) -> None:
    with pytest.raises(packing.UnpackError):
        packing.unpack_blob(rubbish, size=size, base=b"x" * 50)


@given(data=st.binary(max_size=300), at=st.integers(min_value=0), bit=st.integers(min_value=0, max_value=7))
def test_a_flipped_bit_raises_damaged_or_gives_bytes_of_the_recorded_size(data: bytes, at: int, bit: int) -> None:
    packed = bytearray(packing.pack_smallest(data, base=b"x" * 100 + data, base_sha256=BASE_NAME))
    packed[at % len(packed)] ^= 1 << bit
    try:
        result = packing.unpack_blob(bytes(packed), size=len(data), base=b"x" * 100 + data)
    except packing.UnpackError:
        return
    assert len(result) == len(data)
