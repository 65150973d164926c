"""What a file is when some of its steps are left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from surehold.errors import NotFound
from surehold.text.snapshot import ABSENT, Meta, Snapshot, Version, sha256_hex
from surehold.workspace.undo import replay as replay_module
from surehold.workspace.undo.replay import FileReplay, FileState, Obstacle
from surehold.workspace.undo.timeline import OUTSIDE, FileStep, FileTrail, SwitchedEntries, outside_step

TEXTS = {
    name: text.encode()
    for name, text in {
        "123": "1\n2\n3\n",
        "x23": "x\n2\n3\n",
        "12y": "1\n2\ny\n",
        "x2y": "x\n2\ny\n",
        "z23": "z\n2\n3\n",
        "xxx": "x\nx\nx\n",
        "0123": "0\n1\n2\n3\n",
    }.items()
}
BLOBS = {sha256_hex(data): data for data in TEXTS.values()}


def read_blob(sha256: str) -> bytes:
    if sha256 not in BLOBS:
        raise NotFound("It is not stored.")
    return BLOBS[sha256]


def v(text: str, mode: int | None = None) -> Version:
    data = TEXTS.get(text, text.encode())
    return Version(sha256=sha256_hex(data), size=len(data), meta=None if mode is None else Meta(mode=mode))


def entry(kind: str, data: str = "", mode: int = 0o755) -> Version:
    return Version(
        sha256=sha256_hex(data.encode()),
        size=len(data),
        meta=Meta(mode=mode),
        kind="link" if kind == "link" else "directory",
    )


def step(
    name: str, before: Version | None, after: Version | None, key: str = "a", to_key: str | None = None
) -> FileStep:
    """Return a step; outside edits have names that begin with `out`."""
    here, there = ("" if before is None else key), ("" if after is None else key if to_key is None else to_key)
    return FileStep(
        change_id=name,
        entry_name=f"{name}#0",
        key=here,
        to_key=there,
        before=before,
        after=after,
        outside=name.startswith("out"),
    )


def trail(first: Version | None, *steps: FileStep) -> FileTrail:
    return FileTrail(key="a" if first else "", version=first, steps=[*steps])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file, the changes that are in effect, what it is then, and what had to be left out."""

    file: FileTrail
    active: Sequence[str]
    state: FileState
    left_out: tuple[Obstacle, ...] = ()


def blocked(name: str, kind: str, *lines: int, key: str = "a") -> tuple[Obstacle, ...]:
    return (Obstacle(change_id=name, key=key, kind=kind, lines=lines),)  # type: ignore[arg-type]


GONE = FileState()
TWO = trail(v("123"), step("c1", v("123"), v("x23")), step("c2", v("x23"), v("x2y")))
SAME_LINE = trail(v("123"), step("c1", v("123"), v("x23")), step("c2", v("x23"), v("z23")))
DELETED = trail(v("123"), step("c1", v("123"), v("x23")), step("c2", v("x23"), None))
CREATED = trail(None, step("c1", None, v("123")), step("c2", v("123"), v("x23")))
MOVED = trail(v("123"), step("c1", v("123"), v("123"), "a", "b"), step("c2", v("123"), v("x23"), "b", "b"))
TWICE = trail(v("123"), step("c1", v("123"), v("123"), "a", "b"), step("c2", v("123"), v("123"), "b", "c"))
MODES = trail(
    v("123", 0o644), step("c1", v("123", 0o644), v("123", 0o600)), step("c2", v("123", 0o600), v("x23", 0o600))
)
OTHER_MODES = trail(
    v("123", 0o644), step("c1", v("123", 0o644), v("x23", 0o600)), step("c2", v("x23", 0o600), v("x2y", 0o755))
)
LINKS = trail(
    entry("link", "x"),
    step("c1", entry("link", "x"), entry("link", "y")),
    step("c2", entry("link", "y"), entry("link", "z")),
)
KINDS = trail(v("123"), step("c1", v("123"), entry("link", "x")), step("c2", entry("link", "x"), v("123")))
FOLDER = trail(None, step("c1", None, entry("dir")), step("c2", entry("dir"), entry("dir", mode=0o700)))
BROUGHT_BACK = trail(
    v("123"), step("out1", v("123"), v("x23")), step("out2", v("x23"), v("123")), step("c1", v("123"), v("12y"))
)
OUTSIDE_DELETED = trail(None, step("c1", None, v("123")), step("out", v("123"), None))
UNSTORED = trail(v("123"), step("c1", v("123"), v("lost")), step("c2", v("lost"), v("gone")))
CASES = {
    "everything": Case(file=TWO, active=("c1", "c2"), state=FileState("a", v("x2y"))),
    "nothing": Case(file=TWO, active=(), state=FileState("a", v("123"))),
    "the first": Case(file=TWO, active=("c1",), state=FileState("a", v("x23"))),
    "the second alone": Case(file=TWO, active=("c2",), state=FileState("a", v("12y"))),
    "the second touches the lines of the first": Case(
        file=SAME_LINE, active=("c2",), state=FileState("a", v("123")), left_out=blocked("c2", "lines", 1)
    ),
    "a deletion": Case(file=DELETED, active=("c1", "c2"), state=GONE),
    "a deletion of what was not edited": Case(file=DELETED, active=("c2",), state=GONE),
    "no deletion": Case(file=DELETED, active=("c1",), state=FileState("a", v("x23"))),
    "not made": Case(file=CREATED, active=(), state=GONE),
    "edited and not made": Case(file=CREATED, active=("c2",), state=GONE, left_out=blocked("c2", "changed")),
    "moved and edited": Case(file=MOVED, active=("c1", "c2"), state=FileState("b", v("x23"))),
    "edited and not moved": Case(file=MOVED, active=("c2",), state=FileState("a", v("x23"))),
    "moved on and not moved": Case(
        file=TWICE, active=("c2",), state=FileState("a", v("123")), left_out=blocked("c2", "moved", key="b")
    ),
    "another mode and then an edit": Case(file=MODES, active=("c1", "c2"), state=FileState("a", v("x23", 0o600))),
    "an edit without the other mode": Case(file=MODES, active=("c2",), state=FileState("a", v("x23", 0o644))),
    "modes that disagree": Case(
        file=OTHER_MODES, active=("c2",), state=FileState("a", v("123", 0o644)), left_out=blocked("c2", "changed")
    ),
    "a link": Case(file=LINKS, active=("c1", "c2"), state=FileState("a", entry("link", "z"))),
    "a link that leads elsewhere": Case(
        file=LINKS, active=("c2",), state=FileState("a", entry("link", "x")), left_out=blocked("c2", "changed")
    ),
    "a file that was a link": Case(file=KINDS, active=("c1", "c2"), state=FileState("a", v("123"))),
    "a file that was no link": Case(
        file=KINDS, active=("c2",), state=FileState("a", v("123")), left_out=blocked("c2", "changed")
    ),
    "a directory that others use": Case(file=FOLDER, active=("c2",), state=FileState("a", entry("dir", mode=0o700))),
    "outside edits that left no trace": Case(
        file=BROUGHT_BACK, active=("out1", "out2", "c1"), state=FileState("a", v("12y"))
    ),
    "what another program removed": Case(file=OUTSIDE_DELETED, active=("c1", "out"), state=GONE),
    "what was not there anyway": Case(file=OUTSIDE_DELETED, active=("out",), state=GONE),
    "deleted and not made": Case(
        file=trail(None, step("c1", None, v("123")), step("c2", v("123"), None)),
        active=("c2",),
        state=GONE,
        left_out=blocked("c2", "removed"),
    ),
    "a directory that is deleted and not made": Case(
        file=trail(None, step("c1", None, entry("dir")), step("c2", entry("dir"), None)),
        active=("c2",),
        state=GONE,
        left_out=blocked("c2", "removed"),
    ),
    "an outside edit of what is not there": Case(
        file=trail(None, step("c1", None, v("123")), step("out", v("123"), v("x23"))),
        active=("out",),
        state=GONE,
        left_out=blocked("out", "changed"),
    ),
    "bytes that are not stored": Case(
        file=UNSTORED, active=("c2",), state=FileState("a", v("123")), left_out=blocked("c2", "changed")
    ),
}


def same(version: Version | None) -> tuple[str, str, int | None, int] | None:
    return version and (version.kind, version.sha256, version.mode, version.size)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_file_is_what_the_steps_in_effect_make_of_it(case: Case) -> None:
    replay = FileReplay(read_blob)

    state, left_out = replay.state_of(case.file, frozenset(f"{name}#0" for name in case.active))

    assert (state.key, same(state.version)) == (case.state.key, same(case.state.version))
    assert tuple(left_out) == case.left_out
    if (
        state.version
        and state.version.sha256 not in {v("lost").sha256, v("gone").sha256}
        and state.version.kind == "file"
    ):
        assert sha256_hex(replay.load(state.sha256)) == state.sha256


def test_an_outside_change_of_the_mode_is_no_step_of_a_file_that_is_not_there() -> None:
    mode = outside_step("a", "a", v("123", 0o644), v("123", 0o600))
    file = trail(None, step("c1", None, v("123", 0o644)), mode)
    replay = FileReplay(read_blob)

    assert replay.state_of(file, frozenset({OUTSIDE})) == (FileState(), [])
    assert replay.state_of(file, frozenset({"c1#0", OUTSIDE})) == (FileState("a", v("123", 0o600)), [])


def test_a_mode_of_another_program_gives_way_to_none_of_ours() -> None:
    ours = step("c1", v("123", 0o644), v("123", 0o600))
    theirs = outside_step("a", "a", v("123", 0o600), v("123", 0o755))
    assert FileReplay(read_blob).state_of(trail(v("123", 0o644), ours, theirs), frozenset({OUTSIDE})) == (
        FileState("a", v("123", 0o755)),
        [],
    )


def test_what_files_hold_now_is_not_read_again_up_to_a_size_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "_NOTED_BYTES", 10)
    replay = FileReplay(read_blob)
    for data in (b"123456", b"12345", b"1234", b"1"):
        replay.note_current(Snapshot(data))
    replay.note_current(ABSENT)

    assert [replay.load(sha256_hex(data)) for data in (b"123456", b"1234")] == [b"123456", b"1234"]
    for data in (b"12345", b"1"):
        with pytest.raises(NotFound):
            replay.load(sha256_hex(data))
    assert replay.load(replay.keep(b"mine")) == b"mine"


@pytest.mark.parametrize(
    ("version", "facts"),
    [
        (None, ("", None, False, False)),
        (v("123"), (v("123").sha256, None, False, True)),
        (v("123", 0o600), (v("123").sha256, 0o600, False, True)),
        (entry("link", "x"), (entry("link", "x").sha256, 0o755, False, True)),
        (entry("dir"), (entry("dir").sha256, 0o755, True, False)),
    ],
    ids=["nothing", "a file", "a mode", "a link", "a directory"],
)
def test_a_state_says_what_there_is(version: Version | None, facts: tuple[str, int | None, bool, bool]) -> None:
    state = FileState("a", version)
    assert (state.sha256, state.mode, state.is_directory, state.has_bytes) == facts


@pytest.mark.parametrize("lines", [2, 40])
def test_many_steps_are_carried_over_one_that_is_left_out(lines: int) -> None:
    rows = [f"{number}\n" for number in range(lines)]
    texts = [rows, ["first\n", *rows]]
    for number in range(lines):
        texts.append([*texts[-1][: number + 1], f"changed {number}\n", *texts[-1][number + 2 :]])
    stored = {sha256_hex(data): data for data in ("".join(one).encode() for one in texts)}
    versions = [Version(sha256=name, size=len(data)) for name, data in stored.items()]
    steps = [step(f"c{number}", one, other) for number, (one, other) in enumerate(pairwise(versions))]
    file = replace(trail(versions[0]), steps=steps)

    def after(left_out: set[int]) -> bytes:
        replay = FileReplay(stored.__getitem__)
        active = frozenset(one.entry_name for number, one in enumerate(steps) if number not in left_out)
        state, obstacles = replay.state_of(file, active)
        assert obstacles == []
        return replay.load(state.sha256)

    last = [f"changed {number}\n" for number in range(lines)]
    assert after({0}) == "".join(last).encode()
    assert after({1}) == "".join(["first\n", rows[0], *last[1:]]).encode()
    assert after({0, lines}) == "".join([*last[:-1], rows[-1]]).encode()
    assert after({0, 1, lines}) == "".join([rows[0], *last[1:-1], rows[-1]][:lines] if lines > 1 else rows).encode()


def test_the_first_step_that_has_to_be_left_out_settles_that_one_has_to() -> None:
    texts = [f"{number}\nmiddle\n".encode() for number in range(100)]
    stored, read = {sha256_hex(data): data for data in texts}, list[str]()
    versions = [Version(sha256=name, size=len(data)) for name, data in stored.items()]
    steps = [step(f"c{number}", one, other) for number, (one, other) in enumerate(pairwise(versions))]
    file = replace(trail(versions[0]), steps=steps)

    def read_stored(sha256: str) -> bytes:
        read.append(sha256)
        return stored[sha256]

    active = frozenset(one.entry_name for one in steps)
    replay = FileReplay(read_stored)
    assert replay.leaves_out(file, active - {"c50#0"})
    assert set(read) == {one.sha256 for one in versions[50:53]}
    assert not replay.leaves_out(file, active)
    assert not replay.leaves_out(file, active - {"c98#0"})
    assert [one.change_id for one in replay.state_of(file, active - {"c50#0"})[1]] == [f"c{n}" for n in range(51, 99)]
    assert replay.leaves_out(file, active - {"c50#0"})


def test_what_a_file_is_depends_on_its_own_entries_alone() -> None:
    others = frozenset(f"other{number}#0" for number in range(10))

    assert TWO.own_of(others | {"c1#0", "c2#0"}) == {"c1#0", "c2#0"}
    assert TWO.own_of(SwitchedEntries(active=others | {"c1#0"}, switched=frozenset({"c1#0", "c2#0"}))) == {"c2#0"}
    assert TWO.own_of(SwitchedEntries(active=frozenset({"c1#0", "c2#0"}), switched=others | {"c2#0"})) == {"c1#0"}
