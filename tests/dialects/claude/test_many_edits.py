"""Many edits of one file at once: none is lost."""

import threading
from pathlib import Path

from dialects.claude.desk import Desk, Told, numbered
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement

EDITS = 20


@requirement("claude:gate:checked_again", "claude:gate:own_writes")
def test_12_twenty_edits_at_once_in_one_server_are_all_there(desk: Desk) -> None:
    desk.put("file.txt", numbered(EDITS))
    desk.read("file.txt")
    client = desk.place.client

    calls = [
        client.start_call(
            "Edit", {"file_path": desk.path("file.txt"), "old_string": f"line {n}\n", "new_string": f"edited {n}\n"}
        )
        for n in range(1, EDITS + 1)
    ]

    assert all(Told(client.answer(call)).ok for call in calls)
    assert desk.get("file.txt").decode() == numbered(EDITS).replace("line", "edited")


@requirement("claude:gate:checked_again", "claude:gate:stale")
def test_12_two_servers_refuse_each_other_with_what_changed_and_a_plain_retry_works(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file.txt").write_text(numbered(2 * EDITS))
    command = surehold("mcp", root, "--state-dir", tmp_path / "state", "--tools", "claude")
    refused = list[str]()

    def work(client: StdioClient, first: int) -> None:
        client.call("Read", {"file_path": "file.txt"})
        for number in range(first, 2 * EDITS + 1, 2):
            arguments = {"file_path": "file.txt", "old_string": f"line {number}\n", "new_string": f"edited {number}\n"}
            while not (told := Told(client.call("Edit", arguments))).ok:
                refused.append(told.kind)

    with StdioClient(command) as one, StdioClient(command) as other:
        threads = [threading.Thread(target=work, args=pair) for pair in ((one, 1), (other, 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert (root / "file.txt").read_text() == numbered(2 * EDITS).replace("line", "edited")
    assert set(refused) <= {"stale"}
