"""trash list, restore and empty."""

import pytest

from front.shell import Shell
from spec.marks import requirement


def deleted(shell: Shell, *names: str) -> list[str]:
    """Delete files; return their trash ids."""
    ids = list[str]()
    for name in names:
        shell.write(name, f"{name}\n")
        ids.append(shell.json("delete", name)["files"][0]["trash_id"])
    return ids


def test_an_empty_trash_says_so_and_leaves_nothing_behind(shell: Shell) -> None:
    assert shell("trash", "list").out == "The trash is empty.\n"
    assert shell("trash").out == "The trash is empty.\n"
    assert shell.json("trash", "list") == {"items": [], "more": False}
    assert not shell.state_home.exists()


@requirement("front:cli:trash")
def test_the_trash_lists_deleted_files_newest_first(shell: Shell) -> None:
    one, two = deleted(shell, "a.txt", "src/b.txt")

    rows = [line.split() for line in shell("trash", "list").out.splitlines()]

    assert rows[0] == ["DELETED", "ID", "WHO", "SIZE", "PATH"]
    assert [row[1:] for row in rows[1:]] == [
        [two[-8:], "ada", "10", "B", "src/b.txt"],
        [one[-8:], "ada", "6", "B", "a.txt"],
    ]


def test_the_trash_as_json_has_every_fact(shell: Shell) -> None:
    (name,) = deleted(shell, "a.txt")

    (item,) = shell.json("trash", "list")["items"]

    assert list(item) == ["id", "path", "sha256", "size", "trashed", "change_id", "agent", "session", "state"]
    assert (item["id"], item["path"], item["size"], item["state"]) == (name, "a.txt", 6, "kept")


@requirement("front:cli:trash", "engine:trash:pages")
def test_a_long_trash_is_listed_in_pages(shell: Shell) -> None:
    one, two, three = deleted(shell, "a.txt", "b.txt", "c.txt")

    first = shell("trash", "--limit", "2")
    assert [line.split()[-1] for line in first.out.splitlines()] == ["PATH", "c.txt", "b.txt"]
    assert first.err == f"There are more: surehold trash list --after {two}\n"
    found = shell.json("trash", "list", "--limit", "2")
    assert ([item["id"] for item in found["items"]], found["more"]) == ([three, two], True)

    rest = shell("trash", "list", "--after", two)
    assert [line.split()[-1] for line in rest.out.splitlines()] == ["PATH", "a.txt"]
    assert rest.err == ""
    assert shell("trash", "list", "--after", one).out == "There are no more.\n"
    assert shell("trash", "list", "--after", "none").err == (
        "Refused: Nothing in the trash is called `none`.\nNext: Look at `surehold trash list`.\n"
    )


@requirement("front:cli:trash", "front:cli:restore")
@pytest.mark.parametrize("words", [["restore"], ["trash", "restore"]])
def test_a_deleted_file_comes_back_by_id_short_id_or_path(shell: Shell, words: list[str]) -> None:
    for first, path in ((0, ""), (-8, ""), (0, "a.txt")):
        (name,) = deleted(shell, "a.txt")
        assert shell(*words, path or name[first:]).out == "Restored: a.txt (+1)\n"
        assert (shell.root / "a.txt").read_text() == "a.txt\n"


def test_a_path_means_its_newest_deleted_version(shell: Shell) -> None:
    for text in ("old\n", "new\n"):
        shell.write("a.txt", text)
        shell("delete", "a.txt")

    assert shell("restore", "a.txt", "--to", "b.txt").code == 0
    assert (shell.root / "b.txt").read_text() == "new\n"


def test_a_file_is_never_restored_over_another(shell: Shell) -> None:
    (name,) = deleted(shell, "a.txt")
    shell.write("a.txt", "newer\n")

    said = shell("restore", "a.txt")

    assert said.code == 1
    assert said.err.splitlines()[-1] == f"Next: Use another path: surehold restore {name[-8:]} --to PATH"
    assert (shell.root / "a.txt").read_text() == "newer\n"


def test_what_is_not_in_the_trash_is_refused(shell: Shell) -> None:
    deleted(shell, "a.txt")

    assert shell("restore", "b.txt").err == (
        "Refused: Nothing in the trash is called `b.txt`.\nNext: Look at `surehold trash list`.\n"
    )


@requirement("front:cli:trash")
def test_the_trash_is_emptied_only_with_a_confirmation(shell: Shell) -> None:
    deleted(shell, "a.txt", "b.txt")

    refused = shell("trash", "empty")
    assert (refused.code, refused.err.splitlines()[-1]) == (1, "Next: Confirm with --yes.")
    assert len(shell.json("trash", "list")["items"]) == 2
    assert shell("trash", "empty", "--yes").out == "Permanently removed 2 deleted files.\n"
    assert shell.json("trash", "list")["items"] == []
    assert shell("trash", "empty").out == "The trash is empty.\n"


def test_single_files_can_be_given_up(shell: Shell) -> None:
    one, two = deleted(shell, "a.txt", "b.txt")

    assert shell.json("trash", "empty", one[-8:], "--yes") == {"emptied": 1}
    assert [item["id"] for item in shell.json("trash", "list")["items"]] == [two]
    assert shell("trash", "empty", "nothing", "--yes").code == 1
    assert shell.json("trash", "empty", "nothing", code=1)["error"]["kind"] == "not_found"


def test_an_unknown_action_is_wrong_usage(shell: Shell) -> None:
    said = shell("trash", "burn")

    assert said.code == 2
    assert "`burn` is not an action of `surehold trash`." in said.err
