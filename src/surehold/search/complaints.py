"""What ripgrep complains about, as errors of ours."""

import re

from surehold.errors import InvalidPattern, SureholdError
from surehold.search.types import unknown_type

_SYNTAX = re.compile(r"^error: (.*)$", re.MULTILINE)
_TYPE = re.compile(r"unrecognized file type: (.*)")
_LITERAL = re.compile(r'the literal "(.*)" is not allowed')
_GLOB = re.compile(r"error parsing glob '(.*?)': (.*)")
_PCRE2 = re.compile(r"PCRE2: error compiling pattern at offset \d+: (.*)")
_PCRE2_STEPS = re.compile(r"PCRE2: error matching: (.*)")
_NEEDS_MORE = ("look-around", "backreferences")


def complaint(text: str) -> SureholdError | None:
    """Return the error for what ripgrep said about a pattern; None when it is about something else."""
    if "regex parse error" in text:
        cause = _SYNTAX.search(text)
        return bad_regex(cause[1].strip() if cause else "it cannot be parsed")
    if "compiled regex exceeds size limit" in text or "exceeds the limit" in text:
        return bad_regex("it is too large when its repetitions are written out")
    if found := _PCRE2.search(text):
        return bad_regex(found[1].strip())
    if found := _PCRE2_STEPS.search(text):
        return _too_slow() if "limit exceeded" in found[1] else bad_regex(found[1].strip())
    if found := _LITERAL.search(text):
        return line_end(found[1])
    if found := _TYPE.search(text):
        return unknown_type(found[1].strip())
    if found := _GLOB.search(text):
        return InvalidPattern(f"The glob `{found[1]}` cannot be used: {found[2]}.", reason="invalid_glob")
    return None


def bad_regex(cause: str) -> InvalidPattern:
    """Return the error for a regular expression that cannot be used."""
    return InvalidPattern(f"The regular expression cannot be used: {cause}.", reason="invalid_regex", cause=cause)


def _too_slow() -> InvalidPattern:
    error = bad_regex("it takes too many steps in some line")
    error.action = "Write it without repetitions inside repetitions."
    return error


def needs_look_around(error: InvalidPattern) -> bool:
    """Tell whether an expression is fine but for look-around or backreferences, which another matcher knows."""
    return any(word in str(error.details.get("cause", "")) for word in _NEEDS_MORE)


def line_end(sign: str) -> InvalidPattern:
    """Return the error for an expression that can only match across lines."""
    return InvalidPattern(
        f"The regular expression cannot be used: `{sign}` ends a line, and lines are searched one by one.",
        reason="invalid_regex",
        action="Set multiline to match across lines.",
    )
