"""Line breaks in what is quoted: one break of the file is one break, and places that overlap are two."""

import pytest

from surehold.errors import MultipleMatches, OldTextNotFound
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.snapshot import Snapshot

ROWS = "{\n}\n}\n}\nend\n"


@pytest.mark.parametrize("edits", [SnapshotEdits, SequentialEdits])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-le", "shift_jis"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_overlapping_places_are_not_one(edits: type[SnapshotEdits], codec: str, ending: str) -> None:
    before = Snapshot(ROWS.replace("\n", ending).encode(codec), encoding=None if codec == "utf-16" else codec)

    with pytest.raises(MultipleMatches) as refused:
        edits((StringEdit(old="}\n}", new="x"),)).plan(before)
    assert refused.value.details["count"] == 2


@pytest.mark.parametrize("edits", [SnapshotEdits, SequentialEdits])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_three_breaks_are_not_four(edits: type[SnapshotEdits], codec: str) -> None:
    before = Snapshot("a\r\n\r\n\r\nb".encode(codec))

    with pytest.raises(OldTextNotFound):
        edits((StringEdit(old="a\n\n\n\nb", new="x"),)).plan(before)
    assert edits((StringEdit(old="a\n\n\nb", new="x"),)).plan(before).after.data == "x".encode(codec)
