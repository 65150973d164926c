"""A server whose database is stopped, not dead: what its watchers and its callers hear."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from databases.postgres_server import PostgresServer
from databases.schemas import set_up_schema
from front.mcp.site import text_of
from front.mcp.test_replicas import Replicas, WaitingAgent
from spec.marks import requirement
from waiting import wait_until


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    database = PostgresServer.create()
    try:
        database.start()
        set_up_schema(f"{database.url}/postgres")
        yield database
    finally:
        database.remove()


@requirement("fleet:operations:health", "fleet:state:silent")
def test_a_server_is_not_ready_while_its_database_is_stopped_and_says_so_before_any_call_gives_up(
    tmp_path: Path, database: PostgresServer
) -> None:
    with ExitStack() as end:
        replicas = Replicas(tmp_path, f"{database.url}/postgres", end)
        server = replicas.start("a", "--mode", "acceptEdits")
        assert not server.call("create_file", {"path": "a.txt", "content": "1\n"}).get("isError")
        assert server.send("GET", "/readyz")[0] == 200

        with database.stopped():
            agent = WaitingAgent(server, {"path": "b.txt", "content": "2\n"})
            status, _, body = server.send("GET", "/readyz")
            assert (status, json.loads(body)) == (503, {"ready": False, "problem": "state"})
            assert server.send("GET", "/healthz")[0] == 200
            assert "surehold_ready 0" in server.send("GET", "/metrics")[2].decode()
            assert not agent.result, "the call has more patience than the balancer"
            said = text_of(agent.answer())

        assert said.startswith("Nothing was written.")
        assert "database" in said
        assert not (replicas.site.root / "b.txt").exists()
        wait_until(lambda: server.send("GET", "/readyz")[0] == 200)
        assert not server.call("create_file", {"path": "b.txt", "content": "2\n"}).get("isError")
