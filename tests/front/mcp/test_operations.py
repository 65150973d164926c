"""What those who run a server see of it: health, readiness, metrics, logs, and how it ends."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading

import pytest

from front.mcp.client import Json
from front.mcp.site import HttpServer, Site
from spec.marks import requirement
from waiting import wait_until

SAMPLE = re.compile(r"[a-z_]+(?:\{(?:[a-z]+=\"[^\"]*\",?)+\})? (?:\d+(?:\.\d+)?)")


def metrics_of(server: HttpServer) -> dict[str, float]:
    status, headers, body = server.send("GET", "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    rows = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(row) for row in rows), rows
    return {name: float(value) for name, _, value in (row.rpartition(" ") for row in rows)}


@requirement("fleet:operations:health", "fleet:operations:metrics")
def test_health_readiness_and_metrics_need_no_sign_in_and_show_no_secret(site: Site) -> None:
    site.put("a.txt", "one\n")
    with site.serve("serve", "--port", "0", "--allow-unchecked", "--deny", "secret*") as server:
        assert server.send("GET", "/healthz")[0] == 200
        assert json.loads(server.send("GET", "/readyz")[2]) == {"ready": True, "problem": ""}
        assert server.send("GET", "/readyz", headers={"Host": "10.0.0.7:8765"})[0] == 200  # as a balancer asks
        before = metrics_of(server)
        server.call("edit_file", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]})
        server.call("edit_file", {"path": "a.txt", "edits": [{"oldText": "gone", "newText": "x"}]})
        server.call("read_file", {"path": "a.txt"})
        after = metrics_of(server)
        shown = server.send("GET", "/metrics")[2].decode()

    assert (before["surehold_edits_total"], after["surehold_edits_total"]) == (0, 1)
    assert after['surehold_refusals_total{kind="old_text_not_found"}'] == 1
    assert after['surehold_calls_total{tool="edit_file",outcome="ok"}'] == 1
    assert after['surehold_calls_total{tool="edit_file",outcome="refused"}'] == 1
    assert after['surehold_call_seconds_count{kind="change"}'] == 2
    assert after['surehold_call_seconds_bucket{kind="read",le="+Inf"}'] == 1
    assert (after["surehold_open_intents"], after["surehold_lease_losses_total"]) == (0, 0)
    assert not any(secret in shown for secret in (server.token, "a.txt", str(site.root)))


@requirement("fleet:operations:health")
def test_a_server_whose_history_is_gone_is_healthy_and_not_ready(site: Site) -> None:
    with site.serve("serve", "--port", "0") as server:
        assert server.send("GET", "/readyz")[0] == 200
        (site.state / "state.db").rename(site.state / "elsewhere")

        wait_until(lambda: server.send("GET", "/readyz")[0] == 503)

        assert json.loads(server.send("GET", "/readyz")[2]) == {"ready": False, "problem": "state"}
        assert server.send("GET", "/healthz")[0] == 200
        assert metrics_of(server)["surehold_ready"] == 0


@requirement("fleet:operations:drain")
def test_a_server_that_is_told_to_end_finishes_its_calls_and_takes_no_more(site: Site) -> None:
    site.put("a.txt", "one\n")
    edit = {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}
    with site.serve("serve", "--port", "0", "--allow-unchecked") as server, site.open() as workspace:
        answers = list[Json]()
        caller = threading.Thread(target=lambda: answers.append(server.call("edit_file", edit)))
        with workspace.disk.lock([workspace.target("a.txt")], timeout=0):
            caller.start()
            wait_until(lambda: metrics_of(server)["surehold_running_requests"] == 1)
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.send("GET", "/readyz")[0] == 503)
            status, _, _ = server.rpc("tools/call", {"name": "edit_file", "arguments": edit})
        caller.join()
        server.process.communicate()

    assert status == 503
    assert not answers[0].get("isError")
    assert site.get("a.txt") == b"two\n"
    assert server.process.returncode == 0


@requirement("fleet:operations:logs")
def test_structured_logs_are_one_document_for_each_call(site: Site) -> None:
    site.put("a.txt", "one\n")
    with site.serve("serve", "--port", "0", "--log-format", "json") as server:
        server.call("read_file", {"path": "a.txt"})
        server.call("read_file", {"path": "missing.txt"})
        assert server.stop() == 0
    rows = [json.loads(line) for line in server.said.splitlines()]  # from the first line on

    calls = [row for row in rows if row["event"] == "call"]
    assert [(row["tool"], row["outcome"], row["refusal"]) for row in calls] == [
        ("read_file", "ok", ""),
        ("read_file", "refused", "not_found"),
    ]
    assert all(row["level"] == "info" and row["ms"] >= 0 and row["session"] for row in calls)


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
def test_a_drain_time_must_be_a_number_of_seconds(site: Site, seconds: str) -> None:
    words = [sys.executable, "-m", "surehold", "serve", str(site.root), f"--drain-seconds={seconds}"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 2


def test_other_methods_and_paths_are_not_answered_there(site: Site) -> None:
    with site.serve("serve", "--port", "0") as server:
        connection = http.client.HTTPConnection(server.host, server.port)
        connection.request("POST", "/healthz")
        assert connection.getresponse().status in {404, 405}
        connection.close()
        assert server.send("GET", "/healthz/x")[0] == 404
