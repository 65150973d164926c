"""A directory that git takes for a repository: no file completes one, or changes one, without a question."""

import itertools
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.disk.base import Target
from surehold.errors import PermissionDenied, ProtectedPath, StaleFile
from surehold.library.session import AgentSession
from surehold.text.plan import Keep
from surehold.text.rewrite import WriteText
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import Absent, Proposal, Unproven
from workspaces import make_bench, real_workspace

HEAD = "ref: refs/heads/main\n"
REPOSITORY = {"HEAD": HEAD, "objects/x": "x\n", "refs/x": "x\n", "config": ""}
"""The files that make a directory a repository; the configuration is filled in by each test."""


def _config(marker: Path) -> str:
    return f'[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch {marker}; false"\n'


def _run_status(directory: Path) -> None:
    subprocess.run(["git", "status"], cwd=directory, capture_output=True, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return an empty directory that is no part of a repository."""
    root = tmp_path / "root"
    root.mkdir()
    return root


def test_git_runs_what_such_a_directory_says(place: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    for name, text in {**REPOSITORY, "config": _config(marker)}.items():
        (place / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "docs" / name).write_text(text)

    _run_status(place / "docs")

    assert marker.exists()


@requirement("engine:policy:git_directory")
@pytest.mark.parametrize("order", list(itertools.permutations(REPOSITORY)), ids="-".join)
@pytest.mark.parametrize("directory", ["docs/", ""])
def test_the_file_that_completes_a_repository_is_not_written_unasked(
    place: Path, tmp_path: Path, order: Sequence[str], directory: str
) -> None:
    marker = tmp_path / "ran"
    asked = list[str]()

    def refuse(request: PermissionRequest) -> Approval:
        asked.append(request.files[0].path)
        return Approval(allowed=False)

    with real_workspace(place) as workspace:
        session = workspace.session(mode="acceptEdits", approver=refuse)
        for name in order:
            text = _config(marker) if name == "config" else REPOSITORY[name]
            with suppress(PermissionDenied):
                session.create(directory + name, text)
        _run_status(place / directory)

    completing = [name for name in order if name != "config"][-1]
    assert asked[0] == directory + completing
    assert not marker.exists()


def _create_all(session: AgentSession) -> None:
    proposals = [
        Proposal(path=f"docs/{name}", edit=WriteText(text), proof=Absent()) for name, text in REPOSITORY.items()
    ]
    session.apply(*proposals)


def _patch_all(session: AgentSession) -> None:
    rows = [f"*** Add File: docs/{name}\n+{text or 'x'}".rstrip("\n") for name, text in REPOSITORY.items()]
    answer = session.apply_patch(patch="\n".join(["*** Begin Patch", *rows, "*** End Patch"]))
    raise AssertionError(answer)


def _move_last(session: AgentSession) -> None:
    for name, text in REPOSITORY.items():
        session.create(f"docs/{name}" if name != "HEAD" else "elsewhere", text)
    session.move("elsewhere", "docs/HEAD")


def _restore_last(session: AgentSession) -> None:
    session.create("docs/refs/x", "x")
    deleted = session.delete("docs/refs/x", expected_sha256=session.read("docs/refs/x").sha256)
    (Path(session.workspace.roots[0]) / "docs/refs").rmdir()
    for name, text in REPOSITORY.items():
        if name != "refs/x":
            session.create(f"docs/{name}", text)
    session.restore(deleted.entries[0].change.trash_id)


def _undo_last(session: AgentSession) -> None:
    session.create("docs/HEAD", HEAD)
    removed = session.delete("docs/HEAD", expected_sha256=session.read("docs/HEAD").sha256)
    for name, text in REPOSITORY.items():
        if name != "HEAD":
            session.create(f"docs/{name}", text)
    session.undo(removed.change_id)


def _commondir(session: AgentSession) -> None:
    session.create("docs/HEAD", HEAD)
    session.create("docs/commondir", "../elsewhere")


@requirement("engine:policy:git_directory")
@pytest.mark.parametrize("way", [_create_all, _patch_all, _move_last, _restore_last, _undo_last, _commondir])
def test_every_way_to_complete_a_repository_is_asked_about(place: Path, way: Callable[[AgentSession], None]) -> None:
    chosen = Settings(state_dir=place.parent / "state")
    with open_workspace(place, settings=chosen) as workspace, pytest.raises(ProtectedPath) as refused:
        way(workspace.session())

    assert "with it, `docs` is a git repository" in refused.value.message


@requirement("engine:policy:git_directory")
@pytest.mark.parametrize(
    "name", ["config", "HEAD", "hooks/pre-commit", "objects/aa/x", "refs/heads/y", "config.worktree"]
)
@pytest.mark.parametrize("directory", ["", "sub/mirror.git/"])
def test_the_parts_of_a_bare_repository_are_protected(place: Path, directory: str, name: str) -> None:
    subprocess.run(["git", "init", "--bare", "-q", str(place / directory)], check=True)
    with real_workspace(place) as workspace:
        session = workspace.session()
        with pytest.raises(ProtectedPath):
            session.apply(Proposal(path=directory + name, edit=WriteText("x\n"), proof=Unproven()))
        session.create(directory + "notes.txt", "free")


@requirement("engine:policy:git_directory")
@pytest.mark.parametrize(
    "name", ["src/config", "src/hooks/use.ts", "src/HEAD", "src/objects/a", "src/refs/a", "config"]
)
def test_such_names_are_ordinary_where_there_is_no_repository(place: Path, name: str) -> None:
    with real_workspace(place) as workspace:
        workspace.session().create(name, "free")


def test_an_unprotected_repository_is_free(place: Path) -> None:
    subprocess.run(["git", "init", "--bare", "-q", str(place / "fixture")], check=True)
    with real_workspace(place, unprotected=("fixture/",)) as workspace:
        workspace.session().create("fixture/hooks/pre-commit", "x")
    with real_workspace(place, protected=()) as workspace:
        workspace.session().create("fixture/hooks/post-commit", "x")


@requirement("engine:policy:git_directory")
def test_two_calls_at_once_do_not_complete_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench("memory", "local", tmp_path, policy=Policy())
    for name in ("docs/HEAD", "docs/objects/x", "free"):
        bench.put(name, b"x\n")
    lock = bench.disk.lock

    def lock_later(targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        (bench.root / "docs/refs").mkdir()  # as another call does that had the lock first
        return lock(targets, timeout=timeout)

    monkeypatch.setattr(bench.disk, "lock", lock_later)
    with pytest.raises(StaleFile) as refused:
        bench.workspace.session().apply(Proposal(path="free", to_path="docs/config", edit=Keep(), proof=Unproven()))
    assert refused.value.reason == "became_repository"
    assert not (bench.root / "docs/config").exists()
    bench.workspace.close()
