"""Sessions whose files live in the editor, and sessions whose files live on the disk."""

from front.acp.editor import choosing, command, connected, run
from front.acp.place import Place, call
from spec.marks import requirement


@requirement("multi_edit:acp:editor_files")
def test_what_is_unsaved_in_the_editor_is_what_is_read_and_edited(place: Place) -> None:
    path = str(place.put("a.txt", "saved\n"))

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once"), files=True) as editor:
            editor.buffers[path] = "unsaved\n"
            await editor.say("/read a.txt")
            assert editor.events[-1]["rawOutput"]["data"]["content"] == "unsaved\n"
            shown = editor.events[-1]["rawOutput"]["data"]["sha256"]
            edits = [{"oldText": "unsaved", "newText": "edited"}]
            await editor.say(call("edit_file", path="a.txt", expectedSha256=shown, edits=edits))
            assert editor.statuses[-3:] == ["pending", "in_progress", "completed"]
            assert editor.questions[0]["toolCall"]["content"][0]["oldText"] == "unsaved\n"
            assert editor.buffers[path] == "edited\n"

    run(scenario())
    assert place.get("a.txt") == b"saved\n"  # saving is the person's business


@requirement("multi_edit:acp:weaker_guarantee")
def test_an_edit_through_the_editor_says_that_its_guarantee_is_weaker(place: Place) -> None:
    path = str(place.put("a.txt", "one\n"))

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits", files=True) as editor:
            editor.buffers[path] = "one\n"
            await editor.say(f"/edit {path} one two")
            completed = editor.events[-1]
            (warning,) = completed["rawOutput"]["_meta"]["warnings"]
            assert warning.startswith(
                "`a.txt` was written through the editor, which cannot compare and write in one step"
            )
            assert warning in completed["content"][-1]["content"]["text"]
            assert editor.buffers[path] == "two\n"

    run(scenario())


@requirement("multi_edit:acp:editor_files")
def test_a_directory_that_was_opened_by_a_link_keeps_the_name_that_the_editor_knows(place: Place) -> None:
    place.put("a.txt", "one\n")
    link = place.root.parent / "link"
    link.symlink_to(place.root)
    path = f"{link}/a.txt"

    async def scenario() -> None:
        async with connected(command(place.root, place.state, "--mode", "acceptEdits")) as editor:
            editor.buffers[path] = "typed one\n"
            await editor.begin(link, files=True)
            await editor.say("/edit a.txt one two")
            await editor.say(
                call("multi_edit_text_file", path=path, edits=[{"old_string": "two", "new_string": "three"}])
            )
            assert editor.buffers == {path: "typed three\n"}
            assert {place["path"] for one in editor.events for place in one.get("locations", ())} == {path}
            assert editor.events[-1]["content"][0]["path"] == path

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_client_without_file_access_is_never_asked_for_files(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once"), files=False) as editor:
            await editor.say("/read a.txt")
            await editor.say(place.edit("a.txt", ("one", "two")))
            assert editor.statuses[-1] == "completed"
            assert not [one for one in editor.received if str(one.get("method", "")).startswith("fs/")]

    run(scenario())
    assert place.get("a.txt") == b"two\n"


def test_unsaved_changes_in_a_file_that_only_the_disk_can_change_are_called_so(place: Place) -> None:
    path = str(place.put("a.txt", "\ufeffone\n"))

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits", files=True) as editor:
            editor.buffers[path] = "typed\n"
            await editor.say("/edit a.txt one two")
            assert editor.message == (
                f"Failed. multi_edit_text_file: File has unsaved changes in the editor: {path}. "
                "Save or discard the changes in the editor first, then read the file and try again."
            )
            assert editor.buffers[path] == "typed\n"

    run(scenario())
    assert place.get("a.txt") == "\ufeffone\n".encode()
