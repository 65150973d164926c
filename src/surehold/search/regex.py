"""Regular expressions as ripgrep reads them, written for Python.

1. What both read alike is translated, down to line ends and bytes that are no text. What only ripgrep can do is refused, and
   the refusal says so; nothing is guessed.
2. Lines are searched one by one unless told otherwise: then nothing in an expression matches a line end.
3. `^` and `$` mean lines that end in LF, CRLF or a lone CR; `.` is anything but those two characters.
"""

import re
from dataclasses import dataclass
from string import punctuation

from surehold.errors import InvalidPattern
from surehold.search.ripgrep.errors import invalid_regex_error, line_end_error

_INVALID = "\\ud800-\\udfff"
"""How bytes that are no text look when they are decoded: no character, so nothing matches them."""
_SPACE = "\\t\\n\\x0b\\x0c\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_LINE_START = "(?:\\A|(?<=\\n)|(?<=\\r)(?!\\n))"
_LINE_END = "(?:(?=\\r)|(?<!\\r)(?=\\n)|\\Z)"
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\x0b\\x0c\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_LOOK = re.compile(r"\(\?<?[=!]")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>", re.ASCII)
_HEX = re.compile(
    r"\\(?:x\{([0-9A-Fa-f]+)\}|u\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))"
)
_MAX_REPEAT = 1000
_MAX_DEPTH = 100


def translate(query: str, *, multiline: bool, dot_all: bool = False, look_around: bool = False) -> str:
    """Return the expression for Python; `InvalidPattern` when ripgrep would refuse it, or Python cannot say it."""
    reader = _RegexTranslator(query, multiline=multiline, look_around=look_around)
    result = reader.alternation(_State(dot_all=dot_all), 0)
    if reader.at < len(query):
        raise invalid_regex_error("unopened group")
    return result


@dataclass(frozen=True)
class _State:
    """The flags that hold where the reader is."""

    dot_all: bool = False


class _RegexTranslator:
    """Reads from left to right."""

    def __init__(self, text: str, *, multiline: bool, look_around: bool = False) -> None:
        self.text = text
        self.at = 0
        self.multiline = multiline
        self.look_around = look_around
        """Whether it is written for PCRE2: then groups are counted, since they may be referred to."""
        self.groups = 0
        self.named = set[str]()
        never = _INVALID if multiline else "\\r\\n" + _INVALID
        self.guard = f"(?![{never}])"
        """Stands before everything that could match what it must not."""

    def alternation(self, state: _State, depth: int) -> str:
        """Read up to the end of a group."""
        if depth > _MAX_DEPTH:
            raise invalid_regex_error("its groups are nested too deep")
        branches, closers = [""], ""
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                branches.append("")
                continue
            flags = _FLAGS.match(self.text, self.at)
            if flags and flags[3] == ")":
                self.at = flags.end()
                state, opened = self._flags(flags, state)
                if opened and branches != [""]:
                    raise _needs_ripgrep("a flag in the middle")
                closers += opened and ")"
                branches[-1] += opened
                continue
            branches[-1] += self._repeated(state, depth)
        return "|".join(branches) + closers

    def _flags(self, flags: re.Match[str], state: _State) -> tuple[_State, str]:
        on, off = flags[1], flags[2] or ""
        if not set(on + off) <= set("isu") or "u" in off:
            raise _needs_ripgrep(f"the flags `{flags[0]}`")
        if "i" in off:
            raise _needs_ripgrep(f"the flags `{flags[0]}`")
        dot_all = (state.dot_all or "s" in on) and "s" not in off
        return _State(dot_all=dot_all), "(?i:" if "i" in on else ""

    def _repeated(self, state: _State, depth: int) -> str:
        atom = self._atom(state, depth)
        while self.at < len(self.text) and self.text[self.at] in "*+?{":
            atom = f"(?:{atom}){self._quantifier()}"
        return atom

    def _quantifier(self) -> str:
        sign = self.text[self.at]
        if sign != "{":
            self.at += 1
        else:
            count = _COUNT.match(self.text, self.at)
            if not count:
                raise invalid_regex_error("repetition quantifier expects a valid decimal")
            low, high = int(count[1]), int(count[2] or count[1])
            if max(low, high) > _MAX_REPEAT:
                raise invalid_regex_error("it is too large when its repetitions are written out")
            if high < low:
                raise invalid_regex_error("invalid repetition count range, the start must be <= the end")
            sign, self.at = count[0], count.end()
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1
            sign += "?"
        return sign

    def _atom(self, state: _State, depth: int) -> str:
        sign = self.text[self.at]
        if sign in "*+?{":
            raise invalid_regex_error("repetition operator missing expression")
        if sign == "(":
            return self._group(state, depth)
        if sign == "[":
            return self.guard + self._class()
        if sign == "\\":
            return self._escape()
        self.at += 1
        if sign == ".":
            return f"[^{_INVALID}]" if state.dot_all and self.multiline else f"[^\\r\\n{_INVALID}]"
        if sign == "^":
            return _LINE_START
        if sign == "$":
            return _LINE_END
        return self._literal(sign)

    def _literal(self, sign: str) -> str:
        if sign in "\r\n" and not self.multiline:
            raise line_end_error("\\n" if sign == "\n" else "\\r")
        return re.escape(sign)

    def _group(self, state: _State, depth: int) -> str:
        opened = "(?:"
        if look := _LOOK.match(self.text, self.at):
            if not self.look_around:
                raise invalid_regex_error("look-around, including look-ahead and look-behind, is not supported")
            self.at, opened = look.end(), look[0]
        elif flags := _FLAGS.match(self.text, self.at):
            self.at = flags.end()
            state, case = self._flags(flags, state)
            opened = case or opened
        elif named := _NAMED.match(self.text, self.at):
            self.at = named.end()
            if named[1] in self.named:
                raise invalid_regex_error("duplicate capture group name")
            self.named.add(named[1])
            opened = self._captured(f"(?P<{named[1]}>")
        elif self.text.startswith("(?", self.at):
            raise invalid_regex_error("unrecognized flag")
        else:
            self.at += 1
            opened = self._captured("(")
        body = self.alternation(state, depth + 1)
        if self.text[self.at : self.at + 1] != ")":
            raise invalid_regex_error("unclosed group")
        self.at += 1
        return f"{opened}{body})"

    def _captured(self, opened: str) -> str:
        """Return how a group is opened that something may refer to; nothing can, without PCRE2."""
        self.groups += 1
        return opened if self.look_around else "(?:"

    def _reference(self, sign: str) -> str:
        if not self.look_around:
            raise invalid_regex_error("backreferences are not supported")
        if not 0 < int(sign) <= self.groups:
            raise invalid_regex_error("reference to non-existent subpattern")
        return f"(?:\\{sign})"

    def _escape(self) -> str:
        if code := _HEX.match(self.text, self.at):
            self.at = code.end()
            return self._literal(_character(code))
        sign = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not sign:
            raise invalid_regex_error("incomplete escape sequence, reached end of pattern prematurely")
        if sign in "dws" or sign in "DWS":
            return (
                f"{self.guard}[{_shorthand(sign)}]" if sign in "dws" else f"{self.guard}[^{_shorthand(sign.lower())}]"
            )
        if sign in _CONTROLS:
            return self._literal(_CONTROLS[sign])
        if sign == "b" and self.text[self.at : self.at + 1] != "{":
            return "\\b"
        if sign in "Az" and self.multiline:
            return "\\A" if sign == "A" else "\\Z"
        return self._other(sign)

    def _other(self, sign: str) -> str:
        if sign.isdigit():
            return self._reference(sign)
        if sign in "pPbBAz<>":
            raise _needs_ripgrep(f"`\\{sign}`")
        if sign in punctuation or sign == " ":
            return self._literal(sign)
        raise invalid_regex_error("unrecognized escape sequence")

    def _class(self) -> str:
        self.at += 1
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        items, first = list[str](), True
        while True:
            if self.at >= len(self.text):
                raise invalid_regex_error("unclosed character class")
            if self.text[self.at] == "]" and not first:
                self.at += 1
                break
            if self.text.startswith(("&&", "--", "~~"), self.at):
                raise _needs_ripgrep("set operations in a class")
            items.append(self._item(first=first))
            first = False
        if not self.multiline and not negated and items in [["\\\n"], ["\\\r"]]:
            raise line_end_error("\\n" if items == ["\\\n"] else "\\r")
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _item(self, *, first: bool) -> str:
        text = self.text
        if text[self.at] == "[":
            return self._posix()
        if text[self.at] == "\\" and text[self.at + 1 : self.at + 2] in set("dwsDWS"):
            sign = text[self.at + 1]
            self.at += 2
            if sign in "DWS":
                raise _needs_ripgrep(f"`\\{sign}` in a class")
            return _shorthand(sign)
        low = self._member()
        if text[self.at : self.at + 1] == "-" and text[self.at + 1 : self.at + 2] not in {"", "]", "-"}:
            if first and low == "-":
                raise _needs_ripgrep("`--` in a class")
            self.at += 1
            high = self._member()
            if high < low:
                raise invalid_regex_error("invalid character class range, the start must be <= the end")
            return f"{re.escape(low)}-{re.escape(high)}"
        return re.escape(low)

    def _member(self) -> str:
        if code := _HEX.match(self.text, self.at):
            self.at = code.end()
            return _character(code)
        sign = self.text[self.at]
        if sign == "[":
            raise _needs_ripgrep("a class in a class")
        self.at += 1
        if sign != "\\":
            return sign
        escaped = self.text[self.at : self.at + 1]
        self.at += 1
        if escaped in _CONTROLS:
            return _CONTROLS[escaped]
        if not escaped or escaped not in punctuation + " ":
            raise _needs_ripgrep(f"`\\{escaped}` in a class")
        return escaped

    def _posix(self) -> str:
        found = re.compile(r"\[:(\^?)([a-z]+):\]").match(self.text, self.at)
        if not found or found[1] or found[2] not in _POSIX:
            raise _needs_ripgrep("a class in a class")
        self.at = found.end()
        return _POSIX[found[2]]


def _shorthand(sign: str) -> str:
    return _SPACE if sign == "s" else "\\" + sign


def _character(code: re.Match[str]) -> str:
    digits = next(group for group in code.groups() if group)
    number = int(digits, 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:  # noqa: PLR2004 - where Unicode ends, and what is no character
        raise invalid_regex_error("hexadecimal literal is not a Unicode scalar value")
    return chr(number)


def _needs_ripgrep(what: str) -> InvalidPattern:
    return InvalidPattern(
        f"The regular expression cannot be used here: {what} needs ripgrep, which is not installed.",
        reason="invalid_regex",
        action="Write it differently, or install ripgrep.",
    )
