"""Rules of .gitignore, .ignore and .rgignore files, read as ripgrep reads them.

1. In one file the last matching rule decides; `!` includes a path again. A rule with a slash inside is relative to the
   directory of its file, one without matches a name at any depth, one that ends in a slash matches directories only.
2. Files are consulted in this order: .rgignore, .ignore, .gitignore, .git/info/exclude, and for each of them the nearest
   directory first. Rules from directories above the searched one come last.
3. An ignored directory is not entered, so nothing in it can be included again.
4. No rule is slow: names are compared in linear time, and most rules by one dictionary lookup.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from surehold.disk.base import DiskReader, Target
from surehold.errors import InvalidPattern, SureholdError
from surehold.search.glob import GlobPath, expand_braces, is_glob, path_names

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
"""Files with rules, in the order in which they are consulted."""
_GIT_EXCLUDE = (".git", "info", "exclude")
_RULE_SOURCES = frozenset({*IGNORE_FILES, ".git"})
_MAX_IGNORE_FILE_BYTES = 1 << 20
Verdict = bool | None
"""True: ignored. False: included again. None: no rule matches."""


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file, without alternatives."""

    order: int
    ignores: bool
    directories_only: bool
    path: GlobPath
    floats: bool
    """Whether it matches a name at any depth."""


@dataclass
class IgnoreFile:
    """The rules of one file, indexed for lookup."""

    names: dict[str, list[IgnoreRule]] = field(default_factory=dict[str, list[IgnoreRule]])
    suffixes: dict[str, list[IgnoreRule]] = field(default_factory=dict[str, list[IgnoreRule]])
    globs: list[IgnoreRule] = field(default_factory=list[IgnoreRule])
    paths: list[IgnoreRule] = field(default_factory=list[IgnoreRule])

    def add_rule(self, rule: IgnoreRule) -> None:
        name = rule.path.names[-1]
        if not rule.floats:
            self.paths.append(rule)
        elif isinstance(matcher := rule.path.matchers[-1], str):
            self.names.setdefault(matcher, []).append(rule)
        elif name.startswith("*.") and not is_glob(name[1:]) and "\\" not in name:
            self.suffixes.setdefault(name[1:], []).append(rule)
        else:
            self.globs.append(rule)

    def __bool__(self) -> bool:
        return bool(self.names or self.suffixes or self.globs or self.paths)


class IgnoreLevel:
    """The rules of one file, relative to the directory that a walk has reached."""

    def __init__(self, rules: IgnoreFile, states: tuple[tuple[IgnoreRule, int], ...] | None = None) -> None:
        self._rules = rules
        self._states = tuple((rule, rule.path.start_bits) for rule in rules.paths) if states is None else states

    def verdict_for(self, name: str, *, directory: bool) -> Verdict:
        last = None
        for rule in self._matching_rules(name):
            if (last is None or rule.order > last.order) and (directory or not rule.directories_only):
                last = rule
        return None if last is None else last.ignores

    def _matching_rules(self, name: str) -> Iterator[IgnoreRule]:
        rules = self._rules
        if rules.names:
            yield from rules.names.get(name, ())
        if rules.suffixes:
            at = name.find(".")
            while at >= 0:
                yield from rules.suffixes.get(name[at:], ())
                at = name.find(".", at + 1)
        for rule in rules.globs:
            matcher = rule.path.matchers[-1]
            if matcher is not None and not isinstance(matcher, str) and matcher.match(name):
                yield rule
        for rule, state in self._states:
            if rule.path.step_bits(state, name) & rule.path.end_bit:
                yield rule

    def for_subdirectory(self, name: str) -> "IgnoreLevel":
        if not self._states:
            return self
        stepped = ((rule, rule.path.step_bits(state, name)) for rule, state in self._states)
        states = tuple((rule, state) for rule, state in stepped if state & (rule.path.end_bit - 1))
        return IgnoreLevel(self._rules, states)


IgnoreLevels = tuple[tuple[IgnoreLevel, ...], ...]
"""The rules by kind of file, nearest first; the last kind are the rules from above the start."""


class IgnoreStack:
    """All rules for one directory of a walk."""

    def __init__(self, stack: IgnoreLevels) -> None:
        self._stack = stack
        self._levels = tuple(level for kind in stack for level in kind)

    @property
    def has_rules(self) -> bool:
        return bool(self._levels)

    def ignores_entry(self, name: str, *, directory: bool) -> bool:
        for level in self._levels:
            verdict = level.verdict_for(name, directory=directory)
            if verdict is not None:
                return verdict
        return False

    def with_rules_from(self, disk: DiskReader, directory: Target, names: Iterable[str]) -> "IgnoreStack":
        present = _RULE_SOURCES.intersection(names)
        if not present:
            return self
        kinds = list[tuple[IgnoreLevel, ...]]()
        for kind, found in zip((*IGNORE_FILES, ".git"), self._stack, strict=False):
            path = _GIT_EXCLUDE if kind == ".git" else (kind,)
            rules = index_rules(_read_lines(disk, disk.target_below(directory, path))) if kind in present else None
            kinds.append((IgnoreLevel(rules), *found) if rules else found)
        return IgnoreStack((*kinds, self._stack[-1]))

    def for_subdirectory(self, name: str) -> "IgnoreStack":
        if not self._levels:
            return self
        return IgnoreStack(tuple(tuple(level.for_subdirectory(name) for level in kind) for kind in self._stack))


def initial_rules(inherited: Sequence[str]) -> IgnoreStack:
    """Return the rules at the start of a walk: those from above."""
    rules = index_rules(inherited)
    return IgnoreStack(((), (), (), (), (IgnoreLevel(rules),) if rules else ()))


def inherited_rules(disk: DiskReader, directory: Target) -> list[str]:
    """Return the rules of all directories above, up to the root, rewritten for this directory."""
    lines = list[str]()
    for depth in range(len(directory.parts)):
        above = replace(directory, parts=directory.parts[:depth], key="")
        for path in (_GIT_EXCLUDE, *((name,) for name in reversed(IGNORE_FILES))):
            rules = parse_rules(_read_lines(disk, disk.target_below(above, path)))
            lines += [line for rule in rules for line in _rewrite_for_subdirectory(rule, directory.parts[depth:])]
    return lines


def _rewrite_for_subdirectory(rule: IgnoreRule, names: Sequence[str]) -> Iterator[str]:
    """Yield a rule for a directory below, without the names that have matched already."""
    sign, slash = "" if rule.ignores else "!", "/" if rule.directories_only else ""
    if rule.floats:
        yield f"{sign}{rule.path.names[-1]}{slash}"
        return
    states = rule.path.start_bits
    for name in names:
        states = rule.path.step_bits(states, name)
    for at in range(len(rule.path.names)):
        if states >> at & 1:
            yield f"{sign}/{'/'.join(rule.path.names[at:])}{slash}"


def index_rules(lines: Iterable[str]) -> IgnoreFile:
    """Index the rules of an ignore file; lines that cannot be parsed are skipped."""
    rules = IgnoreFile()
    for rule in parse_rules(lines):
        rules.add_rule(rule)
    return rules


def parse_rules(lines: Iterable[str]) -> Iterator[IgnoreRule]:
    for order, line in enumerate(lines):
        text = _without_trailing_blanks(line)
        if not text or text.startswith("#"):
            continue
        ignores = not text.startswith("!")
        body = text if ignores else text[1:]
        directories_only = body.endswith("/")
        body = body.rstrip("/") if directories_only else body
        floats = "/" not in body
        try:
            for each in expand_braces(body):
                names = path_names(each)
                path = GlobPath("/".join(names), names)
                if names and path.matchers:
                    yield IgnoreRule(order, ignores, directories_only, path, floats and len(names) == 1)
        except (InvalidPattern, ValueError):
            continue


def _without_trailing_blanks(line: str) -> str:
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    return text


def _read_lines(disk: DiskReader, target: Target) -> list[str]:
    try:
        stored = disk.read(target, limit=_MAX_IGNORE_FILE_BYTES)
    except SureholdError:  # a directory or a link of that name, or no permission: as if it did not exist
        return []
    if stored is None:
        return []
    return stored.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
