"""Waits for a state. The clock here is the only one in the tests, and it fails nothing but a test that hangs."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

HANG_SECONDS = 120.0
"""How long anything may take on the busiest machine before it counts as hung."""
_PAUSE_SECONDS = 0.005


def wait_until(condition: Callable[[], Found], what: str = "") -> Found:
    """Return the condition's value as soon as it is true; fail when it never becomes so."""
    give_up = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(f"Waited {HANG_SECONDS:.0f} seconds in vain: {what or condition}")
        time.sleep(_PAUSE_SECONDS)
    return found
