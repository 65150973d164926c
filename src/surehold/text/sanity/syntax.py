"""Checks whether an edit breaks the syntax of a file, and which of its spans did.

1. The strictest parser that accepts the old text is the judge: JSON with comments is not held to strict JSON.
2. A text that no parser accepted, or that was blank, is not judged. Neither is one that is too large or takes too long.
3. Some grammars fail on valid text, such as macros or the newest syntax. Their verdict counts if the brackets agree.
4. A new text that the strictest parser accepts is fine at once, so the usual edit costs one parse.

Without a parser, brackets outside of strings and comments decide. The check is only as good as what `lexical` knows of a
language, so it judges a text only if the old version was balanced. In prose an imbalance is a warning and never refused.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from surehold.text.plan import Span
from surehold.text.sanity.lexical import (
    CLOSES,
    OPENS,
    LexicalRules,
    find_imbalance,
    find_new_imbalance,
    is_balanced_otherwise,
    lexical_rules_for,
)
from surehold.text.sanity.subject import SanityFinding, SanitySubject, SyntaxFlaw, SyntaxParser, UnparsedText

_MAX_SUSPECTS = 6
_MAX_BLAME_BYTES = 4 << 20
"""So many bytes may be parsed to find the culprit; beyond that, the nearest span is named."""


def find_culprit(
    subject: SanitySubject, line: int, find_flaw: Callable[[bytes], SyntaxFlaw | UnparsedText | None]
) -> int:
    """Return the span without which the text would be sound, else the one after which it is broken for the first time."""
    spans, nearest = subject.spans, subject.span_at(line)

    def is_broken(kept: Sequence[Span]) -> bool:
        return isinstance(find_flaw(subject.with_spans(kept)), SyntaxFlaw)

    if len(spans) == 1:
        return 0
    affordable = _MAX_BLAME_BYTES // (len(subject.after) + 1)
    suspects = sorted(range(len(spans)), key=lambda index: (abs(index - nearest), index > nearest))
    for suspect in suspects[: min(_MAX_SUSPECTS, affordable)]:
        if not is_broken((*spans[:suspect], *spans[suspect + 1 :])):
            return suspect
    if affordable < _MAX_SUSPECTS + len(spans).bit_length():
        return nearest
    # None of the spans leaves a sound text, all of them a broken one.
    return bisect_left(range(1, len(spans)), True, key=lambda count: is_broken(spans[:count]))  # noqa: FBT003


MAX_CHECKED_BYTES = 1 << 20
"""How many bytes are parsed, at most."""
_TEMPLATE = re.compile(rb"\{\{|\{%|<%|\{#|<\?|\$\{|<#")


def syntax_finding(subject: SanitySubject, readings: Sequence[SyntaxParser], path: str) -> SanityFinding | None:
    """Say what the edit does to the syntax; None when that is nothing."""
    if not subject.before.strip():
        return None
    if max(len(subject.before), len(subject.after)) > MAX_CHECKED_BYTES:
        size = MAX_CHECKED_BYTES >> 20
        return _unchecked_finding(f"the file is larger than {size} MB, so its syntax was not checked")
    if not readings:
        return _balance_finding(subject, lexical_rules_for(path))
    return _parse_finding(subject, readings, path)


def _parse_finding(subject: SanitySubject, readings: Sequence[SyntaxParser], path: str) -> SanityFinding | None:
    for place, reading in enumerate(readings):
        flaw = reading.find_flaw(subject.after)
        if flaw is None and place == 0:
            return None
        past = reading.find_flaw(subject.before)
        if isinstance(past, SyntaxFlaw):
            continue
        unread = [answer for answer in (past, flaw) if isinstance(answer, UnparsedText)]
        if any(answer.by_brackets for answer in unread):
            return _balance_finding(subject, lexical_rules_for(path)) or _bracket_notice(unread)
        if unread:
            return _unchecked_finding(f"the syntax was not checked: {unread[0].reason}")
        if not isinstance(flaw, SyntaxFlaw):
            return None
        return _regression_finding(subject, reading, flaw, lexical_rules_for(path))
    name = readings[0].name
    return _unchecked_finding(f"the file was not valid {name} before this edit, so its syntax was not checked")


def _bracket_notice(unread: Sequence[UnparsedText]) -> SanityFinding | None:
    reason = next((answer.reason for answer in unread if answer.reason), "")
    return _unchecked_finding(f"only the brackets were checked: {reason}") if reason else None


def _regression_finding(
    subject: SanitySubject, reading: SyntaxParser, flaw: SyntaxFlaw, lexis: LexicalRules
) -> SanityFinding:
    if reading.templates and any(_TEMPLATE.search(span.new) for span in subject.spans):
        return _unchecked_finding(f"the new text contains template code, so it was not checked as {reading.name}")
    if _may_stumble(reading, subject) and _is_balanced(subject, lexis):
        fault = f"line {flaw.line} could not be read as {reading.name}, but the brackets are in balance: {flaw.message}"
        return SanityFinding(kind="doubtful_syntax", fault=fault, line=flaw.line)
    blame = find_culprit(subject, flaw.line, reading.find_flaw)
    if not flaw.exact:
        flaw = find_new_imbalance(subject.before, subject.after, lexis) or flaw
    return SanityFinding(
        kind="parse_error",
        fault=f"the file was valid {reading.name} and would not be any more: line {flaw.line}: {flaw.message}",
        line=flaw.line,
        span=blame,
        suspicious=True,
    )


def _balance_finding(subject: SanitySubject, lexis: LexicalRules) -> SanityFinding | None:
    flaw = find_new_imbalance(subject.before, subject.after, lexis)
    if flaw is None:
        return None
    if lexis.is_prose and not any(sign in subject.before for sign in (*OPENS, *CLOSES)):
        return None  # without any bracket, being in balance meant nothing
    blame = find_culprit(subject, flaw.line, lambda source: find_new_imbalance(subject.before, source, lexis))
    return SanityFinding(
        kind="unbalanced_delimiters",
        fault=f"the brackets were in balance and would not be any more: line {flaw.line}: {flaw.message}",
        line=flaw.line,
        span=blame,
        suspicious=not lexis.is_prose,
    )


def _may_stumble(reading: SyntaxParser, subject: SanitySubject) -> bool:
    spots = reading.blind_spots
    return reading.gaps or (spots is not None and any(spots.search(span.new) for span in subject.spans))


def _is_balanced(subject: SanitySubject, lexis: LexicalRules) -> bool:
    before, after = subject.before, subject.after
    if not any(find_imbalance(side, lexis) for side in (before, after)):
        return True
    return is_balanced_otherwise(before, after, lexis)


def _unchecked_finding(fault: str) -> SanityFinding:
    return SanityFinding(kind="syntax_not_checked", fault=fault)
