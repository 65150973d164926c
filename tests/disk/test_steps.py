"""Steps on files in every way a kernel lets us do them: what they leave, what their undo leaves, and what others did."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

import pytest

from disk.suite import LocalWorld, local_world, open_descriptors, sha
from surehold.disk.base import Create, Remove, Rename, Replace, Step, TakeEntry
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk
from surehold.disk.steps import create_remove, writer
from surehold.disk.steps.staging import Durability
from surehold.errors import (
    AlreadyExists,
    DiskFailed,
    NotAFile,
    NotFound,
    OutsideWorkspace,
    RecoveryRequired,
    StaleFile,
    SureholdError,
)
from surehold.text.snapshot import Meta, Version
from waiting import wait_until

Turn = Callable[[], object]
TIME = 10**18


@dataclass(frozen=True, kw_only=True)
class Told(Kernel):
    """A kernel that gives another program a turn right before and right after each of its calls that change names."""

    before: list[Turn] = field(default_factory=list[Turn])
    after: list[Turn] = field(default_factory=list[Turn])

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        self._let(self.before)
        Kernel.swap(self, dir_fd, one, other)
        self._let(self.after)

    def rename_new(self, source_fd: int, source: str, dir_fd: int, name: str) -> None:
        self._let(self.before)
        Kernel.rename_new(self, source_fd, source, dir_fd, name)
        self._let(self.after)

    def give_name(self, fd: int, dir_fd: int, name: str) -> None:
        self._let(self.before)
        Kernel.give_name(self, fd, dir_fd, name)
        self._let(self.after)

    @staticmethod
    def _let(turns: list[Turn]) -> None:
        if turns:
            turns.pop(0)()


BARE = Told(noreplace=False, exchange=False, tmpfile=False, leases=False)
WAYS: dict[str, tuple[Told, bool]] = {
    "everything": (Told(), True),
    "without leases": (Told(leases=False), False),
    "without leases, watched": (Told(leases=False), True),
    "without swap": (Told(exchange=False, leases=False), False),
    "without new names": (BARE, True),
    "without links": (BARE, False),
}
"""What the kernel lets us do, and whether the files are watched from the read to the change."""


@dataclass(kw_only=True)
class Scene:
    way: str
    world: LocalWorld
    kernel: Told
    synced: set[str]
    watched: bool

    def apply(self, *steps: Step, fence: Turn = lambda: None) -> None:
        """Apply steps, after their files were read and watched if that is wanted."""
        targets = [step.source if isinstance(step, Rename) else step.target for step in steps]
        disk = self.world.disk
        with disk.lock(targets, timeout=5) if self.watched else nullcontext():
            for target in targets if self.watched else ():
                disk.read_watched(target, limit=1 << 20)
            self.world.apply(*steps, fence=lambda: (fence(), None)[1])

    def states(self) -> dict[str, tuple[object, ...]]:
        found = dict[str, tuple[object, ...]]()
        for path in sorted(self.world.root.rglob("*")):
            status = path.lstat()
            data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            facts = (status.st_mode, status.st_uid, data)
            is_file = stat.S_ISREG(status.st_mode)
            found[str(path.relative_to(self.world.root))] = (*facts, status.st_mtime_ns) if is_file else facts
        return found


@pytest.fixture(params=list(WAYS))
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    kernel, watched = WAYS[request.param]
    kernel = changed(kernel, before=[], after=[])
    world = local_world(tmp_path, kernel, durability="full")
    for path, data in (("d/edit", b"old"), ("drop", b"drop"), ("move", b"move"), ("one", b"linked")):
        world.put(path, data)
        (world.root / path).chmod(0o640)
        os.utime(world.root / path, ns=(TIME, TIME))
    os.link(world.root / "one", world.root / "two")
    synced = set[str]()

    def note(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        synced.add(str(path.relative_to(world.root)) if path.is_dir() else "a file")

    monkeypatch.setattr("surehold.disk.steps.staging.sync", note)
    if request.param == "without links":
        monkeypatch.setattr(os, "link", refuse)
    yield Scene(way=request.param, world=world, kernel=kernel, synced=synced, watched=watched)
    assert isinstance(world.disk, LocalDisk)
    world.disk.close()


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "no links here")


def steps_of(world: LocalWorld) -> dict[str, Step]:
    meta = Meta(mode=0o604, uid=os.geteuid(), gid=os.getegid(), mtime_ns=2 * TIME, xattrs=(("user.a", b"1"),))
    return {
        "create": world.create("new/made", b"made"),
        "create with facts": Create(target=world.target("d/restored"), data=b"back", meta=meta),
        "create with a mode": Create(target=world.target("d/script"), data=b"#!", mode=0o755),
        "replace": world.replace("d/edit", b"new bytes", expected=b"old"),
        "replace with a mode": Replace(
            target=world.target("d/edit"), data=b"new", expected=sha(b"old"), old=b"old", mode=0o711
        ),
        "overwrite": world.replace("one", b"other", expected=b"linked"),
        "overwrite by more": world.replace("two", b"much more than before", expected=b"linked"),
        "remove": world.remove("drop", expected=b"drop"),
        "rename": world.rename("move", "new/moved", expected=b"move"),
    }


FILE = stat.S_IFREG
LEFT: dict[str, dict[str, tuple[int, bytes] | None]] = {
    "create": {"new/made": (0o644, b"made")},
    "create with facts": {"d/restored": (0o604, b"back")},
    "create with a mode": {"d/script": (0o755, b"#!")},
    "replace": {"d/edit": (0o640, b"new bytes")},
    "replace with a mode": {"d/edit": (0o711, b"new")},
    "overwrite": {"one": (0o640, b"other"), "two": (0o640, b"other")},
    "overwrite by more": dict.fromkeys(("one", "two"), (0o640, b"much more than before")),
    "remove": {"drop": None},
    "rename": {"move": None, "new/moved": (0o640, b"move")},
}
SYNCED = {
    "create": {"a file", ".", "new"},
    "create with facts": {"a file", "d"},
    "create with a mode": {"a file", "d"},
    "replace": {"a file", "d"},
    "replace with a mode": {"a file", "d"},
    "overwrite": {"a file"},
    "overwrite by more": {"a file"},
    "remove": {"."},
    "rename": {".", "new"},
}


def expected_after(before: dict[str, tuple[object, ...]], name: str) -> dict[str, tuple[object, ...] | None]:
    files = {path: facts[0:3:2] for path, facts in before.items() if stat.S_ISREG(int(str(facts[0])))}
    for path, there in LEFT[name].items():
        files.pop(path, None)
        if there:
            files[path] = (FILE | there[0], there[1])
    return dict(sorted(files.items()))


def files_of(states: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...] | None]:
    return {path: facts[0:3:2] for path, facts in states.items() if stat.S_ISREG(int(str(facts[0])))}


@pytest.mark.parametrize("name", list(LEFT))
def test_a_step_leaves_what_it_says_and_that_is_durable(scene: Scene, name: str) -> None:
    step, before, descriptors = steps_of(scene.world)[name], scene.states(), open_descriptors()
    umask = os.umask(0o022)
    scene.apply(step)
    os.umask(umask)
    after = scene.states()
    assert files_of(after) == expected_after(before, name)
    assert scene.synced >= SYNCED[name]
    assert scene.synced <= SYNCED[name] | {"a file"}
    assert scene.world.kept == []
    wait_until(lambda: open_descriptors() <= descriptors, "a descriptor was left open")
    if name == "create with facts":
        assert after["d/restored"][3] == 2 * TIME
        assert os.getxattr(scene.world.root / "d/restored", "user.a") == b"1"
    if name == "rename":
        assert after["new/moved"][3] == TIME


@pytest.mark.parametrize("name", list(LEFT))
def test_a_step_is_taken_back_with_all_facts_when_a_later_one_fails(scene: Scene, name: str) -> None:
    step, before, descriptors = steps_of(scene.world)[name], scene.states(), open_descriptors()
    fails = scene.world.rename("d/edit" if name == "remove" else "drop", "late/x", expected=b"")
    late = changed(fails, expected=sha(b"old" if name == "remove" else b"drop"))
    with pytest.raises(AlreadyExists):
        scene.apply(step, late, fence=lambda: scene.world.put("late/x", b"theirs"))
    assert scene.world.listing().pop("late/x") == b"theirs"
    found = {path: facts for path, facts in scene.states().items() if not path.startswith("late")}
    assert (found, scene.world.kept) == (before, [])
    wait_until(lambda: open_descriptors() <= descriptors, "a descriptor was left open")
    assert scene.synced >= SYNCED[name] - {"new", "a file"}


def others(world: LocalWorld, path: str) -> dict[str, Turn]:
    """What another program may do to a path."""
    place, save = world.root / path, world.outside / "save"

    def replace(make: Callable[[Path], object]) -> Turn:
        def act() -> None:
            place.unlink(missing_ok=True)
            make(place)

        return act

    def rename_over() -> None:
        save.write_bytes(b"theirs")
        save.replace(place)

    return {
        "written into": lambda: place.write_bytes(b"theirs"),
        "renamed over": rename_over,
        "removed": lambda: place.unlink(missing_ok=True),
        "a directory": replace(Path.mkdir),
        "a pipe": replace(os.mkfifo),
        "a link": replace(lambda place: place.symlink_to("elsewhere")),
    }


OUTCOMES: dict[str, tuple[type[SureholdError], str]] = {
    "written into": (StaleFile, "displaced_mismatch"),
    "renamed over": (StaleFile, "displaced_mismatch"),
    "removed": (StaleFile, "vanished"),
    "a directory": (NotAFile, "is_a_directory"),
    "a pipe": (NotAFile, "not_a_file"),
    "a link": (NotAFile, "not_a_file"),
}
SOURCES = {"replace": "d/edit", "replace with a mode": "d/edit", "overwrite": "one", "remove": "drop", "rename": "move"}


@pytest.mark.parametrize("name", list(SOURCES))
@pytest.mark.parametrize("act", list(OUTCOMES))
def test_what_another_program_did_after_staging_stays_as_it_is(scene: Scene, name: str, act: str) -> None:
    if scene.kernel.leases:
        return  # here the other program is this process, which would wait for itself
    world, step = scene.world, steps_of(scene.world)[name]
    path = SOURCES[name]
    after = dict[str, tuple[object, ...]]()

    def strike() -> None:
        others(world, path)[act]()
        after.update({one: facts for one, facts in scene.states().items() if ".surehold" not in one})

    kind, reason = OUTCOMES[act]
    if act == "a link" and name == "overwrite":  # it is opened for writing at once, by a way that follows no link
        kind, reason = OutsideWorkspace, "symlink_escape"
    with pytest.raises(SureholdError) as caught:
        scene.apply(step, fence=strike)
    assert (type(caught.value), caught.value.path) == (kind, path)
    assert caught.value.reason == reason
    if kind is StaleFile:
        theirs = sha(b"theirs") if reason == "displaced_mismatch" else None
        assert caught.value.details == {"expected": getattr(step, "expected", ""), "actual": theirs}
    found = scene.states()
    after.pop("new", None)
    assert (found, world.kept) == (after, [])


@pytest.mark.parametrize("name", ["create", "rename"])
@pytest.mark.parametrize("act", [act for act in OUTCOMES if act != "removed"])
def test_what_appears_at_a_new_name_after_staging_stays_there(scene: Scene, name: str, act: str) -> None:
    world, step = scene.world, steps_of(scene.world)[name]
    path = "new/made" if name == "create" else "new/moved"
    before = scene.states()
    with pytest.raises(AlreadyExists) as caught:
        scene.apply(step, fence=others(world, path)[act])
    assert caught.value.path == path
    assert (caught.value.reason == "directory") is (act == "a directory")
    found = scene.states()
    appeared = {one: found.pop(one) for one in ("new", path)}
    assert stat.S_ISDIR(int(str(appeared["new"][0])))
    assert (found, world.kept) == (before, [])


@pytest.mark.parametrize("name", ["create", "rename"])
@pytest.mark.parametrize("there", ["a file", "a directory", "a link"])
def test_a_new_name_that_is_taken_is_refused_before_anything_happens(scene: Scene, name: str, there: str) -> None:
    world, path = scene.world, "new/made" if name == "create" else "new/moved"
    step = steps_of(world)[name]
    scene.watched = False  # reading a link or a directory would be refused before
    (world.root / "new").mkdir()
    others(world, path)["written into" if there == "a file" else there]()
    before = scene.states()
    with pytest.raises(AlreadyExists) as caught:
        scene.apply(step, fence=lambda: pytest.fail("it was staged"))
    assert (caught.value.path, caught.value.reason == "directory") == (path, there == "a directory")
    assert (scene.states(), world.kept) == (before, [])


@pytest.mark.parametrize("name", list(SOURCES))
def test_a_step_on_other_bytes_or_another_kind_is_refused_before_anything_happens(scene: Scene, name: str) -> None:
    world, path = scene.world, SOURCES[name]
    step = steps_of(world)[name]
    assert isinstance(step, Replace | Remove | Rename)
    steps: list[Step] = [changed(step, expected=sha(b"others"))]
    if isinstance(step, Replace):
        steps = [changed(step, expected=sha(b"others"), old=old) for old in (None, b"others")]
    before = scene.states()
    for step in steps:
        with pytest.raises(StaleFile) as caught:
            scene.apply(step, fence=lambda: pytest.fail("it was staged"))
        assert (caught.value.path, caught.value.reason) == (path, "displaced_mismatch")
        assert (scene.states(), world.kept) == (before, [])


def test_a_directory_is_made_only_where_that_was_asked_for(scene: Scene) -> None:
    before = scene.states()
    with pytest.raises(NotFound) as caught:
        scene.apply(Create(target=scene.world.target("new/made"), data=b"x", parents=False))
    assert (caught.value.reason, scene.states()) == ("no_such_parent", before)
    scene.apply(Create(target=scene.world.target("d/made"), data=b"x", parents=False))
    assert (scene.world.root / "d/made").read_bytes() == b"x"


def test_files_beyond_the_number_that_may_be_open_have_names_while_they_are_staged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_remove, "_MAX_NAMELESS_FILES", 2)
    seen = list[str]()
    world, before = scene.world, scene.states()

    def look() -> None:
        seen.extend(path.name for path in world.root.rglob(".surehold*"))
        raise StaleFile("the fence refuses", path="x")

    steps = [world.create(f"d/{number}", b"x") for number in range(4)]
    with pytest.raises(StaleFile):
        scene.apply(*steps, fence=look)
    named = range(2, 4) if scene.kernel.tmpfile else range(4)
    assert sorted(seen) == [f".surehold-t1-{number}.tmp" for number in named]
    assert scene.states() == before
    scene.apply(*steps)
    assert [path for path in world.listing() if path.startswith("d/")] == ["d/0", "d/1", "d/2", "d/3", "d/edit"]


@pytest.mark.parametrize("name", ["replace", "remove", "rename"])
def test_a_file_that_was_touched_since_it_was_read_is_not_changed(scene: Scene, name: str) -> None:
    if not scene.watched:
        return  # nothing is known of the time before
    world, path = scene.world, SOURCES[name]
    target = world.target(path)
    with world.disk.lock([target], timeout=5):
        world.disk.read_watched(target, limit=1 << 20)
        os.utime(world.root / path, ns=(TIME, TIME + 1))
        before = scene.states()
        with pytest.raises(StaleFile) as caught:
            world.apply(steps_of(world)[name])
    assert (caught.value.path, caught.value.reason) == (path, "displaced_mismatch")
    before.pop("new", None)
    assert (scene.states(), world.kept) == (before, [])


@pytest.mark.parametrize("durability", ["file", "none"])
def test_directories_are_synced_only_where_all_is_to_be_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    world, synced = local_world(tmp_path, Kernel(leases=False), durability=durability), list[object]()
    world.put("d/edit", b"old")
    world.put("drop", b"drop")

    def note(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").is_dir())

    monkeypatch.setattr("surehold.disk.steps.staging.sync", note)
    monkeypatch.setattr("surehold.disk.tree.Tree.sync_file_systems", lambda _: synced.append("everything"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    world.apply(world.replace("d/edit", b"new", expected=b"old"), world.create("d/new", b"new"))
    assert synced == ([False, False] if durability == "file" else [])
    synced.clear()
    there = Version(sha256=sha(b"drop"), size=4)
    world.apply(TakeEntry(target=world.target("drop"), expected=there, refuge=world.target("drop")))
    assert synced == (["everything"] if durability == "file" else [])


# Steps that build on each other


@pytest.mark.parametrize("fails", [False, True])
def test_a_step_that_needs_an_earlier_one_is_staged_when_that_is_visible(scene: Scene, *, fails: bool) -> None:
    world, before = scene.world, scene.states()
    scene.watched = False
    steps: list[Step] = [
        world.remove("drop", expected=b"drop"),
        Create(target=world.disk.locate("drop/below"), data=b"below"),
        Create(target=world.disk.locate("drop/more"), data=b"more"),
        world.rename("move", "moved", expected=b"move"),
        world.replace("moved", b"changed", expected=b"move"),
        world.rename("moved", "move", expected=b"changed"),
    ]
    if fails:
        with pytest.raises(StaleFile):
            scene.apply(*steps, Remove(target=world.target("missing"), expected=sha(b"")))
        assert (scene.states(), world.kept) == (before, [])
    else:
        scene.apply(*steps)
        names = {path: data for path, data in world.listing().items() if path.startswith(("drop", "move"))}
        assert names == {"drop/below": b"below", "drop/more": b"more", "move": b"changed"}


def test_a_step_in_another_root_does_not_wait_for_one_with_the_same_names(tmp_path: Path) -> None:
    world = local_world(tmp_path, Kernel(leases=False), roots=("one", "two"))
    (tmp_path / "two/a").mkdir()
    steps = (world.create("a", b"x"), Create(target=world.target(f"{tmp_path}/two/a/b"), data=b"y"))
    seen = list[bool]()
    with pytest.raises(SureholdError):
        world.apply(
            *steps,
            Create(target=world.disk.locate("d"), data=b"z", parents=False),
            Create(target=world.disk.locate("d/below"), data=b"z", parents=False),
            fence=lambda: seen.append((tmp_path / "two/a").is_dir()),
        )
    world.apply(*steps)
    assert ((tmp_path / "one/a").read_bytes(), (tmp_path / "two/a/b").read_bytes()) == (b"x", b"y")


# What can fail while it is undone or cleaned up


@dataclass(kw_only=True)
class Trial:
    """A step that notes what is asked of it, and fails as it is told."""

    said: list[str]
    name: str
    fails: dict[str, list[BaseException]]

    def stage(self) -> None:
        self._do("stage")

    def publish(self) -> None:
        self._do("publish")

    def confirm(self) -> None:
        self._do("confirm")

    def undo(self) -> None:
        self._do("undo")

    def clean_up(self) -> None:
        self._do("clean_up")

    def _do(self, what: str) -> None:
        self.said.append(f"{what} {self.name}")
        if self.fails.get(what):
            raise self.fails[what].pop(0)


def run(monkeypatch: pytest.MonkeyPatch, world: LocalWorld, *fails: dict[str, list[BaseException]]) -> list[str]:
    """Apply trials instead of steps; return what was asked of them."""
    said = list[str]()
    names = "abc"[: len(fails)]
    trials = iter([Trial(said=said, name=name, fails=fail) for name, fail in zip(names, fails, strict=True)])
    monkeypatch.setattr(writer, "_action_for", lambda *_: next(trials))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    try:
        world.apply(*(world.create(name, b"x") for name in names), fence=lambda: said.append("fence"))
    except BaseException as error:  # noqa: BLE001  # an interrupt too
        said.append(f"{type(error).__name__} {getattr(error, 'path', '')}".strip())
    return said


STAGED, PUBLISHED = ["stage a", "stage b", "fence"], ["publish a", "publish b"]
CONFIRMED, UNDONE = ["confirm a", "confirm b"], ["undo b", "undo a"]


def io_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({}, {}, [*STAGED, *PUBLISHED, *CONFIRMED, "clean_up a", "clean_up b"]),
        ({}, {"stage": [io_error()]}, ["stage a", "stage b", *UNDONE, "DiskFailed b"]),
        ({}, {"publish": [io_error()]}, [*STAGED, *PUBLISHED, *UNDONE, "DiskFailed b"]),
        ({"publish": [io_error()]}, {}, [*STAGED, "publish a", *UNDONE, "DiskFailed a"]),
        ({}, {"confirm": [io_error()]}, [*STAGED, *PUBLISHED, *CONFIRMED, *UNDONE, "DiskFailed b"]),
        ({}, {"confirm": [KeyboardInterrupt()]}, [*STAGED, *PUBLISHED, *CONFIRMED, *UNDONE, "KeyboardInterrupt"]),
        ({"publish": [io_error()]}, {"undo": [io_error()]}, [*STAGED, "publish a", "undo b", *UNDONE, "DiskFailed a"]),
        (
            {"publish": [io_error()], "undo": [io_error(), io_error()]},
            {"undo": [io_error(), StaleFile("x", path="x"), io_error()]},
            [*STAGED, "publish a", "undo b", "undo b", "undo a", "undo a", "RecoveryRequired b"],
        ),
        (
            {"clean_up": [io_error(), io_error(), io_error()]},
            {"clean_up": [io_error()]},
            [*STAGED, *PUBLISHED, *CONFIRMED, "clean_up a", "clean_up a", "clean_up b", "clean_up b"],
        ),
        (
            {"clean_up": [KeyboardInterrupt()]},
            {},
            [*STAGED, *PUBLISHED, *CONFIRMED, "clean_up a", "clean_up a", "clean_up b", "KeyboardInterrupt"],
        ),
    ],
)
def test_all_steps_are_done_or_all_undone_in_reverse_each_tried_twice(
    plain: LocalWorld,
    monkeypatch: pytest.MonkeyPatch,
    first: dict[str, list[BaseException]],
    second: dict[str, list[BaseException]],
    said: list[str],
) -> None:
    first, second = ({what: list(errors) for what, errors in one.items()} for one in (first, second))
    assert run(monkeypatch, plain, first, second) == said


def test_what_could_not_be_brought_back_is_named(plain: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    said, broken = list[str](), [io_error(), io_error()]
    trials = iter(
        [
            Trial(said=said, name="a", fails={"undo": list(broken)}),
            Trial(said=said, name="b", fails={"undo": list(broken)}),
            Trial(said=said, name="c", fails={"publish": [io_error()]}),
        ]
    )
    monkeypatch.setattr(writer, "_action_for", lambda *_: next(trials))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(RecoveryRequired) as caught:
        plain.apply(*(plain.create(name, b"x") for name in "abc"))
    assert (caught.value.path, caught.value.details) == ("b", {"paths": ["b", "a"]})


def test_a_directory_that_cannot_be_synced_at_the_end_undoes_all_and_at_the_undo_is_let_be(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, calls = scene.states(), list[int]()

    def fail(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            calls.append(fd)
            raise io_error()

    monkeypatch.setattr("surehold.disk.steps.staging.sync", fail)
    with pytest.raises(DiskFailed) as caught:
        scene.apply(scene.world.replace("d/edit", b"new", expected=b"old"))
    assert (caught.value.path, scene.states()) == ("d/edit", before)
    assert len(calls) == 2


# What a dead process left


def leftovers(world: LocalWorld, *keys: str) -> None:
    world.disk.remove_leftovers([world.disk.locate(key) for key in keys], tag="t", keep=keep_pairs(world))


def keep_pairs(world: LocalWorld) -> Callable[[str, bytes], None]:
    def keep(key: str, data: bytes) -> None:
        world.kept.append(key.encode() + b": " + data)

    return keep


@pytest.fixture
def littered(plain: LocalWorld) -> LocalWorld:
    world = plain
    for name in ("d/.surehold-t-0.tmp", "d/.surehold-t-1.old", ".surehold-t-1.tmp", "d/.surehold-t-9.tmp"):
        world.put(name, name[-5:].encode())
    world.put("d/.surehold-other-0.tmp", b"another tag")
    (world.root / "d/.surehold-t-3.tmp").symlink_to("x")
    os.mkfifo(world.root / "d/.surehold-t-4.tmp")
    (world.root / "d/.surehold-t-5.tmp").mkdir()
    return world


def test_what_is_left_is_kept_under_the_path_that_it_was_for(littered: LocalWorld) -> None:
    leftovers(littered, "d/a", "d/b", "c")
    assert sorted(littered.kept) == [b"c: 1.tmp", b"d/a: 0.tmp", b"d/b: 1.old", b"d/b: 9.tmp"]
    assert sorted(littered.entries()) == ["d", "d/.surehold-other-0.tmp", "d/.surehold-t-5.tmp"]


def test_what_is_left_beside_a_path_of_another_directory_is_kept_under_one_of_its_own(littered: LocalWorld) -> None:
    leftovers(littered, "c", "d/a")
    assert sorted(littered.kept) == [b"c: 1.tmp", b"d/a: 0.tmp", b"d/a: 1.old", b"d/a: 9.tmp"]


def test_the_root_has_nothing_beside_it_and_a_missing_directory_nothing_in_it(littered: LocalWorld) -> None:
    before = littered.entries()
    leftovers(littered, ".", "missing/x", "d/.surehold-other-0.tmp/below")
    assert (littered.entries(), littered.kept) == (before, [])


def test_an_escape_is_refused_when_all_else_is_clean(littered: LocalWorld) -> None:
    world = littered
    (world.root / "gone").mkdir()
    targets = [world.target(key) for key in ("gone/a", "gone/deep/b", "c", "d/a")]
    (world.root / "gone").rmdir()
    (world.root / "gone").symlink_to(world.outside)
    with pytest.raises(OutsideWorkspace) as caught:
        world.disk.remove_leftovers(targets, tag="t", keep=keep_pairs(world))
    assert (caught.value.path, len(world.kept)) == ("gone/a", 4)


def test_a_directory_that_cannot_be_looked_into_is_an_error(
    littered: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> list[str]:
        raise io_error()

    monkeypatch.setattr(os, "listdir", fail)
    with pytest.raises(DiskFailed) as caught:
        leftovers(littered, "d/a")
    assert caught.value.path == "d/a"


def test_what_vanishes_while_it_is_looked_at_is_no_leftover(
    littered: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: [".surehold-t-7.tmp"])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    leftovers(littered, "d/a")
    assert littered.kept == []


# Which files keep their inode


def test_files_with_several_names_are_written_in_place_and_what_is_missing_is_not(scene: Scene) -> None:
    world = scene.world
    (world.root / "link").symlink_to("one")
    found = {
        key: world.disk.replaces_in_place(world.disk.locate(key))
        for key in ("d/edit", "one", "two", "missing", "missing/x", "one/x", "d", "link", ".")
    }
    assert found == {**dict.fromkeys(found, False), "one": True, "two": True}
