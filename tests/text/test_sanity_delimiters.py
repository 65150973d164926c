import pytest

from spec.marks import requirement
from surehold.text.sanity.lexical import find_imbalance, lexical_rules_for
from surehold.text.sanity.subject import SyntaxFlaw
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
        ("a.scss", "a { background: url(//x/y.png); b: url(data:image/png;base64,a//b8) }\n"),
        ("a.less", "a { background: url( //x/y.png ); }\n"),
        ("a.css", "a { background: url(//x/y.png); content: '('; } /* ( */\n"),
        ("a.nix", "{ a = (b // c); d = ''\n it's ( ''${e}\n''; }\n"),
        ("a.jl", "f(1//2, A', '(') #= ( =# # (\n"),
        ("a.ex", "Enum.take(1..10//2, ?() # (\n"),
        ("a.exs", '~r/[(]/ <> ~s(a { b) <> ~S"""\n(\n""" <> "#{f("(")}"\n'),
        ("a.erl", "g() -> [$(, ${, \"(\", 'a b(']. % it's (\n"),
        ("a.f90", "call f('a' // trim(b)) ! it's (\n"),
        ("a.hs", "g = f' '(' a' ['[', '\\'']\n"),
        ("a.elm", "g = '('\n"),
        ("a.lean", "a -- it's (\n/- ( -/\n"),
        ("a.ml", "let g (x : 'a) = '(' (* it's ( *) ^ {|(|} ^ {q|(|}|q}\n"),
        ("a.fs", "let g = List.reduce (*) [1] (* it's ( *) // (\n"),
        ("a.zig", "g(\n    \\\\text (\n);\n"),
        ("a.swift", 'g("\\(h("("))", #"("("#)\n'),
        ("a.kt", 'g("${h("(")}")\n'),
        ("a.scala", 'g(s"${h("(")}", \'(\')\n'),
        ("a.dart", "g('${h('(')}', r'\\(');\n"),
        ("a.groovy", "g(/\\(/, \"${h('(')}\") // (\n"),
        ("main.tf", 'c = "${f("(")}"\nd = <<-EOT\n  it\'s (\n  EOT\n'),
        ("a.coffee", "b(/\\(/, ///[(]///) ### ( ###\n"),
        ("a.ts", "f(/[(]/, `(`);\n"),
        ("a.d", "b(`(`, r\"\\\", '('); /+ ( +/\n"),
        ("a.vhd", "c <= '('; -- it's (\n"),
        ("a.adb", "x := s'first + '('; -- it's (\n"),
        ("a.pas", "x := '('; { it's ( } (* { *) // (\n"),
        ("a.bas", "b \"(\" ' it's (\nREM (\n"),
        ("a.sv", "b c = '{default: 0}; // (\n"),
        ("a.lua", "b([==[ ( ]] ]==]) --[=[ ( ]] ]=]\n"),
        ("a.R", 'g(r"---(a ( b)---", `a(`) # it\'s (\n'),
        ("a.lisp", "(b #\\( |a(b|) #| ( |#\n"),
        ("a.wat", "(func) ;; it's (\n(; ( ;)\n"),
        ("a.cpp", 'auto s = R"x( ( " )x";\n'),
        ("a.rs", 'let s = r#"( " ("#;\n'),
        ("a.cs", 'var s = @"\\" + @$"""(" + "(";\n'),
        ("a.php", "$a = <<<'EOT'\nit's (\nEOT; # (\n"),
        ("a.sql", "select '(''(', $$ it's ( $$ -- it's (\n"),
    ],
)
def test_brackets_in_strings_and_comments_do_not_count(path: str, text: str) -> None:
    assert find_imbalance(text.encode(), lexical_rules_for(path)) is None


@requirement("anchored:sanity:delimiters")
@pytest.mark.parametrize("path", ["a.c", "a.h", "a.cpp", "a.cs", "a.m", "a.swift"])
def test_branches_of_the_preprocessor_may_open_the_same_block(path: str) -> None:
    before = "int f(int y) {\n  return 1;\n}\n"
    branches = "#if A\nint f(int y) {\n#else\nint f(int x) {\n#endif\n  return 1;\n}\n"

    assert kinds(path, before, branches) == []
    assert kinds(path, before, branches.replace("}\n", "")) != []


@requirement("anchored:sanity:delimiters")
@pytest.mark.parametrize(
    "line",
    ["b() # it's (", "b() ; it's (", "b() -- it's (", "b() % it's (", "b() ' it's (", "b() (* it's ( *)", "b('(')"],
)
def test_in_an_unknown_language_what_may_be_a_comment_or_a_string_is_not_counted(line: str) -> None:
    assert kinds("a.unheardof", "a()\nb()\n", f"a()\n{line}\n") == []


@requirement("anchored:sanity:delimiters")
@pytest.mark.parametrize("around", ["# it's", "; it's", "-- x", "% x", "' x", "// x"])
def test_in_an_unknown_language_a_lost_bracket_is_suspicious_whatever_else_is_there(around: str) -> None:
    before = f"f {{\n  g(1)\n{around}\n}}\n"

    assert kinds("a.unheardof", before, before.replace("}\n", "")) == ["unbalanced_delimiters"]
    assert kinds("a.unheardof", before, before.replace("g(1)", "g(1")) == ["unbalanced_delimiters"]


@requirement("anchored:sanity:delimiters")
def test_a_suffix_of_two_languages_is_read_as_either() -> None:
    assert kinds("a.m", "x = f(1);\n", "x = f(y')'; % it's (\n") == []
    assert kinds("a.m", "x = f(1);\n", '[self say:@"(" to:1]; // it\'s (\n') == []
    assert kinds("a.m", "x = f(1);\n", "x = f(1;\n") == ["unbalanced_delimiters"]


@requirement("anchored:sanity:delimiters")
def test_brackets_that_were_out_of_balance_before_are_not_held_against_an_edit() -> None:
    assert kinds("a.kt", "fun f( {\n", "fun f( {\n  g(\n") == []


@requirement("anchored:sanity:only_warnings")
@pytest.mark.parametrize(
    "path", ["README.md", "notes.txt", "Makefile", "setup.cfg", "page.vue", "a.pug", "a.1", "a.py.orig"]
)
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


@pytest.mark.parametrize("piece", ['"\\', "`\\", "/*", '"""', "'''", "--[[", "\\'", "([", "###", "\n#if\n(", '"${'])
@pytest.mark.parametrize("path", ["a.kt", "a.go", "a.lua", "a.r", "a.c", "a.cs", "a.tf"])
def test_a_text_of_unclosed_things_is_looked_through_once(path: str, piece: str) -> None:
    few, many = ((piece * count).encode() for count in (4, 100_000))

    assert (find_imbalance(many, lexical_rules_for(path)) is None) == (
        find_imbalance(few, lexical_rules_for(path)) is None
    )
