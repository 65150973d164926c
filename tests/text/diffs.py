"""Unified diffs of lines, for tests of the diff itself."""

from collections.abc import Callable, Sequence

from surehold.text.diff import UnifiedDiff, find_hunks, render_hunks


def unified_diff(
    a: Sequence[bytes],
    b: Sequence[bytes],
    *,
    from_name: str,
    to_name: str,
    decode: Callable[[bytes], str],
    context: int = 3,
    limit: int | None = None,
) -> UnifiedDiff:
    found = find_hunks(a, b, context=context)
    return render_hunks(found, from_name=from_name, to_name=to_name, decode=decode, limit=limit)
