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
    has_set_times: bool = False
    """A call may have set its times, so that they do not tell whether it was written."""
    lost: str = ""
    """Why the content could not be kept."""

    def was_surely_written(self, size: int, mtime_ns: int) -> bool:
        """Tell from what a file is now whether it was written, though no call for that was seen."""
        return size != self.facts.size or (mtime_ns != self.facts.mtime_ns and not self.has_set_times)


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
