"""`serve --workers N`: several processes on one port, which clients cannot tell from one."""

import hashlib
import os
import signal
from pathlib import Path

import pytest

from front.mcp.site import HttpServer, Site, text_of
from front.mcp.test_operations import metrics_of
from spec.marks import requirement
from surehold.front.mcp.resources import SavedAnswers
from surehold.front.mcp.sdk.workers import add_up
from waiting import wait_until

LEGACY = "2025-11-25"


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def workers_of(server: HttpServer) -> list[int]:
    text = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [int(pid) for pid in text.split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at /proc")
@requirement("fleet:workers:sessions", "fleet:workers:end")
def test_any_worker_answers_any_client_and_a_killed_one_is_replaced(site: Site) -> None:
    flags = ("--port", "0", "--workers", "3", "--tools", "claude,files", "--allow-unchecked")
    with site.serve("serve", *flags) as server:
        wait_until(lambda: len(workers_of(server)) == 3)
        sessions = dict[str, dict[str, str]]()
        while len(sessions) < 2:  # until two workers have one
            headers = server.initialize(LEGACY)
            sessions[headers["Mcp-Session-Id"].rpartition(".w")[2]] = headers
        for number, headers in enumerate([*sessions.values()] * 2):
            name = f"f{number}.txt"
            site.put(name, "one\n")
            for tool, arguments in (
                ("Read", {"file_path": name}),
                ("Edit", {"file_path": name, "old_string": "one", "new_string": "two"}),
                ("Edit", {"file_path": name, "old_string": "two", "new_string": "three"}),
            ):
                result = server.call(tool, arguments, era=LEGACY, headers=headers)
                assert not result.get("isError"), text_of(result)
            assert site.get(name) == b"three\n"
        assert metrics_of(server)["surehold_edits_total"] == 8

        before = workers_of(server)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(workers_of(server)) == 3 and before[0] not in workers_of(server))
        assert not server.call("read_file", {"path": "f0.txt"}).get("isError")
        last = workers_of(server)
        assert server.stop() == 0

    assert not [pid for pid in last if is_running(pid)]
    with site.open() as workspace:
        assert workspace.history.verify().ok


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at /proc")
@requirement("fleet:workers:end")
def test_a_worker_that_was_stopped_does_not_keep_the_server_from_ending(site: Site) -> None:
    with site.serve("serve", "--port", "0", "--workers", "2", "--drain-seconds", "0") as server:
        wait_until(lambda: len(workers_of(server)) == 2)
        last = workers_of(server)
        os.kill(last[0], signal.SIGSTOP)
        try:
            assert server.stop() == 0
        finally:
            for pid in filter(is_running, last):
                os.kill(pid, signal.SIGKILL)

    assert "did not end in time and was killed" in server.said
    assert not [pid for pid in last if is_running(pid)]


@requirement("fleet:workers:sessions")
def test_an_answer_that_was_too_large_is_read_from_any_process_and_no_version_of_a_file_is(site: Site) -> None:
    secret = "surehold is not the beginning of this\n"
    site.put("hidden.txt", secret)
    with site.open() as one, site.open() as other:
        one.session(agent="a").edit("hidden.txt", ("not", "never"))
        uri = SavedAnswers(one).keep_text("ünd so weiter\n" * 3, "text/plain")
        elsewhere = SavedAnswers(other)

        assert elsewhere.read_resource(uri) == [{"uri": uri, "mimeType": "text/plain", "text": "ünd so weiter\n" * 3}]
        name = hashlib.sha256(secret.encode()).hexdigest()
        assert other.read_bytes(name) == secret.encode()
        assert elsewhere.read_resource(f"surehold://answer/{name}") is None
        assert elsewhere.read_resource("surehold://answer/of-no-one") is None


@requirement("fleet:operations:metrics")
def test_the_metrics_of_several_workers_add_up_and_stay_together() -> None:
    one = '# HELP a A.\n# TYPE a counter\na{k="x"} 1\n# HELP surehold_ready R.\n# TYPE surehold_ready gauge\nsurehold_ready 1\n'
    other = '# HELP a A.\n# TYPE a counter\na{k="y"} 2\na{k="x"} 0.5\n# HELP surehold_ready R.\n# TYPE surehold_ready gauge\nsurehold_ready 1\n'

    assert add_up([one, other]).splitlines() == [
        "# HELP a A.",
        "# TYPE a counter",
        'a{k="x"} 1.5',
        'a{k="y"} 2',
        "# HELP surehold_ready R.",
        "# TYPE surehold_ready gauge",
        "surehold_ready 1",
    ]
