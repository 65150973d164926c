"""Packs versions of files: compressed, as the difference to an earlier version where that is smaller."""

import struct
import threading
from typing import Any, cast

from surehold.text.align import shared_ends

_FULL, _DELTA = b"\x00", b"\x01"
_HEADER = struct.Struct(">32sQQ")  # the base's sha256, and how many bytes of it are at both ends
_NAME_BYTES = 32
_LARGE_BYTES = 1024 * 1024
_DICTIONARY_BYTES = range(64, 8 * 1024 * 1024 + 1)  # smaller is useless, larger is slow
_DEFAULT_WINDOW_BYTES = 256 * 1024  # zstd sees at least this far back by itself
_OBVIOUS_RATIO = 32  # a delta that is this much smaller than the raw bytes needs no comparison with the full form


_of_thread = threading.local()  # compressors and decompressors are costly to make, and serve one thread


class UnpackError(ValueError):
    """Packed bytes do not unpack to what was recorded of them."""


def pack_full(data: bytes) -> bytes:
    return _FULL + _compress(data, None)


def pack_smallest(data: bytes, *, base: bytes, base_sha256: str, shared: tuple[int, int] = (0, 0)) -> bytes:
    """Pack bytes as a delta to `base`, or alone when that does not save half; so much of both ends is known to be shared."""
    delta = _pack_delta(data, base=base, base_sha256=base_sha256, shared=shared)
    if len(delta) * _OBVIOUS_RATIO < len(data):
        return delta
    full = pack_full(data)
    return delta if len(delta) * 2 < len(full) else full


def base_of(packed: bytes) -> str:
    """Return the name of the base that these bytes need; empty when they unpack alone."""
    kind = packed[:1]
    if kind == _FULL:
        return ""
    if kind != _DELTA or len(packed) < 1 + _HEADER.size:
        raise UnpackError("The packed bytes have no header.")
    return _HEADER.unpack_from(packed, 1)[0].hex()


def without_base(packed: bytes, base: str) -> bytes:
    """Leave out the name of the base, which has a column of its own."""
    return packed[:1] + packed[1 + _NAME_BYTES :] if base else packed


def with_base(stored: bytes, base: bytes | None) -> bytes:
    return stored[:1] + base + stored[1:] if base else stored


def unpack_blob(packed: bytes, *, size: int, base: bytes = b"") -> bytes:
    """Return the bytes again; `UnpackError` when they are not of that size."""
    if not base_of(packed):
        return _decompress(packed[1:], size=size, dictionary=None)
    _, prefix, suffix = _HEADER.unpack_from(packed, 1)
    if prefix + suffix > min(len(base), size):
        raise UnpackError("The delta does not fit its base.")
    tail = len(base) - suffix
    frame = packed[1 + _HEADER.size :]
    middle = _decompress(frame, size=size - prefix - suffix, dictionary=_usable_dictionary(base[prefix:tail]))
    return base[:prefix] + middle + base[tail:]


def _pack_delta(data: bytes, *, base: bytes, base_sha256: str, shared: tuple[int, int]) -> bytes:
    head, tail = shared
    more_head, more_tail = shared_ends(base[head : len(base) - tail], data[head : len(data) - tail])
    prefix, suffix = head + more_head, tail + more_tail
    middle = data[prefix : len(data) - suffix]
    dictionary = _usable_dictionary(base[prefix : len(base) - suffix])
    header = _HEADER.pack(bytes.fromhex(base_sha256), prefix, suffix)
    return _DELTA + header + _compress(middle, dictionary)


def _usable_dictionary(middle: bytes) -> bytes | None:
    """Return the base's own middle where it helps; both directions decide alike."""
    return middle if len(middle) in _DICTIONARY_BYTES else None


def _compress(data: bytes, dictionary: bytes | None) -> bytes:
    import zstandard

    if dictionary is None:
        if not hasattr(_of_thread, "compressors"):
            _of_thread.compressors = {level: zstandard.ZstdCompressor(level=level) for level in (1, 3)}
        return _of_thread.compressors[1 if len(data) > _LARGE_BYTES else 3].compress(data)
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
        if dictionary is not None:
            return zstandard.ZstdDecompressor(dict_data=_raw_dictionary(dictionary)).decompress(frame)
        if not hasattr(_of_thread, "decompressor"):
            _of_thread.decompressor = zstandard.ZstdDecompressor()
        return _of_thread.decompressor.decompress(frame)
    except zstandard.ZstdError as error:
        raise UnpackError(f"The packed bytes cannot be unpacked ({error}).") from error


def _raw_dictionary(dictionary: bytes) -> Any:
    import zstandard

    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
