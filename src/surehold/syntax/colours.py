"""Which parts of a text are comments, strings, numbers and keywords, found with the grammars that are installed."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from surehold.syntax.grammar import EitherGrammar, Grammar
from surehold.syntax.languages import parsers_for

if TYPE_CHECKING:
    from tree_sitter import Node

ColourKind = Literal["comment", "string", "number", "keyword"]
_MAX_BYTES = 512 << 10
_CONSTANTS = frozenset({"true", "false", "none", "null", "nil", "undefined", "boolean"})
_NUMBER_WORDS = ("integer", "float", "number", "decimal_")


class ColourSpan(NamedTuple):
    """Bytes of a text that have one colour."""

    start: int
    end: int
    kind: ColourKind


def find_colours(file_name: str, source: bytes, ranges: Sequence[tuple[int, int]]) -> list[ColourSpan]:
    """Return the colours in ascending ranges of a text; none without a grammar for it, or if it is too large."""
    grammar = _grammar_for(file_name, source)
    if grammar is None or not ranges or len(source) > _MAX_BYTES:
        return []
    with suppress(ImportError):
        tree = grammar.parse_tree(source)
        if tree is not None:
            return list(_walk(tree.root_node, ranges))
    return []


def _grammar_for(file_name: str, source: bytes) -> Grammar | None:
    for parser in parsers_for(file_name, source):
        if isinstance(parser, Grammar):
            return parser
        if isinstance(parser, EitherGrammar):
            return parser.choices[0]
    return None


def _walk(root: "Node", ranges: Sequence[tuple[int, int]]) -> Iterator[ColourSpan]:
    """Yield coloured nodes in their order; what no range touches is not entered."""
    starts = [start for start, _ in ranges]
    nodes = [root]
    while nodes:
        node = nodes.pop()
        at = bisect_right(starts, node.end_byte) - 1
        if at < 0 or ranges[at][1] <= node.start_byte:
            continue
        if kind := _kind_of(node):
            yield ColourSpan(node.start_byte, node.end_byte, kind)
        else:
            nodes += reversed(node.children)


def _kind_of(node: "Node") -> ColourKind | None:
    kind = node.type
    if not node.is_named:
        return "keyword" if len(kind) > 1 and kind.isalpha() else None
    if "comment" in kind:
        return "comment"
    if kind in _CONSTANTS or kind.startswith(_NUMBER_WORDS):
        return "number"
    is_text = "string" in kind or kind in {"char_literal", "character_literal", "heredoc_body", "attribute_value"}
    return "string" if is_text and "content" not in kind else None
