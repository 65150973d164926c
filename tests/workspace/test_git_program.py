"""What git says of the repository around a workspace."""

import os
import subprocess
from pathlib import Path

import pytest

from surehold.errors import InvalidArgument, NotFound
from surehold.workspace.past import git_program
from surehold.workspace.past.git_program import GitFile, GitProgram, StagedFiles

_SOMEBODY = {f"GIT_{role}_{part}": "a@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, env={**os.environ, **_SOMEBODY}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def blobs_by_name(top: Path) -> dict[str, str]:
    rows = (row.split("\t") for row in git(top, "ls-files", "-s").splitlines())
    return {name.strip('"').removeprefix("sub/"): facts.split()[1] for facts, name in rows}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    made = tmp_path / "top"
    (made / "sub").mkdir(parents=True)
    git(made, "init", "-q", "-b", "main")
    for name in ("out", "a", "b c"):
        (made / "sub" / name).write_text(f"{name}\n")
    git(made, "add", ".")
    git(made, "commit", "-qm", "one")
    return made


def test_a_directory_without_a_repository_or_git_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="is not in a git repository") as refused:
        GitProgram(str(tmp_path))
    assert (refused.value.reason, refused.value.path) == ("no_repository", str(tmp_path))

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound) as refused:
        GitProgram(str(tmp_path))
    assert refused.value.reason == "no_git"


def test_a_failure_says_what_git_said_unless_it_may_fail(top: Path) -> None:
    program = GitProgram(str(top))

    with pytest.raises(InvalidArgument, match=r"`git cat-file` failed and said `fatal: .*nothing.*`") as refused:
        program.run("cat-file", "-t", "nothing")
    assert refused.value.reason == "git_failed"
    assert program.run("cat-file", "-t", "nothing", check=False) == ""
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        nameless = {**_SOMEBODY, name: "", "EMAIL": ""}
        with pytest.raises(InvalidArgument, match="Git does not know who you are") as refused:
            program.run("commit", "--allow-empty", "-m", "x", env=nameless)
        assert refused.value.reason == "no_git_identity"


def test_names_are_those_of_the_directory_and_paths_those_of_the_repository(top: Path) -> None:
    program = GitProgram(str(top / "sub"))

    assert program.name_in_repository("a") == "sub/a"
    assert program.path_of("index").resolve() == top / ".git/index"
    assert (program.run("rev-parse", "--show-prefix"), program.run_bytes("show", "HEAD:sub/a")) == ("sub/", b"a\n")
    assert program.run("hash-object", "--stdin", stdin=b"a\n") == git(top, "hash-object", "sub/a")


@pytest.mark.parametrize(("kind", "digits"), [("sha1", 40), ("sha256", 64)])
def test_no_object_has_a_name_as_long_as_all_names(tmp_path: Path, kind: str, digits: int) -> None:
    git(tmp_path, "init", "-q", f"--object-format={kind}")
    assert GitProgram(str(tmp_path)).null_blob() == "0" * digits


def test_a_tree_is_read_part_by_part(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "sub/a").chmod(0o755)
    (top / "sub/link").symlink_to("a")
    (top / "sub/deep").mkdir()
    (top / "sub/deep/x").write_text("x\n")
    git(top, "add", ".")
    git(top, "commit", "-qm", "two")
    program, blob = GitProgram(str(top / "sub")), blobs_by_name(top)
    monkeypatch.setattr(git_program, "_PATHS_PER_CALL", 2)

    assert program.read_tree("HEAD", ["a", "b c", "link", "deep", "missing", "a"]) == {
        "a": GitFile(mode="100755", blob=blob["a"]),
        "b c": GitFile(mode="100644", blob=blob["b c"]),
        "link": GitFile(mode="120000", blob=blob["link"]),
    }
    assert program.read_tree("", ["a"]) == {}
    assert [*program.read_index(["a", "deep/x", "missing"]).files] == ["a", "deep/x"]


def test_an_index_has_conflicts_and_files_that_are_only_intended(top: Path) -> None:
    for branch, text in (("left", "left\n"), ("right", "right\n")):
        git(top, "checkout", "-q", "-b", branch, "main")
        (top / "sub/a").write_text(text)
        git(top, "commit", "-qm", branch, "sub/a")
    with pytest.raises(subprocess.CalledProcessError):
        git(top, "merge", "-q", "left")
    (top / "sub/intended").touch()
    (top / "sub/empty").touch()
    git(top, "add", "-N", "sub/intended")
    git(top, "add", "sub/empty")

    found = GitProgram(str(top / "sub")).read_index(["a", "out", "intended", "empty"])

    assert (sorted(found.files), found.unmerged) == (["empty", "out"], frozenset({"a"}))
    assert StagedFiles() == StagedFiles(files={}, unmerged=frozenset())


def test_ignored_files_and_those_of_other_repositories_are_named(top: Path) -> None:
    (top / ".gitignore").write_text("*.log\n")
    other = top / "sub/other"
    other.mkdir()
    git(other, "init", "-q")
    program = GitProgram(str(top / "sub"))

    assert program.find_ignored([]) == set()
    assert program.find_ignored(["x.log", "deep/y.log", "x.txt"]) == {"x.log", "deep/y.log"}
    assert program.find_foreign(["a", "other/x", "other/deep/y", "deep/z"]) == {"other/x", "other/deep/y"}
