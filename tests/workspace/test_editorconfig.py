"""The charset that a project declares decides how its files are read and written."""

import time
from pathlib import Path

import pytest

from spec.marks import requirement
from workspaces import Bench, real_workspace


def encoding_of(bench: Bench, path: str) -> str:
    return bench.workspace.read(path).encoding.name


@requirement("text:encoding:editorconfig")
def test_new_text_is_written_in_the_declared_charset(bench: Bench) -> None:
    bench.put(".editorconfig", b"root = true\n[*.txt]\ncharset = latin1\n")
    bench.put("deep/er/a.txt", b"caf\xe9 one\n")

    bench.workspace.session().edit("deep/er/a.txt", ("one", "größe"))

    assert bench.get("deep/er/a.txt") == b"caf\xe9 gr\xf6\xdfe\n"


@requirement("text:encoding:editorconfig")
def test_the_nearest_declaration_that_names_the_file_wins(bench: Bench) -> None:
    bench.put(".editorconfig", b"[*]\ncharset = latin1\n")
    bench.put("sub/.editorconfig", b"[*.{py,txt}]\ncharset = utf-8\n")
    bench.put("top/.editorconfig", b"root = true\n[*.py]\nindent_size = 4\n")
    for path in ("a.txt", "sub/a.txt", "sub/a.md", "top/a.txt"):
        bench.put(path, b"plain\n")

    assert [encoding_of(bench, path) for path in ("a.txt", "sub/a.txt", "sub/a.md", "top/a.txt")] == [
        "iso8859-1",
        "utf-8",
        "iso8859-1",
        "utf-8",
    ]


@requirement("text:encoding:editorconfig")
def test_a_declaration_above_the_root_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".editorconfig").write_bytes(b"[*]\ncharset = latin1\n")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_bytes(b"plain\n")

    with real_workspace(tmp_path / "root") as workspace:
        assert workspace.read("a.txt").encoding.name == "utf-8"


def test_comments_and_empty_lines_say_nothing(bench: Bench) -> None:
    bench.put(".editorconfig", b"# ours\n\n[*]\n \n; charset = utf-8\ncharset = latin1\n\n#charset = utf-8\n")
    bench.put("a.txt", b"plain\n")

    assert encoding_of(bench, "a.txt") == "iso8859-1"


@pytest.mark.parametrize(
    "config", [b"[*\ncharset = latin1\n", b"[*]\ncharset = nonsense\n", b"\xff\0", b"[[]\ncharset"]
)
def test_a_broken_declaration_is_as_good_as_none(bench: Bench, config: bytes) -> None:
    bench.put(".editorconfig", config)
    bench.put("a.txt", b"plain\n")

    assert encoding_of(bench, "a.txt") == "utf-8"


@requirement("text:encoding:editorconfig")
@pytest.mark.parametrize(
    ("section", "path", "named"),
    [
        ("*", "d/a.py", True),
        ("*.py", "d/a.py", True),
        ("*.py", "a.pyc", False),
        ("/*.py", "d/a.py", False),
        ("d/*.py", "d/a.py", True),
        ("d/*.py", "d/e/a.py", False),
        ("d/**.py", "d/e/a.py", True),
        ("d/**/a.py", "d/a.py", True),
        ("d/**/a.py", "d/e/f/a.py", True),
        ("d/**/a.py", "da.py", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("d?a.py", "d/a.py", False),
        ("[a-c].py", "b.py", True),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[xa-c].py", "b.py", True),
        ("[a-cx].py", "x.py", True),
        ("[a-].py", "-.py", True),
        ("[a-].py", "b.py", False),
        ("[a-c].py", "-.py", False),
        ("[ab-].py", "-.py", True),
        ("[!a-c].py", "b.py", False),
        ("[!a-c].py", "d.py", True),
        ("*.{py,txt}", "a.txt", True),
        ("*.{py,txt}", "a.md", False),
        ("{a,b{c,d}}.py", "bd.py", True),
        ("{a,b{c,d}}.py", "b.py", False),
        ("{a,}b.py", "b.py", True),
        ("{a}.py", "{a}.py", True),
        ("{a,{b,c}.py", "a.py", False),
        ("a,b", "a,b", True),
        ("***.py", "a.py", True),
        ("*a*b*", "xaybz", True),
        ("*a*b*", "xbya", False),
        ("x" * 1025, "x", False),
    ],
)
def test_a_section_names_files_by_its_glob(bench: Bench, section: str, path: str, named: bool) -> None:
    bench.put(".editorconfig", f"[{section}]\ncharset = latin1\n".encode())
    bench.put(path, b"plain\n")

    assert encoding_of(bench, path) == ("iso8859-1" if named else "utf-8")


@pytest.mark.parametrize(
    "section",
    ["*" * 40 + "z", "*a" * 500 + "z", "**/" * 300 + "z", "{a,*}" * 200 + "z", "{*," * 300 + "}" * 300, "[a-z]*" * 170],
)
def test_a_hostile_section_does_not_stall(bench: Bench, section: str) -> None:
    path = "/".join(["a" * 200] * 15)
    bench.put(".editorconfig", f"[{section}]\ncharset = latin1\n".encode() * 50)
    bench.put(path, b"plain\n")

    began = time.process_time()
    encoding_of(bench, path)

    assert time.process_time() - began < 5


@requirement("text:encoding:editorconfig")
def test_what_is_created_in_utf16_is_read_back(bench: Bench) -> None:
    bench.put(".editorconfig", b"[*.txt]\ncharset = utf-16le\n")

    bench.workspace.session().create("a.txt", "日本語\n中文\n")

    assert bench.workspace.read("a.txt").text == "日本語\n中文\n"


@requirement("text:encoding:editorconfig")
def test_a_byte_order_mark_is_written_into_new_files_only(bench: Bench) -> None:
    bench.put(".editorconfig", b"[*.txt]\ncharset = utf-8-bom\n")
    bench.put("old.txt", b"one\n")

    bench.workspace.session().create("new.txt", "é\n")
    bench.workspace.session().edit("old.txt", ("one", "é"))

    assert (bench.get("new.txt"), bench.get("old.txt")) == ("\ufeffé\n".encode(), "é\n".encode())
