import pytest

from spec.marks import requirement
from surehold.text.sanity.subject import SyntaxFlaw
from surehold.text.sanity.syntax import find_imbalance, lexical_rules_for
from text.sanity_scenes import kinds, report


@requirement("anchored:sanity:delimiters")
@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.kt", "fun main() {\n  println(1)\n}\n", "fun main() {\n  println(1)\n"),
        ("a.swift", "func f() {\n  g([1])\n}\n", "func f() {\n  g([1)\n}\n"),
        ("a.scss", "a { b { c: d } }\n", "a { b { c: d }\n"),
        ("main.tf", 'x "y" {\n  z = [1]\n}\n', 'x "y" {\n  z = [1]\n}\n}\n'),
        ("a.clj", "(def a [1 2])\n", "(def a [1 2]\n"),
        ("a.lua", "f({1})\n", "f({1)\n"),
        ("a.unheardof", "f { g }\n", "f { g\n"),
    ],
)
def test_brackets_that_were_in_balance_and_are_not_now_are_suspicious(path: str, before: str, after: str) -> None:
    assert kinds(path, before, after) == ["unbalanced_delimiters"]


@requirement("anchored:sanity:delimiters")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.kt", "val a = \"(\" // {\n/* [ */ val b = '('\n"),
        ("a.kt", 'val a = """\n((\n"""\n'),
        ("a.dart", "var a = '(' + \"{\";\n"),
        ("a.lua", "-- (\na = [[ ( ]] --[[ {\n ]]\n"),
        ("a.hs", '-- (\nf = "(" {- [ -}\n'),
        ("a.el", '; (\n(a "(" ?\\( )\n'),
        ("main.tf", '# (\n// {\nx = "["\n'),
        ("a.scss", "a { background: url(http://x/y); } // {\n"),
    ],
)
def test_brackets_in_strings_and_comments_do_not_count(path: str, text: str) -> None:
    assert find_imbalance(text.encode(), lexical_rules_for(path)) is None


@requirement("anchored:sanity:delimiters")
def test_brackets_that_were_out_of_balance_before_are_not_held_against_an_edit() -> None:
    assert kinds("a.kt", "fun f( {\n", "fun f( {\n  g(\n") == []


@requirement("anchored:sanity:only_warnings")
@pytest.mark.parametrize("path", ["README.md", "notes.txt", "Makefile", "setup.cfg", "page.vue"])
def test_in_prose_an_imbalance_is_only_mentioned(path: str) -> None:
    found = report(path, "Some text (really).\n", "Some text (really).\na) the first\n", "strict")

    assert (found.status, [f.kind for f in found.findings]) == ("clean", ["unbalanced_delimiters"])


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("a(\nb\n", SyntaxFlaw(line=1, message="`(` is never closed")),
        ("a\nb)\n", SyntaxFlaw(line=2, message="`)` closes nothing")),
        ("a(\nb]\n", SyntaxFlaw(line=2, message="`]` is where the `(` of line 1 must be closed")),
    ],
)
def test_the_bracket_without_a_partner_is_named(text: str, flaw: SyntaxFlaw) -> None:
    assert find_imbalance(text.encode(), lexical_rules_for("a.kt")) == flaw


@pytest.mark.parametrize("piece", ['"\\', "`\\", "/*", '"""', "'''", "--[[", "\\'", "(["])
@pytest.mark.parametrize("path", ["a.kt", "a.go", "a.lua", "a.r"])
def test_a_text_of_unclosed_things_is_looked_through_once(path: str, piece: str) -> None:
    few, many = ((piece * count).encode() for count in (4, 100_000))

    assert (find_imbalance(many, lexical_rules_for(path)) is None) == (
        find_imbalance(few, lexical_rules_for(path)) is None
    )
