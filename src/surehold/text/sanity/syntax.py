"""Checks whether an edit breaks the syntax of a file, and which of its spans did.

1. The strictest parser that accepts the old text is the judge: JSON with comments is not held to strict JSON.
2. A text that no parser accepted, or that was blank, is not judged. Neither is one that is too large or takes too long.
3. Some grammars fail on valid text, such as macros or the newest syntax. Their verdict counts if the brackets agree.
4. A new text that the strictest parser accepts is fine at once, so the usual edit costs one parse.

Without a parser, brackets outside of strings and comments decide. The check is only as good as what it knows of a language's strings and comments, so it judges a text only if the old
version was balanced. Prose has smileys and lists with `a)`: there, an imbalance is a warning and never refused.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from surehold.text.plan import Span
from surehold.text.sanity.subject import SanityFinding, SanitySubject, SyntaxFlaw, SyntaxParser, UnparsedText

_CLOSES = {b")": b"(", b"]": b"[", b"}": b"{"}
_OPENS = frozenset(_CLOSES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalRules:
    """What brackets can hide in, as regular expressions."""

    comments: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    is_prose: bool = False


# Whatever is not closed reaches to the end, so that no byte is looked at twice.
_BLOCK = r"/\*.*?(?:\*/|\Z)"
_SLASHES = (r"//[^\n]*", _BLOCK)
_HASH = (r"#[^\n]*",)
_DOUBLE = r'"(?:\\.|[^"\\\n])*+(?:"|(?=\n)|\\?\Z)'
_SINGLE = r"'(?:\\.|[^'\\\n])*+(?:'|(?=\n)|\\?\Z)"
_CHAR = r"'(?:\\[^\n]{1,8}?|[^'\\\n])'"
_TRIPLE = r'"""(?:\\.|[^\\])*?(?:"""|\\?\Z)'
_TRIPLE_SINGLE = r"'''(?:\\.|[^\\])*?(?:'''|\\?\Z)"
_TICKS = r"`(?:\\.|[^`\\])*+(?:`|\\?\Z)"

_C_LIKE = LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _DOUBLE, _CHAR))
_QUOTED = LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE))
_TICKED = LexicalRules(comments=_SLASHES, strings=(_TICKS, _DOUBLE, _SINGLE))
_SCRIPT = LexicalRules(comments=_HASH, strings=(_TRIPLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE))
_SHEET = LexicalRules(comments=(_BLOCK, r"(?<!:)//[^\n]*"), strings=(_DOUBLE, _SINGLE))
_HASH_AND_SLASHES = LexicalRules(comments=(*_HASH, *_SLASHES), strings=(_DOUBLE,))
_DASHES = LexicalRules(comments=(r"\{-.*?(?:-\}|\Z)", r"--[^\n]*"), strings=(_DOUBLE,))
_LUA = LexicalRules(comments=(r"--\[\[.*?(?:\]\]|\Z)", r"--[^\n]*"), strings=(r"\[\[.*?(?:\]\]|\Z)", _DOUBLE, _SINGLE))
_LISP = LexicalRules(comments=(r";[^\n]*", r"#\|.*?(?:\|#|\Z)"), strings=(r"\\.", r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'))
_PROSE = LexicalRules(is_prose=True)

_FAMILIES: tuple[tuple[LexicalRules, str], ...] = (
    (_C_LIKE, "c h cc cpp cxx hpp hh hxx java cs rs kt kts scala swift zig d v vala m mm"),
    (_C_LIKE, "glsl hlsl wgsl vert frag metal cu sol"),
    (_TICKED, "js mjs cjs jsx ts mts cts tsx go"),
    (_QUOTED, "css php dart groovy gradle proto thrift json5 jsonnet libsonnet qml hx as"),
    (_SHEET, "scss less"),
    (_SCRIPT, "py pyi pyw rb rake sh bash pyx pxd pxi bzl bazel star r cmake nim coffee graphql gql"),
    (_HASH_AND_SLASHES, "hcl tf tfvars nix jl ex exs cue"),
    (_DASHES, "hs elm purs"),
    (_LUA, "lua"),
    (_LISP, "lisp cl el clj cljs cljc edn scm ss rkt"),
    (_PROSE, "md mdx markdown rst txt text adoc asciidoc org tex bib log csv tsv diff patch po pot srt vtt"),
    (_PROSE, "ics eml mbox"),
    (_PROSE, "ini cfg conf cnf env properties desktop service in am ac m4 mk lock sum mod out snap sed awk zsh fish"),
    (_PROSE, "j2 jinja jinja2 tmpl tpl tmp erb ejs hbs mustache liquid vue svelte astro pl pm t pod bat cmd ps1 vim"),
)
_BY_SUFFIX = {suffix: lexis for lexis, suffixes in _FAMILIES for suffix in suffixes.split()}
_UNKNOWN = LexicalRules(comments=(*_SLASHES, r"(?<![^\s])#[^\n]*"), strings=(_TRIPLE, _DOUBLE, _CHAR))


def lexical_rules_for(path: str) -> LexicalRules:
    """Return what is known of a file's language by its name; a name without a suffix is taken for prose."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    if not dot or not stem:
        return _PROSE
    return _BY_SUFFIX.get(suffix.lower(), _UNKNOWN)


def find_imbalance(source: bytes, lexis: LexicalRules) -> SyntaxFlaw | None:
    """Return the first bracket that has no partner."""
    stack = list[tuple[bytes, int]]()
    for match in _bracket_scanner(lexis).finditer(source):
        sign = match[0]
        if sign in _OPENS:
            stack.append((sign, match.start()))
        elif sign in _CLOSES:
            if not stack:
                return _flaw_at(source, match.start(), f"`{sign.decode()}` closes nothing")
            opened, where = stack.pop()
            if opened != _CLOSES[sign]:
                place = source.count(b"\n", 0, where) + 1
                said = f"`{sign.decode()}` is where the `{opened.decode()}` of line {place} must be closed"
                return _flaw_at(source, match.start(), said)
    if stack:
        sign, where = stack[-1]
        return _flaw_at(source, where, f"`{sign.decode()}` is never closed")
    return None


def _flaw_at(source: bytes, offset: int, message: str) -> SyntaxFlaw:
    return SyntaxFlaw(line=source.count(b"\n", 0, offset) + 1, message=message)


@cache
def _bracket_scanner(lexis: LexicalRules) -> re.Pattern[bytes]:
    parts = (*lexis.comments, *lexis.strings, r"[()\[\]{}]")
    return re.compile("|".join(f"(?:{part})" for part in parts).encode(), re.DOTALL)


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


def syntax_finding(
    subject: SanitySubject, readings: Sequence[SyntaxParser], lexis: LexicalRules
) -> SanityFinding | None:
    """Say what the edit does to the syntax; None when that is nothing."""
    if not subject.before.strip():
        return None
    if max(len(subject.before), len(subject.after)) > MAX_CHECKED_BYTES:
        size = MAX_CHECKED_BYTES >> 20
        return _unchecked_finding(f"the file is larger than {size} MB, so its syntax was not checked")
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
        unread = [answer for answer in (past, flaw) if isinstance(answer, UnparsedText)]
        if any(answer.by_brackets for answer in unread):
            return _balance_finding(subject, lexis) or _bracket_notice(unread)
        if unread:
            return _unchecked_finding(f"the syntax was not checked: {unread[0].reason}")
        return _regression_finding(subject, reading, flaw, lexis) if isinstance(flaw, SyntaxFlaw) else None
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
    if reading.gaps and not any(find_imbalance(side, lexis) for side in (subject.before, subject.after)):
        fault = f"line {flaw.line} could not be read as {reading.name}, but the brackets are in balance: {flaw.message}"
        return SanityFinding(kind="doubtful_syntax", fault=fault, line=flaw.line)
    blame = find_culprit(subject, flaw.line, reading.find_flaw)
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
    if lexis.is_prose and not any(sign in subject.before for sign in (*_OPENS, *_CLOSES)):
        return None  # without any bracket, being in balance meant nothing
    blame = find_culprit(subject, flaw.line, lambda source: find_imbalance(source, lexis))
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


def _unchecked_finding(fault: str) -> SanityFinding:
    return SanityFinding(kind="syntax_not_checked", fault=fault)
