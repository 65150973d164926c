"""Glob patterns, matched in linear time.

1. `*` and `?` match inside one name, `**` as a whole name matches any number of directories, `[a-z]` and `[!a-z]` match one
   character, `{a,b}` lists alternatives, and a backslash escapes the next character.
2. A pattern is a sequence of names. The matching state of a path is one integer, one bit per name, so a walk carries it along
   and skips directories in which nothing can match.
3. Inside a name, every star takes the first position where the rest fits. There is no backtracking, so no name and no
   pattern is slow.
4. A pattern with too many brace alternatives is refused before they are expanded.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, islice
from operator import methodcaller

from surehold.errors import InvalidPattern

_MAX_PATTERN_CHARS = 4096
_MAX_ALTERNATIVES = 1000
_MAX_BRACE_DEPTH = 16
_ANY_DEPTH = "**"
_GLOB_CHARS = frozenset("*?[{")
_SPECIAL_CHARS = re.compile(r"[*?\[\]{}\\]")

Matcher = re.Pattern[str] | str | None
"""One name of a pattern: a regular expression, a plain name, or None for any number of directories."""


def is_glob(text: str) -> bool:
    return not _GLOB_CHARS.isdisjoint(text)


@dataclass(frozen=True)
class GlobPath:
    """One pattern without alternatives: a sequence of names."""

    text: str
    names: tuple[str, ...]

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        return tuple(None if name == _ANY_DEPTH else name_matcher(name) for name in self.names)

    @cached_property
    def start_bits(self) -> int:
        return self._skip_empty_depths(1)

    @cached_property
    def dotted_bits(self) -> int:
        return sum(1 << at for at, name in enumerate(self.names) if name.startswith((".", "\\.")))

    @cached_property
    def end_bit(self) -> int:
        return 1 << len(self.names)

    def step_bits(self, states: int, name: str) -> int:
        following, at, rest = 0, 0, states & (self.end_bit - 1)
        while rest:
            if rest & 1:
                matcher = self.matchers[at]
                if matcher is None:
                    following |= 1 << at
                elif matcher == name if isinstance(matcher, str) else matcher.match(name):
                    following |= 2 << at
            rest >>= 1
            at += 1
        return self._skip_empty_depths(following)

    def _skip_empty_depths(self, states: int) -> int:
        """Let `**` match no directory at all."""
        for at, matcher in enumerate(self.matchers):
            if matcher is None and states >> at & 1:
                states |= 2 << at
        return states


@dataclass(frozen=True)
class Glob:
    """A pattern with its alternatives."""

    paths: tuple[GlobPath, ...]

    @cached_property
    def start_states(self) -> tuple[int, ...]:
        return tuple(path.start_bits for path in self.paths)

    def step_states(self, states: tuple[int, ...], name: str) -> tuple[int, ...]:
        """Advance over one name of a path; all zero if nothing below it can match."""
        return tuple(one.step_bits(state, name) if state else 0 for one, state in zip(self.paths, states, strict=True))

    def accepts_states(self, states: tuple[int, ...]) -> bool:
        return any(state & path.end_bit for path, state in zip(self.paths, states, strict=True))

    def entry_matcher(self, states: tuple[int, ...]) -> Callable[[str], object]:
        """Return a test for the entries of the directory that a walk has reached."""
        last = [path.matchers[-1] for path, state in zip(self.paths, states, strict=True) if state & path.end_bit >> 1]
        plain = {matcher for matcher in last if isinstance(matcher, str)}
        others = [matcher.match for matcher in last if isinstance(matcher, re.Pattern)]
        if len(others) == 1 and not plain:
            return _suffix_test(self.paths, states) or others[0]
        return lambda name: name in plain or any(match(name) for match in others)

    def can_match_below(self, states: tuple[int, ...]) -> bool:
        return any(state & (path.end_bit - 1) for path, state in zip(self.paths, states, strict=True))

    def matches_path(self, parts: Iterable[str]) -> bool:
        return self.accepts_states(reduce(self.step_states, parts, self.start_states))

    def matches_part_of(self, parts: Iterable[str]) -> bool:
        reached = accumulate(parts, self.step_states, initial=self.start_states)
        return any(map(self.accepts_states, islice(reached, 1, None)))

    def dotted_states(self, states: tuple[int, ...]) -> tuple[int, ...]:
        """Return the states at names that begin with a dot, as `.github/*` does."""
        return tuple(path.dotted_bits & state for path, state in zip(self.paths, states, strict=True))


def _suffix_test(paths: tuple[GlobPath, ...], states: tuple[int, ...]) -> Callable[[str], object] | None:
    """Return a faster test for patterns such as `*.py`; None for any other."""
    (name,) = [path.names[-1] for path, state in zip(paths, states, strict=True) if state & path.end_bit >> 1]
    suffix = name[1:]
    return methodcaller("endswith", suffix) if name[0] == "*" and suffix and not _SPECIAL_CHARS.search(suffix) else None


@lru_cache(maxsize=256)
def anchored_glob(pattern: str) -> Glob:
    if not pattern.strip("/"):
        raise _invalid_glob(pattern, "it is empty")
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise _invalid_glob(pattern, f"it has more than {_MAX_PATTERN_CHARS} characters")
    if "\0" in pattern:
        raise _invalid_glob(pattern, "it contains a NUL character")
    return Glob(tuple(dict.fromkeys(_parse_path(text, pattern) for text in expand_braces(pattern))))


@lru_cache(maxsize=256)
def floating_glob(pattern: str) -> Glob:
    """Parse a filter: without a slash it matches a name at any depth, and `name/` matches everything in that directory."""
    _ = anchored_glob(pattern)  # an error names the pattern as it was written
    body = pattern.removesuffix("/")
    prefix = "" if "/" in body else "**/"
    return anchored_glob(prefix + body + ("/**" if body != pattern else ""))


class GlobFilter:
    """Globs of which one must match a file, and globs that must not match."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self.include = tuple(floating_glob(pattern) for pattern in include)
        self.exclude = tuple(floating_glob(pattern.removesuffix("/")) for pattern in exclude)

    def accepts_file(self, parts: Sequence[str]) -> bool:
        """Tell whether a file is included, and neither it nor a directory above it is excluded."""
        if self.include and not any(glob.matches_path(parts) for glob in self.include):
            return False
        return not any(glob.matches_part_of(parts) for glob in self.exclude)

    def enters_directory(self, parts: Sequence[str]) -> bool:
        return not any(glob.matches_path(parts) for glob in self.exclude)


def _parse_path(text: str, pattern: str) -> GlobPath:
    names = path_names(text)
    if ".." in names:
        raise _invalid_glob(pattern, "`..` leads out of the searched directory")
    path = GlobPath("/".join(names), names)
    try:
        _ = path.matchers
    except ValueError as error:
        raise _invalid_glob(pattern, str(error)) from None
    return path


def path_names(text: str) -> tuple[str, ...]:
    """Return the names of a pattern; several `**` in a row are one, and a last one means `**/*`."""
    names = list[str]()
    for name in text.split("/"):
        if name in {"", "."} or (name == _ANY_DEPTH and names[-1:] == [_ANY_DEPTH]):
            continue
        names.append(name)
    return (*names, "*") if names[-1:] == [_ANY_DEPTH] else tuple(names)


@lru_cache(maxsize=4096)
def name_matcher(name: str) -> re.Pattern[str] | str:
    """Return what a name is compared with; ValueError if it cannot be parsed."""
    chunks, plain = [""], [""]
    at, stars = 0, False
    while at < len(name):
        sign = name[at]
        if sign == "*":
            stars = True
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
            at += 1
            continue
        expression, literal, at = _read_sign(name, at)
        chunks[-1] += expression
        plain.append(literal if literal is not None else "\0")
    if not stars and "\0" not in plain:
        return "".join(plain)
    return re.compile(_join_expression(chunks, stars=stars), re.DOTALL)


def _join_expression(chunks: list[str], *, stars: bool) -> str:
    if not stars:
        return chunks[0] + r"\Z"
    first, *middle, last = chunks
    return first + "".join(f"(?>.*?{chunk})" for chunk in middle if chunk) + (f".*{last}" if last else ".*") + r"\Z"


def _read_sign(name: str, at: int) -> tuple[str, str | None, int]:
    """Return the regular expression of one sign, the character if it is plain, and where the next sign begins."""
    sign = name[at]
    if sign == "?":
        return ".", None, at + 1
    if sign == "[":
        return _read_class(name, at)
    if sign == "\\":
        if at + 1 == len(name):
            raise ValueError("it ends in a backslash")
        at += 1
    return re.escape(name[at]), name[at], at + 1


def _read_class(name: str, at: int) -> tuple[str, None, int]:
    begin = at + 1
    negated = name[begin : begin + 1] in {"!", "^"}
    at = begin + negated
    items = list[str]()
    first = True
    while True:
        if at >= len(name):
            raise ValueError("a `[` is not closed")
        if name[at] == "]" and not first:
            break
        first = False
        low, at = _read_class_member(name, at)
        if name[at : at + 1] == "-" and name[at + 1 : at + 2] not in {"", "]"}:
            high, at = _read_class_member(name, at + 1)
            if high < low:
                raise ValueError(f"the range `{low}-{high}` is empty")
            items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    return f"[{'^' if negated else ''}{''.join(items)}]", None, at + 1


def _read_class_member(name: str, at: int) -> tuple[str, int]:
    if name[at] == "\\" and at + 1 < len(name):
        at += 1
    return name[at], at + 1


def expand_braces(pattern: str) -> list[str]:
    """Return all alternatives of the braces; too many are refused."""
    found, at = _read_sequence(pattern, 0, 0)
    if at < len(pattern):
        raise _invalid_glob(pattern, "a `}` is not opened")
    return found


def _read_sequence(pattern: str, at: int, depth: int) -> tuple[list[str], int]:
    """Parse up to the end, or to a comma or brace of the level above."""
    found = [""]
    while at < len(pattern):
        sign = pattern[at]
        if sign == "{":
            choices, at = _read_choices(pattern, at + 1, depth + 1)
            if len(found) * len(choices) > _MAX_ALTERNATIVES:
                raise _invalid_glob(pattern, f"its braces expand to more than {_MAX_ALTERNATIVES} patterns")
            found = [left + right for left in found for right in choices]
            continue
        if sign == "}" or (sign == "," and depth):
            break
        end = _find_plain_end(pattern, at)
        piece = pattern[at:end]
        found = [left + piece for left in found]
        at = end
    return found, at


def _read_choices(pattern: str, at: int, depth: int) -> tuple[list[str], int]:
    if depth > _MAX_BRACE_DEPTH:
        raise _invalid_glob(pattern, f"its braces are nested more than {_MAX_BRACE_DEPTH} deep")
    choices = list[str]()
    while True:
        found, at = _read_sequence(pattern, at, depth)
        choices += found
        if len(choices) > _MAX_ALTERNATIVES:
            raise _invalid_glob(pattern, f"its braces expand to more than {_MAX_ALTERNATIVES} patterns")
        if at >= len(pattern):
            raise _invalid_glob(pattern, "a `{` is not closed")
        at += 1
        if pattern[at - 1] == "}":
            return choices, at


def _find_plain_end(pattern: str, at: int) -> int:
    """Return where the next brace or comma can be: escaped characters and those in `[...]` are plain."""
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] == "[":
        end = pattern.find("]", at + (3 if pattern[at + 1 : at + 2] in {"!", "^"} else 2))
        return end + 1 if end >= 0 else len(pattern)
    end = at + 1
    while end < len(pattern) and pattern[end] not in "{},\\[":
        end += 1
    return end


def _invalid_glob(pattern: str, why: str) -> InvalidPattern:
    shown = pattern if len(pattern) <= 80 else pattern[:80] + "…"  # noqa: PLR2004 - enough to recognise it
    return InvalidPattern(f"The glob `{shown}` cannot be used: {why}.", reason="invalid_glob", pattern=shown)
