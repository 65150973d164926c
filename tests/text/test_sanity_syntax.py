"""Every language that is parsed: a sound text, and the same text broken."""

import subprocess
import sys

import pytest

from spec.marks import requirement
from surehold.syntax.grammar import Grammar
from surehold.syntax.languages import parsers_for
from surehold.text.sanity.subject import SyntaxFlaw, UnparsedText
from text.sanity_scenes import kinds, report

LANGUAGES = {
    "a.py": ("def f():\n    return (1, 2)\n", "def f():\n    return (1, 2\n"),
    "a.pyi": ("def f() -> int: ...\n", "def f() -> int ...\n"),
    "a.js": ("const f = () => { return [1]; };\n", "const f = () => { return [1; };\n"),
    "a.mjs": ("export default { a: `x${1}` };\n", "export default { a: `x${1 };\n"),
    "a.jsx": ("const a = <div>{b}</div>;\n", "const a = <div>{b</div>;\n"),
    "a.ts": ("type A<T> = { b: T[] };\n", "type A<T> = { b: T[] ;\n"),
    "a.tsx": ("const a = <A<string> b={c as D}>x</A>;\n", "const a = <A<string> b={c as D>x</A>;\n"),
    "a.json": ('{"a": [1, 2]}\n', '{"a": [1, 2}\n'),
    "package.json": ('{"a": 1}\n', '{"a": 1,}\n'),
    "tsconfig.json": ('{"a": 1, /* b */}\n', '{"a": 1, /* b */\n'),
    ".vscode/settings.json": ('{\n// a\n"a": 1\n}\n', '{\n// a\n"a" 1\n}\n'),
    "a.jsonl": ('{"a": 1}\n{"a": 2}\n', '{"a": 1}\n{"a": 2\n'),
    "a.ipynb": ('{"cells": []}\n', '{"cells": [}\n'),
    "a.toml": ("[a]\nb = [1]\n", "[a\nb = [1]\n"),
    "uv.lock": ('version = 1\n[[package]]\nname = "a"\n', "version = 1\n[[package]]\nname = a\n"),
    "a.yaml": ("a:\n  - b\nc: d\n---\ne: f\n", "a:\n  - b\n c: d\n---\ne: f\n"),
    "a.xml": ("<a><b/></a>\n", "<a><b></a>\n"),
    "a.svg": ('<svg xmlns="x"><g/></svg>\n', '<svg xmlns="x"><g></svg>\n'),
    "a.html": ("<div><p>a</p></div>\n", "<div><p>a</p>\n"),
    "a.css": ("a { b: c; }\n", "a { b: c; \n"),
    "a.rs": ("fn f() -> u8 { 1 }\n", "fn f() -> u8 { 1 \n"),
    "a.go": ("package a\n\nfunc f() {}\n", "package a\n\nfunc f() {\n"),
    "A.java": ("class A { void f() {} }\n", "class A { void f() { }\n"),
    "a.c": ("int f(void) { return 1; }\n", "int f(void { return 1; }\n"),
    "a.h": ("struct a { int b; };\n", "struct a { int b; ;\n"),
    "b.h": ("class A { public: int b; };\n", "class A { public: int b; ;\n"),
    "a.cpp": ("template <class T> T f(T a) { return a; }\n", "template <class T> T f(T a) { return a; \n"),
    "A.cs": ("class A { void F() { } }\n", "class A { void F() { }\n"),
    "a.rb": ("def a\n  1\nend\n", "def a\n  1\n"),
    "a.php": ("<?php\nfunction f() { return [1]; }\n", "<?php\nfunction f() { return [1; }\n"),
    "a.sh": ("if a; then\n  b\nfi\n", "if a; then\n  b\n"),
    "a.sql": ("SELECT a FROM b WHERE c IN (1, 2);\n", "SELECT a FROM b WHERE c IN (1, 2;\n"),
    "tool": ("#!/usr/bin/env python3\nprint(1)\n", "#!/usr/bin/env python3\nprint(1\n"),
    "run": ("#!/bin/sh\nif a; then b; fi\n", "#!/bin/sh\nif a; then b;\n"),
    "Gemfile": ("gem 'a' do\nend\n", "gem 'a' do\n"),
}


@requirement("anchored:sanity:parse")
@pytest.mark.parametrize("path", LANGUAGES)
def test_every_language_tells_a_sound_text_from_a_broken_one(path: str) -> None:
    sound, broken = LANGUAGES[path]
    ways = parsers_for(path, sound.encode())

    assert ways[0].find_flaw(sound.encode()) is None
    assert isinstance(ways[0].find_flaw(broken.encode()), SyntaxFlaw)
    assert kinds(path, sound, broken) == ["parse_error"]


@requirement("anchored:sanity:parse")
@pytest.mark.parametrize(
    "text",
    [
        "type X = int\n",
        "def f[T](a: T) -> T:\n    return a\n",
        "class A[T]:\n    pass\n",
        'x = f"{\', \'.join(a)} {", ".join(b)}"\n',
        "x = t'{a}'\n",
        "try:\n    a\nexcept B, C:\n    pass\n",
    ],
)
def test_python_that_is_newer_than_this_interpreter_is_not_refused(text: str) -> None:
    assert kinds("a.py", "a = 1\n", "a = 1\n" + text) == []
    assert kinds("a.py", "a = 1\n" + text, "a = (1\n" + text) == ["parse_error"]


@requirement("anchored:sanity:parse")
@pytest.mark.parametrize(
    "broken", ["def f():\nx = 1\n", "x = 1\n  y = 2\n", "if a:\n    b\n  c\n", "try:\n    x\n", "x = 'a\n"]
)
def test_python_is_read_as_strictly_as_the_interpreter_does(broken: str) -> None:
    assert kinds("a.py", "x = 1\n", broken) == ["parse_error"]


def test_python_2_is_held_to_what_it_was() -> None:
    old = "print 'a'\nexec 'b'\n"

    assert kinds("a.py", old, "print 'c'\nexec 'b'\n") == []
    assert kinds("a.py", old, "print 'c'\nexec ('b'\n") == ["parse_error"]


def test_escapes_that_python_warns_of_are_no_flaw() -> None:
    assert kinds("a.py", "x = 1\n", "x = '\\d'\ny = x is 'a'\n") == []


def test_json_with_comments_is_not_held_to_strict_json() -> None:
    before = '{\n  // why\n  "a": 1,\n}\n'

    assert kinds("conf.json", before, before.replace("1", "2")) == []
    assert kinds("conf.json", before, before.replace('"a"', "a")) == ["parse_error"]


def test_a_comment_in_strict_json_is_refused() -> None:
    assert kinds("package.json", '{\n  "a": 1\n}\n', '{\n  "a": 1 // why\n}\n') == ["parse_error"]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.html", "<div>a</div>\n", "{% if a %}<div>{% else %}<div b>{% endif %}a</div>\n"),
        ("a.yaml", "a: b\n", "a: b\n{{- if .Values.x }}\nc: d\n{{- end }}\n"),
        ("a.sql", "SELECT a FROM b;\n", "SELECT a FROM {{ ref('b') }} {% if c %} WHERE d {% endif %};\n"),
        ("a.xml", "<a></a>\n", "<a><% if b %><c><% end %></a>\n"),
    ],
)
def test_a_file_that_becomes_a_template_is_not_refused(path: str, before: str, after: str) -> None:
    assert kinds(path, before, after) == []


@requirement("anchored:sanity:only_warnings")
def test_a_grammar_with_gaps_is_only_believed_when_the_brackets_agree() -> None:
    before = "int f(void)\n{\n  return 1;\n}\n"

    gap = report("a.c", before, before.replace("int f", "WEIRD_MACRO(x) EXPORT int f"), "strict")
    assert (gap.status, [f.kind for f in gap.findings]) == ("clean", ["doubtful_syntax"])
    assert kinds("a.c", before, before.replace("}", "")) == ["parse_error"]


@pytest.mark.parametrize("path", ["README.md", "a.rst", "notes.txt", "a.vue", "LICENSE", ".gitignore", "a.kt"])
def test_files_without_a_parser_have_no_reading(path: str) -> None:
    assert parsers_for(path, b"text\n```python\nfoo(\n```\n") == ()


@requirement("anchored:sanity:only_warnings")
def test_code_in_markdown_is_left_alone() -> None:
    assert kinds("README.md", "# A\n\n```python\nf(1)\n```\n", "# A\n\n```python\nf(1\n```\n") == []


@requirement("anchored:sanity:parse")
def test_the_message_names_the_bracket_and_not_the_place_where_the_parser_got_lost() -> None:
    before = "function a() {\n  b();\n}\n\nfunction c() {\n  d();\n}\n"

    found = report("a.js", before, before.replace("b();\n}", "b();\n"))

    assert found.warnings == ("The file was valid JavaScript and would not be any more: line 1: `{` is never closed.",)


@requirement("anchored:sanity:time_box")
def test_a_grammar_gives_up_when_its_time_is_over() -> None:
    grammar = Grammar(name="Rust", module="tree_sitter_rust", timeout_micros=20_000)

    assert grammar.find_flaw(b"x y\n" * 25_000) == UnparsedText("the parser took too long")


def test_a_grammar_that_is_not_installed_blocks_nothing() -> None:
    grammar = Grammar(name="Klingon", module="tree_sitter_klingon")

    assert grammar.find_flaw(b"nuqneH") == UnparsedText("the grammar for Klingon cannot be loaded")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "x = " + "-" * 100_000 + "1\n"),
        ("a.json", "[" * 100_000 + "]" * 100_000),
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
    ],
)
def test_a_text_that_would_hurt_a_parser_is_not_judged(path: str, text: str) -> None:
    assert isinstance(parsers_for(path, b"")[0].find_flaw(text.encode()), UnparsedText)


def test_no_parser_is_loaded_before_an_edit_is_checked() -> None:
    code = (
        "import sys, surehold.text.sanity.check, surehold.syntax.languages as l; l.parsers_for('a.go', b''); "
        "print([m for m in sys.modules if m.startswith(('tree_sitter', 'tomllib', 'xml', 'symtable'))])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@requirement("anchored:sanity:parse")
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.js", "x = 1;", "import data from './a.json' assert { type: 'json' };"),
        ("a.js", "x = 1;", "class A { accessor y = 1 }\nimport defer * as z from 'z';"),
        ("a.rs", "fn f() {}", 'unsafe extern "C" { safe fn g(); }'),
        ("a.java", "class A {}", "class A extends B { A() { int y = 1; super(y); } }"),
        ("a.rb", "x = 1", 'def a() = puts "x"'),
        ("a.sh", "x=1", "[[ $b == *.@(c|d) ]]"),
        ("a.sh", "x=1", "y=${ echo a; }\ndeclare -A m; m[a b]=c"),
        ("a.html", "<p>x</p>", "<a href=x?a=b&c=d>y</a><p>a < b</p>"),
        ("a.toml", "a = 1", 'a = {\n  b = "\\e",\n}'),
    ],
)
def test_what_a_grammar_is_known_to_stumble_over_is_only_doubted(path: str, old: str, new: str) -> None:
    found = report(path, f"{old}\n", f"{new}\n", "strict")

    assert (found.status, [finding.kind for finding in found.findings]) == ("clean", ["doubtful_syntax"])
    assert kinds(path, f"{old}\n", f"{new} (\n") != []
