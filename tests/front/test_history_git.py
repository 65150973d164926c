"""Commits of selected changes, and blame and net differences beside git's own."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.git_commit import GitCommit, GitRepository
from surehold.workspace.past.net_diff import net_diff
from surehold.workspace.past.selectors import Selectors

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
LINES = [f"line {number}" for number in range(60)]


class Repository:
    """A git repository that is a workspace as well."""

    def __init__(self, place: Path, *options: str) -> None:
        self.root = place / "work"
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *options, ".")
        for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgsign", "false")):
            self.git("config", name, value)
        self.workspace = open_workspace(self.root, settings=Settings(state_dir=place / "state", durability="none"))

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout

    def put(self, name: str, lines: list[str]) -> None:
        (self.root / name).write_text("".join(f"{line}\n" for line in lines))

    def commit_all(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def commit_selected(self, words: Selectors) -> str:
        return self.try_commit(words, dry_run=False).sha

    def try_commit(self, words: Selectors, *, dry_run: bool) -> GitCommit:
        files = net_diff(self.workspace, self.workspace.history.select_done(words))
        return GitRepository(str(self.root)).commit(files, "Work", ["Agent: bot"], dry_run=dry_run)

    def state(self) -> dict[str, object]:
        """Return everything that a commit must leave alone."""
        files = {path.name: path.read_bytes() for path in self.root.iterdir() if path.is_file()}
        return {"files": files, "stash": self.git("stash", "list"), "branch": self.git("branch", "--show-current")}


@pytest.mark.parametrize("seed", range(100 if SOAK else 6))
@requirement("history:commit:exact")
def test_a_commit_has_exactly_the_selected_changes_and_leaves_the_rest(tmp_path: Path, seed: int) -> None:
    chance, repository = random.Random(seed), Repository(tmp_path)
    names = ["a.txt", "b.txt", "c.txt"]
    for name in names:
        repository.put(name, LINES)
    repository.commit_all("base")
    if chance.random() < 0.5:
        repository.put("b.txt", ["stashed", *LINES])
        repository.git("stash", "-q")
    if chance.random() < 0.6:
        repository.put("b.txt", [*LINES, "staged"])
        repository.git("add", "b.txt")
    if chance.random() < 0.6:
        repository.put("a.txt", ["mine", *LINES[1:]])
    if chance.random() < 0.5:
        (repository.root / "untracked.txt").write_text("untracked\n")
    session = repository.workspace.session(agent="bot")
    expected = {name: list(LINES) for name in names}
    for name in chance.sample(names, chance.randint(1, 3)):
        for number in sorted(chance.sample(range(5, 50, 2), chance.randint(1, 4))):
            session.edit(name, (f"line {number}\n", f"bot {number}\n"))
            expected[name][number] = f"bot {number}"
    staged = {line for line in repository.git("diff", "--cached").splitlines() if line.startswith("+staged")}
    before = repository.state()

    sha = repository.commit_selected(Selectors(agent="bot"))

    assert repository.state() == before
    assert repository.git("rev-parse", "HEAD").strip() == sha
    for name in names:
        assert repository.git("show", f"HEAD:{name}") == "".join(f"{line}\n" for line in expected[name])
    rows = {
        line for line in repository.git("diff", "--cached").splitlines() if line[:1] in "+-" and line[1:2] not in "+-"
    }
    assert rows == staged
    assert "Agent: bot" in repository.git("log", "-1", "--format=%(trailers)")
    with pytest.raises(SureholdError) as refused:
        repository.commit_selected(Selectors(agent="bot"))
    assert refused.value.reason == "nothing_to_commit"


@requirement("history:commit:exact")
def test_created_deleted_moved_and_ignored_files_are_committed_as_they_are(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for name in ("gone.txt", "old.txt"):
        repository.put(name, [name])
    (repository.root / ".gitignore").write_text("*.log\n")
    repository.commit_all("base")
    session = repository.workspace.session(agent="bot")
    session.create("deep/new é.txt", "new\n")
    session.create("x.log", "ignored\n")
    session.read("gone.txt")
    session.delete("gone.txt")
    session.move("old.txt", "young.txt")

    repository.commit_selected(Selectors(agent="bot"))

    names = repository.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")[:-1]
    assert sorted(names) == [".gitignore", "deep/new é.txt", "young.txt"]
    assert repository.git("status", "--porcelain") == ""


@requirement("history:commit:exact")
def test_the_first_commit_of_a_repository_can_be_made(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.workspace.session(agent="bot").create("a.txt", "one\n")

    repository.commit_selected(Selectors(agent="bot"))

    assert (repository.git("show", "HEAD:a.txt"), repository.git("status", "--porcelain")) == ("one\n", "")


@requirement("history:commit:busy")
@pytest.mark.parametrize("marker", ["MERGE_HEAD", "CHERRY_PICK_HEAD", "rebase-merge/done", "index.lock"])
def test_a_repository_in_the_middle_of_something_is_left_alone(tmp_path: Path, marker: str) -> None:
    repository = Repository(tmp_path)
    repository.put("a.txt", LINES)
    repository.commit_all("base")
    repository.workspace.session(agent="bot").edit("a.txt", ("line 3\n", "three\n"))
    head = repository.git("rev-parse", "HEAD")
    path = repository.root / ".git" / marker
    path.parent.mkdir(exist_ok=True)
    path.write_text(head)

    with pytest.raises(SureholdError) as refused:
        repository.commit_selected(Selectors(agent="bot"))

    assert (refused.value.reason, repository.git("rev-parse", "HEAD")) == ("repository_busy", head)


@requirement("history:commit:busy")
def test_a_file_with_an_unsettled_conflict_is_not_committed_and_others_are(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.put("a.txt", LINES)
    repository.commit_all("base")
    for word in ("stashed", "committed"):
        repository.put("a.txt", [*LINES[:5], word, *LINES[6:]])
        repository.git("stash") if word == "stashed" else repository.commit_all("other")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("stash", "pop")  # leaves a conflict in the index, and no mark of a merge
    session = repository.workspace.session(agent="bot")
    session.edit("a.txt", ("line 40\n", "forty\n"))
    session.create("new.txt", "new\n")
    before = repository.git("ls-files", "-s", "a.txt")

    with pytest.raises(SureholdError) as refused:
        repository.commit_selected(Selectors(agent="bot"))
    repository.commit_selected(Selectors(paths=("new.txt",)))

    assert (refused.value.reason, refused.value.path) == ("repository_busy", "a.txt")
    assert refused.value.action == "Settle it first, then: git add a.txt"
    assert repository.git("ls-files", "-s", "a.txt") == before
    assert repository.git("show", "HEAD:new.txt") == "new\n"


@requirement("history:commit:foreign")
def test_files_of_repositories_inside_of_this_one_are_left_out(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for name in ("sub", "apart"):
        (repository.root / name).mkdir()
        repository.git("-C", name, "init", "-q")
    (repository.root / "sub" / "s.txt").write_text("one\n")
    repository.git("-C", "sub", "add", "s.txt")
    repository.git("-C", "sub", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "sub")
    repository.git("-c", "advice.addEmbeddedRepo=false", "add", "sub")
    repository.git("commit", "-q", "-m", "base")
    session = repository.workspace.session(agent="bot")
    session.edit("sub/s.txt", ("one\n", "two\n"))
    session.create("apart/t.txt", "one\n")
    with pytest.raises(SureholdError) as refused:
        repository.commit_selected(Selectors(agent="bot"))
    session.create("u.txt", "one\n")
    link = repository.git("ls-tree", "HEAD", "sub")

    made = repository.try_commit(Selectors(agent="bot"), dry_run=False)

    assert refused.value.reason == "nothing_to_commit"
    assert (made.paths, made.foreign) == (("u.txt",), ("apart/t.txt", "sub/s.txt"))
    assert link.startswith("160000 ")
    assert repository.git("ls-tree", "HEAD", "sub") == link


@requirement("history:commit:exact")
def test_a_repository_with_long_names_and_a_file_that_is_intended_to_be_added_is_committed_to(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "--object-format=sha256")
    for name in ("a.txt", "gone.txt"):
        repository.put(name, LINES)
    repository.commit_all("base")
    session = repository.workspace.session(agent="bot")
    session.edit("a.txt", ("line 3\n", "three\n"))
    session.read("gone.txt")
    session.delete("gone.txt")
    session.create("new.txt", "new\n")
    repository.git("add", "-N", "new.txt")
    objects = repository.git("count-objects")

    planned = repository.try_commit(Selectors(agent="bot"), dry_run=True)
    assert (planned.paths, planned.sha) == (("a.txt", "gone.txt", "new.txt"), "")
    assert repository.git("count-objects") == objects

    made = repository.try_commit(Selectors(agent="bot"), dry_run=False)

    assert (made.paths, made.left_staged) == (planned.paths, ())
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.parametrize("seed", range(200 if SOAK else 8))
@requirement("history:blame:git")
def test_blame_and_net_difference_agree_with_git(tmp_path: Path, seed: int) -> None:
    chance, repository = random.Random(seed), Repository(tmp_path)
    lines, fresh = [f"first {number}" for number in range(40)], 0
    repository.put("a.txt", lines)
    repository.commit_all("outside")
    session, name = repository.workspace.session(agent="bot"), "a.txt"
    for step in range(12):
        start = chance.randrange(len(lines))
        removed = chance.randint(0, min(4, len(lines) - start - 1))
        added = [f"new {fresh + number}" for number in range(chance.randint(0 if removed else 1, 4))]
        fresh += len(added)
        lines[start : start + removed] = added
        session.read(name)
        session.write(name, "".join(f"{line}\n" for line in lines), reason=f"step {step}")
        repository.commit_all(f"step {step}")
        if step == 6:
            session.move(name, "moved.txt")
            name = "moved.txt"
            repository.commit_all("moved")

    ours = [one.entry.call.reason if one.entry else "outside" for one in blame_file(repository.workspace, name)]
    theirs = [
        row.removeprefix("summary ")
        for block in repository.git("blame", "--line-porcelain", name).split("\n\t")
        for row in block.split("\n")
        if row.startswith("summary ")
    ]
    assert ours == theirs
    (net,) = net_diff(repository.workspace, repository.workspace.history.select_done(Selectors(agent="bot")))
    numstat = repository.git("diff", "--numstat", "--no-renames", "HEAD~13:a.txt", f"HEAD:{name}").split()
    assert (str(net.added), str(net.removed)) == (numstat[0], numstat[1])
