"""Maps file names to parsers. The only list of languages."""

import re
from collections.abc import Sequence

from surehold.syntax.grammar import EitherGrammar, Grammar
from surehold.syntax.strict import (
    StrictParser,
    read_json,
    read_json_lines,
    read_json_with_comments,
    read_python,
    read_toml,
    read_xml,
)
from surehold.text.sanity.subject import SyntaxParser

_C = Grammar(name="C", module="tree_sitter_c", gaps=True)
_CPP = Grammar(name="C++", module="tree_sitter_cpp", gaps=True)
_PYTHON_2 = Grammar(name="Python", module="tree_sitter_python")
_JSON = StrictParser(name="JSON", read=read_json)
_JSON_WITH_COMMENTS = StrictParser(name="JSON with comments", read=read_json_with_comments)

_PYTHON = (StrictParser(name="Python", read=read_python), _PYTHON_2)
_JSON_STRICT_FIRST = (_JSON, _JSON_WITH_COMMENTS)
_BASH = (Grammar(name="Bash", module="tree_sitter_bash"),)
_RUBY = (Grammar(name="Ruby", module="tree_sitter_ruby"),)
_JAVASCRIPT = (Grammar(name="JavaScript", module="tree_sitter_javascript"),)
_TOML = (StrictParser(name="TOML", read=read_toml, templates=True),)

_LANGUAGES: tuple[tuple[tuple[SyntaxParser, ...], str], ...] = (
    (_PYTHON, ".py .pyi .pyw SConstruct SConscript wscript"),
    (_JAVASCRIPT, ".js .mjs .cjs .jsx"),
    (
        (Grammar(name="TypeScript", module="tree_sitter_typescript", function="language_typescript", gaps=True),),
        ".ts .mts .cts",
    ),
    ((Grammar(name="TSX", module="tree_sitter_typescript", function="language_tsx", gaps=True),), ".tsx"),
    (_JSON_STRICT_FIRST, ".json .ipynb .geojson .webmanifest .avsc Pipfile.lock composer.lock flake.lock"),
    ((_JSON_WITH_COMMENTS,), ".jsonc .code-workspace .babelrc .eslintrc .jshintrc .swcrc devcontainer.json"),
    ((StrictParser(name="JSON lines", read=read_json_lines),), ".jsonl .ndjson"),
    (_TOML, ".toml Pipfile Cargo.lock poetry.lock uv.lock pdm.lock"),
    (
        (StrictParser(name="XML", read=read_xml, templates=True),),
        ".xml .svg .xsd .xsl .xslt .plist .rss .atom .wsdl .xaml .resx .csproj .fsproj .vbproj .props .targets .xhtml",
    ),
    ((Grammar(name="YAML", module="tree_sitter_yaml", templates=True),), ".yaml .yml .clang-format"),
    ((Grammar(name="HTML", module="tree_sitter_html", templates=True),), ".html .htm"),
    ((Grammar(name="CSS", module="tree_sitter_css", templates=True, gaps=True),), ".css"),
    ((Grammar(name="SQL", module="tree_sitter_sql", templates=True, gaps=True),), ".sql"),
    ((Grammar(name="Rust", module="tree_sitter_rust"),), ".rs"),
    ((Grammar(name="Go", module="tree_sitter_go"),), ".go"),
    ((Grammar(name="Java", module="tree_sitter_java"),), ".java"),
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
