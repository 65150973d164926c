"""Directories, links and modes in the history, as commands leave them, through the real commands of a person."""

import subprocess
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement

MAKE = "echo hi > x; mkdir q; echo deep > q/f; ln -s nowhere dang; chmod 755 f"


def made(shell: Shell) -> str:
    """Let a command make a file, a directory with another one, and a link, and change a mode; return the change."""
    shell.write("f", "data\n")
    return record(shell, MAKE)


def record(shell: Shell, script: str) -> str:
    done = shell.process("run", "--agent", "bob", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return shell.json("log", "--limit", "1")["entries"][0]["change_id"]


@requirement("history:diff:net")
def test_the_difference_of_a_command_names_directories_links_and_modes(shell: Shell) -> None:
    made(shell)

    files = {one["path"]: one for one in shell.json("diff", "--agent", "bob")["files"]}

    assert {name: one["facts"] for name, one in files.items()} == {
        "dang": ["new symbolic link to nowhere"],
        "f": ["mode 0644 → 0755"],
        "q": ["new directory"],
        "q/f": [],
        "x": [],
    }
    assert files["x"]["diff"].endswith("+hi\n")
    said = shell("diff", "--agent", "bob")
    assert (said.code, said.err) == (0, "")
    assert "q: new directory\n" in said.out
    assert "q  new directory\nq/f  +1\n" in shell("diff", "--agent", "bob", "--stat").out


@requirement("history:read:earlier")
def test_a_file_whose_mode_alone_was_changed_is_read_as_it_was(shell: Shell) -> None:
    change = made(shell)

    assert shell("read", "f", "--at", change).out == "data\n"
    assert shell("read", "f", "--before", change).out == "data\n"
    assert "was a directory" in shell.json("read", "q", "--at", change, code=1)["error"]["message"]
    assert "link to nowhere" in shell.json("read", "dang", "--at", change, code=1)["error"]["message"]


def test_a_directory_and_a_link_have_a_difference_a_log_and_an_undo(shell: Shell) -> None:
    made(shell)
    assert shell("diff", "q").out == "q is unchanged since its last recorded change.\n"
    assert [one["path"] for one in shell.json("log", "q")["entries"]] == ["q/f", "q"]
    assert len(shell.json("undo", "q", "--dry-run")["files"]) == 2

    shell.write("q/f", "other\n")
    (shell.root / "dang").unlink()
    (shell.root / "dang").symlink_to("elsewhere")

    assert "-deep\n+other\n" in shell("diff", "q").out
    assert "dang: symbolic link to nowhere, now symbolic link to elsewhere\n" in shell("diff", "dang").out


@requirement("history:revert:files")
def test_links_directories_and_modes_come_back_as_they_were(shell: Shell) -> None:
    change = made(shell)
    (shell.root / "dang").unlink()
    (shell.root / "q/f").unlink()
    (shell.root / "q").rmdir()
    (shell.root / "f").chmod(0o600)

    reverted = shell.json("revert", "dang", "q")["change_id"]
    shell.json("revert", "f", "--to", change)

    assert (shell.root / "dang").readlink() == Path("nowhere")
    assert (shell.root / "q/f").read_text() == "deep\n"
    assert (shell.root / "f").stat().st_mode & 0o777 == 0o755
    shell.json("undo", reverted)
    assert sorted(path.name for path in shell.root.iterdir()) == ["f", "x"]
    shell.json("redo", reverted)
    assert (shell.root / "dang").readlink() == Path("nowhere")
    assert shell.json("verify")["ok"]


@requirement("history:revert:files")
def test_a_file_that_was_moved_is_reverted_under_its_new_name(shell: Shell) -> None:
    shell.write("a.py", "one\n")
    first = shell.edit("a.py", "one", "two")
    shell.edit("a.py", "two", "three")
    shell("move", "a.py", "sub/a2.py")

    shell.json("revert", "sub/a2.py", "--to", first)

    assert (shell.root / "sub/a2.py").read_text() == "two\n"
    refused = shell.json("revert", "a.py", code=1)["error"]
    assert (refused["reason"], "sub/a2.py" in refused["suggested_action"]) == ("moved_away", True)


@requirement("history:revert:files")
def test_a_file_that_was_deleted_through_surehold_comes_back(shell: Shell) -> None:
    shell.write("gone.txt", "one\n")
    shell("delete", "gone.txt")

    shell.json("revert", "gone.txt")

    assert (shell.root / "gone.txt").read_text() == "one\n"
    record(shell, "rm gone.txt")
    shell.json("revert", "gone.txt")
    assert (shell.root / "gone.txt").read_text() == "one\n"


@requirement("history:revert:files")
def test_a_file_that_did_not_exist_at_a_change_yet_stays_deleted(shell: Shell) -> None:
    shell.write("first.txt", "one\n")
    change = record(shell, "echo two >> first.txt")
    record(shell, "echo later > later.txt")
    shell("delete", "later.txt")

    assert shell("revert", "later.txt", "--to", change).out == "later.txt: nothing to revert.\n"
    assert not (shell.root / "later.txt").exists()


def test_revert_shows_no_escape_sequence_of_a_name(shell: Shell) -> None:
    name = "a\x1b[31m.txt"
    shell.write(name, "one\n")
    shell.edit(name, "one", "two")

    said = shell("revert", name)

    assert said.out.endswith(": nothing to revert.\n")
    assert "\x1b" not in said.out + said.err


@requirement("history:commit:exact")
def test_what_a_command_made_is_committed_with_its_links_and_modes(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_git(shell, tmp_path, monkeypatch)
    made(shell)

    said = shell("commit", "--agent", "bob")

    assert "Change 4 files (4 files)" in said.out
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "HEAD"], cwd=shell.root, check=True, capture_output=True, text=True
    )
    modes = {row.split("\t")[1]: row.split(" ")[0] for row in listed.stdout.splitlines()}
    assert modes == {"dang": "120000", "f": "100755", "q/f": "100644", "x": "100644"}


@requirement("history:commit:exact")
def test_a_commit_says_nothing_of_what_git_ignores_and_counts_moved_files_once(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_git(shell, tmp_path, monkeypatch)
    shell.write(".gitignore", "*.log\n")
    shell.write("a.txt", "one\n")
    subprocess.run(["git", "add", "-A"], cwd=shell.root, check=True)
    subprocess.run(["git", "commit", "-qm", "First"], cwd=shell.root, check=True)
    shell.json("write", "x.log", stdin=b"noise\n")
    shell.json("write", "b.txt", stdin=b"two\n")
    shell.json("move", "a.txt", "c.txt")
    moved, written, ignored = (row["change_id"] for row in shell.json("log")["entries"])
    refused = shell.json("commit", ignored, code=1)["error"]
    assert "git ignores" in refused["message"]

    said = shell.json("commit", "--since", "1h", "--dry-run")

    assert said["message"].startswith("Change 2 files\n")
    assert (moved in said["message"], written in said["message"], ignored in said["message"]) == (True, True, False)
    assert (said["ignored"], said["paths"]) == (["x.log"], ["a.txt", "b.txt", "c.txt"])
    assert "Change 2 files (2 files)" in shell("commit", "--since", "1h").out
    assert "in HEAD already" in shell.json("commit", "--since", "1h", code=1)["error"]["message"]
    shell.json("undo", written)
    assert "undone" in shell.json("commit", written, code=1)["error"]["message"]


def test_the_status_says_how_many_files_a_change_has(shell: Shell) -> None:
    made(shell)

    assert "run dang and 4 more\n" in shell("status").out


def prepare_git(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NAME": "Ada", "EMAIL": "ada@example.org"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(["git", "init", "-q"], cwd=shell.root, check=True)


MIXED = r"""
echo hi > x; : > empty; mkdir q; echo deep > q/f; ln -s nowhere dang; chmod 755 f; rm old gone; mv a 'b c'
printf 'caf\351\n' > latin; printf '\0\1\2\3' > binary; printf '\1\0new' > changed; ln -sf x turned; mkdir hollow
"""


def picture(root: Path) -> dict[str, tuple[str, bytes, int]]:
    """Return every file and link below a directory, as git would see them."""
    found: dict[str, tuple[str, bytes, int]] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()).encode(), 0)
        elif path.is_file() and not name.startswith(".git/"):
            found[name] = ("file", path.read_bytes(), path.stat().st_mode & 0o100)
    return found


@requirement("history:export:patch")
def test_a_patch_has_moves_modes_links_empty_and_binary_files(shell: Shell, tmp_path: Path) -> None:
    for name, text in {
        "f": "data\n",
        "old": "",
        "gone": "bye\n",
        "a": "moved\n",
        "changed": "\0old",
        "turned": "t\n",
    }.items():
        shell.write(name, text)
    before = picture(shell.root)
    record(shell, MIXED)
    after = picture(shell.root)

    said = shell("export", "--agent", "bob")

    assert said.code == 0
    assert said.err == "Left out: hollow, since a directory by itself cannot be in a patch.\n"
    patch = tmp_path / "work.patch"
    patch.write_bytes(said.out.encode())
    shell.json("undo", "--agent", "bob")
    assert picture(shell.root) == before
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=shell.root, check=True)
    subprocess.run(["git", "apply", str(patch)], cwd=shell.root, check=True)
    assert picture(shell.root) == after
    subprocess.run(["git", "apply", "-R", str(patch)], cwd=shell.root, check=True)
    assert picture(shell.root) == before


@requirement("history:export:patch")
@pytest.mark.parametrize("odd", ["x'y", "o b", "ü"])
def test_a_file_of_which_git_records_no_difference_does_not_spoil_a_patch(
    shell: Shell, tmp_path: Path, odd: str
) -> None:
    for name in ("a", odd, "z"):
        shell.write(name, "one\n")
    record(shell, f"""chmod 600 "{odd}"; echo two >> a; rm z""")
    after = picture(shell.root)

    said = shell("export", "--agent", "bob")

    assert said.err == f"Left out: {odd}, since git does not record the mode 0600.\n"
    assert f"diff --git a/{odd}" not in said.out
    patch = tmp_path / "work.patch"
    patch.write_bytes(said.out.encode())
    shell.json("undo", "--agent", "bob")
    subprocess.run(["git", "apply", str(patch)], cwd=shell.root, check=True)
    assert picture(shell.root) == after


@requirement("history:export:patch")
def test_a_move_alone_is_a_patch_and_json_is_one_document(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell("move", "a.txt", "b.txt")

    document = shell.json("export", "b.txt")

    assert (document["format"], document["changes"], document["left_out"]) == ("patch", 1, [])
    assert "rename from a.txt\nrename to b.txt\n" in document["patch"] == shell("export", "b.txt").out
    assert [one["operation"] for one in shell.json("export", "b.txt", "--format", "jsonl")["entries"]] == ["move"]
