"""How far two byte strings are equal, from either end. Slices are compared, so this runs at the speed of memory."""

_CHUNK = 1 << 16


def common_prefix(one: bytes, other: bytes) -> int:
    """Return how many leading bytes are equal; slices are compared, so this runs at memory speed."""
    end, at, step = min(len(one), len(other)), 0, _CHUNK
    while at < end and step:
        size = min(step, end - at)
        if one[at : at + size] == other[at : at + size]:
            at += size
        elif size == 1:
            break
        else:
            step = size // 2
    return at


def common_suffix(one: bytes, other: bytes, *, limit: int) -> int:
    """Return how many trailing bytes are equal, at most `limit`."""
    at, step = 0, _CHUNK
    while at < limit and step:
        size = min(step, limit - at)
        first, second = len(one) - at, len(other) - at
        if one[first - size : first] == other[second - size : second]:
            at += size
        elif size == 1:
            break
        else:
            step = size // 2
    return at
