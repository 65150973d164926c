"""The modes of a session, as a client lists them."""

from surehold.tools.spec import Json
from surehold.workspace.mode import Mode

MODES: tuple[tuple[Mode, str, str], ...] = (
    ("default", "Ask", "Every change is asked about."),
    ("acceptEdits", "Accept edits", "Changes happen without a question; protected paths are still asked about."),
    ("plan", "Plan", "Nothing is changed."),
    ("dontAsk", "Don't ask", "What would need a question is refused."),
    ("bypassPermissions", "Bypass permissions", "Everything is allowed, protected paths too."),
)


def mode_named(name: str) -> Mode | None:
    """Return the mode of this name."""
    return next((mode for mode, _, _ in MODES if mode == name), None)


def mode_state(current: Mode) -> Json:
    """Return the modes as ACP spells them."""
    modes = [{"id": mode, "name": name, "description": help_} for mode, name, help_ in MODES]
    return {"currentModeId": current, "availableModes": modes}
