"""What `Read` shows counts as seen by `Edit` and `Write`, and nothing else does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialects.claude.read_place import Desk, desk_at
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.dialects.shared.delivery_record import DeliveryRecord
from surehold.library.session import AgentSession

HUNDRED = b"".join(b"line %d\n" % number for number in range(1, 101))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("gate")) as found:
        yield found


def edited(desk: Desk, path: str, old: str, new: str) -> str:
    said = desk.call("Edit", file_path=path, old_string=old, new_string=new)
    return said.error["kind"] if said.raw["isError"] else "done"


def written(desk: Desk, path: str) -> str:
    said = desk.call("Write", file_path=path, content="new\n")
    return said.error["kind"] if said.raw["isError"] else "done"


@requirement("claude:gate:not_read", "claude:gate:lines_seen")
def test_lines_can_be_edited_once_they_were_read(desk: Desk) -> None:
    path = desk.put("a.txt", HUNDRED)

    before = edited(desk, path, "line 50\n", "fifty\n")
    desk.read(path, offset=40, limit=20)

    assert (before, edited(desk, path, "line 50\n", "fifty\n")) == ("not_read", "done")
    assert edited(desk, path, "line 90\n", "ninety\n") == "partially_read"
    assert written(desk, path) == "partially_read"


@requirement("claude:gate:adds_up")
def test_pages_add_up_to_the_whole_file(desk: Desk) -> None:
    path = desk.put("b.txt", HUNDRED)

    for offset in (61, 1, 31):
        desk.read(path, offset=offset, limit=40)

    assert written(desk, path) == "done"


def test_a_line_that_was_cut_does_not_count_as_seen(desk: Desk) -> None:
    path = desk.put("c.txt", b"x" * 1_000_000)

    desk.read(path)

    assert written(desk, path) == "partially_read"


def test_a_small_budget_cuts_no_line_that_counts_as_seen_and_not_the_notice(tmp_path: Path) -> None:
    with desk_at(tmp_path, "--max-tokens", "500") as small:
        path = small.put("a.txt", b"".join(b"this is line %d of the file\n" % number for number in range(1, 1_001)))
        said = small.read(path)
        last = said.data["numLines"]

        assert said.text.endswith(f"\n{last}→this is line {last} of the file\n[{said.data['notice']}]")
        assert len(said.text) <= 2_000
        assert edited(small, path, f"line {last + 1} of", "x") == "partially_read"
        assert edited(small, path, f"line {last} of", "x") == "done"


def test_an_empty_file_that_was_read_can_be_written(desk: Desk) -> None:
    path = desk.put("d.txt", b"")

    desk.read(path)

    assert written(desk, path) == "done"


@requirement("claude:gate:any_spelling")
def test_every_spelling_of_a_path_counts(desk: Desk) -> None:
    desk.put("sub/e.txt", b"one\n")
    (desk.root / "link.txt").symlink_to("sub/e.txt")

    desk.read("sub/../sub/e.txt")

    assert edited(desk, str(desk.root / "link.txt"), "one", "two") == "done"


class Relay(AgentSession):
    """A session that remembers what it was given."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.deliveries = DeliveryRecord()


@pytest.fixture
def relay(tmp_path: Path) -> Relay:
    (tmp_path / "root").mkdir()
    workspace = open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state", durability="none"))
    return Relay(workspace, id="one", agent="ada")


def kind(relay: Relay, path: str, **arguments: Any) -> str:
    answer = relay.answer("Read", {"file_path": path, **arguments})
    assert answer.ok, answer.text
    return str(answer.data["type"])


def put(relay: Relay, name: str, data: bytes) -> str:
    Path(relay.workspace.roots[0], name).write_bytes(data)
    return name


def test_a_long_line_counts_when_all_of_its_parts_were_shown(relay: Relay) -> None:
    path, columns = put(relay, "long", b"x" * 90_000 + b"\n"), list[int]()

    column = 1
    while column:
        assert not relay.answer("Write", {"file_path": path, "content": "new\n"}).ok
        columns.append(column)
        column = relay.answer("Read", {"file_path": path, "column": column}).data.get("nextColumn", 0)

    assert columns == [1, 38_001, 76_001]
    assert relay.answer("Write", {"file_path": path, "content": "new\n"}).ok


def test_a_part_that_was_skipped_keeps_a_line_unseen(relay: Relay) -> None:
    path = put(relay, "long", b"x" * 90_000 + b"\n")

    relay.answer("Read", {"file_path": path})
    relay.answer("Read", {"file_path": path, "column": 80_001})

    assert not relay.answer("Write", {"file_path": path, "content": "new\n"}).ok


@requirement("claude:read:unchanged", "claude:read:types")
def test_the_same_lines_of_the_same_bytes_are_not_sent_twice_in_a_row(relay: Relay) -> None:
    path = put(relay, "a", HUNDRED)
    relay.deliveries.says_unchanged = True

    kinds = [kind(relay, path) for _ in range(4)]

    assert kinds == ["text", "file_unchanged", "text", "file_unchanged"]
    assert kind(relay, path, offset=2) == "text"


@requirement("claude:read:unchanged")
def test_content_comes_again_after_a_change_and_after_a_compaction(relay: Relay) -> None:
    path = put(relay, "a", HUNDRED)
    relay.deliveries.says_unchanged = True

    first = kind(relay, path)
    put(relay, "a", HUNDRED + b"more\n")
    changed = kind(relay, path)
    relay.deliveries.notify_compaction()
    compacted = kind(relay, path)

    assert (first, changed, compacted) == ("text", "text", "text")
    stub = relay.answer("Read", {"file_path": path})
    assert stub.text == "[nothing changed since these lines were delivered]"
    assert set(stub.data) == {"type", "filePath", "sha256", "notice"}


@requirement("claude:read:unchanged")
def test_over_mcp_everything_is_always_sent(desk: Desk) -> None:
    path = desk.put("again.txt", HUNDRED)

    assert {desk.read(path).data["type"] for _ in range(3)} == {"text"}


def test_a_notebook_is_never_seen_as_a_whole_since_not_all_of_it_is_shown(relay: Relay) -> None:
    cell = {"cell_type": "markdown", "id": "a", "metadata": {"secret": "of nobody's concern"}, "source": ["one"]}
    book: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    path = put(relay, "book.ipynb", json.dumps(book, indent=1).encode())

    assert kind(relay, path) == "notebook"

    (seen,) = relay.workspace.store.list_sightings(relay.id, relay.workspace.target(path).key)
    assert (seen.whole, len(seen.spans)) == (False, 1)
