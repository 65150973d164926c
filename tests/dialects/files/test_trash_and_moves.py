import os
import stat

import pytest

from dialects.place import Place, sha256
from spec.marks import requirement


@requirement("files:delete_file:trash", "files:restore_file:by_id")
def test_a_deleted_file_comes_back_with_mode_and_time(place: Place) -> None:
    digest = place.put("run.sh", b"#!/bin/sh\n")
    place.file("run.sh").chmod(0o755)
    os.utime(place.file("run.sh"), ns=(10**18, 10**18))

    deleted = place.on("delete_file", "run.sh", expectedSha256=digest).data
    gone = not place.file("run.sh").exists()
    restored = place.call("restore_file", trashId=deleted["trashId"]).data
    status = place.file("run.sh").stat()

    assert gone
    assert (deleted["deleted"], deleted["beforeSha256"], deleted["trashedTo"]) == (
        True,
        digest,
        f"trash:{deleted['trashId']}",
    )
    assert (restored["restored"], restored["path"], restored["sha256"]) == (True, place.path("run.sh"), digest)
    assert (place.get("run.sh"), stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (b"#!/bin/sh\n", 0o755, 10**18)


@requirement("files:restore_file:by_id")
def test_a_deleted_file_is_also_named_by_where_it_was_put(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    trashed_to = place.on("delete_file", "a.txt", expectedSha256=digest).data["trashedTo"]

    assert place.call("restore_file", trashedPath=trashed_to).ok
    assert place.get("a.txt") == b"one\n"


@requirement("files:restore_file:no_overwrite")
def test_restoring_never_overwrites_and_another_place_can_be_named(place: Place) -> None:
    digest = place.put("a.txt", b"old\n")
    trash_id = place.on("delete_file", "a.txt", expectedSha256=digest).data["trashId"]
    place.put("a.txt", b"new\n")

    refused = place.call("restore_file", trashId=trash_id)
    elsewhere = place.call("restore_file", trashId=trash_id, targetPath=place.path("sub/b.txt"))

    assert refused.error["kind"] == "already_exists"
    assert (elsewhere.data["path"], place.get("sub/b.txt"), place.get("a.txt")) == (
        place.path("sub/b.txt"),
        b"old\n",
        b"new\n",
    )


def test_restoring_what_is_not_in_the_trash_is_refused(place: Place) -> None:
    unknown = place.call("restore_file", trashId="01h00000000000000000000000")
    escape = place.call("restore_file", trashedPath="/etc/passwd")
    nothing = place.call("restore_file")

    assert [a.error["reason"] for a in (unknown, escape, nothing)] == [
        "trash_entry_missing",
        "trash_entry_missing",
        "no_trash_id",
    ]


def test_two_names_of_different_files_restore_neither(place: Place) -> None:
    one, other = (
        place.on("delete_file", name, expectedSha256=place.put(name, b"old\n")).data for name in ("a.txt", "b.txt")
    )

    refused = place.call("restore_file", trashId=one["trashId"], trashedPath=other["trashedTo"])

    assert (refused.error["reason"], refused.error["suggestedNextAction"]) == ("two_trash_ids", "Send one of them.")
    assert not place.file("a.txt").exists()
    assert place.call("restore_file", trashId=one["trashId"], trashedPath=one["trashedTo"]).ok


def test_a_dry_run_of_a_restore_brings_nothing_back(place: Place) -> None:
    digest = place.put("a.txt", b"old\n")
    trash_id = place.on("delete_file", "a.txt", expectedSha256=digest).data["trashId"]

    assert place.call("restore_file", trashId=trash_id, dryRun=True).data["restored"] is False
    assert not place.file("a.txt").exists()
    assert place.call("restore_file", trashId=trash_id).ok


@requirement("files:delete_file:permanent")
def test_a_permanently_deleted_file_is_not_offered_in_the_trash(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")

    deleted = place.on("delete_file", "a.txt", expectedSha256=digest, permanent=True).data

    assert "trashId" not in deleted
    assert place.path("a.txt") not in place.shell("trash", "list")
    place.shell("undo", deleted["changeId"])
    assert place.get("a.txt") == b"one\n"


def test_a_directory_is_not_deleted(place: Place) -> None:
    place.put("d/a.txt", b"one\n")

    assert place.on("delete_file", "d", expectedSha256="0" * 64).error["reason"] == "is_a_directory"


@requirement("files:move_file:no_overwrite")
def test_a_file_is_moved_but_never_over_another(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    place.put("b.txt", b"two\n")

    refused = place.call("move_file", fromPath=place.path("a.txt"), toPath=place.path("b.txt"), expectedSha256=digest)
    moved = place.call("move_file", fromPath=place.path("a.txt"), toPath=place.path("new/c.txt"), expectedSha256=digest)

    assert refused.error["kind"] == "already_exists"
    assert (moved.data["moved"], moved.data["fromPath"], moved.data["toPath"], moved.data["sha256"]) == (
        True,
        place.path("a.txt"),
        place.path("new/c.txt"),
        digest,
    )
    assert (place.get("new/c.txt"), place.get("b.txt"), place.file("a.txt").exists()) == (b"one\n", b"two\n", False)


@pytest.mark.parametrize("names", [("from", "to"), ("source", "destination"), ("path", "to")])
def test_a_move_knows_the_other_names_of_its_two_paths(place: Place, names: tuple[str, str]) -> None:
    digest = place.put("a.txt", b"one\n")
    paths = dict(zip(names, (place.path("a.txt"), place.path("b.txt")), strict=True))

    assert place.call("move_file", **paths, expectedSha256=digest).data["moved"]
    assert (place.get("b.txt"), place.file("a.txt").exists()) == (b"one\n", False)


@requirement("files:move_file:overwrite", "promise:refusal:one_retry")
def test_an_overwritten_destination_is_proven_and_goes_to_the_trash(place: Place) -> None:
    digest, other = place.put("a.txt", b"one\n"), place.put("b.txt", b"two\n")
    move = {"fromPath": place.path("a.txt"), "toPath": place.path("b.txt"), "expectedSha256": digest, "overwrite": True}

    unproven = place.call("move_file", **move)
    wrong = place.call("move_file", **move, expectedDestSha256="0" * 64)
    moved = place.call("move_file", **move, expectedDestSha256=unproven.error["details"]["actualSha256"])

    assert (unproven.error["kind"], unproven.error["details"]["actualSha256"]) == ("already_exists", other)
    assert wrong.error["kind"] == "stale_file"
    assert place.get("b.txt") == b"one\n"
    back = place.call("restore_file", trashedPath=moved.data["overwroteTrashedTo"], targetPath=place.path("b-old.txt"))
    assert (back.ok, place.get("b-old.txt")) == (True, b"two\n")


def test_overwriting_where_nothing_is_needs_no_proof(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")

    moved = place.call(
        "move_file", fromPath=place.path("a.txt"), toPath=place.path("b.txt"), expectedSha256=digest, overwrite=True
    )

    assert moved.ok


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_cannot_be_the_sha256_of_a_destination_is_refused(place: Place, overwrite: bool) -> None:
    digest = place.put("a.txt", b"one\n")

    refused = place.call(
        "move_file",
        fromPath=place.path("a.txt"),
        toPath=place.path("b.txt"),
        expectedSha256=digest,
        overwrite=overwrite,
        expectedDestSha256="nonsense",
    )

    assert refused.error["reason"] == "malformed_sha256"
    assert place.file("a.txt").exists()


def test_a_file_is_not_moved_onto_itself(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")

    answer = place.call("move_file", fromPath=place.path("a.txt"), toPath=place.path("./a.txt"), expectedSha256=digest)

    assert answer.error["reason"] == "same_path"
    assert place.get("a.txt") == b"one\n"


def test_a_binary_file_is_moved_byte_for_byte(place: Place) -> None:
    data = bytes(range(256)) * 10
    digest = place.put("a.png", data)

    assert place.call("move_file", fromPath=place.path("a.png"), toPath=place.path("b.png"), expectedSha256=digest).ok
    assert sha256(place.get("b.png")) == digest


def test_a_refused_move_says_how_to_replace_the_file(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    place.put("b.txt", b"two\n")
    move = {"fromPath": place.path("a.txt"), "toPath": place.path("b.txt"), "expectedSha256": digest}

    taken = place.call("move_file", **move).error
    wrong = place.call("move_file", **move, overwrite=True, expectedDestSha256="0" * 64).error

    assert "expectedDestSha256" in taken["suggestedNextAction"]
    assert (wrong["kind"], wrong["details"]["actualDestSha256"]) == ("stale_file", sha256(b"two\n"))
    assert "expectedDestSha256" in wrong["suggestedNextAction"]
