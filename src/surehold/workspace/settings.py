"""Limits, permission modes and read-gate settings. Imports nothing of Surehold but its errors, so `surehold --help` stays fast."""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

from surehold.errors import InvalidArgument

if TYPE_CHECKING:
    from surehold.stores.questions import SessionAgreements

Mode = Literal["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk"]
MODES: tuple[Mode, ...] = get_args(Mode)
_MAX_NAME_CHARS = 200


def check_mode(mode: Mode) -> Mode:
    """Return the mode; refuse a word that is none, which a program without a type checker may send."""
    if mode not in MODES:
        choose = f"Choose one of {', '.join(MODES)}."
        raise InvalidArgument(f"Unknown mode `{mode}`.", reason="bad_mode", action=choose)
    return mode


def check_session_name(name: str) -> None:
    """Refuse what no session can be called."""
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        action = f"Choose at most {_MAX_NAME_CHARS} printable characters."
        raise InvalidArgument("This cannot be the name of a session.", reason="bad_session", action=action)


@dataclass(slots=True, kw_only=True)
class PermissionState:
    """What a session may do by now."""

    mode: Mode
    always: bool = False
    """The person allowed later changes too."""
    session: str = ""
    kept: "SessionAgreements | None" = None
    """Where that is kept, and under which session; None for this process alone."""

    def recall_always(self) -> bool:
        """Tell whether the person allowed later changes too, here or through another process."""
        if not self.always and self.kept is not None:
            self.always = self.kept.is_session_allowed(self.session, self.mode)
        return self.always

    def allow_always(self, where: str) -> None:
        self.always = True
        if self.kept is not None and where != "terminal":  # there it is said about one call
            self.kept.allow_session(self.session, self.mode)

    def change_mode(self, mode: Mode) -> None:
        if self.always and self.kept is not None:
            self.kept.allow_session(self.session, "")
        self.mode, self.always = mode, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much, and how long."""

    max_file_bytes: int = 1 << 30
    """Larger files are not edited, and read only page by page."""
    lock_timeout: float = 10.0
    lease: float = 10.0
    """How long an intent is ours without being renewed, for owners whose life cannot be seen."""
    fence: float = 60.0
    """On mounts that cache: how long an older version of ours counts as a stale cache, not as an outside edit."""
    session_idle: float = 24 * 3600.0
    """Seconds after its last use in which what a session was shown is remembered; then it reads again."""
    sighting_bytes: int = 4 << 20
    """Versions up to this size are kept when they are shown, so that edits can be rebased."""

    def __post_init__(self) -> None:
        """Refuse what is not a number, and what is below zero; a lease below zero is one that is over at once."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
            if not is_number or (value < 0 and name != "lease"):
                message = f"The limit `{name}` must be a number that is not below zero."
                raise InvalidArgument(message, reason="bad_setting", action=f"For example: Limits({name}=10)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGateSettings:
    """What a session must have been shown before Write, Edit and NotebookEdit change a file."""

    require_read: Literal["strict", "matched", "off"] = "strict"
    """`matched`: an edit is also allowed if its exact text occurs once in a file that was not read. `off`: nothing is required."""
    on_stale: Literal["reject", "rebase"] = "reject"
    """`rebase`: an edit is applied if its lines are provably the same, although the file changed."""
    if_not_read: str = ""
    """What the refusal of a file that was not read adds, where another way out than reading exists."""
