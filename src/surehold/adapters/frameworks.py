"""Imports a framework, or says which package of which version brings it."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version


@contextmanager
def import_framework(package: str, oldest: str) -> Generator[None]:
    """Let the imports inside happen, and explain those that fail because a package is missing or too old."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        message = f"This adapter needs {package} {oldest} or later: pip install '{package}>={oldest}'"
        raise ImportError(message, name=package) from None
    too_old = f"This adapter needs {package} {oldest} or later, and {installed} is installed: pip install '{package}>={oldest}'"
    if _numbers_of(installed) < _numbers_of(oldest):
        raise ImportError(too_old, name=package)
    try:
        yield
    except ImportError as error:
        message = f"This adapter does not know {package} {installed}: {error}. It was written for {oldest}."
        raise ImportError(message, name=package) from error


def _numbers_of(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])
