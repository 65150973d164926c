"""Which file a path means, also when its name is spelled with another kind of blank."""

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches

from surehold.disk.base import Look, Target
from surehold.errors import NotFound, SureholdError
from surehold.text.visible import safe
from surehold.workspace.session import Session

_BLANKS = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(r"[\u200b-\u200d\u2060\ufeff]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
"""How our own messages write such blanks."""
_NEAR = 3
_LISTED = 20_000
"""In a directory with more names nothing is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path that leads somewhere."""

    path: str
    """As the workspace takes it."""
    target: Target
    look: Look
    head: bytes
    """The first bytes; empty for what is no regular file, or cannot be read."""
    notice: str = ""
    """What the caller should know about the name."""

    @property
    def absolute(self) -> str:
        """The path from the top."""
        return absolute(self.target)

    def noted(self, *notices: str) -> "Place":
        """Return it with more to say."""
        return replace(self, notice="; ".join(filter(None, (self.notice, *notices))))


def absolute(target: Target) -> str:
    """Return a target's path from the top."""
    return "/".join([target.root.rstrip("/"), *target.parts])


def place_of(session: Session, path: str, *, head: int) -> Place:
    """Return where a path leads; `NotFound` with near names when it leads nowhere."""
    target = session.workspace.target(path)
    found = _look(session, target)
    if found is not None:
        return Place(path=path, target=target, look=found, head=head_of(session, target, head))
    others = _look_alikes(session, target)
    if len(others) != 1:
        raise _missing(session, target, path, others)
    spelled = absolute(others[0])
    found = _look(session, others[0])
    if found is None:
        raise _missing(session, target, path, [])
    return Place(
        path=spelled,
        target=others[0],
        look=found,
        head=head_of(session, others[0], head),
        notice=f"the file is named `{_shown(others[0])}`, with other blanks or characters than in the path that was sent",
    )


def _above(session: Session, target: Target) -> Target:
    disk = session.workspace.disk
    return disk.below(disk.resolve(target.root), target.parts[:-1])


def _look(session: Session, target: Target) -> Look | None:
    if not target.parts:
        return Look("directory", 0, 0, 0)
    with suppress(NotFound):
        return session.workspace.disk.looks(_above(session, target), target.parts[-1:])[0]
    return None


def head_of(session: Session, target: Target, count: int) -> bytes:
    """Return the first bytes; none of what is no regular file, or cannot be read."""
    if not target.parts:
        return b""
    return session.workspace.disk.heads(_above(session, target), target.parts[-1:], count)[0] or b""


def _folded(name: str) -> str:
    """Return a name without what the eye cannot see."""
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", _BLANKS.sub(" ", name)))


def _siblings(session: Session, target: Target) -> list[str]:
    if not target.parts:
        return []
    with suppress(SureholdError):
        names = [entry.name for entry in session.workspace.disk.entries(_above(session, target))]
        return sorted(names) if len(names) <= _LISTED else []
    return []


def _look_alikes(session: Session, target: Target) -> list[Target]:
    """Return the files beside it whose names look the same, as far as they may be read."""
    if not target.parts:
        return []
    name, beside = target.parts[-1], _siblings(session, target)
    meant = _ESCAPE.sub(lambda code: chr(int(code[1], 16)), name)
    alike = [meant] if meant in beside else [other for other in beside if _folded(other) == _folded(name)]
    return [found for other in alike if (found := _readable(session, target, other))]


def _readable(session: Session, target: Target, name: str) -> Target | None:
    """Return a name beside a target; None when the rules hide it."""
    with suppress(SureholdError):
        return session.workspace.target("/".join([target.root.rstrip("/"), *target.parts[:-1], name]))
    return None


def _missing(session: Session, target: Target, path: str, alike: list[Target]) -> NotFound:
    if alike:
        return NotFound(
            f"There is no file `{safe(path)}`, but {len(alike)} files have names that look the same.",
            path=path,
            action="Copy one of the names in `look_alikes`, in which blanks that are none are written as escapes.",
            look_alikes=[_spelled(one.parts[-1]) for one in alike],
        )
    near = get_close_matches(target.parts[-1], _siblings(session, target), n=_NEAR, cutoff=0.6) if target.parts else []
    names = [_spelled(name) for name in near if _readable(session, target, name)]
    return NotFound(
        f"There is no file `{safe(path)}`.",
        path=path,
        action="Read one of the files in `near_names`, if one of them is meant." if names else "Check the path.",
        near_names=names,
    )


def _shown(target: Target) -> str:
    return _spelled(target.parts[-1])


def _spelled(name: str) -> str:
    """Return a name in which blanks that are none can be told apart."""
    return _BLANKS.sub(lambda blank: f"\\u{ord(blank[0]):04x}", safe(name))
