"""What happens to a tool call, before it is spelled for a client."""

from dataclasses import dataclass
from typing import Literal

from surehold.tools.spec import Json, Kind

Status = Literal["pending", "in_progress", "completed", "failed"]
Dialect = Literal["v1", "contract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file that a call looks at or changes."""

    path: str
    """Absolute."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """A stretch of a file before and after: all of a small or new file, one hunk of a large one."""

    path: str
    """Absolute."""
    old: str | None
    """None for a file that is new."""
    new: str
    old_start: int = 1
    new_start: int = 1
    """The lines at which the two texts begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """One moment of a tool call. What a moment does not change stays empty."""

    call_id: str
    status: Status
    title: str = ""
    kind: Kind | None = None
    locations: tuple[Location, ...] = ()
    raw_input: Json | None = None
    raw_output: Json | None = None
    text: str = ""
    """What a model reads."""
    diff: str = ""
    """The unified diff of everything that the call changed."""
    diffs: tuple[FileDiff, ...] = ()
    content: tuple[Json, ...] = ()
    """Images and the like, as MCP spells them; ACP spells them the same."""
    change_id: str = ""
    """Under which name the change can be taken back."""
