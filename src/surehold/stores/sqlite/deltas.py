"""Packs bytes, alone or as the difference to an earlier version; pure.

1. A packed blob describes itself: one byte for its kind, then for a delta the base's name and two lengths.
2. Unpacking never allocates more than the size that was recorded; a frame that says otherwise is damaged.
3. A chain of deltas is at most `MAX_DEPTH` long. A delta is kept only where it is less than half of the full form;
   the full form is not even tried where the delta is a tiny part of the raw bytes, since packing takes most of the
   time.
"""

import struct
from dataclasses import dataclass
from typing import Any, cast

from surehold.text.align import shared_prefix_length, shared_suffix_length

MAX_DEPTH = 8

_FULL, _DELTA = b"\x00", b"\x01"
_HEADER = struct.Struct(">32sQQ")  # the base's sha256, and how many bytes of it are at both ends
_LARGE_BYTES = 1024 * 1024
_DICTIONARY_BYTES = range(64, 8 * 1024 * 1024 + 1)  # smaller is useless, larger is slow
_DEFAULT_WINDOW_BYTES = 256 * 1024  # zstd sees at least this far back by itself
_OBVIOUS_RATIO = 32  # a delta that is this much smaller than the raw bytes needs no comparison with the full form


class UnpackError(ValueError):
    """Packed bytes do not unpack to what was recorded of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedBlob:
    """Packed bytes and what is needed to unpack them."""

    data: bytes
    base: str = ""
    """The sha256 of the bytes that a delta needs; empty for a full one."""


def pack_full(data: bytes) -> PackedBlob:
    """Pack bytes so that they unpack alone."""
    import zstandard

    level = 1 if len(data) > _LARGE_BYTES else 3
    return PackedBlob(data=_FULL + zstandard.ZstdCompressor(level=level).compress(data))


def pack_smallest(data: bytes, *, base: bytes, base_sha256: str) -> PackedBlob:
    """Pack bytes as a delta to `base`, or alone when that does not save half."""
    delta = _pack_delta(data, base=base, base_sha256=base_sha256)
    if len(delta.data) * _OBVIOUS_RATIO < len(data):
        return delta
    full = pack_full(data)
    return delta if len(delta.data) * 2 < len(full.data) else full


def base_of(packed: bytes) -> str:
    """Return the name of the base that these bytes need; empty when they unpack alone."""
    kind = packed[:1]
    if kind == _FULL:
        return ""
    if kind != _DELTA or len(packed) < 1 + _HEADER.size:
        raise UnpackError("The packed bytes have no header.")
    return _HEADER.unpack_from(packed, 1)[0].hex()


def unpack_blob(packed: bytes, *, size: int, base: bytes = b"") -> bytes:
    """Return the bytes again; `Damaged` when they are not of that size."""
    if not base_of(packed):
        return _decompress(packed[1:], size=size, dictionary=None)
    _, prefix, suffix = _HEADER.unpack_from(packed, 1)
    if prefix + suffix > min(len(base), size):
        raise UnpackError("The delta does not fit its base.")
    tail = len(base) - suffix
    frame = packed[1 + _HEADER.size :]
    middle = _decompress(frame, size=size - prefix - suffix, dictionary=_usable_dictionary(base[prefix:tail]))
    return base[:prefix] + middle + base[tail:]


def _pack_delta(data: bytes, *, base: bytes, base_sha256: str) -> PackedBlob:
    prefix = shared_prefix_length(base, data)
    suffix = shared_suffix_length(base, data, limit=min(len(base), len(data)) - prefix)
    middle = data[prefix : len(data) - suffix]
    dictionary = _usable_dictionary(base[prefix : len(base) - suffix])
    header = _HEADER.pack(bytes.fromhex(base_sha256), prefix, suffix)
    return PackedBlob(data=_DELTA + header + _compress(middle, dictionary), base=base_sha256)


def _usable_dictionary(middle: bytes) -> bytes | None:
    """Return the base's own middle where it helps; both directions decide alike."""
    return middle if len(middle) in _DICTIONARY_BYTES else None


def _compress(data: bytes, dictionary: bytes | None) -> bytes:
    import zstandard

    if dictionary is None:
        return zstandard.ZstdCompressor(level=1 if len(data) > _LARGE_BYTES else 3).compress(data)
    reach = len(dictionary) + len(data)
    window: dict[str, Any] = {"window_log": reach.bit_length()} if reach > _DEFAULT_WINDOW_BYTES else {}
    parameters_of = cast("Any", zstandard.ZstdCompressionParameters)  # its types are incomplete
    parameters = parameters_of.from_level(3, source_size=len(data), dict_size=len(dictionary), **window)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=_raw_dictionary(dictionary)).compress(data)


def _decompress(frame: bytes, *, size: int, dictionary: bytes | None) -> bytes:
    import zstandard

    try:
        # Only the frame's own claim bounds the allocation, so it is compared first.
        if zstandard.get_frame_parameters(frame).content_size != size:
            raise UnpackError("The packed bytes claim another size than was recorded.")
        raw = None if dictionary is None else _raw_dictionary(dictionary)
        return zstandard.ZstdDecompressor(dict_data=raw).decompress(frame)
    except zstandard.ZstdError as error:
        raise UnpackError(f"The packed bytes cannot be unpacked ({error}).") from error


def _raw_dictionary(dictionary: bytes) -> Any:
    import zstandard

    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
