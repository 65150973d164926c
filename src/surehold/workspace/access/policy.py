"""Which rules apply to a path. Nothing here does input or output.

1. A rule is a line in gitignore syntax, matched without regard to case and Unicode composition.
2. A rule is checked against the path as it was requested and against the path it resolves to. One match is enough to
   deny, to protect or to ask; to allow, both must match.
3. Denied: neither read nor written, whatever else applies. Protected: readable, but written only with approval;
   names are protected whether or not the file exists. What follows for a write is decided by `permission`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

from surehold.errors import DeniedByRule, InvalidArgument, ProtectedPath
from surehold.workspace.access.protected_names import PROGRAM_BY_RULE, PROTECTED

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_PLAIN_RULE = re.compile(r"(\*\*/)?[\w.+-]+|\*\*/[\w.+-]+/[\w.+-]+")
"""A name in any directory, or a name in any directory of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRules:
    path: str
    protected_by: str = ""
    """The rule that protects it."""
    program: str = ""
    """The program that the rule is about."""
    git_directory: str = ""
    """The directory that is a git repository, or becomes one with this file in it."""
    asked_by: str = ""
    """The rule that requires approval."""
    allowed_by: str = ""
    """The rule that allows it without approval."""

    @property
    def allowed(self) -> bool:
        return bool(self.allowed_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one workspace."""

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    unprotected: tuple[str, ...] = ()
    """Names that are not protected after all."""
    state_dir: str = ""
    """Surehold's own state, when it lies inside a root: closed to every tool."""

    def __post_init__(self) -> None:
        """Refuse rules that cannot be understood, before anything depends on them."""
        protected = () if self.protected is PROTECTED else self.protected
        for rules in (self.deny, self.ask, self.allow, self.unprotected, protected):
            try:
                _ = _compile_rules(rules) if rules else None
            except ValueError as error:
                raise InvalidArgument(f"A rule cannot be understood: {error}.", reason="bad_rule") from None

    def check_read(self, requested: str, final: str, *, key: str = "") -> None:
        """Refuse a path that must not be read; both names are relative to the path's own root."""
        if self.state_dir and _is_below(key or final, self.state_dir):
            raise ProtectedPath(f"`{key or final}` belongs to Surehold itself.", path=key or final)
        for name in (requested, final):
            if rule := _matching_rule(self.deny, name):
                raise DeniedByRule(f"The rule `{rule}` of this workspace denies `{name}`.", path=name, rule=rule)

    @property
    def protects_git(self) -> bool:
        """Whether repositories of git are protected: not only `.git`, but what works like one."""
        return ".git" in self.protected

    def rules_for(self, requested: str, final: str, *, key: str = "", git_directory: str = "") -> PathRules:
        """Refuse a path that must not even be read, and say which rules apply to writing it."""
        self.check_read(requested, final, key=key)
        names = (requested, final)
        rule = next((rule for name in names if (rule := self._protecting_rule(name))), "")
        if rule or any(_matching_rule(self.unprotected, name) for name in names):
            git_directory = ""
        return PathRules(
            path=key or final,
            protected_by=".git" if git_directory else rule,
            program=PROGRAM_BY_RULE.get(rule, "other programs"),
            git_directory=git_directory,
            asked_by=next((rule for name in names if (rule := _matching_rule(self.ask, name))), ""),
            allowed_by=_matching_rule(self.allow, final) if _matching_rule(self.allow, requested) else "",
        )

    def _protecting_rule(self, name: str) -> str:
        return "" if _matching_rule(self.unprotected, name) else _matching_rule(self.protected, name)


@lru_cache(maxsize=4096)
def _matching_rule(rules: tuple[str, ...], name: str) -> str:
    """Return the rule that decides for this name, or nothing."""
    if not rules:
        return ""
    plain, others = _split_rules(rules)
    folded = _fold_text(name).lstrip("/")
    parts = folded.split("/") if plain else []
    pairs = (f"{above}/{below}" for above, below in pairwise(parts))
    if found := next((one for one in (*parts, *pairs) if one in plain), ""):
        return plain[found]
    if not others:
        return ""
    result = _compile_rules(others).check_file(folded)
    return others[result.index] if result.include and result.index is not None else ""


@lru_cache(maxsize=64)
def _split_rules(rules: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Split off rules that are plain names, which are looked up at once; the order counts where a rule takes one back."""
    if any(rule.startswith("!") for rule in rules):
        return {}, rules
    plain = {_fold_text(rule).removeprefix("**/"): rule for rule in rules if _PLAIN_RULE.fullmatch(rule)}
    return plain, tuple(rule for rule in rules if not _PLAIN_RULE.fullmatch(rule))


@lru_cache(maxsize=64)
def _compile_rules(rules: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([_fold_text(rule) for rule in rules])


def _fold_text(text: str) -> str:
    return normalize("NFC", text.casefold())


def _is_below(key: str, directory: str) -> bool:
    return key == directory or key.startswith(directory.rstrip("/") + "/")
