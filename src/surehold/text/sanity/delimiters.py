"""Checks brackets outside of strings and comments, for text that no parser of ours can read.

The check is only as good as what it knows of a language's strings and comments, so it judges a text only if the old
version was balanced. Prose has smileys and lists with `a)`: there, an imbalance is a warning and never refused.
"""

import re
from dataclasses import dataclass
from functools import cache

from surehold.text.sanity.subject import SyntaxFlaw

_CLOSES = {b")": b"(", b"]": b"[", b"}": b"{"}
_WANTED = {b"(": b")", b"[": b"]", b"{": b"}"}


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
    (
        _C_LIKE,
        "c h cc cpp cxx hpp hh hxx java cs rs kt kts scala swift zig glsl hlsl wgsl vert frag metal cu sol d v vala m mm",
    ),
    (_TICKED, "js mjs cjs jsx ts mts cts tsx go"),
    (_QUOTED, "css php dart groovy gradle proto thrift json5 jsonnet libsonnet qml hx as"),
    (_SHEET, "scss less"),
    (_SCRIPT, "py pyi pyw rb rake sh bash pyx pxd pxi bzl bazel star r cmake nim coffee graphql gql"),
    (_HASH_AND_SLASHES, "hcl tf tfvars nix jl ex exs cue"),
    (_DASHES, "hs elm purs"),
    (_LUA, "lua"),
    (_LISP, "lisp cl el clj cljs cljc edn scm ss rkt"),
    (
        _PROSE,
        "md mdx markdown rst txt text adoc asciidoc org tex bib log csv tsv diff patch po pot srt vtt ics eml mbox",
    ),
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
        if sign in _WANTED:
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


def has_brackets(source: bytes) -> bool:
    """Tell whether a text has brackets at all, so that being in balance means something."""
    return any(sign in source for sign in (*_WANTED, *_CLOSES))


def _flaw_at(source: bytes, offset: int, message: str) -> SyntaxFlaw:
    return SyntaxFlaw(line=source.count(b"\n", 0, offset) + 1, message=message)


@cache
def _bracket_scanner(lexis: LexicalRules) -> re.Pattern[bytes]:
    parts = (*lexis.comments, *lexis.strings, r"[()\[\]{}]")
    return re.compile("|".join(f"(?:{part})" for part in parts).encode(), re.DOTALL)
