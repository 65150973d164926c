"""Settings that are kept in files: the user's `config.toml`, and the `surehold.toml` of a workspace.

1. An option wins; then the workspace's file, as far as it is stricter; then the user's file; then the default.
2. Lists add up, so no rule is lost because another place has rules too.
3. A repository can bring a file of the workspace, and an agent can write one. So it may only tighten: deny, ask, make
   read-only, lower a limit. Whatever else it says has no effect, and is named.
4. A file that cannot be understood is refused: it may have held a rule.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from surehold.errors import InvalidArgument
from surehold.front.cli.command import as_path
from surehold.workspace.settings import Mode

USER_FILE, WORKSPACE_FILE = "config.toml", "surehold.toml"
_NEVER_IN_WORKSPACE = frozenset(
    {"approver", "command", "blobs", "protected", "state", "state-dir", "token", "token-file"}
)
"""What a file of the workspace can never choose."""
_MAX_BYTES = 1 << 20
_STRICTER_MODES: tuple[Mode, ...] = ("bypassPermissions", "acceptEdits", "default", "dontAsk", "plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingKind:
    """One setting: what it may be, and whether a file of the workspace may choose it."""

    name: str
    default: Any
    help: str
    check: Callable[[Any], str]
    """Says what is wrong with a value; empty when it is right."""
    tighten: Callable[[Any, Any], bool] | None = None
    """Tells whether the second value is at least as strict; None for what only a person may choose."""

    @property
    def is_list(self) -> bool:
        return isinstance(self.default, tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    name: str
    value: Any
    source: str
    """`default`, `option`, or the files that it is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Every setting, and what a file of the workspace asked for in vain."""

    values: dict[str, SettingValue]
    without_effect: list[str] = field(default_factory=list[str])

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def is_from_workspace(self, *names: str) -> bool:
        """Tell whether a file of the workspace chose one of these settings."""
        return any(WORKSPACE_FILE in self.values[name].source for name in names)


def _check_rules(value: Any) -> str:
    is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)  # pyright: ignore[reportUnknownVariableType]
    return "" if is_list else "must be a list of patterns"


def _check_flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _check_number(value: Any) -> str:
    return "" if isinstance(value, int) and not isinstance(value, bool) and value > 0 else "must be a positive number"


def _check_text(value: Any) -> str:
    return "" if isinstance(value, str) else "must be text"


def _check_place(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("/", "~", "s3://")):
        return ""
    return "must be a directory from / or ~ on, or s3://bucket/prefix"


def _check_state(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("/", "~", "postgresql://", "postgres://")):
        return ""
    return "must be a directory from / or ~ on, or postgresql://USER@HOST/DATABASE"


def _one_of(*words: str) -> Callable[[Any], str]:
    return lambda value: "" if value in words else f"must be one of {', '.join(words)}"


def _later_in(words: Sequence[str]) -> Callable[[Any, Any], bool]:
    return lambda old, new: words.index(new) >= words.index(old)


def _is_lower(old: int, new: int) -> bool:
    return not old or new <= old


def _adds_up(_old: Any, _new: Any) -> bool:
    return True


SETTINGS: tuple[SettingKind, ...] = (
    SettingKind(
        name="mode",
        default="acceptEdits",
        help="how agents get permission",
        check=_one_of(*get_args(Mode)),
        tighten=_later_in(_STRICTER_MODES),
    ),
    SettingKind(name="deny", default=(), help="paths to hide", check=_check_rules, tighten=_adds_up),
    SettingKind(name="ask", default=(), help="paths that require approval", check=_check_rules, tighten=_adds_up),
    SettingKind(name="allow", default=(), help="paths that change without approval", check=_check_rules),
    SettingKind(name="unprotect", default=(), help="protected paths to treat like any other", check=_check_rules),
    SettingKind(
        name="require-read",
        default="strict",
        help="what must be read before a change",
        check=_one_of("strict", "matched", "off"),
        tighten=_later_in(("off", "matched", "strict")),
    ),
    SettingKind(
        name="on-stale",
        default="reject",
        help="an edit of a file that changed since it was read",
        check=_one_of("reject", "rebase"),
        tighten=_later_in(("rebase", "reject")),
    ),
    SettingKind(
        name="read-only",
        default=False,
        help="serve only tools that change nothing",
        check=_check_flag,
        tighten=lambda old, new: new or not old,
    ),
    SettingKind(name="max-chars", default=0, help="characters in an answer", check=_check_number, tighten=_is_lower),
    SettingKind(name="max-tokens", default=0, help="tokens in an answer", check=_check_number, tighten=_is_lower),
    SettingKind(
        name="max-file-bytes",
        default=1 << 30,
        help="larger files are not edited",
        check=_check_number,
        tighten=_is_lower,
    ),
    SettingKind(name="blobs", default="", help="where large versions are kept", check=_check_place),
    SettingKind(name="state", default="", help="where the history is kept", check=_check_state),
    SettingKind(name="tools", default="", help="tool families to serve", check=_check_text),
    SettingKind(name="lean", default=False, help="shorter descriptions", check=_check_flag),
    SettingKind(name="allow-unchecked", default=False, help="changes without expectedSha256", check=_check_flag),
)


def user_directory() -> str:
    """Return the directory in which the user's own settings are kept."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA" if os.name == "nt" else "")
    return os.path.join(base or os.path.expanduser("~/.config"), "surehold")  # noqa: PTH111, PTH118 - pathlib is loaded late


def user_place(name: str) -> str:
    """Return where the user's own settings keep histories (`state`) or large versions (`blobs`); empty if nowhere."""
    file = os.path.join(user_directory(), USER_FILE)  # noqa: PTH118
    found = dict(_read_settings(file, {one.name: one for one in SETTINGS}))
    return os.path.expanduser(found.get(name, ""))  # noqa: PTH111


def load_configuration(roots: Sequence[str], options: Mapping[str, Any], **defaults: Any) -> Configuration:
    """Return every setting; `options` has what the command line says, `defaults` what a command does otherwise."""
    known = {one.name: one for one in SETTINGS}
    values = {
        name: SettingValue(name=name, value=defaults.get(name, kind.default), source="default")
        for name, kind in known.items()
    }
    without_effect = list[str]()
    user_file = os.path.join(user_directory(), USER_FILE)  # noqa: PTH118
    for name, value in _read_settings(user_file, known):
        values[name] = _joined(known[name], values[name], value, user_file)
    for root in roots:
        file = os.path.join(root, WORKSPACE_FILE)  # noqa: PTH118
        for name, value in _read_settings(file, known, never=_NEVER_IN_WORKSPACE):
            kind = known.get(name)
            if kind is None or kind.tighten is None:
                without_effect.append(f"{file}: `{name}` has no effect; a file of the workspace cannot choose it.")
            elif kind.is_list and any(one.startswith("!") for one in value):
                without_effect.append(f"{file}: `{name}` has no effect; a pattern with `!` makes exceptions.")
            elif not kind.tighten(values[name].value, value):
                without_effect.append(f"{file}: `{name}` has no effect; it is less strict than {values[name].source}.")
            elif kind.is_list or value != values[name].value:
                values[name] = _joined(kind, values[name], value, file)
    for name, value in options.items():
        if value is not None and (not known[name].is_list or value):
            values[name] = _joined(known[name], values[name], value, "option")
    return Configuration(values=values, without_effect=without_effect)


def _joined(kind: SettingKind, old: SettingValue, value: Any, source: str) -> SettingValue:
    if not kind.is_list:
        return SettingValue(name=kind.name, value=value, source=source)
    sources = [source] if old.source == "default" else [old.source, source]
    return SettingValue(name=kind.name, value=(*old.value, *value), source=", ".join(sources))


def _read_settings(
    file: str, known: Mapping[str, SettingKind], *, never: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any]]:
    data = _read_bytes(file)
    if data is None:
        return
    import tomllib

    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_file_error(file, f"it is not TOML: {error}") from None
    for written, value in document.items():
        name = written.replace("_", "-")
        if name in never:
            yield name, value
            continue
        if name not in known:
            import difflib

            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean `{close[0]}`?" if close else ""
            raise _bad_file_error(file, f"there is no setting `{written}`{meant}")
        if problem := known[name].check(value):
            raise _bad_file_error(file, f"`{written}` {problem}")
        yield name, value


def _read_bytes(file: str) -> bytes | None:
    try:
        # A pipe could make us wait for ever.
        if not os.path.isfile(file):  # noqa: PTH113
            if os.path.lexists(file):
                raise _bad_file_error(file, "it is not a file")
            return None
        with as_path(file).open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _bad_file_error(file, f"it cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise _bad_file_error(file, "it is larger than 1 MB")
    return data


def _bad_file_error(file: str, problem: str) -> InvalidArgument:
    action = "Mend the file, or remove it. The settings there may be: surehold config"
    return InvalidArgument(f"The settings in `{file}` cannot be used: {problem}.", reason="bad_settings", action=action)
