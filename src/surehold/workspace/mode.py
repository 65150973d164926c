"""The modes in which agents get permission to change files. `permission` says what each means."""

from typing import Literal, get_args

Mode = Literal["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk"]
MODES: tuple[Mode, ...] = get_args(Mode)
