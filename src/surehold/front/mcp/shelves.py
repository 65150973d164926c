"""Where resources come from. A shelf holds those of one kind; the adapter asks one after the other."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from surehold.tools.spec import Json


class Shelf(Protocol):
    """Resources of one kind."""

    def page(self, after: str) -> tuple[Sequence[Json], str]:
        """Return what `resources/list` shows next, and where to go on; empty at the end."""
        ...

    def templates(self) -> Sequence[Json]:
        """Return what `resources/templates/list` shows."""
        ...

    def read(self, uri: str) -> Sequence[Json] | None:
        """Return the contents of a resource; None when it is not on this shelf, an error when it cannot be read."""
        ...

    def mark(self, uri: str) -> str | None:
        """Return a text that differs whenever the content does; None when it is not on this shelf."""
        ...

    def complete(self, template: str, value: str) -> Sequence[str]:
        """Return how a value of one of its templates could go on."""
        ...


class Plain:
    """A shelf that has nothing special about it, and all of it on one page."""

    def entries(self) -> Iterable[Json]:
        """Yield what is listed: here nothing."""
        return ()

    def page(self, after: str) -> tuple[Sequence[Json], str]:  # noqa: ARG002 - there is one page
        """Return everything."""
        return list(self.entries()), ""

    def templates(self) -> Sequence[Json]:
        """Return none."""
        return ()

    def mark(self, uri: str) -> str | None:  # noqa: ARG002 - what others do with it
        """Return None: what is here never changes."""
        return None

    def complete(self, template: str, value: str) -> Sequence[str]:  # noqa: ARG002 - what others do with it
        """Return nothing."""
        return ()
