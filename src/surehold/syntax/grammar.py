"""Parses text with a tree-sitter grammar from an installed wheel.

Rows and columns of the binding are never used: its `Point.row` releases a reference that it does not own, which
ends in a crash. Lines are counted in the text instead.
"""

import re
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from surehold.text.escape import preview_text
from surehold.text.sanity.subject import SyntaxFlaw, UnparsedText

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Language, Node, Tree

_PREVIEW_CHARS = 60
_DEPRECATED = ("ignore", None, DeprecationWarning, re.compile(re.escape(__name__)), 0)
"""The binding prefers a callback to a time limit; up to 0.26, that callback crashes the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """One grammar; it is loaded when it is first used."""

    name: str
    module: str
    function: str = "language"
    templates: bool = False
    gaps: bool = False
    blind_spots: re.Pattern[bytes] | None = None
    timeout_micros: int = 500_000

    def find_flaw(self, source: bytes, /) -> SyntaxFlaw | UnparsedText | None:
        """Return the first place that the grammar cannot parse."""
        try:
            tree = self.parse_tree(source)
        except ImportError:
            return self.explain_absence()
        if tree is None:
            return UnparsedText("the parser took too long")
        if not tree.root_node.has_error:
            return None
        return _describe_error(_first_error(tree.root_node), source)

    def explain_absence(self) -> UnparsedText:
        """Say why the grammar cannot be used; without any grammar, brackets are compared instead."""
        if find_spec("tree_sitter") is None:
            return UnparsedText(_first_notice(), by_brackets=True)
        return UnparsedText(f"the grammar for {self.name} cannot be loaded")

    def parse_tree(self, source: bytes) -> "Tree | None":
        """Parse a text; None if that takes too long, as recovery from very many errors does."""
        from tree_sitter import Parser

        if _DEPRECATED not in warnings.filters:
            warnings.filterwarnings("ignore", module=_DEPRECATED[3].pattern, category=DeprecationWarning)
        parser = Parser(_load_language(self.module, self.function))
        parser.timeout_micros = self.timeout_micros  # pyright: ignore[reportDeprecated] - see _DEPRECATED
        try:
            return parser.parse(source)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherGrammar:
    """Languages that share a suffix: a text is valid if one of them can parse it."""

    name: str
    choices: tuple[Grammar, ...]
    templates: bool = False
    gaps: bool = False
    blind_spots: re.Pattern[bytes] | None = None

    def find_flaw(self, source: bytes, /) -> SyntaxFlaw | UnparsedText | None:
        """Return the flaw in the first language if no language can parse the text."""
        first, *others = self.choices
        flaw = first.find_flaw(source)
        return None if flaw is None or any(other.find_flaw(source) is None for other in others) else flaw


_NOTICES = ['grammars are not installed. Install them: pip install "surehold[syntax]"']
"""What is said once in the life of a process."""


def _first_notice() -> str:
    return _NOTICES.pop() if _NOTICES else ""


@cache
def _load_language(module: str, function: str) -> "Language":
    from tree_sitter import Language

    load: Callable[[], object] = getattr(import_module(module), function)
    try:
        return Language(load())
    except ValueError as error:
        raise ImportError(f"{module} was made for another tree-sitter.") from error


def _first_error(node: "Node") -> "Node":
    """Descend to the first node that is wrong itself."""
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return node


def _describe_error(node: "Node", source: bytes) -> SyntaxFlaw:
    line = source.count(b"\n", 0, node.start_byte) + 1
    if node.is_missing:
        return SyntaxFlaw(line=line, message=f"`{node.type}` is missing", exact=False)
    end = source.find(b"\n", node.start_byte)
    text = source[node.start_byte : end if end >= 0 else len(source)].decode("utf-8", "replace").strip()
    message = f"cannot be read from `{preview_text(text, _PREVIEW_CHARS)}` on" if text else "cannot be read"
    return SyntaxFlaw(line=line, message=message, exact=False)
