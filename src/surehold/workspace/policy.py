"""Which paths may be read and written. No input or output happens here.

1. A rule is a line in gitignore syntax, matched without regard to case.
2. A rule is asked about the path as it was requested and about the path it leads to; one match is enough.
3. Denied: neither read nor written, whatever else is said. Protected: read, and written only where an allow rule
   says so. Names are protected whether or not the file exists.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from surehold.errors import DeniedByRule, InvalidArgument, ProtectedPath

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

PROTECTED = (
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".envrc",
    ".ssh",
    ".gnupg",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    ".cargo/config",
    ".cargo/config.toml",
    "pip.conf",
    ".mcp.json",
    ".claude.json",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".vscode",
    ".zed",
    ".idea",
    ".husky",
    ".pre-commit-config.yaml",
)
"""Shell, version control, editor, agent and package manager configuration: what makes other programs run code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one workspace."""

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    state_dir: str = ""
    """Surehold's own state, when it lies inside a root: closed to every tool."""

    def __post_init__(self) -> None:
        """Refuse rules that cannot be understood, before anything depends on them."""
        for rules in (self.deny, self.allow, () if self.protected is PROTECTED else self.protected):
            try:
                _ = _compiled(rules) if rules else None
            except ValueError as error:
                raise InvalidArgument(f"A rule cannot be understood: {error}.", reason="bad_rule") from None

    def check_read(self, requested: str, final: str, *, key: str = "") -> None:
        """Refuse a path that must not be read; both names are relative to the path's own root."""
        if self.state_dir and _is_below(key or final, self.state_dir):
            raise ProtectedPath(f"`{key or final}` belongs to Surehold itself.", path=key or final)
        for name in (requested, final):
            if rule := _matching(self.deny, name):
                raise DeniedByRule(f"The rule `{rule}` of this workspace denies `{name}`.", path=name, rule=rule)

    def check_write(self, requested: str, final: str, *, key: str = "") -> None:
        """Refuse a path that must not be written."""
        self.check_read(requested, final, key=key)
        for name in (requested, final):
            rule = _matching(self.protected, name)
            if rule and not _matching(self.allow, name):
                raise ProtectedPath(f"`{name}` is protected: `{rule}` configures other programs.", path=name, rule=rule)


@lru_cache(maxsize=4096)
def _matching(rules: tuple[str, ...], name: str) -> str:
    """Return the rule that decides for this name, or nothing."""
    if not rules:
        return ""
    result = _compiled(rules).check_file(name.casefold().lstrip("/"))
    return rules[result.index] if result.include and result.index is not None else ""


@lru_cache(maxsize=64)
def _compiled(rules: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([rule.casefold() for rule in rules])


def _is_below(key: str, directory: str) -> bool:
    return key == directory or key.startswith(directory.rstrip("/") + "/")
