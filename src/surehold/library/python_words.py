"""Spells refusals for a Python program: its arguments and methods, where tools and commands name those of their own."""

from collections.abc import Generator
from contextlib import contextmanager

from surehold.errors import SureholdError, to_python


@contextmanager
def speak_python() -> Generator[None]:
    """Spell what is refused inside for a program."""
    try:
        yield
    except SureholdError as error:
        error.message, error.action = to_python(error.message), to_python(error.action)
        raise
