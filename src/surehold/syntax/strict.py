"""Text read by parsers of the standard library, which are stricter than a grammar."""

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from surehold.syntax.grammar import Grammar
from surehold.text.sanity_finding import Flaw, Unread

_PYTHON = Grammar(name="Python", module="tree_sitter_python")
_FILE = "<edited file>"
_OURS = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)
_NEWER = frozenset({"type_alias_statement", "type_parameter"})
_NEWER_MESSAGE = re.compile(r"f-string|multiple exception types must be parenthesized")
_TEMPLATE_STRING = re.compile(rb"\b(?:t|rt|tr)[\"']", re.IGNORECASE)
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
_STRING = rb"\"(?:\\.|[^\"\\\n])*+(?:\"|(?=\n)|\\?\Z)"
_COMMENTS = re.compile(_STRING + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMAS = re.compile(_STRING + rb"|,(?=\s*+[\]}])", re.DOTALL)
_SLOW_TOML = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """A parser that raises, as a way of reading."""

    name: str
    read: Callable[[bytes], Flaw | Unread | None]
    templates: bool = False
    gaps: bool = False

    def flaw(self, source: bytes, /) -> Flaw | Unread | None:
        """Return where the parser stops; one that gives up for want of stack or memory has not judged."""
        try:
            return self.read(source)
        except (RecursionError, MemoryError):
            return Unread("it is nested too deeply")
        except UnicodeDecodeError:
            return Unread("it holds bytes that are not text")
        except ImportError:
            return Unread(f"the grammar for {self.name} cannot be loaded")


def read_python(source: bytes) -> Flaw | Unread | None:
    """Read Python as this interpreter does; syntax that only a newer one knows is no flaw.

    The symbol table is built because that is the cheapest question that makes the compiler parse all of it.
    """
    from symtable import symtable

    if _OURS not in warnings.filters:
        warnings.filterwarnings("ignore", module=re.escape(_FILE))
    text = source.decode()
    try:
        symtable(text, _FILE, "exec")
    except SyntaxError as error:
        line = error.lineno or 1
        if not isinstance(error, IndentationError) and _is_newer(source, line, error.msg):
            return None
        return Flaw(line=line, message=error.msg)
    except ValueError as error:
        return Unread(str(error))
    return None


def read_json(source: bytes) -> Flaw | None:
    """Read strict JSON."""
    try:
        json.loads(source.decode(), parse_constant=_no_number)
    except json.JSONDecodeError as error:
        return Flaw(line=error.lineno, message=error.msg)
    except _NoNumber as error:
        return Flaw(line=_line_of(source, str(error)), message=f"{error} is not JSON")
    return None


class _NoNumber(ValueError):
    """A word that Python takes for a number and JSON does not know."""


def _no_number(word: str) -> None:
    raise _NoNumber(word)


def _line_of(source: bytes, word: str) -> int:
    return source.count(b"\n", 0, max(source.rfind(word.encode()), 0)) + 1


def read_json_with_comments(source: bytes) -> Flaw | None:
    """Read JSON as editors configure themselves with it: comments and a last comma are allowed."""
    return read_json(_LAST_COMMAS.sub(_blanked, _COMMENTS.sub(_blanked, source)))


def read_json_lines(source: bytes) -> Flaw | None:
    """Read one JSON value on each line."""
    for number, row in enumerate(source.split(b"\n"), start=1):
        if row.strip() and (flaw := read_json(row)) is not None:
            return Flaw(line=number, message=flaw.message)
    return None


def read_toml(source: bytes) -> Flaw | Unread | None:
    """Read TOML; the strict parser is slow, so a large file is read by the grammar."""
    import tomllib

    if len(source) > _SLOW_TOML:
        return Grammar(name="TOML", module="tree_sitter_toml").flaw(source)
    try:
        tomllib.loads(source.decode())
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else source.rstrip().count(b"\n") + 1
        return Flaw(line=line, message=_PLACE.sub("", str(error)))
    return None


def read_xml(source: bytes) -> Flaw | Unread | None:
    """Read XML without following anything that it refers to; entities of its own may grow without end."""
    from xml.parsers import expat

    if b"<!ENTITY" in source:
        return Unread("it declares entities")

    try:
        expat.ParserCreate("utf-8").Parse(source, True)  # noqa: FBT003 - positional by its own signature
    except expat.ExpatError as error:
        return Flaw(line=error.lineno, message=expat.ErrorString(error.code) or "not well-formed")
    return None


def _blanked(match: re.Match[bytes]) -> bytes:
    """Keep strings; let everything else become as many lines of nothing."""
    text = match[0]
    return text if text.startswith(b'"') else b" " + b"\n" * text.count(b"\n")


def _is_newer(source: bytes, line: int, message: str) -> bool:
    """Tell whether a flaw is only that this interpreter is older than the text."""
    tree = _PYTHON.tree(source)
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
            if node.type in _NEWER:
                return True
            nodes += node.children
    return False
