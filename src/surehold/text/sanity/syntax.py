"""Checks whether an edit breaks the syntax of a file, and which of its spans did.

1. The strictest parser that accepts the old text is the judge: JSON with comments is not held to strict JSON.
2. A text that no parser accepted, or that was blank, is not judged. Neither is one that is too large or takes too long.
3. Some grammars fail on valid text, such as macros or the newest syntax. Their verdict counts if the brackets agree.
4. A new text that the strictest parser accepts is fine at once, so the usual edit costs one parse.
"""

import re
from collections.abc import Callable, Sequence

from surehold.text.sanity.delimiters import LexicalRules, find_imbalance, has_brackets
from surehold.text.sanity.subject import SanityFinding, SanitySubject, SyntaxFlaw, SyntaxParser, UnparsedText

_MAX_SUSPECTS = 6
_MAX_BLAME_BYTES = 4 << 20
"""So many bytes may be parsed to find the culprit; beyond that, the nearest span is named."""


def find_culprit(subject: SanitySubject, line: int, broken: Callable[[bytes], bool]) -> int:
    """Return the span without which the text would be sound, else the one after which it is broken for the first time."""
    spans = subject.spans
    nearest = subject.span_at(line)
    if len(spans) == 1:
        return 0
    affordable = _MAX_BLAME_BYTES // (len(subject.after) + 1)
    suspects = sorted(range(len(spans)), key=lambda index: (abs(index - nearest), index > nearest))
    for suspect in suspects[: min(_MAX_SUSPECTS, affordable)]:
        if not broken(subject.with_spans((*spans[:suspect], *spans[suspect + 1 :]))):
            return suspect
    if affordable < _MAX_SUSPECTS + len(spans).bit_length():
        return nearest
    return _first_break(subject, broken)


def _first_break(subject: SanitySubject, broken: Callable[[bytes], bool]) -> int:
    """Halve the spans: none of them leaves a sound text, all of them a broken one."""
    sound, damaged = 0, len(subject.spans)
    while damaged - sound > 1:
        middle = (sound + damaged) // 2
        if broken(subject.with_spans(subject.spans[:middle])):
            damaged = middle
        else:
            sound = middle
    return damaged - 1


MAX_CHECKED_BYTES = 1 << 20
"""How many bytes are parsed, at most."""
_TEMPLATE = re.compile(rb"\{\{|\{%|<%|\{#|<\?|\$\{|<#")


def syntax_finding(
    subject: SanitySubject, readings: Sequence[SyntaxParser], lexis: LexicalRules
) -> SanityFinding | None:
    """Say what the edit does to the syntax; None when that is nothing."""
    if not subject.before.strip():
        return None
    if max(len(subject.before), len(subject.after)) > MAX_CHECKED_BYTES:
        return _unchecked_finding(
            f"the file is larger than {MAX_CHECKED_BYTES >> 20} MB, so its syntax was not checked"
        )
    if not readings:
        return _balance_finding(subject, lexis)
    return _parse_finding(subject, readings, lexis)


def _parse_finding(
    subject: SanitySubject, readings: Sequence[SyntaxParser], lexis: LexicalRules
) -> SanityFinding | None:
    for place, reading in enumerate(readings):
        flaw = reading.find_flaw(subject.after)
        if flaw is None and place == 0:
            return None
        past = reading.find_flaw(subject.before)
        if isinstance(past, SyntaxFlaw):
            continue
        unread = next((answer for answer in (past, flaw) if isinstance(answer, UnparsedText)), None)
        if unread is not None:
            return _unchecked_finding(f"the syntax was not checked: {unread.reason}")
        return _regression_finding(subject, reading, flaw, lexis) if isinstance(flaw, SyntaxFlaw) else None
    name = readings[0].name
    return _unchecked_finding(f"the file was not valid {name} before this edit, so its syntax was not checked")


def _regression_finding(
    subject: SanitySubject, reading: SyntaxParser, flaw: SyntaxFlaw, lexis: LexicalRules
) -> SanityFinding:
    if reading.templates and any(_TEMPLATE.search(span.new) for span in subject.spans):
        return _unchecked_finding(f"the new text contains template code, so it was not checked as {reading.name}")
    if reading.gaps and _is_balanced(subject, lexis):
        fault = f"line {flaw.line} could not be read as {reading.name}, but the brackets are in balance: {flaw.message}"
        return SanityFinding(kind="doubtful_syntax", fault=fault, line=flaw.line)
    blame = find_culprit(subject, flaw.line, _is_broken(reading.find_flaw))
    if not flaw.exact:
        flaw = _new_imbalance(subject, lexis) or flaw
    return SanityFinding(
        kind="parse_error",
        fault=f"the file was valid {reading.name} and would not be any more: line {flaw.line}: {flaw.message}",
        line=flaw.line,
        span=blame,
        suspicious=True,
    )


def _balance_finding(subject: SanitySubject, lexis: LexicalRules) -> SanityFinding | None:
    flaw = _new_imbalance(subject, lexis)
    if flaw is None:
        return None
    if lexis.is_prose and not has_brackets(subject.before):
        return None
    blame = find_culprit(subject, flaw.line, _is_broken(lambda source: find_imbalance(source, lexis)))
    return SanityFinding(
        kind="unbalanced_delimiters",
        fault=f"the brackets were in balance and would not be any more: line {flaw.line}: {flaw.message}",
        line=flaw.line,
        span=blame,
        suspicious=not lexis.is_prose,
    )


def _new_imbalance(subject: SanitySubject, lexis: LexicalRules) -> SyntaxFlaw | None:
    """Return the bracket without a partner in the new text, if there was none in the old one."""
    flaw = find_imbalance(subject.after, lexis)
    return flaw if flaw is not None and find_imbalance(subject.before, lexis) is None else None


def _is_balanced(subject: SanitySubject, lexis: LexicalRules) -> bool:
    return find_imbalance(subject.before, lexis) is None and find_imbalance(subject.after, lexis) is None


def _is_broken(flaw: Callable[[bytes], SyntaxFlaw | UnparsedText | None]) -> Callable[[bytes], bool]:
    return lambda source: isinstance(flaw(source), SyntaxFlaw)


def _unchecked_finding(fault: str) -> SanityFinding:
    return SanityFinding(kind="syntax_not_checked", fault=fault)
