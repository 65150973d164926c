"""What the ledger remembers of a file: a name for its bytes, and the facts around them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The facts about a file that are not its bytes."""

    mode: int
    """Permission bits only, as in `0o644`."""
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    xattrs: tuple[tuple[str, bytes], ...] = ()
    """Extended attributes in name order; access control lists are among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a file: the name of its bytes, their number, and the facts around them."""

    sha256: str
    size: int
    meta: Meta | None = None
