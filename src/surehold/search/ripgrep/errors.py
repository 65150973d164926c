"""Error messages of ripgrep, translated to our errors."""

import re

from surehold.errors import InvalidPattern, SureholdError
from surehold.search.file_types import unknown_type_error

_SYNTAX = re.compile(r"^error: (.*)$", re.MULTILINE)
_TYPE = re.compile(r"unrecognized file type: (.*)")
_LITERAL = re.compile(r'the literal "(.*)" is not allowed')
_GLOB = re.compile(r"error parsing glob '(.*?)': (.*)")
_PCRE2 = re.compile(r"PCRE2: error compiling pattern at offset \d+: (.*)")
_PCRE2_STEPS = re.compile(r"PCRE2: error matching: (.*)")
_PCRE2_FEATURES = ("look-around", "backreferences")


def error_from_output(text: str) -> SureholdError | None:
    """Return the error for what ripgrep reports about a pattern; None if it reports something else."""
    if "regex parse error" in text:
        cause = _SYNTAX.search(text)
        return _invalid_regex(cause[1].strip() if cause else "it cannot be parsed")
    if "compiled regex exceeds size limit" in text or "exceeds the limit" in text:
        return _invalid_regex("it is too large when its repetitions are written out")
    if found := _PCRE2.search(text):
        return _invalid_regex(found[1].strip())
    if found := _PCRE2_STEPS.search(text):
        return _slow_regex_error() if "limit exceeded" in found[1] else _invalid_regex(found[1].strip())
    if found := _LITERAL.search(text):
        return _line_end_error(found[1])
    if found := _TYPE.search(text):
        return unknown_type_error(found[1].strip())
    if found := _GLOB.search(text):
        return InvalidPattern(f"The glob `{found[1]}` cannot be used: {found[2]}.", reason="invalid_glob")
    return None


def _invalid_regex(cause: str) -> InvalidPattern:
    return InvalidPattern(f"The regular expression cannot be used: {cause}.", reason="invalid_regex", cause=cause)


def _slow_regex_error() -> InvalidPattern:
    error = _invalid_regex("it takes too many steps in some line")
    error.action = "Write it without repetitions inside repetitions."
    return error


def needs_look_around(error: InvalidPattern) -> bool:
    """Tell whether an expression is valid except for look-around or backreferences, which PCRE2 knows."""
    return any(word in str(error.details.get("cause", "")) for word in _PCRE2_FEATURES)


def _line_end_error(sign: str) -> InvalidPattern:
    return InvalidPattern(
        f"The regular expression cannot be used: `{sign}` ends a line, and lines are searched one by one.",
        reason="invalid_regex",
        action="Set multiline to match across lines.",
    )
