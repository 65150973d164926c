"""Prints the demo: lines with colour and pauses on a terminal, and claims that are checked before they are printed."""

import os
import re
import sys
import time

COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
PAUSES = sys.stdout.isatty() and not os.environ.get("SUREHOLD_DEMO_FAST")
BOLD, DIM, RED, GREEN, CYAN = "1", "2", "31", "32", "36"

_SHA256 = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
_ROWS = {"-": RED, "+": GREEN, "@": CYAN}


def title(text: str) -> None:
    """Begin a scene."""
    pause(1)
    say(f"\n{paint(text, BOLD)}")


def say(text: str, *, seconds: float = 0.4) -> None:
    """Print a line, and leave time to read it."""
    print(text, flush=True)
    pause(seconds)


def claim(is_true: bool, sentence: str) -> None:
    """Print a sentence that was checked; end the demo when it is not true."""
    if not is_true:
        raise AssertionError(f"Not true: {sentence}")
    say(f"  {paint('✓', GREEN, BOLD)} {sentence}", seconds=0.9)


def show_answer(text: str, *, refused: bool = False) -> None:
    """Print what a tool answers, indented; long hashes are shortened, and what the eye cannot see is spelled out."""
    for number, row in enumerate(_SHA256.sub(r"\1…", text).rstrip("\n").split("\n")):
        visible = row.replace("\ufeff", "\\ufeff").replace("\r", "\\r")
        colour = RED if refused and not number else _ROWS.get(row[:1], DIM)
        say(f"    {paint(visible, colour)}", seconds=0.05)
    pause(0.5)


def pause(seconds: float) -> None:
    """Wait, if a person is watching."""
    if PAUSES:
        time.sleep(seconds)


def paint(text: str, *codes: str) -> str:
    """Colour a text, where there is colour."""
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if COLOUR else text
