"""The charset that a project declares decides how its files are read and written."""

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


@pytest.mark.parametrize(
    "config", [b"[*\ncharset = latin1\n", b"[*]\ncharset = nonsense\n", b"\xff\0", b"[[]\ncharset"]
)
def test_a_broken_declaration_is_as_good_as_none(bench: Bench, config: bytes) -> None:
    bench.put(".editorconfig", config)
    bench.put("a.txt", b"plain\n")

    assert encoding_of(bench, "a.txt") == "utf-8"
