import os
import subprocess
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import PatchApplyError, PatchParseError
from surehold.text.patch.apply import FilePatch, Patch
from surehold.text.patch.parse import parse_patch
from surehold.text.plan import Keep
from surehold.text.snapshot import ABSENT, Snapshot

pytestmark = requirement("files:apply_patch:git")


def git(folder: Path, *words: str) -> str:
    env = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@b.c"),
    }
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True, env=env)
    return done.stdout.decode()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with a commit and every kind of change to it that a patch can hold."""
    git(tmp_path, "init", "-q")
    body = "".join(f"line {n}\n" for n in range(30))
    for name in ("edited", "renamed", "renamed and edited", "made executable", "deleted", "tab\there", "größe"):
        (tmp_path / name).write_text(f"{name}\n{body}")
    (tmp_path / "empty").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one\n\n- a list\n+ in a message")
    (tmp_path / "edited").write_text(f"EDITED\n{body}no newline")
    (tmp_path / "renamed").rename(tmp_path / "moved to")
    (tmp_path / "renamed and edited").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").write_text(f"renamed and edited\n{body}more\n")
    (tmp_path / "made executable").chmod(0o755)
    (tmp_path / "deleted").unlink()
    (tmp_path / "empty").unlink()
    (tmp_path / "tab\there").write_text(f"tab\n{body}")
    (tmp_path / "größe").write_text(f"größe\n{body}ü\n")
    (tmp_path / "new empty").touch()
    (tmp_path / "new script").write_text("#!/bin/sh\n")
    (tmp_path / "new script").chmod(0o755)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "two\n\n- a list\n+ in a message\n--- and a line")
    return tmp_path


@requirement("files:apply_patch:format")
@pytest.mark.parametrize(
    "command",
    [
        ["diff", "-M", "HEAD~", "HEAD"],
        ["diff", "-M", "--no-prefix", "HEAD~", "HEAD"],
        ["-c", "diff.mnemonicPrefix=true", "diff", "-M", "HEAD~", "HEAD"],
        ["-c", "core.quotePath=false", "diff", "-M", "HEAD~", "HEAD"],
        ["show", "-M", "HEAD"],
        ["format-patch", "-M", "--stdout", "HEAD~"],
        ["diff", "-M", "--full-index", "-U0", "HEAD~", "HEAD"],
    ],
)
def test_everything_that_git_writes_about_a_commit_is_applied(repository: Path, command: list[str]) -> None:
    patch = parse_patch(git(repository, *command))
    found = {
        file.path: (file.operation, file.to_path, file.mode, file.edit.plan(_version(repository, "HEAD~", file)).after)
        for file in patch.files
    }

    assert patch.format == "git"
    assert {name: row[:3] for name, row in found.items()} == {
        "deleted": ("delete", "", None),
        "edited": ("update", "", None),
        "empty": ("move", "new empty", None),
        "größe": ("update", "", None),
        "made executable": ("update", "", 0o755),
        "renamed": ("move", "moved to", None),
        "renamed and edited": ("move", "sub/x", None),
        "new script": ("add", "", 0o755),
        "tab\there": ("update", "", None),
    }
    for name, (_, to_path, _, after) in found.items():
        path = repository / (to_path or name)
        assert after == (Snapshot(path.read_bytes()) if path.exists() else ABSENT)


def _version(repository: Path, commit: str, file: FilePatch) -> Snapshot:
    return ABSENT if file.operation == "add" else Snapshot(git(repository, "show", f"{commit}:{file.path}").encode())


@pytest.mark.parametrize("command", [["diff", "-M", "-R", "HEAD~", "HEAD"], ["diff", "-M", "HEAD", "HEAD~"]])
def test_a_commit_is_taken_back_by_the_diff_the_other_way_round(repository: Path, command: list[str]) -> None:
    for file in parse_patch(git(repository, *command)).files:
        after = file.edit.plan(_version(repository, "HEAD", file)).after
        name = file.to_path or file.path
        assert after == (
            ABSENT if file.operation == "delete" else Snapshot(git(repository, "show", f"HEAD~:{name}").encode())
        )


def test_a_mode_alone_and_a_rename_alone_keep_the_bytes() -> None:
    patch = parse_patch(
        "diff --git a/x b/x\nold mode 100755\nnew mode 100644\n"
        "diff --git a/p q b/r s\nsimilarity index 100%\nrename from p q\nrename to r s\n"
    )

    assert patch == Patch(
        format="git",
        files=(
            FilePatch(operation="update", path="x", line=1, mode=0o644),
            FilePatch(operation="move", path="p q", to_path="r s", line=4),
        ),
    )
    assert [file.edit for file in patch.files] == [Keep(), Keep()]
    assert patch.hunk_count == 0


def test_names_that_are_quoted_on_one_side_only_are_read() -> None:
    to_plain, to_quoted = parse_patch(
        'diff --git "a/\\303\\274" b/u e\nrename from "\\303\\274"\nrename to u e\n'
        'diff --git a/o e "b/\\303\\266"\nrename from o e\nrename to "\\303\\266"\n'
    ).files

    assert (to_plain.path, to_plain.to_path) == ("ü", "u e")
    assert (to_quoted.path, to_quoted.to_path) == ("o e", "ö")


def test_a_first_row_that_cannot_be_read_leaves_the_names_to_the_next_two() -> None:
    (file,) = parse_patch("diff --git x\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n").files

    assert (file.operation, file.path) == ("update", "f")


def test_a_rename_out_of_a_folder_called_a_keeps_its_name() -> None:
    (file,) = parse_patch("diff --git a/x b/x\nsimilarity index 100%\nrename from a/x\nrename to b/x\n").files

    assert (file.path, file.to_path) == ("a/x", "b/x")


def test_a_rename_may_change_the_mode_too() -> None:
    (file,) = parse_patch(
        "diff --git a/x b/y\nold mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from x\nrename to y\n"
        "index 1..2\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    ).files

    assert (file.operation, file.path, file.to_path, file.mode) == ("move", "x", "y", 0o755)
    assert file.edit.plan(Snapshot(b"a\n")).after.data == b"b\n"


def test_an_empty_file_is_only_deleted_while_it_is_empty() -> None:
    (file,) = parse_patch("diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n").files

    assert file.edit.plan(Snapshot(b"")).after == ABSENT
    with pytest.raises(PatchApplyError) as caught:
        file.edit.plan(Snapshot(b"something\n"))
    assert caught.value.reason == "content_left"


def test_an_empty_file_is_added_without_a_hunk() -> None:
    (file,) = parse_patch("diff --git a/x b/x\nnew file mode 100755\nindex 0000000..e69de29\n").files

    assert (file.operation, file.path, file.mode) == ("add", "x", 0o755)
    assert file.edit.plan(ABSENT).after == Snapshot(b"")


HEAD = "diff --git a/x b/x\n"
HUNK = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


@requirement("files:apply_patch:parse_error")
@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (HEAD, "no_hunks", 2),
        (f"{HEAD}index 1..2 100644\n", "no_hunks", 3),
        (f"{HEAD}index 1..2 100644\nGIT binary patch\nliteral 1\nA\n", "binary_patch", 3),
        (f"{HEAD}index 1..2 100644\nBinary files a/x and b/x differ\n", "binary_patch", 3),
        ("diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n", "copy", 3),
        (f"{HEAD}new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+t\n", "special_file", 2),
        (f"{HEAD}index 1..2 160000\n{HUNK}", "special_file", 2),
        (f"{HEAD}index 1..2 120000\n{HUNK}", "special_file", 2),
        (f"{HEAD}old mode 100644\nnew mode 120000\n", "special_file", 3),
        (f"{HEAD}old mode 100644\nnew mode 100777\n", "special_file", 3),
        ("diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "two_names", 1),
        ("diff --git a/x b/y\nrename from x\n", "half_rename", 3),
        (f"{HEAD}new file mode 100644\ndeleted file mode 100644\n", "contradiction", 1),
        ("diff --git a/x b/y\nnew file mode 100644\nrename from x\nrename to y\n", "contradiction", 1),
        (f"{HEAD}index 1..2 100644\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "names_disagree", 3),
        (f"{HEAD}new file mode 100644\n{HUNK}", "names_disagree", 3),
        ("diff --git a/p q b/r s t\nold mode 100644\nnew mode 100755\n", "no_path", 1),
        (f"{HEAD}{HUNK}{HEAD}{HUNK}", "duplicate_path", 7),
        (f"{HEAD}index 1..2 100644\n--- a/x\n+++ b/x\n", "no_hunks", 5),
        ("diff --git \n", "no_path", 1),
        ("diff --git x\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "two_names", 2),
        ('diff --git a/x b/y\nrename from "x\nrename to y\n', "no_path", 2),
        (r'diff --git "a/\q" "b/\q"' + "\nold mode 100644\nnew mode 100755\n", "no_path", 1),
        ('diff --git "a/x" b/x"\nold mode 100644\nnew mode 100755\n', "two_names", 1),
    ],
)
def test_what_git_writes_and_we_cannot_do_exactly_is_refused_with_its_line(text: str, reason: str, line: int) -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch(text)

    assert (caught.value.reason, caught.value.details["line"]) == (reason, line)
    assert f"Line {line} of the patch" in caught.value.message


def test_a_git_diff_is_a_unified_diff_but_not_the_other_way_round() -> None:
    assert parse_patch(HEAD + HUNK, format="unified").format == "git"
    assert parse_patch(HEAD + HUNK, format="git").format == "git"
    with pytest.raises(PatchParseError) as caught:
        parse_patch(HUNK, format="git")
    assert caught.value.reason == "other_format"
