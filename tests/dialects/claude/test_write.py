import json
import os
from pathlib import Path

import jsonschema
import pytest

from dialects.claude.desk import Desk
from dialects.place import sha256
from spec.marks import requirement
from surehold.dialects.claude.edit import edit
from surehold.dialects.claude.write import write
from surehold.tools.call import CallContext
from surehold.workspace.settings import Limits
from workspaces import real_workspace


@requirement("claude:write:create", "claude:parameters:absolute")
def test_a_new_file_is_made_with_its_directories(desk: Desk) -> None:
    told = desk.call("Write", file_path=desk.place.path("a/b/new.txt"), content="one\ntwo\n")

    assert desk.get("a/b/new.txt") == b"one\ntwo\n"
    assert told.data == {
        "type": "create",
        "filePath": desk.path("a/b/new.txt"),
        "structuredPatch": [],
        "originalFile": None,
        "userModified": False,
        "sha256": sha256(b"one\ntwo\n"),
        "changeId": told.data["changeId"],
    }
    assert told.raw["structuredContent"] == told.data
    assert told.text == (
        f"Created {desk.path('a/b/new.txt')}.\nsha256: {told.data['sha256']}\nchangeId: {told.data['changeId']}"
    )
    assert desk.file("a/b/new.txt").stat().st_mode & 0o777 == 0o666 & ~_umask()


@requirement("claude:write:update")
def test_an_overwritten_file_is_told_with_its_patch_and_what_was_there(desk: Desk) -> None:
    desk.put("file.txt", "one\ntwo\nthree\n")
    desk.read("file.txt")

    told = desk.write("file.txt", "one\n2\nthree")

    assert desk.get("file.txt") == b"one\n2\nthree"
    assert told.data["type"] == "update"
    assert told.data["originalFile"] == "one\ntwo\nthree\n"
    assert told.data["structuredPatch"] == [
        {
            "oldStart": 1,
            "oldLines": 3,
            "newStart": 1,
            "newLines": 3,
            "lines": [" one", "-two", "-three", "+2", "+three", "\\ No newline at end of file"],
        }
    ]
    assert told.data["sha256"] == sha256(b"one\n2\nthree")
    assert told.text.startswith(f"Updated {desk.path('file.txt')}: +2 -2 lines.\n")
    assert "-two\n" in told.text
    desk.place.shell("undo", told.data["changeId"])
    assert desk.get("file.txt") == b"one\ntwo\nthree\n"


@requirement("claude:write:update")
def test_a_large_original_is_named_by_its_hash(desk: Desk) -> None:
    old = "".join(f"row {n}\n" for n in range(3_000)).encode()
    desk.put("file.txt", old)
    desk.read("file.txt", limit=2_000)
    desk.read("file.txt", offset=2_001)

    told = desk.write("file.txt", "small\n")

    assert "originalFile" not in told.data
    assert told.data["originalFileSha256"] == sha256(old)


@requirement("claude:write:update")
def test_an_original_of_some_length_is_for_programs_alone(desk: Desk) -> None:
    old = "".join(f"row {n}\n" for n in range(500))
    desk.put("file.txt", old)
    desk.read("file.txt")

    told = desk.write("file.txt", old + "more\n")

    assert told.data["originalFile"] == old
    assert "originalFile" not in told.raw["structuredContent"]
    assert told.raw["structuredContent"]["originalFileSha256"] == sha256(old.encode())


@requirement("claude:write:update")
def test_a_patch_that_does_not_fit_is_not_counted(desk: Desk) -> None:
    desk.put("file.txt", "".join(f"{number} {'x' * 60}\n" for number in range(1_200)))
    for offset in (1, 401, 801):
        desk.read("file.txt", offset=offset, limit=400)

    told = desk.write("file.txt", "new\n")

    assert (told.data["structuredPatch"], told.data["structuredPatchTruncated"]) == ([], True)
    assert told.text.startswith(f"Updated {desk.path('file.txt')}.\n")
    assert told.text.endswith("[more lines changed; Read shows them]")


@requirement("claude:write:keeps_style")
@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "c\nd\n", b"\xef\xbb\xbfc\r\nd\r\n"),
        ("\ufeffé\n".encode("utf-16-le"), "ü\nx\n", "\ufeffü\nx\n".encode("utf-16-le")),
        (
            "# coding: latin-1\nnaïve\n".encode("latin-1"),
            "# coding: latin-1\nfaçade\n",
            b"# coding: latin-1\nfa\xe7ade\n",
        ),
        (b"a\rb\r", "c\nd\n", b"c\rd\r"),
        (b"a  \nb\n", "a  \nc\n", b"a  \nc\n"),
    ],
)
def test_18_19_20_encoding_mark_and_line_ending_stay(desk: Desk, before: bytes, content: str, after: bytes) -> None:
    desk.put("file.txt", before)
    desk.read("file.txt")

    assert desk.write("file.txt", content).ok
    assert desk.get("file.txt") == after


@requirement("claude:refusal:shape")
def test_17_characters_that_the_file_cannot_hold_are_named(desk: Desk) -> None:
    before = "# coding: shift_jis\n日本\n".encode("shift_jis")
    desk.put("file.txt", before)
    desk.read("file.txt")

    told = desk.write("file.txt", "# coding: shift_jis\n😀\n")

    assert told.kind == "encoding_unencodable"
    assert "U+1F600" in told.text
    assert desk.get("file.txt") == before


@requirement("claude:write:equal")
def test_equal_content_is_success_and_the_file_is_not_touched(desk: Desk) -> None:
    desk.put("file.txt", "same\n")
    os.utime(desk.path("file.txt"), (1, 1))

    told = desk.write("file.txt", "same\n")

    assert told.data["unchanged"] is True
    assert told.data["changeId"] == ""
    assert "nothing was written" in told.text
    assert desk.file("file.txt").stat().st_mtime == 1
    assert desk.edit("file.txt", "same", "other").ok  # what it sent, it knows


@requirement("claude:write:size_limit")
def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with real_workspace(tmp_path / "root", limits=Limits(max_file_bytes=1_000)) as workspace:
        answer = write.call(CallContext(session=workspace.session()), {"file_path": "big.txt", "content": "x" * 1_001})

        assert answer.data["error"]["kind"] == "file_too_large"
        assert not (tmp_path / "root" / "big.txt").exists()
        assert write.call(CallContext(session=workspace.session()), {"file_path": "ok.txt", "content": "x" * 1_000}).ok
    assert Limits().max_file_bytes == 1 << 30


@requirement("claude:write:size_limit")
def test_24_a_sparse_file_above_one_gibibyte_is_refused(desk: Desk) -> None:
    with desk.file("file.txt").open("wb") as file:
        file.write(b"text\n")
        file.truncate((1 << 30) + 1)

    assert desk.edit("file.txt", "text", "x").kind == "file_too_large"
    assert desk.write("file.txt", "x").kind == "file_too_large"


@requirement("claude:write:notebook")
def test_a_notebook_is_changed_by_its_own_tool(desk: Desk) -> None:
    desk.put("book.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    desk.file("link.txt").symlink_to("book.ipynb")

    for told in (
        desk.write("book.ipynb", "{}"),
        desk.edit("book.ipynb", "cells", "x"),
        desk.edit("link.txt", "c", "x"),
    ):
        assert told.kind == "use_notebook_edit"
        assert "NotebookEdit" in told.error["suggested_action"]


@requirement("claude:write:notebook")
def test_a_new_notebook_may_be_written_when_it_is_one(desk: Desk) -> None:
    notebook = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    assert desk.write("bad.ipynb", "print(1)").kind == "use_notebook_edit"
    assert desk.write("bad.ipynb", "[]").kind == "use_notebook_edit"
    assert desk.write("bad.ipynb", "[" * 100_000).kind == "use_notebook_edit"
    assert desk.write("bad.ipynb", '{"cells": [1], "nbformat": 4}').error["details"]["cause"] == (
        "Cell 0 is not an object."
    )
    assert desk.write("bad.ipynb", '{"cells": [], "nbformat": 3}').error["details"]["reason"] == "old_format"
    assert not desk.file("bad.ipynb").exists()
    assert desk.write("new.ipynb", notebook).data["type"] == "create"
    assert desk.write("new.ipynb", notebook).kind == "use_notebook_edit"


def test_36_a_link_stays_and_its_file_is_written(desk: Desk) -> None:
    desk.put("real.txt", "old\n")
    desk.file("link.txt").symlink_to("real.txt")
    desk.file("dangling.txt").symlink_to("made.txt")
    desk.file("loop.txt").symlink_to("loop.txt")
    desk.read("link.txt")

    assert desk.write("link.txt", "new\n").data["filePath"] == desk.path("real.txt")
    assert desk.file("link.txt").is_symlink()
    assert desk.get("real.txt") == b"new\n"
    assert not desk.write("loop.txt", "x").ok
    assert desk.write("dangling.txt", "made\n").ok
    assert desk.file("dangling.txt").is_symlink()
    assert desk.get("made.txt") == b"made\n"


@requirement("claude:refusal:shape")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("there", "is_directory"),
        ("there/", "is_directory"),
        ("new/", "invalid_arguments"),
        ("there/new/", "invalid_arguments"),
        ("file.txt/below", "file_not_found"),
        ("", "is_directory"),
    ],
)
def test_a_path_that_cannot_be_a_file_makes_nothing(desk: Desk, name: str, kind: str) -> None:
    desk.file("there").mkdir()
    desk.put("file.txt", "text\n")

    assert desk.call("Write", file_path=f"{desk.file('')}/{name}", content="x").kind == kind
    assert sorted(one.name for one in desk.file("").rglob("*")) == ["file.txt", "there"]


@requirement("claude:refusal:shape")
@pytest.mark.parametrize("path", ["~/x.txt", "file:///tmp/x.txt", "vscode-remote://host/x.txt"])
def test_a_path_of_another_kind_makes_no_directory_of_that_name(desk: Desk, path: str) -> None:
    told = desk.call("Write", file_path=path, content="x")
    first = path.partition("/")[0]

    assert (told.kind, told.error["details"]["reason"]) == ("invalid_arguments", "not_a_plain_path")
    assert not (desk.place.root / first).exists()
    assert desk.call("Write", file_path=f"./{desk.place.name}/{first}/x.txt", content="x").ok
    assert desk.get(f"{first}/x.txt") == b"x"


def test_37_38_hard_links_and_permission_bits_stay(desk: Desk) -> None:
    desk.put("file.txt", "old\n")
    desk.file("other.txt").hardlink_to(desk.file("file.txt"))
    desk.put("tool.sh", "old\n")
    desk.file("tool.sh").chmod(0o755)
    desk.put("secret.txt", "old\n")
    desk.file("secret.txt").chmod(0o600)
    for name in ("file.txt", "tool.sh", "secret.txt"):
        desk.read(name)
        assert desk.write(name, "new\n").ok

    assert desk.get("other.txt") == b"new\n"
    assert desk.file("file.txt").stat().st_nlink == 2
    assert desk.file("tool.sh").stat().st_mode & 0o777 == 0o755
    assert desk.file("secret.txt").stat().st_mode & 0o777 == 0o600


@requirement("claude:refusal:shape")
def test_40_41_nothing_outside_of_the_roots_is_written(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("outside\n")
    desk.file("away").symlink_to(tmp_path)

    for name in ("away/out.txt", "away/new.txt", "../../out.txt"):
        assert desk.write(name, "x").kind == "outside_roots"
        assert not desk.edit(name, "outside", "x").ok
    assert (tmp_path / "out.txt").read_text() == "outside\n"
    assert not (tmp_path / "new.txt").exists()


@requirement("claude:refusal:shape")
@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".envrc", "sub/.mcp.json", ".bashrc", ".gitconfig"])
def test_42_protected_files_are_refused_where_nobody_can_be_asked(desk: Desk, name: str) -> None:
    assert desk.write(name, "x").kind == "protected_path"
    assert not desk.file(name).exists()


@requirement("claude:refusal:shape")
@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0", "/proc/kcore", "/proc/self/environ", "/dev/null"])
def test_44_devices_are_not_written(desk: Desk, path: str) -> None:
    assert desk.call("Write", file_path=path, content="x").kind == "outside_roots"
    assert desk.call("Edit", file_path=path, old_string="x", new_string="y").kind == "outside_roots"


@requirement("claude:refusal:shape")
def test_44_a_binary_file_is_refused(desk: Desk) -> None:
    desk.put("image.bin", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))

    assert desk.write("image.bin", "text").kind == "binary_file"
    assert desk.edit("image.bin", "PNG", "x").kind == "binary_file"
    assert desk.write("zero.txt", "a\0b").kind == "invalid_arguments"


@requirement("claude:parameters:names")
@pytest.mark.parametrize("name", ["path", "filePath"])
def test_other_names_of_arguments_are_understood(desk: Desk, name: str) -> None:
    told = desk.call("Write", **{name: desk.path("file.txt")}, content="text\n", wait_for_previous=True)

    assert told.data["warnings"] == ["Unknown argument `wait_for_previous` was ignored."]
    edited = desk.call("Edit", **{name: desk.path("file.txt")}, old_str="text", newText="other")
    assert edited.ok
    assert desk.get("file.txt") == b"other\n"


@requirement("claude:parameters:names", "claude:refusal:shape")
def test_a_missing_argument_is_named(desk: Desk) -> None:
    assert "`content`" in desk.call("Write", file_path=desk.path("file.txt")).error["message"]
    assert desk.call("Edit", file_path=desk.path("file.txt"), old_string="a").kind == "invalid_arguments"


@requirement("claude:refusal:shape")
def test_41_what_may_not_be_read_is_neither_edited_nor_made(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "secret.env").write_text("key\n")
    (root / "link.txt").symlink_to("secret.env")
    with real_workspace(root, deny=("*.env",)) as workspace:
        context = CallContext(session=workspace.session())
        for name in ("secret.env", "link.txt", "new.env"):
            for answer in (
                write.call(context, {"file_path": name, "content": "x"}),
                edit.call(context, {"file_path": name, "old_string": "key", "new_string": "x"}),
            ):
                assert answer.data["error"]["kind"] == "permission_denied"
    assert (root / "secret.env").read_text() == "key\n"
    assert not (root / "new.env").exists()


@requirement("claude:refusal:shape", "claude:parameters:names")
def test_every_answer_fits_the_schema_that_was_listed(desk: Desk) -> None:
    listed = {tool["name"]: tool for tool in desk.place.client.request("tools/list")["tools"]}
    required = {name: set(listed[name]["inputSchema"]["required"]) for name in ("Write", "Edit")}
    calls = [
        ("Write", desk.write("file.txt", "one\n")),
        ("Write", desk.write("file.txt", "two\n")),
        ("Write", desk.write("file.txt", "two\n")),
        ("Edit", desk.edit("file.txt", "two", "three", dry_run=True)),
        ("Edit", desk.edit("file.txt", "two", "three")),
        ("Edit", desk.edit("file.txt", "two", "three")),
    ]

    for name, told in calls:
        jsonschema.validate(told.raw["structuredContent"], listed[name]["outputSchema"])
    assert required == {"Write": {"file_path", "content"}, "Edit": {"file_path", "old_string", "new_string"}}
    assert [told.ok for _, told in calls] == [True, True, True, True, True, False]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
