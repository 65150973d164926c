"""read, edit, write, delete and move."""

import hashlib
import os

import pytest

from front.shell import Shell
from spec.marks import requirement


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_read_in_a_pipe_gives_the_very_bytes(shell: Shell) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\x00\xff\nno newline"
    (shell.root / "a.bin").write_bytes(data)

    assert shell.process("read", "a.bin").stdout == data


def test_read_of_some_lines_gives_their_very_bytes(shell: Shell) -> None:
    (shell.root / "a.txt").write_bytes(b"one\r\ntwo\nthree")

    def lines(wanted: str) -> bytes:
        return shell.process("read", "a.txt", "--lines", wanted).stdout

    assert lines("1:2") == b"one\r\ntwo\n"
    assert lines("2:") == b"two\nthree"
    assert lines(":1") == b"one\r\n"
    assert lines("3") == b"three"
    assert lines("2:99") == b"two\nthree"


def test_read_as_json_has_the_text_and_the_facts(shell: Shell) -> None:
    shell.write("a.txt", "one\ntwo\nthree\n")

    assert shell.json("read", "a.txt", "--lines", "2:2") == {
        "path": "a.txt",
        "content": "two\n",
        "start_line": 2,
        "end_line": 2,
        "line_count": 3,
        "size": 14,
        "sha256": sha256("one\ntwo\nthree\n"),
        "encoding": "utf-8",
        "has_bom": False,
        "newline_style": "lf",
        "final_newline": True,
    }


@pytest.mark.parametrize("wanted", ["x", "2:1", "0:3", ":", "-1", "1:2:3", "٣"])
def test_a_range_that_is_none_is_wrong_usage(shell: Shell, wanted: str) -> None:
    shell.write("a.txt", "one\n")

    said = shell("read", "a.txt", f"--lines={wanted}")

    assert said.code == 2
    assert "is not a range like 10:20" in said.err


def test_lines_after_the_end_are_refused(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    assert shell("read", "a.txt", "--lines", "5:9").err.startswith(
        "Refused: Line 5 is after the end: `a.txt` has 1 line."
    )


def test_an_empty_file_reads_as_nothing(shell: Shell) -> None:
    shell.write("a.txt", "")

    assert shell("read", "a.txt").out == ""
    assert shell.json("read", "a.txt")["line_count"] == 0
    assert shell("read", "a.txt", "--lines", "1:5").code == 0


@pytest.mark.parametrize(
    ("path", "kind"), [("missing.txt", "not_found"), ("../outside", "outside_workspace"), ("folder", "not_found")]
)
def test_what_cannot_be_read_is_refused_with_its_kind(shell: Shell, path: str, kind: str) -> None:
    (shell.root / "folder").mkdir()

    assert shell.json("read", path, code=1)["error"]["kind"] == kind


def test_edit_changes_one_place_and_says_so(shell: Shell) -> None:
    path = shell.write("a.txt", "one\ntwo\n")

    said = shell("edit", "a.txt", "--old", "one", "--new", "uno")

    assert (said.code, said.out, said.err) == (0, "Edited: a.txt (+1 -1)\n", "")
    assert path.read_text() == "uno\ntwo\n"


def test_several_places_need_all(shell: Shell) -> None:
    path = shell.write("a.txt", "x\nx\n")

    said = shell("edit", "a.txt", "--old", "x", "--new", "y")

    assert said.code == 1
    assert said.err.splitlines()[-1] == "Next: Quote more of the surrounding text, or add --all."
    assert shell("edit", "a.txt", "--old", "x", "--new", "y", "--all").code == 0
    assert path.read_text() == "y\ny\n"


def test_an_edit_with_an_old_sha256_is_refused(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    said = shell("edit", "a.txt", "--old", "one", "--new", "uno", "--sha256", sha256("other"))

    assert (said.code, said.err.splitlines()[-1]) == (1, "Next: Read it again: surehold read a.txt")
    assert shell("edit", "a.txt", "--old", "one", "--new", "uno", "--sha256", sha256("one\n")).code == 0
    assert shell("edit", "a.txt", "--old", "uno", "--new", "x", "--sha256", "nonsense").code == 1


def test_an_edit_can_be_tried_out(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")

    said = shell("edit", "a.txt", "--old", "one", "--new", "", "--dry-run")

    assert said.out.startswith("Nothing was written. This would change 1 file:\n--- a.txt\n")
    assert path.read_text() == "one\n"
    assert shell.json("log")["entries"] == []


def test_a_write_that_changes_nothing_says_so(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    assert shell("write", "a.txt", "--force", stdin=b"one\n").out == "Already up to date: a.txt\n"
    assert shell("edit", "a.txt", "--old", "one", "--new", "one").code == 1


@requirement("front:exit:usage")
@pytest.mark.parametrize("texts", [[], ["--old", "one"], ["--new", "uno"]])
def test_an_edit_without_both_texts_is_wrong_usage(shell: Shell, texts: list[str]) -> None:
    said = shell("edit", "a.txt", *texts)

    assert (said.code, said.out) == (2, "")
    assert said.err == "Wrong usage: Give --old and --new, or --operations FILE.\nSee: surehold edit --help\n"


def test_text_that_begins_with_a_dash_can_be_given(shell: Shell) -> None:
    path = shell.write("a.txt", "--flag\n")

    assert shell("edit", "a.txt", "--old=--flag", "--new=-x").code == 0
    assert path.read_text() == "-x\n"


def test_write_makes_a_new_file_and_its_directories(shell: Shell) -> None:
    said = shell("write", "notes/new.txt", stdin="grüße\n".encode())

    assert (said.code, said.out) == (0, "Created: notes/new.txt (+1)\n")
    assert (shell.root / "notes/new.txt").read_bytes() == "grüße\n".encode()
    assert shell.json("log")["entries"][0]["operation"] == "create"


def test_an_existing_file_is_overwritten_only_when_its_version_is_named_or_forced(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")

    refused = shell("write", "a.txt", stdin=b"two\n")
    assert refused.code == 1
    assert refused.err.splitlines()[-1] == (
        f"Next: To overwrite that version, add --sha256 {sha256(chr(10).join(['one', '']))} or --force."
    )
    assert path.read_text() == "one\n"
    assert shell("write", "a.txt", "--sha256", sha256("one\n"), stdin=b"two\n").out == "Overwritten: a.txt (+1 -1)\n"
    assert shell("write", "a.txt", "--sha256", sha256("one\n"), stdin=b"three\n").code == 1
    assert shell("write", "a.txt", "--force", stdin=b"four\n").code == 0
    assert path.read_text() == "four\n"
    assert shell("write", "a.txt", "--force", "--sha256", sha256("x"), stdin=b"").code == 2


def test_forcing_a_file_that_does_not_exist_makes_it(shell: Shell) -> None:
    assert shell("write", "a.txt", "--force", stdin=b"x").out == "Created: a.txt (+1)\n"


def test_overwritten_text_keeps_the_line_endings_of_the_file(shell: Shell) -> None:
    path = shell.write("a.txt", "one\r\ntwo\r\n")

    said = shell("write", "a.txt", "--force", stdin=b"one\nthree\n")

    assert path.read_bytes() == b"one\r\nthree\r\n"
    assert "  Note: Line endings follow the file (crlf).\n" in said.out


def test_bytes_that_are_not_text_are_written_as_they_are(shell: Shell) -> None:
    data = bytes(range(256))

    assert shell("write", "a.bin", stdin=data).code == 0
    assert shell("write", "a.bin", "--force", stdin=data[::-1]).code == 0
    assert (shell.root / "a.bin").read_bytes() == data[::-1]
    assert shell("undo").code == 0
    assert (shell.root / "a.bin").read_bytes() == data


def test_a_write_can_be_tried_out(shell: Shell) -> None:
    assert shell("write", "a.txt", "--dry-run", stdin=b"x\n").out.startswith("Nothing was written.")
    assert not (shell.root / "a.txt").exists()


def test_delete_moves_a_file_to_the_trash(shell: Shell) -> None:
    path = shell.write("a.txt", "one\n")

    assert shell("delete", "a.txt", "--sha256", sha256("other")).code == 1
    assert path.exists()
    assert shell("delete", "a.txt").out == "Deleted: a.txt (-1)\n"
    assert not path.exists()
    assert shell("delete", "a.txt").err.startswith("Refused: `a.txt` does not exist.")


def test_delete_as_json_names_the_trash_item(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    document = shell.json("delete", "a.txt", "--sha256", sha256("one\n"))

    assert shell.json("trash", "list")["items"][0]["id"] == document["files"][0]["trash_id"]


def test_move_never_overwrites_and_takes_a_directory_as_target(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.write("b.txt", "two\n")
    (shell.root / "folder").mkdir()

    refused = shell("move", "a.txt", "b.txt")
    assert refused.code == 1
    assert refused.err.splitlines()[-1] == "Next: Choose another path, or delete it first: surehold delete b.txt"
    assert shell("move", "a.txt", "folder").out == "Moved: a.txt → folder/a.txt\n"
    assert shell("move", "folder/a.txt", "new/place.txt").code == 0
    assert (shell.root / "new/place.txt").read_text() == "one\n"
    assert shell("undo").code == 0
    assert (shell.root / "folder/a.txt").exists()


def test_a_protected_file_is_refused(shell: Shell) -> None:
    shell.write(".git/config", "x\n")

    said = shell("edit", ".git/config", "--old", "x", "--new", "y")

    assert (said.code, said.err.splitlines()[-1]) == (1, "Next: Ask a person to make this change.")


def test_changes_are_recorded_under_the_name_of_the_person(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USER")
    shell("write", "a.txt", stdin=b"x")

    assert shell.json("log")["entries"][0]["agent"] == "person"


def test_file_names_that_are_not_utf8_can_be_used(shell: Shell) -> None:
    raw = os.fsencode(shell.root) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:  # noqa: PTH123 - a name in bytes
        file.write(b"one\n")
    name = os.fsdecode(b"caf\xe9.txt")

    said = shell("edit", name, "--old", "one", "--new", "two")

    assert said.out == "Edited: caf\\xe9.txt (+1 -1)\n"
    assert shell.json("log")["entries"][0]["path"] == name
    assert "caf\\xe9.txt" in shell("log").out
    assert shell("undo").code == 0
    process = shell.process("show", shell.json("log")["entries"][0]["change_id"], "--json")
    assert process.stdout.decode("utf-8").isascii()


@requirement("front:cli:reason")
def test_what_a_person_changes_can_say_why(shell: Shell) -> None:
    shell("write", "a.txt", "--reason", "made", stdin=b"one\n")
    shell("edit", "a.txt", "--old", "one", "--new", "two", "--reason", "edited")
    (shell.root / "lines.json").write_text('[{"op": "insert_after", "hash": "EOF", "content": "three"}]')
    shell("edit", "a.txt", "--operations", "lines.json", "--reason", "lines")
    shell("move", "a.txt", "b.txt", "--reason", "moved")
    shell("delete", "b.txt", "--reason", "deleted")

    found = shell.json("log", "--all")["entries"]
    assert [one["reason"] for one in found] == ["deleted", "moved", "lines", "edited", "made"]
