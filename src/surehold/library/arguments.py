"""Checks what a program passes to the library, which may have no type checker: wrong values are refused at once, in words."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast
from unicodedata import category

from surehold.errors import InvalidArgument

if TYPE_CHECKING:
    from surehold.library.session import AgentSession


class NamedSession(Protocol):
    """A session, whether its methods are awaited or not."""

    @property
    def id(self) -> str: ...


def bad_argument(name: str, must_be: str, given: object, example: str) -> InvalidArgument:
    message = f"`{name}` must be {must_be}, not {type(given).__name__}."
    return InvalidArgument(message, reason="bad_argument", action=f"For example: {example}")


def require_text(name: str, given: object, *, example: str = "") -> None:
    if not isinstance(given, str):
        raise bad_argument(name, "a text", given, example or f'{name}="…"')


def require_name(name: str, given: object, *, example: str = "") -> None:
    """Refuse what no one-line name can hold: line breaks and other control characters, and halves of characters."""
    require_text(name, given, example=example)
    text = cast("str", given)
    if not can_be_passed_on(text) or any(category(one) == "Cc" for one in text):
        message = f"`{name}` has a line break, or another character that a name cannot have."
        raise InvalidArgument(message, reason="bad_name", action="For example: " + (example or f'{name}="me"'))


def can_be_passed_on(text: str) -> bool:
    """Tell whether a text can be a word of a command: the system knows no zero byte in one, and no half of a character."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def require_mapping(name: str, given: object, *, example: str) -> None:
    if not isinstance(given, Mapping):
        raise bad_argument(name, "a mapping", given, example)


def require_number(name: str, given: object, *, example: str) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise bad_argument(name, "a whole number", given, example)


def require_flag(name: str, given: object) -> None:
    """Refuse what is not True or False: "no" counts as true in Python."""
    if not isinstance(given, bool):
        raise bad_argument(name, "True or False", given, f"{name}=True")


def text_items(name: str, given: Any, *, example: str) -> tuple[str, ...]:
    """Return a list of texts and paths as texts; refuse one text, which would be read as a list of its letters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise bad_argument(name, "a list of texts", given, example)
    items = list(cast("Iterable[Any]", given))
    if wrong := [one for one in items if not isinstance(one, str | os.PathLike)]:
        raise bad_argument(name, "a list of texts", wrong[0], example)
    return tuple(os.fsdecode(one) for one in items)


def path_text(name: str, given: Any, *, example: str) -> str:
    if not isinstance(given, str | bytes | os.PathLike):
        raise bad_argument(name, "a path", given, example)
    return os.fsdecode(cast("os.PathLike[str]", given))


def require_bytes(name: str, given: object) -> None:
    if not isinstance(given, bytes):
        raise bad_argument(name, "bytes", given, f'{name}=b"yes\\n"')


def session_id(given: str | NamedSession) -> str:
    """Return the id of a session, which a program may pass itself."""
    found: object = getattr(given, "id", given)
    if not isinstance(found, str):
        raise bad_argument("session", "a session or its id", given, "session=session.id")
    return found


def require_session(given: object) -> "AgentSession":
    """Return the session whose methods block."""
    from surehold.library.session import AgentSession

    if not isinstance(given, AgentSession):
        raise bad_argument("session", "a session", given, 'workspace.session(agent="me")')
    return given
