r"""What .gitignore, .ignore and .rgignore files leave out, as ripgrep reads them.

1. In one file the last rule that matches decides; `!` takes back. A rule with a slash inside is about a path from that file's
   directory on, one without about a name at any depth, one that ends in a slash about directories only.
2. What the files say is asked in this order: .rgignore, .ignore, .gitignore, .git/info/exclude, and in each of them the nearest
   directory first. What stands in directories above the one that is searched comes last.
3. An ignored directory is not entered, so nothing in it can be taken back.
4. No rule is slow, whoever wrote it: names are compared in linear time, and most rules by one look into a table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from surehold.disk.base import Reader, Target
from surehold.errors import InvalidPattern, SureholdError
from surehold.search.glob import Path, alternatives, is_glob, path_names

FILES = (".rgignore", ".ignore", ".gitignore")
"""Files with rules; the first ones are heard first."""
_EXCLUDE = (".git", "info", "exclude")
_SOURCES = frozenset({*FILES, ".git"})
_MAX_BYTES = 1 << 20
Verdict = bool | None
"""True: ignored. False: taken back. None: nothing is said."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file, without alternatives."""

    order: int
    ignores: bool
    directories_only: bool
    path: Path
    floats: bool
    """Whether it is about a name at any depth."""


@dataclass
class Rules:
    """The rules of one file, sorted by how they can be looked up."""

    names: dict[str, list[Rule]] = field(default_factory=dict[str, list[Rule]])
    suffixes: dict[str, list[Rule]] = field(default_factory=dict[str, list[Rule]])
    globs: list[Rule] = field(default_factory=list[Rule])
    paths: list[Rule] = field(default_factory=list[Rule])

    def add(self, rule: Rule) -> None:
        """Put a rule where it is found quickest."""
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


class Level:
    """The rules of one file, as seen from the directory that a walk has reached."""

    def __init__(self, rules: Rules, states: tuple[tuple[Rule, int], ...] | None = None) -> None:
        self._rules = rules
        self._states = tuple((rule, rule.path.start) for rule in rules.paths) if states is None else states

    def verdict(self, name: str, *, directory: bool) -> Verdict:
        """Say what the file says about an entry of this directory."""
        last = None
        for rule in self._matching(name):
            if (last is None or rule.order > last.order) and (directory or not rule.directories_only):
                last = rule
        return None if last is None else last.ignores

    def _matching(self, name: str) -> Iterator[Rule]:
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
            if rule.path.step(state, name) & rule.path.end:
                yield rule

    def below(self, name: str) -> "Level":
        """Return the same rules, seen from a directory below."""
        if not self._states:
            return self
        stepped = ((rule, rule.path.step(state, name)) for rule, state in self._states)
        return Level(self._rules, tuple((rule, state) for rule, state in stepped if state & (rule.path.end - 1)))


Stack = tuple[tuple[Level, ...], ...]
"""For each kind of file, nearest first, what it says; the last kind are the rules from above."""


class Ignoring:
    """All rules that hold in one directory of a walk."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._levels = tuple(level for kind in stack for level in kind)

    @property
    def say_something(self) -> bool:
        """Whether there is any rule at all."""
        return bool(self._levels)

    def ignores(self, name: str, *, directory: bool) -> bool:
        """Tell whether an entry of this directory is left out."""
        for level in self._levels:
            verdict = level.verdict(name, directory=directory)
            if verdict is not None:
                return verdict
        return False

    def with_files_of(self, disk: Reader, directory: Target, names: Iterable[str]) -> "Ignoring":
        """Add what the ignore files of the directory itself say."""
        present = _SOURCES.intersection(names)
        if not present:
            return self
        kinds = list[tuple[Level, ...]]()
        for kind, found in zip((*FILES, ".git"), self._stack, strict=False):
            path = _EXCLUDE if kind == ".git" else (kind,)
            rules = parse(_lines(disk, disk.below(directory, path))) if kind in present else None
            kinds.append((Level(rules), *found) if rules else found)
        return Ignoring((*kinds, self._stack[-1]))

    def below(self, name: str) -> "Ignoring":
        """Return what holds in a directory below."""
        if not self._levels:
            return self
        return Ignoring(tuple(tuple(level.below(name) for level in kind) for kind in self._stack))


def beginning(inherited: Sequence[str]) -> Ignoring:
    """Return what holds before a walk has seen any file: the rules from above."""
    rules = parse(inherited)
    return Ignoring(((), (), (), (), (Level(rules),) if rules else ()))


def inherited(disk: Reader, directory: Target) -> list[str]:
    """Return the rules of all directories above, up to the root, as they read from this directory."""
    lines = list[str]()
    for depth in range(len(directory.parts)):
        above = replace(directory, parts=directory.parts[:depth], key="")
        for path in (_EXCLUDE, *((name,) for name in reversed(FILES))):
            rules = read_rules(_lines(disk, disk.below(above, path)))
            lines += [line for rule in rules for line in _seen_from(rule, directory.parts[depth:])]
    return lines


def _seen_from(rule: Rule, names: Sequence[str]) -> Iterator[str]:
    """Write a rule anew for a directory below: its first names have matched already."""
    sign, slash = "" if rule.ignores else "!", "/" if rule.directories_only else ""
    if rule.floats:
        yield f"{sign}{rule.path.names[-1]}{slash}"
        return
    states = rule.path.start
    for name in names:
        states = rule.path.step(states, name)
    for at in range(len(rule.path.names)):
        if states >> at & 1:
            yield f"{sign}/{'/'.join(rule.path.names[at:])}{slash}"


def parse(lines: Iterable[str]) -> Rules:
    """Read the lines of an ignore file; what cannot be understood says nothing."""
    rules = Rules()
    for rule in read_rules(lines):
        rules.add(rule)
    return rules


def read_rules(lines: Iterable[str]) -> Iterator[Rule]:
    """Yield the rules of an ignore file in their order."""
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
            for each in alternatives(body):
                names = path_names(each)
                path = Path("/".join(names), names)
                if names and path.matchers:
                    yield Rule(order, ignores, directories_only, path, floats and len(names) == 1)
        except (InvalidPattern, ValueError):
            continue


def _without_trailing_blanks(line: str) -> str:
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    return text


def _lines(disk: Reader, target: Target) -> list[str]:
    try:
        stored = disk.read(target, limit=_MAX_BYTES)
    except SureholdError:  # a directory or a link of that name, no permission: as if it were not there
        return []
    if stored is None:
        return []
    return stored.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
