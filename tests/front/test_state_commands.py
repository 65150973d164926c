"""`--state` on every command, and `surehold state init|status|migrate`."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from databases.schemas import PostgresSchema
from front.shell import Shell
from spec.marks import requirement
from surehold.app import open_workspace
from surehold.errors import StateTooNew, StateUnavailable
from surehold.stores.postgres import schema


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("one = 1\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(root)
    return root


@requirement("fleet:state:place")
def test_the_history_is_in_the_database_and_every_command_finds_it(
    shell: Shell, project: Path, postgres_schema: PostgresSchema
) -> None:
    url = postgres_schema.url
    assert shell("edit", "a.py", "--old", "1", "--new", "2", "--state", url).code == 0

    listed = json.loads(shell("--state", url, "log", "--json").out)["entries"]
    assert [entry["path"] for entry in listed] == ["a.py"]
    assert shell("verify", "--state", url).code == 0
    assert shell("undo", "--state", url).code == 0
    assert (project / "a.py").read_text() == "one = 1\n"
    assert json.loads(shell("status", "--state", url, "--json").out)["state"] == url
    assert shell("gc", "--keep", "1d", "--state", url).code == 0
    assert "nothing" in shell("log").out.lower()  # the state directory has no history


@requirement("fleet:state:place")
def test_the_setting_and_the_environment_name_it_too(
    shell: Shell, project: Path, tmp_path: Path, postgres_schema: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(project, state=postgres_schema.url) as workspace:
        workspace.session(agent="ada").create_file("new.txt", "x\n")
    monkeypatch.setenv("SUREHOLD_STATE", postgres_schema.url)
    by_environment = shell("log", "--json").out
    monkeypatch.delenv("SUREHOLD_STATE", raising=False)
    config = tmp_path / "config" / "surehold" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'state = "{postgres_schema.url}"\n')

    by_setting = shell("log", "--json").out

    assert by_environment == by_setting
    assert [entry["agent"] for entry in json.loads(by_setting)["entries"]] == ["ada"]


@requirement("fleet:state:commands")
def test_init_status_and_migrate(shell: Shell, project: Path, tmp_path: Path, worker_schema: PostgresSchema) -> None:
    fresh, role = f"{worker_schema.url}_fresh", f"agents_{os.getpid()}"
    with psycopg.connect(worker_schema.address.conninfo, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {PostgresSchema(fresh).address.schema} CASCADE".encode())
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    shell("edit", "a.py", "--old", "1", "--new", "2")
    refused = shell("log", "--state", fresh)
    assert refused.code == 1
    assert "surehold state init" in refused.err

    assert json.loads(shell("state", "init", fresh, "--role", role, "--json").out) == {
        "state": fresh,
        "schema": schema.LATEST,
        "schema_before": 0,
    }
    agents = fresh.replace("postgres@", f"{role}@")
    moved = json.loads(shell("state", "migrate", agents, "--json").out)
    assert (moved["entries"], moved["blobs"], moved["target"]) == (1, 2, agents)
    status = json.loads(shell("state", "status", agents, "--json").out)
    assert (status["schema"], status["lease_seconds"]) == (schema.LATEST, 10)
    assert [(one["root"], one["entries"], one["open_intents"]) for one in status["workspaces"]] == [
        (str(project), 1, 0)
    ]
    back = tmp_path / "back"
    assert shell("state", "migrate", str(back), "--state", agents).code == 0
    assert shell("undo", "--state-dir", str(back)).code == 0
    assert (project / "a.py").read_text() == "one = 1\n"
    with psycopg.connect(PostgresSchema(agents).address.conninfo, autocommit=True) as connection:
        for statement in ("DELETE FROM entries", "CREATE TABLE mine ()", "UPDATE schema_version SET version = 9"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.fixture
def other_service() -> Iterator[int]:
    """Return the port of a service that is not a database."""

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client:
                    client.recv(4096)
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@requirement("fleet:state:place")
def test_the_usual_spellings_of_an_address_work(shell: Shell, project: Path, postgres_schema: PostgresSchema) -> None:
    parts = urlsplit(postgres_schema.url)
    rest = f"dbname=postgres&user=postgres&port={parts.port}&{parts.query}"
    for url in (
        f"postgresql://postgres@127.0.0.1:1,127.0.0.1:{parts.port}/postgres?{parts.query}",
        f"postgresql://?host=127.0.0.1&{rest}",
        f"postgresql:///postgres?host=127.0.0.1&user=postgres&port={parts.port}&{parts.query}",
    ):
        said = shell("log", "--state", url, "--json")
        assert (said.code, said.err) == (0, ""), url
    assert (project / "a.py").read_text() == "one = 1\n"


@requirement("fleet:state:reading")
def test_a_database_that_is_read_only_can_be_looked_at(
    shell: Shell, project: Path, postgres_schema: PostgresSchema
) -> None:
    assert shell("edit", "a.py", "--old", "1", "--new", "2", "--state", postgres_schema.url).code == 0
    read_only = f"{postgres_schema.url}&options=-c%20default_transaction_read_only%3Don"

    for words in (["log"], ["status"], ["verify"], ["read", "a.py"], ["grep", "one"], ["diff"]):
        said = shell(*words, "--state", read_only)
        assert said.code == 0, (words, said.err)
    assert "1" in shell("log", "--state", read_only).out
    refused = json.loads(shell("edit", "a.py", "--old", "2", "--new", "3", "--state", read_only, "--json").out)["error"]

    assert refused["reason"] == "state_read_only"
    assert (project / "a.py").read_text() == "one = 2\n"


@requirement("fleet:state:reading")
def test_a_database_that_became_read_only_lists_what_it_holds_after_a_refusal(
    project: Path, postgres_schema: PostgresSchema
) -> None:
    read_only = f"{postgres_schema.url}&options=-c%20default_transaction_read_only%3Don"
    with open_workspace(project, state=postgres_schema.url) as workspace:
        made = workspace.session(agent="ada").create_file("new.txt", "x\n")
    with open_workspace(project, state=read_only) as workspace:
        with pytest.raises(StateUnavailable, match="read-only"):
            workspace.session(agent="ada").create_file("other.txt", "x\n")

        assert [one.change_id for one in workspace.changes()] == [made.change_id]
        assert workspace.history.verify().problem == ""


@requirement("fleet:state:words")
def test_the_status_of_a_history_that_a_role_may_not_use_says_so(
    shell: Shell, project: Path, postgres_schema: PostgresSchema
) -> None:
    with psycopg.connect(postgres_schema.address.conninfo, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    url = postgres_schema.url.replace("postgres@", "stranger@")

    for words in (["log", "--state", url], ["state", "status", url]):
        said = shell(*words, "--json")
        assert json.loads(said.out)["error"]["reason"] == "state_denied", words
        assert "--role NAME" in json.loads(said.out)["error"]["suggested_action"]


@requirement("fleet:state:words")
def test_every_way_to_fail_is_named_and_nothing_is_written(
    shell: Shell, project: Path, postgres_schema: PostgresSchema, other_service: int
) -> None:
    server = postgres_schema.url.partition("/postgres?")[0]
    with psycopg.connect(postgres_schema.address.conninfo, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS needs_password")
        connection.execute("CREATE ROLE needs_password LOGIN PASSWORD 'right'")
    cases = {
        "postgresql://postgres@127.0.0.1:1/x": "state_unreachable",
        f"{server}/no_such_database": "state_no_database",
        f"{server.replace('postgres@', 'nobody_we_know@')}/postgres": "state_bad_password",
        f"{server.replace('postgres@', 'needs_password:wrong@')}/postgres": "state_bad_password",
        f"{server}/postgres?sslmode=require": "state_tls",
        f"{server}/postgres?schema=never_made": "state_not_set_up",
        f"{server}/postgres?schema=No": "bad_state_url",
        f"{postgres_schema.url}&options=-c%20default_transaction_read_only%3Don": "state_read_only",
        f"{server.replace('postgres@', 'needs_password:right@')}/postgres?{postgres_schema.url.partition('?')[2]}": "state_denied",
        f"postgresql://postgres@127.0.0.1:{other_service}/x": "state_not_postgres",
        f"postgresql://postgres@127.0.0.1:{other_service}/x?sslmode=disable": "state_not_postgres",
        "postgresql://postgres@127.0.0.1:x/x": "bad_state_url",
        "mysql://host/x": "bad_state_url",
    }
    for url, reason in cases.items():
        said = shell("edit", "a.py", "--old", "1", "--new", "2", "--state", url, "--json")
        error = json.loads(said.out)["error"]
        assert (said.code, error["reason"]) == (1, reason), url
        assert error["suggested_action"], url
        assert "wrong" not in said.out + said.err, "the password is not repeated"
    assert (project / "a.py").read_text() == "one = 1\n"


@requirement("fleet:state:words")
@pytest.mark.parametrize(("version", "reason"), [(schema.LATEST + 1, "state_too_new"), (1, "state_too_old")])
def test_a_schema_of_another_version_is_left_alone(
    shell: Shell, project: Path, postgres_schema: PostgresSchema, version: int, reason: str
) -> None:
    with postgres_schema.connect() as connection:
        connection.execute("UPDATE schema_version SET version = %s", (version,))
        try:
            said = shell("edit", "a.py", "--old", "1", "--new", "2", "--state", postgres_schema.url, "--json")
        finally:
            connection.execute("UPDATE schema_version SET version = %s", (schema.LATEST,))

    assert json.loads(said.out)["error"]["reason"] == reason
    assert (project / "a.py").read_text() == "one = 1\n"


@requirement("fleet:state:words")
def test_a_state_of_another_directory_is_refused(
    shell: Shell, project: Path, tmp_path: Path, postgres_schema: PostgresSchema
) -> None:
    url = f"{postgres_schema.url}&workspace=team"
    shell("edit", "a.py", "--old", "1", "--new", "2", "--state", url)
    (tmp_path / "other").mkdir()

    said = shell("log", "--root", str(tmp_path / "other"), "--state", url, "--json")

    error = json.loads(said.out)["error"]
    assert error["reason"] == "state_of_another_workspace"
    assert str(project) in error["message"]


@requirement("fleet:state:doctor")
def test_doctor_looks_at_the_database(shell: Shell, project: Path, postgres_schema: PostgresSchema) -> None:
    said = shell("doctor", "--root", str(project), "--state", postgres_schema.url, "--json")

    report = json.loads(said.out)
    found = {one["name"]: one for one in report["findings"] if one["name"].startswith("state_")}
    assert list(found) == ["state_database", "state_schema", "state_role", "state_sync", "state_lease"]
    assert found["state_database"]["detail"].startswith("PostgreSQL ")
    assert found["state_schema"]["detail"].endswith(f"version {schema.LATEST}")
    assert found["state_role"]["detail"] == "`postgres` may add entries, and change them; servers need less"
    assert "fsync" in found["state_sync"]["detail"]  # the server of the tests confirms what is not on its disk
    assert (said.code, report["ok"]) == (1, False)


@requirement("fleet:state:doctor")
def test_doctor_says_that_a_database_cannot_be_reached(shell: Shell, project: Path) -> None:
    said = shell("doctor", "--root", str(project), "--state", "postgresql://postgres@127.0.0.1:1/x")

    assert said.code == 1
    assert "cannot be reached" in said.out
    assert "Not every promise holds here" in said.out


@requirement("fleet:state:schema")
def test_a_schema_that_changes_under_a_running_server_is_noticed(
    project: Path, postgres_schema: PostgresSchema
) -> None:
    with open_workspace(project, state=postgres_schema.url) as workspace, postgres_schema.connect() as connection:
        session = workspace.session(agent="ada")
        connection.execute("UPDATE schema_version SET version = %s", (schema.LATEST + 1,))
        try:
            with pytest.raises(StateTooNew) as refused:
                session.create_file("b.py", "x")
            with pytest.raises(StateTooNew):
                workspace.check_history()
        finally:
            connection.execute("UPDATE schema_version SET version = %s", (schema.LATEST,))

        assert "--state-dir" not in refused.value.action
        assert not (project / "b.py").exists()
        assert session.create_file("b.py", "x").change_id
