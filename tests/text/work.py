"""Counts work instead of time: what a computer does is the same on every day, how long it takes is not."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_calls(action: Callable[[], object]) -> int:
    """Return how many functions an action calls, those of the interpreter included."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls
