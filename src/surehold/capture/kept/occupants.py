"""What paths led to when the command began."""

from dataclasses import dataclass

from surehold.capture.kept.stash import Attributes, EntryFacts, KeptContent


@dataclass(slots=True)
class FileBytes:
    """The content of one file when the command began; kept at the first call that may change it."""

    facts: EntryFacts
    attributes: Attributes = ()
    content: KeptContent | None = None
    was_renamed: bool = False
    lost: str = ""
    """Why the content could not be kept."""


@dataclass(slots=True)
class Occupant:
    """What a path led to when the command began."""

    path: bytes
    facts: EntryFacts
    bytes_kept: FileBytes | None = None
    """Only files have one."""
    target: bytes = b""
    """Where a link led to."""
    attributes: Attributes = ()
