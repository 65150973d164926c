"""Whether an edit breaks the syntax of a file.

1. The strictest way of reading that the old text satisfies is the judge: JSON with comments is not held to strict JSON.
2. A text that satisfied none, or that was blank, is not judged. Neither is one that is too large or takes too long.
3. Some grammars stumble over valid text, such as macros or the newest syntax. Their word counts if the brackets agree.
4. A new text that satisfies the strictest way is fine at once, so the usual edit costs one parse.
"""

import re
from collections.abc import Callable, Sequence

from surehold.text.sanity_blame import culprit
from surehold.text.sanity_delimiters import Lexis, has_brackets, imbalance
from surehold.text.sanity_finding import Finding, Flaw, Reading, Subject, Unread

LARGEST = 1 << 20
"""How many bytes are parsed, at most."""
_TEMPLATE = re.compile(rb"\{\{|\{%|<%|\{#|<\?|\$\{|<#")


def syntax_finding(subject: Subject, readings: Sequence[Reading], lexis: Lexis) -> Finding | None:
    """Say what the edit does to the syntax; None when that is nothing."""
    if not subject.before.strip():
        return None
    if max(len(subject.before), len(subject.after)) > LARGEST:
        return _unchecked(f"The file is larger than {LARGEST >> 20} MB, so its syntax was not checked.")
    if not readings:
        return _balance_finding(subject, lexis)
    return _parse_finding(subject, readings, lexis)


def _parse_finding(subject: Subject, readings: Sequence[Reading], lexis: Lexis) -> Finding | None:
    for place, reading in enumerate(readings):
        flaw = reading.flaw(subject.after)
        if flaw is None and place == 0:
            return None
        past = reading.flaw(subject.before)
        if isinstance(past, Flaw):
            continue
        unread = next((answer for answer in (past, flaw) if isinstance(answer, Unread)), None)
        if unread is not None:
            return _unchecked(f"The syntax was not checked: {unread.reason}.")
        return _regression(subject, reading, flaw, lexis) if isinstance(flaw, Flaw) else None
    name = readings[0].name
    return _unchecked(f"The file was not valid {name} before this edit, so its syntax was not checked.")


def _regression(subject: Subject, reading: Reading, flaw: Flaw, lexis: Lexis) -> Finding:
    if reading.templates and any(_TEMPLATE.search(span.new) for span in subject.spans):
        return _unchecked(f"The new text holds template code, so it was not checked as {reading.name}.")
    if reading.gaps and _in_balance(subject, lexis):
        message = f"Line {flaw.line} could not be read as {reading.name}: {flaw.message}. The brackets are in balance."
        return Finding(kind="doubtful_syntax", message=message, line=flaw.line)
    blame = culprit(subject, flaw.line, _is_broken(reading.flaw))
    if not flaw.exact:
        flaw = _tipped(subject, lexis) or flaw
    return Finding(
        kind="parse_error",
        message=f"The file was valid {reading.name} and would not be any more: line {flaw.line}: {flaw.message}.",
        line=flaw.line,
        span=blame,
        suspicious=True,
    )


def _balance_finding(subject: Subject, lexis: Lexis) -> Finding | None:
    flaw = _tipped(subject, lexis)
    if flaw is None:
        return None
    if lexis.is_prose and not has_brackets(subject.before):
        return None
    blame = culprit(subject, flaw.line, _is_broken(lambda source: imbalance(source, lexis)))
    return Finding(
        kind="unbalanced_delimiters",
        message=f"The brackets were in balance and would not be any more: line {flaw.line}: {flaw.message}.",
        line=flaw.line,
        span=blame,
        suspicious=not lexis.is_prose,
    )


def _tipped(subject: Subject, lexis: Lexis) -> Flaw | None:
    """Return the bracket without a partner in the new text, if there was none in the old one."""
    flaw = imbalance(subject.after, lexis)
    return flaw if flaw is not None and imbalance(subject.before, lexis) is None else None


def _in_balance(subject: Subject, lexis: Lexis) -> bool:
    return imbalance(subject.before, lexis) is None and imbalance(subject.after, lexis) is None


def _is_broken(flaw: Callable[[bytes], Flaw | Unread | None]) -> Callable[[bytes], bool]:
    return lambda source: isinstance(flaw(source), Flaw)


def _unchecked(message: str) -> Finding:
    return Finding(kind="syntax_not_checked", message=message)
