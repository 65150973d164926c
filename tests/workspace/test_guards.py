"""Ways to hurt oneself that a reviewer found; each is refused, or leaves nothing behind."""

import os
from pathlib import Path

import pytest

from surehold.app import Settings, open_workspace
from surehold.errors import InvalidArgument, PermissionDenied, WorkspaceClosed
from surehold.stores.base import Begun
from surehold.text.plan import Delete, Keep
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.settings import Limits
from workspaces import call, make_bench, real_workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    (directory / "a").write_bytes(b"one\n")
    return directory


def test_an_interrupt_right_after_the_intent_was_recorded_leaves_nothing_open(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with real_workspace(root, limits=Limits(lease=3600, lock_timeout=0.1)) as workspace:
        begin = workspace.store.begin

        def interrupted(*args: object, **more: object) -> Begun:
            begin(*args, **more)  # type: ignore[arg-type]  # handed on as they came
            raise KeyboardInterrupt

        monkeypatch.setattr(workspace.store, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workspace.session().edit("a", ("one", "two"))
        monkeypatch.undo()

        assert workspace.store.open_intents() == ()
        workspace.session().edit("a", ("one", "two"))  # an intent left open would hold it off for an hour
    assert (root / "a").read_bytes() == b"two\n"


def test_a_closed_workspace_reaches_nothing_even_when_its_descriptors_belong_to_others(root: Path) -> None:
    workspace = real_workspace(root)
    workspace.close()
    taken = [os.open("/etc", os.O_RDONLY) for _ in range(8)]
    try:
        with pytest.raises(WorkspaceClosed) as refused:
            workspace.fingerprint("hostname")
        assert refused.value.reason == "closed"
    finally:
        for fd in taken:
            os.close(fd)


@pytest.mark.parametrize("where", [".", ".."])
def test_the_state_may_not_be_the_root_nor_hold_it(root: Path, where: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        real_workspace(root, state=root / where)

    assert refused.value.reason == "state_dir_holds_root"


def test_rules_say_nothing_about_the_directories_above_a_root(tmp_path: Path) -> None:
    one, two = tmp_path / ".claude" / "one", tmp_path / ".vscode" / "two"
    for directory in (one, two):
        directory.mkdir(parents=True)
    settings = Settings(state_dir=tmp_path / "state", deny=("/secret", "build/x"))
    with open_workspace(one, two, settings=settings) as workspace:
        session = workspace.session()
        session.create(str(one / "a"), "x")
        session.create(str(two / "b"), "x")

        for path in (two / "secret", two / "build" / "x", two / ".git" / "config"):
            with pytest.raises(PermissionDenied):
                session.create(str(path), "x")


def test_an_empty_file_that_was_read_page_by_page_can_be_written(tmp_path: Path) -> None:
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("e", b"")
    session = bench.workspace.session()
    session.page("e")

    session.write("e", "x")

    assert bench.get("e") == b"x"


@pytest.mark.parametrize(("start", "count"), [(0, 1), (-3, 5), (1, 0)])
def test_lines_that_cannot_be_are_not_shown(root: Path, start: int, count: int) -> None:
    with real_workspace(root) as workspace, pytest.raises(InvalidArgument):
        workspace.session().page("a", start=start, count=count)


def test_a_move_to_nowhere_is_refused(root: Path) -> None:
    with real_workspace(root) as workspace, pytest.raises(InvalidArgument):
        workspace.session().move("a", "")


def test_a_proposal_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        Proposal(path="a", to_path="b", edit=Delete(), proof=Exact())
    with pytest.raises(InvalidArgument):
        Proposal(path="a", edit=Keep(), proof=Exact(), mode=0o1000000)


@pytest.mark.parametrize("rule", ["!", "a\\"])
def test_a_rule_that_cannot_be_understood_is_refused_when_it_is_given(rule: str) -> None:
    with pytest.raises(InvalidArgument):
        Policy(deny=(rule,))


def test_settings_that_mean_nothing_are_refused(root: Path) -> None:
    with pytest.raises(InvalidArgument):
        Settings(durability="ful")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(InvalidArgument):
        open_workspace("a\0b")
    with open_workspace(os.fsencode(root).decode(), settings=Settings(state_dir=root.parent / "s")) as workspace:
        workspace.write(Proposal(path="a", edit=Keep(), proof=Exact()), call=call())


def test_a_target_of_the_disk_is_read_only_if_the_rules_allow_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "secret").write_bytes(b"hidden\n")
    settings = Settings(state_dir=tmp_path / "state", deny=("/secret",))
    with open_workspace(root, settings=settings) as workspace, pytest.raises(PermissionDenied):
        workspace.read(workspace.disk.resolve("secret"))
