"""Find the file that a path means, also when its name contains unusual spaces or invisible characters."""

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, replace

from surehold.disk.base import EntryStat, Target
from surehold.errors import NotFound, SureholdError
from surehold.text.escape import escape_text
from surehold.workspace.session import Session

_BLANKS = r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_INVISIBLE = r"[\u200b-\u200d\u2060\ufeff]"
_ESCAPE = r"\\u([0-9a-f]{4})"
"""How our own messages write such blanks."""
_MAX_NEAR_NAMES = 3
_MAX_SIBLINGS = 20_000
"""In a directory with more names nothing is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFile:
    """A file that exists, or whose place is known."""

    path: str
    """As the workspace takes it."""
    target: Target
    look: EntryStat
    head: bytes
    """The first bytes; empty for anything but a regular file that can be read."""
    notice: str = ""
    """What the caller should know about the name."""

    @property
    def absolute_path(self) -> str:
        return absolute_path_of(self.target)

    def with_notices(self, *notices: str) -> "LocatedFile":
        return replace(self, notice="; ".join(filter(None, (self.notice, *notices))))


def absolute_path_of(target: Target) -> str:
    return "/".join([target.root.rstrip("/"), *target.parts])


def locate_file(session: Session, path: str, *, head: int) -> LocatedFile:
    """Return the file that a path means; `NotFound` with near names when there is none."""
    reader, target, notice = session.workspace.reader, session.workspace.target(path), ""
    found = reader.stat_target(target)
    if found is None:
        others = _find_look_alikes(session, target)
        found = reader.stat_target(others[0]) if len(others) == 1 else None
        if found is None:
            raise _not_found_error(session, target, path, others if len(others) > 1 else [])
        target, path = others[0], absolute_path_of(others[0])
        name = _escape_blanks(target.parts[-1])
        notice = f"the file is named `{name}`, with other spaces or characters than the path that was sent"
    return LocatedFile(path=path, target=target, look=found, head=reader.read_head(target, head), notice=notice)


def _fold_name(name: str) -> str:
    return unicodedata.normalize("NFKC", re.sub(_INVISIBLE, "", re.sub(_BLANKS, " ", name)))


def _sibling_names(session: Session, target: Target) -> list[str]:
    names = session.workspace.reader.sibling_names(target)
    return sorted(names) if len(names) <= _MAX_SIBLINGS else []


def _find_look_alikes(session: Session, target: Target) -> list[Target]:
    """Return the files beside it whose names look the same, as far as they may be read."""
    if not target.parts:
        return []
    name, beside = target.parts[-1], _sibling_names(session, target)
    meant = re.sub(_ESCAPE, lambda code: chr(int(code[1], 16)), name)
    alike = [meant] if meant in beside else [other for other in beside if _fold_name(other) == _fold_name(name)]
    return [found for other in alike if (found := _readable_sibling(session, target, other))]


def _readable_sibling(session: Session, target: Target, name: str) -> Target | None:
    """Return a name beside a target; None when the rules hide it."""
    with suppress(SureholdError):
        return session.workspace.target("/".join([target.root.rstrip("/"), *target.parts[:-1], name]))
    return None


def _not_found_error(session: Session, target: Target, path: str, alike: list[Target]) -> NotFound:
    from difflib import get_close_matches

    if alike:
        return NotFound(
            f"There is no file `{escape_text(path)}`, but {len(alike)} files have names that look the same.",
            path=path,
            action="Copy a name from `look_alikes`; unusual spaces are shown as escapes.",
            look_alikes=[_escape_blanks(one.parts[-1]) for one in alike],
        )
    beside = _sibling_names(session, target) if target.parts else []
    near = get_close_matches(target.parts[-1], beside, n=_MAX_NEAR_NAMES, cutoff=0.6) if beside else []
    names = [_escape_blanks(name) for name in near if _readable_sibling(session, target, name)]
    return NotFound(
        f"There is no file `{escape_text(path)}`.",
        path=path,
        action="Read one of the files in `near_names`, if one of them is meant." if names else "Check the path.",
        near_names=names,
    )


def _escape_blanks(name: str) -> str:
    return re.sub(_BLANKS, lambda blank: f"\\u{ord(blank[0]):04x}", escape_text(name))
