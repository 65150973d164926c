"""Files that are open in an editor: what is unsaved there is read, edited, and never passed over."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from disk.editors import Editor
from disk.programs import start_append
from disk.suite import KERNELS, World, local_world, sha
from spec.marks import requirement
from surehold.disk.base import Replace
from surehold.disk.editor.buffer import BufferText, interpret_buffer, is_plain, may_be_saved
from surehold.disk.editor.disk import EditorDisk
from surehold.disk.kernel import Kernel
from surehold.errors import (
    AlreadyExists,
    FileTooLarge,
    NotAFile,
    OutsideWorkspace,
    RecoveryRequired,
    StaleFile,
    Unavailable,
)


@dataclass
class Scene:
    """A directory that is open in an editor."""

    world: World
    editor: Editor
    root: Path

    def open(self, name: str, data: bytes, *, typed: str | None = None) -> Path:
        """Put a file on the disk, and change it in the editor without saving it."""
        path = self.root / name
        path.write_bytes(data)
        if typed is not None:
            self.editor.type(path, typed)
        return path

    def caution(self, name: str) -> str:
        return self.world.disk.write_caution(self.world.target(name))


Open = Callable[[Editor], Scene]


@pytest.fixture
def scene_of(tmp_path: Path) -> Iterator[Open]:
    made = local_world(tmp_path, KERNELS["local"])
    local = made.disk

    def scene(editor: Editor) -> Scene:
        made.disk = EditorDisk(local, editor, largest=1000)
        return Scene(made, editor, made.root)

    yield scene
    local.close()


@pytest.fixture
def scene(scene_of: Open) -> Scene:
    return scene_of(Editor())


# Reading


@requirement("multi_edit:acp:editor_files")
def test_unsaved_text_is_what_is_read_whole_and_in_pieces(scene: Scene) -> None:
    scene.open("a", b"saved\n", typed="typed: \u00e4\n")

    target = scene.world.target("a")
    assert scene.world.read("a") == "typed: \u00e4\n".encode()
    assert b"".join(scene.world.disk.read_chunks(target)) == "typed: \u00e4\n".encode()


@requirement("multi_edit:acp:editor_files")
def test_what_the_editor_does_not_have_is_read_from_the_disk(scene: Scene) -> None:
    scene.editor.closed = {"a"}
    scene.open("a", b"saved\n")

    assert scene.world.read("a") == b"saved\n"
    assert scene.editor.asked == [str(scene.root / "a")]


def test_what_a_search_comes_across_is_read_from_the_disk_where_the_search_looked(scene: Scene) -> None:
    scene.open("a", b"saved\n", typed="typed\n")
    disk = scene.world.disk

    found = disk.read(disk.target_below(scene.world.target("."), ("a",)), limit=100)

    assert (found and found.data, scene.editor.asked) == (b"saved\n", [])


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfmark\n", b"zero\0byte", b"caf\xe9\n", "wide\n".encode("utf-16"), b"x" * 1001]
)
def test_the_editor_is_not_asked_for_bytes_that_it_cannot_give_back(scene: Scene, data: bytes) -> None:
    scene.open("a", data)

    assert scene.world.read("a") == data
    assert b"".join(scene.world.disk.read_chunks(scene.world.target("a"))) == data
    assert scene.editor.asked == []


def test_nothing_but_regular_files_inside_the_roots_reaches_the_editor(scene: Scene) -> None:
    (scene.root / "dir").mkdir()
    (scene.root / "null").symlink_to("/dev/null")
    (scene.root / "out").symlink_to(scene.root.parent / "outside")
    for path in ("../outside/x", "/etc/passwd", "out/x", "null"):
        with pytest.raises(OutsideWorkspace):
            scene.world.read(path)
    with pytest.raises(NotAFile):
        scene.world.read("dir")
    assert scene.world.read("missing") is None
    assert scene.editor.asked == []


def test_a_name_that_no_editor_can_be_told_stays_on_the_disk(scene: Scene) -> None:
    scene.world.put("caf\udce9", b"old")

    scene.world.apply(scene.world.replace("caf\udce9", b"new", expected=b"old"))

    assert (scene.world.read("caf\udce9"), scene.editor.asked) == (b"new", [])


def test_unsaved_text_above_the_limit_is_refused_with_its_size(scene: Scene) -> None:
    scene.open("a", b"short", typed="x" * 60)

    with pytest.raises(FileTooLarge) as refused:
        scene.world.disk.read(scene.world.target("a"), limit=50)

    assert refused.value.details == {"size": 60, "limit": 50}


def test_half_a_character_from_the_editor_is_refused(scene: Scene) -> None:
    scene.open("a", b"saved", typed="\ud800")

    with pytest.raises(Unavailable) as refused:
        scene.world.read("a")

    assert refused.value.reason == "editor_bad_text"


def test_a_buffer_that_has_not_noticed_the_disk_holds_no_unsaved_changes(scene_of: Open) -> None:
    scene = scene_of(Editor(lazy=True))
    path = scene.open("a", b"one\n")
    assert scene.world.read("a") == b"one\n"
    path.write_bytes(b"two\n")

    assert scene.world.read("a") == b"two\n"
    scene.world.apply(scene.world.replace("a", b"three\n", expected=b"two\n"))

    assert (path.read_bytes(), scene.editor.written) == (b"three\n", [])
    scene.editor.type(path, "typed\n")
    assert scene.world.read("a") == b"typed\n"


def test_text_that_the_user_brought_back_is_unsaved_although_it_once_was_on_the_disk(scene: Scene) -> None:
    path = scene.open("a", b"one\n")
    assert scene.world.read("a") == b"one\n"
    scene.world.apply(scene.world.replace("a", b"two\n", expected=b"one\n"))
    scene.editor.save(path)
    scene.editor.type(path, "one\n")

    assert scene.world.read("a") == b"one\n"


# Writing


@requirement("multi_edit:acp:editor_files", "multi_edit:acp:weaker_guarantee")
def test_a_write_changes_the_buffer_and_not_the_disk_and_says_what_it_cannot_promise(scene: Scene) -> None:
    path = scene.open("a", b"saved\n", typed="typed\n")

    scene.world.apply(scene.world.replace("a", b"new\n", expected=b"typed\n"))

    assert (scene.editor.text(path), path.read_bytes()) == ("new\n", b"saved\n")
    assert scene.world.read("a") == b"new\n"
    assert scene.world.kept == [b"saved\n"]
    assert scene.caution("a") == (
        "`a` was written through the editor, which cannot compare and write in one step: what was typed in that moment "
        "may be lost. It is not saved yet: the file on the disk is as before."
    )


@requirement("multi_edit:acp:weaker_guarantee")
def test_a_write_that_the_editor_saves_is_told_apart(scene_of: Open) -> None:
    scene = scene_of(Editor(saves=True))
    path = scene.open("a", b"old\n")

    scene.world.apply(scene.world.replace("a", b"new\n", expected=b"old\n"))

    assert path.read_bytes() == b"new\n"
    assert scene.caution("a").endswith("what was typed in that moment may be lost.")


def test_what_happens_on_the_disk_needs_no_caution(scene: Scene) -> None:
    scene.open("a", b"old\n")
    scene.world.apply(scene.world.replace("a", b"new\n", expected=b"old\n"))
    assert scene.caution("a")
    scene.editor.save(scene.root / "a")

    scene.world.apply(scene.world.remove("a", expected=b"new\n"), scene.world.create("b", b"b\n"))

    assert (scene.caution("a"), scene.caution("b")) == ("", "")


@requirement("multi_edit:acp:editor_files")
def test_text_that_was_typed_meanwhile_is_not_overwritten(scene: Scene) -> None:
    path = scene.open("a", b"saved\n", typed="seen\n")

    with pytest.raises(StaleFile) as refused:
        scene.world.apply(
            scene.world.replace("a", b"new\n", expected=b"seen\n"),
            fence=lambda: scene.editor.type(path, "typed since\n"),
        )

    assert refused.value.details == {"expected": sha(b"seen\n"), "actual": sha(b"typed since\n")}
    assert (scene.editor.text(path), scene.editor.written) == ("typed since\n", [])


def test_bytes_on_the_disk_are_no_proof_of_what_is_in_the_editor(scene: Scene) -> None:
    scene.open("a", b"saved\n", typed="typed\n")

    with pytest.raises(StaleFile):
        scene.world.apply(scene.world.replace("a", b"new\n", expected=b"saved\n"))

    assert scene.editor.written == []


def test_text_that_the_editor_formats_is_written_and_the_caller_is_told(scene_of: Open) -> None:
    scene = scene_of(Editor(saves=True, formatter=str.lower))
    scene.open("a", b"old\n")

    scene.world.apply(scene.world.replace("a", b"NEW\n", expected=b"old\n"))

    assert scene.world.read("a") == b"new\n"
    assert "made other text of it" in scene.caution("a")
    assert "read it again" in scene.caution("a")
    assert scene.world.kept == [b"new\n"]


def test_an_editor_that_takes_nothing_makes_the_change_fail(scene: Scene) -> None:
    scene.editor.deaf = {"a"}
    scene.open("a", b"old\n")

    with pytest.raises(Unavailable) as refused:
        scene.world.apply(scene.world.replace("a", b"new\n", expected=b"old\n"))

    assert (refused.value.reason, scene.world.read("a")) == ("editor_ignored", b"old\n")


# Line ends


@requirement("multi_edit:acp:editor_files")
@pytest.mark.parametrize("saves", [True, False])
def test_an_editor_that_shows_lf_for_crlf_is_sent_lf_and_the_bytes_are_crlf(scene_of: Open, saves: bool) -> None:
    scene = scene_of(Editor(normalises=True, saves=saves))
    path = scene.open("a", b"one\r\ntwo\r\n")
    assert scene.world.read("a") == b"one\r\ntwo\r\n"

    scene.world.apply(scene.world.replace("a", b"1\r\ntwo\r\n", expected=b"one\r\ntwo\r\n"))

    assert scene.editor.written == [(str(path), "1\ntwo\n")]
    assert scene.world.read("a") == b"1\r\ntwo\r\n"
    scene.editor.save(path)
    assert path.read_bytes() == scene.world.read("a") == b"1\r\ntwo\r\n"


def test_mixed_line_ends_that_the_editor_hides_are_written_on_the_disk(scene_of: Open) -> None:
    scene = scene_of(Editor(normalises=True, saves=True))
    path = scene.open("a", b"one\r\ntwo\n")
    assert scene.world.read("a") == b"one\r\ntwo\n"

    scene.world.apply(scene.world.replace("a", b"1\r\ntwo\n", expected=b"one\r\ntwo\n"))

    assert (path.read_bytes(), scene.editor.written, scene.caution("a")) == (b"1\r\ntwo\n", [], "")


def test_line_ends_that_the_editor_never_showed_are_not_entrusted_to_it(scene_of: Open) -> None:
    scene = scene_of(Editor(normalises=True, saves=True))
    path = scene.open("a", b"one\n")

    scene.world.apply(scene.world.replace("a", b"one\r\n", expected=b"one\n"))

    assert (path.read_bytes(), scene.editor.written) == (b"one\r\n", [])


def test_an_editor_that_keeps_crlf_is_sent_crlf(scene: Scene) -> None:
    path = scene.open("a", b"one\r\n")

    scene.world.apply(scene.world.replace("a", b"two\r\nthree\n", expected=b"one\r\n"))

    assert scene.editor.text(path) == "two\r\nthree\n"


# What only the disk can do


@requirement("multi_edit:acp:editor_files")
@pytest.mark.parametrize("data", [b"zero\0byte", b"caf\xe9\n", b"\xef\xbb\xbfmark\n", b"x" * 1001])
def test_bytes_that_no_editor_gives_back_are_written_on_the_disk(scene: Scene, data: bytes) -> None:
    path = scene.open("a", b"old\n")

    scene.world.apply(scene.world.replace("a", data, expected=b"old\n"))
    scene.world.apply(scene.world.replace("a", b"old\n", expected=data))

    assert (path.read_bytes(), scene.editor.written) == (b"old\n", [])


@requirement("multi_edit:acp:weaker_guarantee")
def test_a_file_too_large_to_be_asked_for_is_changed_on_the_disk_and_the_caller_is_told(scene: Scene) -> None:
    path = scene.open("a", b"x" * 1001)

    scene.world.apply(scene.world.replace("a", b"y" * 1001, expected=b"x" * 1001))
    assert (path.read_bytes(), scene.editor.asked) == (b"y" * 1001, [])
    assert "whether it has unsaved changes there is not known" in scene.caution("a")

    scene.world.apply(scene.world.rename("a", "b", expected=b"y" * 1001))
    assert (scene.caution("a"), scene.caution("b")[:4]) == ("", "`b` ")


@requirement("multi_edit:acp:editor_files")
def test_unsaved_changes_forbid_what_only_the_disk_can_do(scene: Scene) -> None:
    path = scene.open("a", b"saved\n", typed="typed\n")
    world = scene.world
    steps = (
        world.remove("a", expected=b"typed\n"),
        world.rename("a", "b", expected=b"typed\n"),
        world.replace("a", b"zero\0byte", expected=b"typed\n"),
        Replace(target=world.target("a"), data=b"new\n", expected=sha(b"typed\n"), mode=0o600),
    )
    for step in steps:
        with pytest.raises(StaleFile) as refused:
            world.apply(world.create("new", b"new"), step)
        assert (refused.value.reason, refused.value.path) == ("unsaved_changes", "a")
        assert "Save or discard" in refused.value.action
    assert (world.listing(), scene.editor.text(path)) == ({"a": b"saved\n"}, "typed\n")


def test_unsaved_changes_in_another_encoding_are_noticed(scene: Scene) -> None:
    scene.open("a", "caf\u00e9\n".encode("cp1252"), typed="caf\u00e9 au lait\n")
    remove = scene.world.remove("a", expected="caf\u00e9\n".encode("cp1252"))

    with pytest.raises(StaleFile) as refused:
        scene.world.apply(remove)
    assert refused.value.reason == "unsaved_changes"

    scene.editor.type(scene.root / "a", "caf\u00e9\n")
    scene.world.apply(remove)
    assert scene.world.listing() == {}


def test_a_mode_that_is_already_so_does_not_keep_text_from_the_editor(scene: Scene) -> None:
    path = scene.open("a", b"saved\n", typed="typed\n")
    mode = path.stat().st_mode & 0o777

    scene.world.apply(Replace(target=scene.world.target("a"), data=b"new\n", expected=sha(b"typed\n"), mode=mode))

    assert scene.editor.text(path) == "new\n"


def test_a_new_file_is_made_on_the_disk_where_nobody_is_overwritten(scene: Scene) -> None:
    scene.open("a", b"old\n")

    scene.world.apply(scene.world.create("dir/b", b"new\n"))
    with pytest.raises(AlreadyExists):
        scene.world.apply(scene.world.create("a", b"new\n"))

    assert (scene.world.listing(), scene.editor.written) == ({"a": b"old\n", "dir/b": b"new\n"}, [])


def test_a_file_with_two_names_is_not_written_in_place_by_us_when_the_editor_writes_it(scene: Scene) -> None:
    scene.open("a", b"old\n")
    (scene.root / "b").hardlink_to(scene.root / "a")
    target = scene.world.target("a")

    assert not scene.world.disk.replaces_in_place(target)
    scene.editor.closed = {"a"}
    assert scene.world.disk.replaces_in_place(target)


# All or nothing


@requirement("multi_edit:acp:editor_files")
@pytest.mark.parametrize("saves", [True, False])
def test_a_write_that_fails_gives_the_earlier_buffers_their_text_back(scene_of: Open, saves: bool) -> None:
    scene = scene_of(Editor(saves=saves, broken={"b"}))
    a = scene.open("a", b"a\n", typed="a typed\n")
    scene.open("b", b"b\n")
    world = scene.world

    with pytest.raises(Unavailable) as refused:
        world.apply(
            world.replace("a", b"new a\n", expected=b"a typed\n"),
            world.replace("b", b"new b\n", expected=b"b\n"),
            world.create("c", b"c\n"),
        )

    assert refused.value.message == "The editor said no."
    assert (scene.editor.text(a), world.read("a"), world.read("b")) == ("a typed\n", b"a typed\n", b"b\n")
    assert world.listing() == {"a": b"a typed\n" if saves else b"a\n", "b": b"b\n"}
    assert world.kept[0] == b"a\n"


def test_a_step_of_the_disk_that_fails_at_last_takes_the_text_back(scene: Scene) -> None:
    a = scene.open("a", b"a\n")
    scene.open("b", b"b\n")
    scene.editor.on_write = lambda _: (scene.root / "b").unlink(missing_ok=True)

    with pytest.raises(StaleFile) as refused:
        scene.world.apply(
            scene.world.replace("a", b"new a\n", expected=b"a\n"), scene.world.remove("b", expected=b"b\n")
        )

    assert (refused.value.reason, scene.editor.text(a)) == ("vanished", "a\n")


def test_what_was_typed_into_our_text_stays_and_is_reported(scene: Scene) -> None:
    a = scene.open("a", b"a\n")
    b = scene.open("b", b"b\n")
    scene.editor.on_write = lambda path: scene.editor.type(a, "typed\n") if path == str(b) else None
    scene.editor.broken = {"b"}

    with pytest.raises(RecoveryRequired) as refused:
        scene.world.apply(
            scene.world.replace("a", b"new a\n", expected=b"a\n"), scene.world.replace("b", b"new b\n", expected=b"b\n")
        )

    assert (refused.value.details["paths"], scene.editor.text(a)) == (["a"], "typed\n")


# What a text says about bytes


def test_an_editor_without_the_last_newline_shows_what_is_saved() -> None:
    assert interpret_buffer(b"one\n", "one") == BufferText(text="one", data=b"one\n", saved=True, faithful=False)


def test_text_is_unsaved_when_more_than_line_ends_differ() -> None:
    assert interpret_buffer(b"a\r\nb\r\n", "a\nc\n") == BufferText(
        text="a\nc\n", data=b"a\r\nc\r\n", saved=False, crlf=True
    )
    assert interpret_buffer(b"a", "a\nc\n") == BufferText(text="a\nc\n", data=b"a\nc\n", saved=False)
    assert interpret_buffer(b"a\nb\r\n", "a\nc\n") == BufferText(text="a\nc\n", data=b"a\nc\n", saved=False)


def test_lf_cannot_be_sent_where_lf_stands_for_crlf() -> None:
    assert interpret_buffer(b"a\r\n", "a\n").text_for(b"a\nb\r\n") is None
    assert interpret_buffer(b"a\r\n", "a\n").text_for(b"a\r\nb\r\n") == "a\nb\n"


@pytest.mark.parametrize("codec", ["cp1251", "gb18030", "cp932", "utf-16", "utf-8-sig"])
def test_bytes_may_be_shown_in_the_encoding_that_they_are_in(codec: str) -> None:
    text = {"gb18030": "\u4f60\u597d", "cp932": "\u3053\u3093", "cp1251": "\u043f\u0440\u0438"}.get(codec, "plain text")
    data = (text + "\r\n").encode(codec)
    assert not is_plain(data)
    assert may_be_saved(data, text + "\n")
    assert not may_be_saved(data, text + " and more\n")


def test_text_with_replacement_characters_is_taken_for_what_an_editor_could_not_decode() -> None:
    data = "gr\u00fc\u00dfe\n".encode("cp1252")

    assert may_be_saved(data, "gr\ufffde\n")
    assert not may_be_saved(data, "gre\n")


@requirement("multi_edit:acp:editor_files", "outside:lease:editor")
def test_an_editor_that_writes_a_file_of_another_step_before_it_answers_does_not_wait_for_us(tmp_path: Path) -> None:
    world = local_world(tmp_path, Kernel())
    codes = list[int | None]()

    def save_other(_: str) -> None:
        if not codes:
            codes.append(start_append(world.root / "b").poll())

    editor = Editor(closed={"b"}, on_write=save_other)
    world.put("a", b"old a\n")
    world.put("b", b"old b\n")
    local, world.disk = world.disk, EditorDisk(world.disk, editor, largest=1000)

    with pytest.raises(StaleFile):
        world.apply(
            world.replace("b", b"new b\n", expected=b"old b\n"), world.replace("a", b"new a\n", expected=b"old a\n")
        )

    assert codes == [0]  # it did not have to wait
    assert (editor.text(world.root / "a"), world.listing()["b"]) == ("old a\n", b"old b\nOUTSIDE")
    local.close()
