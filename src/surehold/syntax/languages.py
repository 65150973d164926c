"""Which parser reads which file: strict parsers of data formats and Python, tree-sitter grammars for the rest."""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from surehold.syntax.grammar import EitherGrammar, Grammar
from surehold.text.sanity.subject import SyntaxFlaw, SyntaxParser, UnparsedText

_PYTHON_2 = Grammar(name="Python", module="tree_sitter_python")
_FILE_NAME = "<edited file>"
_WARNING_FILTER = ("ignore", None, Warning, re.compile(re.escape(_FILE_NAME)), 0)
_NEWER_NODES = frozenset({"type_alias_statement", "type_parameter"})
_NEWER_MESSAGE = re.compile(r"f-string|multiple exception types must be parenthesized")
_TEMPLATE_STRING = re.compile(rb"\b(?:t|rt|tr)[\"']", re.IGNORECASE)
_NEWER_LINE = re.compile(rb"(?i:\b(?:t|rt|tr)[\"'])|^\s*(?:type\s+\w+\s*[=\[]|(?:async\s+)?(?:def|class)\s+\w+\s*\[)")
"""A template string, an alias of a type, or a parameter that is a type."""
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
_STRING = rb"\"(?:\\.|[^\"\\\n])*+(?:\"|(?=\n)|\\?\Z)"
_COMMENTS = re.compile(_STRING + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMAS = re.compile(_STRING + rb"|,(?=\s*+[\]}])", re.DOTALL)
_MAX_TOML_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictParser:
    """A parser of the standard library, which raises at the first flaw."""

    name: str
    read: Callable[[bytes], SyntaxFlaw | UnparsedText | None]
    templates: bool = False
    gaps: bool = False
    blind_spots: re.Pattern[bytes] | None = None

    def find_flaw(self, source: bytes, /) -> SyntaxFlaw | UnparsedText | None:
        """Return where the parser stops; if it runs out of stack or memory, nothing is known about the text."""
        try:
            return self.read(source)
        except (RecursionError, MemoryError):
            return UnparsedText("it is nested too deeply")
        except UnicodeDecodeError:
            return UnparsedText("it contains bytes that are not text")


def read_python(source: bytes) -> SyntaxFlaw | UnparsedText | None:
    """Parse Python as this interpreter does; syntax that only a newer one knows is not a flaw.

    The symbol table is built since that is the cheapest way to make the compiler parse all of it.
    """
    from symtable import symtable

    if _WARNING_FILTER not in warnings.filters:
        warnings.filterwarnings("ignore", module=re.escape(_FILE_NAME))
    text = source.decode()
    try:
        symtable(text, _FILE_NAME, "exec")
    except SyntaxError as error:
        flaw = SyntaxFlaw(line=error.lineno or 1, message=error.msg)
        return flaw if isinstance(error, IndentationError) else _judge_flaw(source, flaw)
    except ValueError as error:
        return UnparsedText(str(error))
    return None


def _judge_flaw(source: bytes, flaw: SyntaxFlaw) -> SyntaxFlaw | UnparsedText | None:
    """Return a flaw unless the text is only for a newer interpreter; without a grammar, that can only be supposed."""
    try:
        return None if _is_newer(source, flaw.line, flaw.message) else flaw
    except ImportError:
        rows = source.split(b"\n")[flaw.line - 1 : flaw.line]
        looks_newer = _NEWER_MESSAGE.match(flaw.message) or any(map(_NEWER_LINE.search, rows))
        return _PYTHON_2.explain_absence() if looks_newer else flaw


def read_json(source: bytes) -> SyntaxFlaw | None:
    try:
        json.loads(source.decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        return SyntaxFlaw(line=error.lineno, message=error.msg)
    except _InvalidConstant as error:
        return SyntaxFlaw(line=_line_with_word(source, str(error)), message=f"{error} is not JSON")
    return None


class _InvalidConstant(ValueError):
    """A word that is a number in Python and unknown in JSON."""


def _refuse_constant(word: str) -> None:
    raise _InvalidConstant(word)


def _line_with_word(source: bytes, word: str) -> int:
    return source.count(b"\n", 0, max(source.rfind(word.encode()), 0)) + 1


def read_json_with_comments(source: bytes) -> SyntaxFlaw | None:
    """Parse JSON as editors use it for their settings: with comments and trailing commas."""
    return read_json(_LAST_COMMAS.sub(_blank_out, _COMMENTS.sub(_blank_out, source)))


def read_json_lines(source: bytes) -> SyntaxFlaw | None:
    for number, row in enumerate(source.split(b"\n"), start=1):
        if row.strip() and (flaw := read_json(row)) is not None:
            return SyntaxFlaw(line=number, message=flaw.message)
    return None


def read_toml(source: bytes) -> SyntaxFlaw | UnparsedText | None:
    """Parse TOML; the strict parser is slow, so a large file is parsed by the grammar."""
    import tomllib

    if len(source) > _MAX_TOML_BYTES:
        return Grammar(name="TOML", module="tree_sitter_toml").find_flaw(source)
    try:
        tomllib.loads(source.decode())
    except tomllib.TOMLDecodeError as error:
        place = _TOML_POSITION.search(str(error))
        line = int(place[1]) if place and place[1] else source.rstrip().count(b"\n") + 1
        return SyntaxFlaw(line=line, message=_TOML_POSITION.sub("", str(error)))
    return None


def read_xml(source: bytes) -> SyntaxFlaw | UnparsedText | None:
    """Parse XML without following references; its own entities could expand without end."""
    from xml.parsers import expat

    if b"<!ENTITY" in source:
        return UnparsedText("it declares entities")

    try:
        expat.ParserCreate("utf-8").Parse(source, True)  # noqa: FBT003 - positional by its own signature
    except expat.ExpatError as error:
        return SyntaxFlaw(line=error.lineno, message=expat.ErrorString(error.code) or "not well-formed")
    return None


def _blank_out(match: re.Match[bytes]) -> bytes:
    """Keep strings, and replace everything else by as many empty lines."""
    text = match[0]
    return text if text.startswith(b'"') else b" " + b"\n" * text.count(b"\n")


def _is_newer(source: bytes, line: int, message: str) -> bool:
    """Tell whether a flaw is only that the text is for a newer interpreter."""
    tree = _PYTHON_2.parse_tree(source)
    if tree is None or tree.root_node.has_error:
        return False
    rows = source.split(b"\n")
    if _NEWER_MESSAGE.match(message) or _TEMPLATE_STRING.search(rows[line - 1] if line <= len(rows) else b""):
        return True
    begin = sum(len(row) + 1 for row in rows[: line - 1])
    end = begin + len(rows[line - 1]) if line <= len(rows) else begin
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        if node.start_byte <= end and begin <= node.end_byte:
            if node.type in _NEWER_NODES:
                return True
            nodes += node.children
    return False


_HTML = Grammar(
    name="HTML", module="tree_sitter_html", templates=True, blind_spots=re.compile(rb"=[^\s\"'>]+[&=]|<\s|<!\[CDATA\[")
)
_C = Grammar(name="C", module="tree_sitter_c", gaps=True)
_CPP = Grammar(name="C++", module="tree_sitter_cpp", gaps=True)
_JSON_WITH_COMMENTS = StrictParser(name="JSON with comments", read=read_json_with_comments)

_PYTHON = (StrictParser(name="Python", read=read_python), _PYTHON_2)
_JSON = (StrictParser(name="JSON", read=read_json), _JSON_WITH_COMMENTS)
_TOML = (
    StrictParser(
        name="TOML", read=read_toml, templates=True, blind_spots=re.compile(rb"\\[ex]|\{\s*\n|,\s*\}")
    ),  # TOML 1.1
)
_TYPESCRIPT = Grammar(name="TypeScript", module="tree_sitter_typescript", function="language_typescript", gaps=True)
_BASH = (
    Grammar(
        name="Bash",
        module="tree_sitter_bash",
        blind_spots=re.compile(rb"\$\{[\s|]|[@?*+!]\(|;&|\[[^\]\n]* [^\]\n]*\]\+?=|\bfor\b[^\n]*;[ \t]*\{"),
    ),
)
_RUBY = (
    Grammar(name="Ruby", module="tree_sitter_ruby", blind_spots=re.compile(rb"\bdef\s[^\n=]*=\s|->\s*\([^)\n]*;")),
)
_JAVASCRIPT = (
    Grammar(
        name="JavaScript",
        module="tree_sitter_javascript",
        blind_spots=re.compile(rb"\baccessor\b|\bimport\s+(?:defer|source)\b|[\"']\s*assert\s*\{|<!--"),
    ),
)

_LANGUAGES: tuple[tuple[tuple[SyntaxParser, ...], str], ...] = (
    (_PYTHON, ".py .pyi .pyw SConstruct SConscript wscript"),
    (_JAVASCRIPT, ".js .mjs .cjs .jsx"),
    ((_TYPESCRIPT,), ".ts .mts .cts"),
    ((Grammar(name="TSX", module="tree_sitter_typescript", function="language_tsx", gaps=True),), ".tsx"),
    (_JSON, ".json .ipynb .geojson .webmanifest .avsc Pipfile.lock composer.lock flake.lock"),
    ((_JSON_WITH_COMMENTS,), ".jsonc .code-workspace .babelrc .eslintrc .jshintrc .swcrc devcontainer.json"),
    ((StrictParser(name="JSON lines", read=read_json_lines),), ".jsonl .ndjson"),
    (_TOML, ".toml Pipfile Cargo.lock poetry.lock uv.lock pdm.lock"),
    (
        (StrictParser(name="XML", read=read_xml, templates=True),),
        ".xml .svg .xsd .xsl .xslt .plist .rss .atom .wsdl .xaml .resx .csproj .fsproj .vbproj .props .targets .xhtml",
    ),
    ((Grammar(name="YAML", module="tree_sitter_yaml", templates=True),), ".yaml .yml .clang-format"),
    ((_HTML,), ".html .htm"),
    ((Grammar(name="CSS", module="tree_sitter_css", templates=True, gaps=True),), ".css"),
    ((Grammar(name="SQL", module="tree_sitter_sql", templates=True, gaps=True),), ".sql"),
    ((Grammar(name="Rust", module="tree_sitter_rust", blind_spots=re.compile(rb"\bsafe\s+(?:fn|static)\b")),), ".rs"),
    ((Grammar(name="Go", module="tree_sitter_go"),), ".go"),
    ((Grammar(name="Java", module="tree_sitter_java", blind_spots=re.compile(rb"\b(?:super|this)\s*\(")),), ".java"),
    ((_C,), ".c"),
    ((EitherGrammar(name="C or C++", choices=(_C, _CPP), gaps=True),), ".h"),
    ((_CPP,), ".cc .cpp .cxx .c++ .hh .hpp .hxx .ino"),
    ((Grammar(name="C#", module="tree_sitter_c_sharp", gaps=True),), ".cs .csx"),
    (_RUBY, ".rb .rake .gemspec .ru Gemfile Rakefile Podfile Vagrantfile Brewfile"),
    ((Grammar(name="PHP", module="tree_sitter_php", function="language_php", gaps=True),), ".php .phtml"),
    (_BASH, ".sh .bash .bashrc .bash_profile .bash_aliases PKGBUILD"),
)
_BY_NAME = {name: parsers for parsers, names in _LANGUAGES for name in names.split()}
_COMMENTED_JSON = re.compile(r"(?:ts|js)config(?:\..+)?\.json|(?:settings|launch|tasks|extensions|keybindings)\.json")
"""JSON files in which their programs allow comments."""
_SHEBANG = re.compile(rb"#![^\n]*?\b(python|bash|sh|dash|node|ruby)[\d.]*(?:[ \t][^\n]*)?\r?(?:\n|\Z)")
_BY_PROGRAM: dict[bytes, tuple[SyntaxParser, ...]] = {
    b"python": _PYTHON,
    b"bash": _BASH,
    b"sh": _BASH,
    b"dash": _BASH,
    b"node": _JAVASCRIPT,
    b"ruby": _RUBY,
}


def parsers_for(file_name: str, source: bytes) -> Sequence[SyntaxParser]:
    """Return the parsers for a file, the strictest first; none if the language is unknown."""
    name = file_name.rpartition("/")[2]
    if _COMMENTED_JSON.fullmatch(name):
        return (_JSON_WITH_COMMENTS,)
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, dot, suffix = name.rpartition(".")
    if dot and stem:
        return _BY_NAME.get(f".{suffix.lower()}", ())
    shebang = _SHEBANG.match(source)
    return _BY_PROGRAM[shebang[1]] if shebang else ()
