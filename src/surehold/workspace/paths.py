"""Resolves the path a caller sends to a target, and says which rules apply to it.

1. A rule is a line in gitignore syntax, matched without regard to case and Unicode composition.
2. A rule is checked against the path as it was requested and against the path it resolves to. One match is enough to
   deny, to protect or to ask; to allow, both must match.
3. Denied: neither read nor written, whatever else applies. Protected: readable, but written only with approval;
   names are protected whether or not the file exists. What follows for a write is decided by `permission`.
4. A git repository need not be called `.git`: any directory with `HEAD`, `objects` and `refs` is one, and git runs what
   its `config` and `hooks` say as soon as it is asked for a status there. So the rule about `.git` holds for it too.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

from surehold.disk.base import Disk, EntryStat, Target
from surehold.errors import (
    DeniedByRule,
    InvalidArgument,
    NotAFile,
    NotFound,
    PermissionDenied,
    ProtectedPath,
    SureholdError,
)
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
            except (ValueError, re.error) as error:  # the second one for what is inside of square brackets
                raise InvalidArgument(f"A rule cannot be understood: {error}.", reason="bad_rule") from None

    def check_read(self, requested: str, final: str, *, key: str = "") -> None:
        """Refuse a path that must not be read; both names are relative to the path's own root."""
        if self.state_dir and _is_inside(key or final, self.state_dir):
            raise ProtectedPath(f"`{key or final}` belongs to Surehold itself.", path=key or final)
        for name in (requested, final):
            if rule := _matching_rule(self.deny, name):
                raise DeniedByRule(f"The rule `{rule}` of this workspace denies `{name}`.", path=name, rule=rule)

    @property
    def protects_git(self) -> bool:
        """Whether repositories of git are protected: not only `.git`, but what works like one."""
        return ".git" in self.protected

    def rules_for(
        self, requested: str, final: str, *, key: str = "", git_directory: str = "", root_name: str = ""
    ) -> PathRules:
        """Refuse a path that must not even be read, and say which rules apply to writing it."""
        self.check_read(requested, final, key=key)
        names = (requested, final)
        rule = next((rule for name in names if (rule := self._protecting_rule(name, root_name))), "")
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

    def _protecting_rule(self, name: str, root_name: str) -> str:
        """Return the rule that protects a name; the root itself may be the first half of a rule such as `.config/fish`."""
        if _matching_rule(self.unprotected, name):
            return ""
        if rule := _matching_rule(self.protected, name):
            return rule
        rule = _matching_rule(self.protected, f"{root_name}/{name.lstrip('/').partition('/')[0]}") if root_name else ""
        return rule if "/" in rule else ""


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


def _is_inside(key: str, directory: str) -> bool:
    return key == directory or key.startswith(directory.rstrip("/") + "/")


AnyPath = str | Target
"""A path as a caller spells it, or one that was resolved already."""

_GIT_MARKS = ("HEAD", "objects", "refs", "commondir")
"""What git looks for; `commondir` names the directory that has objects and refs instead."""
_GIT_FILES = frozenset({"head", "commondir", "config", "config.worktree"})
_GIT_DIRECTORIES = frozenset({"objects", "refs", "hooks"})
_ESCAPED_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")


def spelled_path(path: AnyPath) -> str:
    return path if isinstance(path, str) else path.asked or path.key


class PathResolver:
    """Resolves paths, and asks the rules about them."""

    def __init__(self, disk: Disk, policy: Policy) -> None:
        self.disk, self.policy = disk, policy

    def resolve_readable(self, path: AnyPath) -> Target:
        """Resolve a path that may be read; a target that was resolved here stays what it is."""
        if isinstance(path, Target) and path.asked:
            return path
        target = path if isinstance(path, Target) else replace(self._resolve_path(path), asked=path)
        self.policy.check_read(self._path_below_root(target), "/".join(target.parts), key=target.key)
        return target

    def recorded_name(self, path: str) -> str:
        """Return the key under which the history has a path; as it is spelled if it leads nowhere."""
        with suppress(SureholdError, ValueError):
            return self._resolve_path(path).key if path else ""
        return path

    def rules_for(self, target: Target, written: Sequence[Target]) -> PathRules:
        """Say which rules apply to writing a path, together with others; one that may not even be read is refused."""
        requested, final = self._path_below_root(target), "/".join(target.parts)
        git_directory = self._git_directory_of(target, written)
        root_name = target.root.rpartition("/")[2]
        return self.policy.rules_for(requested, final, key=target.key, git_directory=git_directory, root_name=root_name)

    def protected_repository(self, target: Target, written: Sequence[Target]) -> str:
        """Return the directory that protects a path as a part of a git repository, or nothing."""
        return self.rules_for(target, written).git_directory if self._git_directory_of(target, written) else ""

    def _git_directory_of(self, target: Target, written: Sequence[Target]) -> str:
        """Return the directory that uses this file as a git repository does, once all of these are written; or nothing."""
        for depth in _git_directory_depths(target.parts) if self.policy.protects_git else ():
            directory = self.disk.target_below(self.disk.resolve(target.root), target.parts[:depth])
            entries = [one.parts[depth] for one in written if _is_below(one, directory)]
            with suppress(SureholdError):  # it need not exist yet
                found = zip(_GIT_MARKS, self.disk.stat_entries(directory, _GIT_MARKS), strict=True)
                entries += [name for name, entry in found if entry is not None]
            if _is_git_directory(entries):
                return directory.key or directory.root
        return ""

    def check_recorded_path(self, key: str) -> None:
        """Refuse a recorded path that the rules hide, wherever it leads today."""
        root = next((root for root in self.disk.roots if key.startswith(root + "/")), "")
        name = key.removeprefix(root).lstrip("/")
        self.policy.check_read(name, name, key=key)

    def may_show_recorded(self, key: str) -> bool:
        """Tell whether the rules let agents know of a path that the history names."""
        try:
            self.check_recorded_path(key)
        except PermissionDenied:
            return False
        return True

    def refuse_link(self, target: Target) -> None:
        """Refuse to move or delete through a symbolic link: the file would go, and the link stay."""
        path = spelled_path(target)
        above, _, name = path.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            return
        look = None
        with suppress(NotFound):
            look = self.disk.stat_entries(self.disk.resolve(above or ("/" if path.startswith("/") else ".")), [name])[0]
        if look is not None and look.type == "symlink" and self._target_exists(target):
            raise NotAFile(
                f"`{path}` is a symbolic link to `{target.key}`.",
                path=path,
                reason="is_a_symlink",
                action=f"Name the file itself: {target.key}",
                leads_to=target.key,
            )

    def parent_of(self, target: Target) -> Target:
        return self.disk.target_below(self.disk.resolve(target.root), target.parts[:-1])

    def stat_entry(self, target: Target) -> EntryStat | None:
        if not target.parts:
            return EntryStat("directory", 0, 0, 0)
        return self.disk.stat_entries(self.parent_of(target), target.parts[-1:])[0]

    def _resolve_path(self, path: str) -> Target:
        r"""Resolve a path; one that shows the bytes of a name as `\xNN` means that name, unless there is one like it."""
        target = self.disk.resolve(path)
        meant = _restore_escaped_bytes(path)
        if meant == path or self._target_exists(target):
            return target
        other = self.disk.resolve(meant)
        return other if self._target_exists(other) else target

    def _path_below_root(self, target: Target) -> str:
        """Return a path as it was asked for, below its root: rules say nothing about the directories above a root."""
        path = spelled_path(target)
        if not path.startswith("/"):
            return path
        for root in (target.root, *self.disk.roots):
            if path.startswith(f"{root.rstrip('/')}/"):
                return path.removeprefix(root).lstrip("/")
        names = [name for name in path.split("/") if name]
        for count in range(1, len(names)):  # the root in another spelling: nothing above it can be resolved
            with suppress(SureholdError):
                self.disk.resolve("/" + "/".join(names[:count]))
                return "/".join(names[count:])
        return path

    def _target_exists(self, target: Target) -> bool:
        with suppress(SureholdError):
            return self.stat_entry(target) is not None
        return False


def _is_below(target: Target, directory: Target) -> bool:
    above, below = ([part.casefold() for part in one.parts] for one in (directory, target))
    return target.root == directory.root and len(below) > len(above) and below[: len(above)] == above


def _restore_escaped_bytes(path: str) -> str:
    return _ESCAPED_BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), path) if "\\x" in path else path


def _git_directory_depths(parts: Sequence[str]) -> list[int]:
    """Return how deep the directories are that would use this path if they were git repositories; mostly none."""
    last = len(parts) - 1
    return [
        n
        for n, name in enumerate(map(str.casefold, parts))
        if name in _GIT_DIRECTORIES or (n == last and name in _GIT_FILES)
    ]


def _is_git_directory(entries: Collection[str]) -> bool:
    """Tell whether git takes a directory with these entries, of those in `_GIT_MARKS`, for a repository."""
    found = {name.casefold() for name in entries}
    return "head" in found and ("commondir" in found or {"objects", "refs"} <= found)
