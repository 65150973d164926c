"""Where the strings and comments of a language are, and whether the brackets outside of them have partners.

1. What is known of a language is a few regular expressions: enough to skip what brackets can hide in, in one pass.
2. Some texts can be read in several ways: a suffix may be that of two languages, and of an unknown one nothing is known.
   An imbalance counts only if there is one in every reading in which the text was balanced before.
3. Prose, configuration and templates have smileys, lists with `a)` and quotes of their own: there it is only mentioned.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from surehold.text.sanity.subject import SyntaxFlaw

OPENS = frozenset((b"(", b"[", b"{"))
CLOSES = {b")": b"(", b"]": b"[", b"}": b"{"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalRules:
    """What brackets can hide in, as regular expressions."""

    comments: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    is_prose: bool = False
    has_branches: bool = False
    """Of the branches of `#if` only the last one counts: each of them may open the same block."""
    otherwise: tuple["LexicalRules", ...] = ()
    """Other ways to read such a text."""


# Whatever is not closed reaches to the end, so that no byte is looked at twice.
_BLOCK = r"/\*.*?(?:\*/|\Z)"
_LINE = r"//[^\n]*"
_SLASHES = (_LINE, _BLOCK)
_HASH = (r"#[^\n]*",)
_DASHES = r"--[^\n]*"
_PARENTHESIS_STAR = r"\(\*(?!\)).*?(?:\*\)|\Z)"
_BRACE_DASH = r"\{-.*?(?:-\}|\Z)"
_DOUBLE = r'"(?:\\.|[^"\\\n])*+(?:"|(?=\n)|\\?\Z)'
_DOUBLE_LINES = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'
_DOUBLE_RAW = r'"[^"]*+(?:"|\Z)'
_SINGLE = r"'(?:\\.|[^'\\\n])*+(?:'|(?=\n)|\\?\Z)"
_SINGLE_RAW = r"'[^'\n]*+(?:'|(?=\n)|\Z)"
_CHAR = r"'(?:\\[^\n]{1,8}?|[^'\\\n])'"
_CHAR_OR_PRIME = rf"(?<![\w'\])}}]){_CHAR}"
"""A quote after a name is a prime, a suffix or a transposition."""
_TRIPLE = r'"""(?:\\.|[^\\])*?(?:"""|\\?\Z)'
_TRIPLE_SINGLE = r"'''(?:\\.|[^\\])*?(?:'''|\\?\Z)"
_TWO_QUOTES = r"''(?:''[$'\\]|[^']|'(?!'))*(?:''|\Z)"
_TICKS = r"`(?:\\.|[^`\\])*+(?:`|\\?\Z)"
_TICKS_RAW = r"`[^`]*+(?:`|\Z)"
_TICKED_NAME = r"`[^`\n]{1,200}`"
_HASHED_RAW = r'(?<!#)(?P<hashes>#{1,16})".*?(?:"(?P=hashes)|\Z)'
_DELIMITED_RAW = r'\bR"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)'
_VERBATIM = r'@\$?"(?:""|[^"])*+(?:"|\Z)'
_HERE = r"<<[-~]?(?P<end>[A-Za-z_]\w*)[^\n]{0,200}+\n.*?(?:^[ \t]*(?P=end)\b|\Z)"
_REGEX = r"(?<=[=(,:\[!&|?{;~]) ?/(?![/*>\s])(?:\\.|\[(?:\\.|[^\]\\\n]){0,200}+\]|[^/\\\[\n]){1,500}+/"
_URL = r"\burl\(\s*+(?![\"'])(?:\\.|[^()\\\n])*+\)"
_SIGIL = (
    r"~[A-Za-z]{1,9}(?:"
    + "|".join(
        (
            _TRIPLE,
            _TRIPLE_SINGLE,
            *(
                rf"{opens}(?:\\.|[^{closes}\\])*+(?:{closes}|\\?\Z)"
                for opens, closes in ((r"\(", r"\)"), (r"\[", r"\]"), (r"\{", r"\}"), ("<", ">"))
            ),
            *(rf"{sign}(?:\\.|[^{sign}\\\n])*+(?:{sign}|(?=\n)|\\?\Z)" for sign in ("/", r"\|", '"', "'")),
        )
    )
    + ")"
)


def _with_code(string: str, opener: str, signs: str) -> str:
    """Let a string hold code after `opener`, which may hold strings again."""
    opens, closes = signs
    plain = rf'(?:[^{opens}{closes}"\'\n]|"(?:\\.|[^"\\\n])*+"|\'(?:\\.|[^\'\\\n])*+\')'
    inner = rf"{opener}(?:{plain}|\{opens}{plain}{{0,99}}\{closes}){{0,99}}\{closes}"
    return string.replace("(?:", f"(?:{inner}|", 1)


_DOLLAR, _NUMBER_SIGN, _BACKSLASH = (r"\$\{", "{}"), (r"#\{", "{}"), (r"\\\(", "()")

_C_LIKE = LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _HASHED_RAW, _DELIMITED_RAW, _DOUBLE, _CHAR))
_WITH_BRANCHES = LexicalRules(comments=_C_LIKE.comments, strings=_C_LIKE.strings, has_branches=True)
_C = LexicalRules(comments=_C_LIKE.comments, strings=_C_LIKE.strings, otherwise=(_WITH_BRANCHES,))
_C_SHARP = LexicalRules(
    comments=_SLASHES,
    strings=(_TRIPLE, _VERBATIM, _DOUBLE, _CHAR),
    otherwise=(LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _VERBATIM, _DOUBLE, _CHAR), has_branches=True),),
)
_D = LexicalRules(comments=(*_SLASHES, r"/\+.*?(?:\+/|\Z)"), strings=(_TICKS_RAW, r'\br"[^"]*+"', _DOUBLE_LINES, _CHAR))
_ZIG = LexicalRules(comments=(_LINE,), strings=(r"\\\\[^\n]*", _DOUBLE, _CHAR))
_SWIFT = LexicalRules(
    comments=_SLASHES,
    strings=(_HASHED_RAW, _TRIPLE, _with_code(_DOUBLE, *_BACKSLASH)),
    otherwise=(LexicalRules(comments=_SLASHES, strings=(_HASHED_RAW, _TRIPLE, _DOUBLE), has_branches=True),),
)
_KOTLIN = LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _with_code(_DOUBLE, *_DOLLAR), _CHAR, _TICKED_NAME))
_VERILOG_TEXT = (_DOUBLE,)
_VERILOG = LexicalRules(
    comments=_SLASHES,
    strings=_VERILOG_TEXT,
    otherwise=(LexicalRules(comments=_SLASHES, strings=_VERILOG_TEXT, has_branches=True),),
)
_SCRIPT_STRINGS = (_REGEX, _TICKS, _DOUBLE, _SINGLE)
_TICKED = LexicalRules(comments=_SLASHES, strings=_SCRIPT_STRINGS)
_GO = LexicalRules(comments=_SLASHES, strings=(_TICKS_RAW, _DOUBLE, _CHAR))
_QUOTED = LexicalRules(comments=_SLASHES, strings=(_TRIPLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE))
_DART = LexicalRules(
    comments=_SLASHES,
    strings=(
        _TRIPLE,
        _TRIPLE_SINGLE,
        r'\br"[^"\n]*+"',
        r"\br'[^'\n]*+'",
        _with_code(_DOUBLE, *_DOLLAR),
        _with_code(_SINGLE, *_DOLLAR),
    ),
)
_GROOVY = LexicalRules(
    comments=_SLASHES,
    strings=(_TRIPLE, _TRIPLE_SINGLE, _REGEX, r"\$/.*?(?:/\$|\Z)", _with_code(_DOUBLE, *_DOLLAR), _SINGLE),
)
_PHP = LexicalRules(
    comments=(*_SLASHES, r"#(?!\[)[^\n]*"), strings=(_HERE.replace("<<", "<<<[\"']?", 1), _DOUBLE_LINES, _SINGLE)
)
_CSS = LexicalRules(comments=(_BLOCK,), strings=(_URL, _DOUBLE, _SINGLE))
_SHEET = LexicalRules(comments=(_BLOCK, r"(?<!:)//[^\n]*"), strings=(_URL, _DOUBLE, _SINGLE))
_SCRIPT = LexicalRules(comments=_HASH, strings=(_TRIPLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE))
_R = LexicalRules(
    comments=_HASH,
    strings=(
        r"""\b[rR](?P<quote>["'])(?P<dashes>-*)[(\[{].*?(?:[)\]}](?P=dashes)(?P=quote)|\Z)""",
        _DOUBLE,
        _SINGLE,
        _TICKED_NAME,
    ),
)
_NIM = LexicalRules(comments=(r"#\[.*?(?:\]#|\Z)", *_HASH), strings=(_TRIPLE, _DOUBLE, _CHAR_OR_PRIME))
_COFFEE = LexicalRules(
    comments=(r"###.*?(?:###|\Z)", *_HASH),
    strings=(_TRIPLE, _TRIPLE_SINGLE, r"///.*?(?:///|\Z)", _REGEX, _with_code(_DOUBLE, *_NUMBER_SIGN), _SINGLE),
)
_ELIXIR = LexicalRules(
    comments=_HASH,
    strings=(_SIGIL, _TRIPLE, _TRIPLE_SINGLE, _with_code(_DOUBLE_LINES, *_NUMBER_SIGN), _SINGLE, r"(?<![\w?!])\?\\?."),
)
_ERLANG = LexicalRules(comments=(r"%[^\n]*",), strings=(r"\$\\?.", _DOUBLE_LINES, _SINGLE))
_TERRAFORM = LexicalRules(comments=(*_HASH, *_SLASHES), strings=(_HERE, _with_code(_DOUBLE, *_DOLLAR)))
_NIX = LexicalRules(comments=(*_HASH, _BLOCK), strings=(_TWO_QUOTES, _DOUBLE_LINES))
_JULIA = LexicalRules(
    comments=(r"#=.*?(?:=#|\Z)", *_HASH),
    strings=(_TRIPLE, _with_code(_DOUBLE_LINES, r"\$\(", "()"), _TICKS, _CHAR_OR_PRIME),
)
_HASKELL = LexicalRules(comments=(_BRACE_DASH, _DASHES), strings=(_DOUBLE, _CHAR_OR_PRIME))
_DHALL = LexicalRules(comments=(_BRACE_DASH, _DASHES), strings=(_TWO_QUOTES, _DOUBLE))
_LEAN = LexicalRules(comments=(r"/-.*?(?:-/|\Z)", _DASHES), strings=(_DOUBLE_LINES, _CHAR_OR_PRIME))
_OCAML = LexicalRules(
    comments=(_PARENTHESIS_STAR,),
    strings=(r"\{(?P<name>[a-z_]*)\|.*?(?:\|(?P=name)\}|\Z)", _DOUBLE_LINES, _CHAR_OR_PRIME),
)
_FSHARP = LexicalRules(comments=(_LINE, _PARENTHESIS_STAR), strings=(_TRIPLE, _VERBATIM, _DOUBLE_LINES, _CHAR_OR_PRIME))
_PASCAL = LexicalRules(comments=(r"\{.*?(?:\}|\Z)", _PARENTHESIS_STAR, _LINE), strings=(_SINGLE_RAW,))
_ADA = LexicalRules(comments=(_DASHES,), strings=(_DOUBLE, _CHAR_OR_PRIME))
_SQL = LexicalRules(
    comments=(_DASHES, _BLOCK),
    strings=(r"\$(?P<tag>[A-Za-z_]?\w*)\$.*?(?:\$(?P=tag)\$|\Z)", r"'[^']*+(?:'|\Z)", _DOUBLE_RAW, _TICKED_NAME),
)
_FORTRAN = LexicalRules(comments=(r"![^\n]*",), strings=(_SINGLE_RAW, r'"[^"\n]*+(?:"|(?=\n)|\Z)'))
_BASIC = LexicalRules(comments=(r"'[^\n]*", r"(?im:^[ \t]*rem\b[^\n]*)"), strings=(r'"[^"\n]*+(?:"|(?=\n)|\Z)',))
_MATLAB = LexicalRules(
    comments=(r"%\{.*?(?:%\}|\Z)", r"%[^\n]*"), strings=(_DOUBLE, r"(?<![\w)\]}.'])'[^'\n]*+(?:'|(?=\n)|\Z)")
)
_OBJECTIVE_C_OR_MATLAB = LexicalRules(
    comments=_C_LIKE.comments, strings=_C_LIKE.strings, otherwise=(_WITH_BRANCHES, _MATLAB)
)
_LUA = LexicalRules(
    comments=(r"--\[(?P<deep>=*)\[.*?(?:\](?P=deep)\]|\Z)", _DASHES),
    strings=(r"\[(?P<level>=*)\[.*?(?:\](?P=level)\]|\Z)", _DOUBLE, _SINGLE),
)
_CLOJURE = LexicalRules(comments=(r";[^\n]*",), strings=(r"\\.", _DOUBLE_LINES))
_LISP = LexicalRules(comments=(r";[^\n]*", r"#\|.*?(?:\|#|\Z)"), strings=(r"\\.", _DOUBLE_LINES, r"\|[^|\n]{1,200}\|"))
_ASSEMBLY_TEXT = LexicalRules(comments=(r";;[^\n]*", r"\(;.*?(?:;\)|\Z)"), strings=(_DOUBLE,))
_PROSE = LexicalRules(is_prose=True)

_FAMILIES: tuple[tuple[LexicalRules, str], ...] = (
    (_C, "c h cc cpp c++ cxx hpp hh hxx ino mm glsl hlsl wgsl vert frag comp geom metal cu cuh"),
    (_C_SHARP, "cs csx"),
    (_C_LIKE, "java rs vala cairo move pkl"),
    (_D, "d di"),
    (_ZIG, "zig zon"),
    (_SWIFT, "swift"),
    (_KOTLIN, "kt kts scala sc sbt"),
    (_VERILOG, "v vh sv svh"),
    (_TICKED, "js mjs cjs jsx ts mts cts tsx"),
    (_GO, "go"),
    (_QUOTED, "proto thrift json5 jsonnet libsonnet qml hx as cue bicep prisma sol"),
    (_DART, "dart"),
    (_GROOVY, "groovy gradle"),
    (_PHP, "php phtml"),
    (_CSS, "css"),
    (_SHEET, "scss less"),
    (_SCRIPT, "py pyi pyw rb rake sh bash pyx pxd pxi bzl bazel star cmake graphql gql gd cr pp rego"),
    (_R, "r"),
    (_NIM, "nim nims nimble"),
    (_COFFEE, "coffee"),
    (_ELIXIR, "ex exs"),
    (_ERLANG, "erl hrl"),
    (_TERRAFORM, "hcl tf tfvars nomad"),
    (_NIX, "nix"),
    (_JULIA, "jl"),
    (_HASKELL, "hs elm purs idr agda"),
    (_DHALL, "dhall"),
    (_LEAN, "lean"),
    (_OCAML, "ml mli sml sig"),
    (_FSHARP, "fs fsi fsx"),
    (_PASCAL, "pas dpr lpr"),
    (_ADA, "adb ads ada vhd vhdl"),
    (_SQL, "sql"),
    (_FORTRAN, "f f77 f90 f95 f03 f08 for"),
    (_BASIC, "vb vbs bas"),
    (_OBJECTIVE_C_OR_MATLAB, "m"),
    (_LUA, "lua"),
    (_CLOJURE, "clj cljs cljc edn"),
    (_LISP, "lisp lsp cl el scm ss rkt"),
    (_ASSEMBLY_TEXT, "wat"),
    (_PROSE, "md mdx markdown rmd qmd typ rst txt text adoc asciidoc org textile wiki mediawiki feature"),
    (_PROSE, "tex sty cls ltx dtx bib log csv tsv dat lst diff patch rej po pot srt vtt ics eml mbox"),
    (_PROSE, "ini cfg conf cnf env properties reg desktop service rules in am ac m4 mk lock sum mod out snap hjson"),
    (_PROSE, "bak orig old dist sample example default template"),
    (_PROSE, "sed awk zsh fish pl pm t pod bat cmd ps1 psm1 psd1 vim tcl asm s ahk nsi iss applescript cob cbl thy"),
    (
        _PROSE,
        "j2 jinja jinja2 tmpl gotmpl gohtml tpl tmp erb ejs hbs mustache handlebars liquid twig njk vue svelte astro",
    ),
    (_PROSE, "haml slim pug jade cshtml vbhtml razor aspx ascx jsp jspx ftl vm mjml templ heex eex leex"),
)
_BY_SUFFIX = {suffix: lexis for lexis, suffixes in _FAMILIES for suffix in suffixes.split()}
_GUESSES = (
    *(LexicalRules(comments=(sign,), strings=(_DOUBLE, _SINGLE)) for sign in (*_HASH, _DASHES, r";[^\n]*", r"%[^\n]*")),
    LexicalRules(comments=(r"'[^\n]*", r"![^\n]*"), strings=(_DOUBLE,)),
    LexicalRules(comments=(_PARENTHESIS_STAR,), strings=(_DOUBLE_LINES, _CHAR_OR_PRIME)),
)
_UNKNOWN = LexicalRules(
    comments=(*_SLASHES, r"(?<![^\s])#[^\n]*"), strings=(_TRIPLE, _DOUBLE, _CHAR), otherwise=_GUESSES
)


def lexical_rules_for(path: str) -> LexicalRules:
    """Return what is known of a file's language by its name; a name without a suffix is taken for prose."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    if not dot or not stem or suffix.isdigit():
        return _PROSE
    return _BY_SUFFIX.get(suffix.lower(), _UNKNOWN)


def find_new_imbalance(before: bytes, after: bytes, lexis: LexicalRules) -> SyntaxFlaw | None:
    """Return the bracket without a partner in the new text, if there was none in the old one."""
    flaw = find_imbalance(after, lexis)
    if flaw is None or find_imbalance(before, lexis) is not None or is_balanced_otherwise(before, after, lexis):
        return None
    return flaw


def is_balanced_otherwise(before: bytes, after: bytes, lexis: LexicalRules) -> bool:
    """Tell whether there is another way to read both texts in which their brackets have partners."""
    return any(find_imbalance(after, one) is None is find_imbalance(before, one) for one in lexis.otherwise)


class _Opened(NamedTuple):
    """A bracket that waits for its partner, and those that it is in."""

    sign: bytes
    start: int
    outer: "_Opened | None"


def find_imbalance(source: bytes, lexis: LexicalRules) -> SyntaxFlaw | None:
    """Return the first bracket that has no partner."""
    opened, branches = None, list[_Opened | None]()
    for match in _bracket_scanner(lexis).finditer(source):
        sign = match[0]
        if sign in OPENS:
            opened = _Opened(sign, match.start(), opened)
        elif sign in CLOSES:
            if opened is None:
                return _flaw_at(source, match.start(), f"`{sign.decode()}` closes nothing")
            if opened.sign != CLOSES[sign]:
                place = source.count(b"\n", 0, opened.start) + 1
                said = f"`{sign.decode()}` is where the `{opened.sign.decode()}` of line {place} must be closed"
                return _flaw_at(source, match.start(), said)
            opened = opened.outer
        elif match.lastgroup == "branch":
            opened = _follow_branch(match["branch"], opened, branches)
    return _flaw_at(source, opened.start, f"`{opened.sign.decode()}` is never closed") if opened else None


def _follow_branch(word: bytes, opened: _Opened | None, branches: list[_Opened | None]) -> _Opened | None:
    """Return what is open after a line of the preprocessor: each branch begins with what was open before the first."""
    if word.startswith(b"if"):
        branches.append(opened)
    elif branches and word == b"endif":
        branches.pop()
    elif branches:
        return branches[-1]
    return opened


def _flaw_at(source: bytes, offset: int, message: str) -> SyntaxFlaw:
    return SyntaxFlaw(line=source.count(b"\n", 0, offset) + 1, message=message)


@cache
def _bracket_scanner(lexis: LexicalRules) -> re.Pattern[bytes]:
    parts = [*_scanner_parts(lexis)]
    return re.compile("|".join(f"(?:{part})" for part in parts).encode(), re.DOTALL | re.MULTILINE)


def _scanner_parts(lexis: LexicalRules) -> Iterator[str]:
    if lexis.has_branches:
        yield r"^[ \t]*[#`][ \t]*(?P<branch>ifdef|ifndef|if|elsif|elif|elseif|else|endif)\b"
    yield from lexis.comments
    yield from lexis.strings
    yield r"[()\[\]{}]"
