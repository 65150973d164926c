"""`--state` on every command, and `surehold state init|status|migrate`."""

import json
import os
from pathlib import Path

import psycopg
import pytest

from databases.schemas import PostgresSchema
from front.shell import Shell
from spec.marks import requirement
from surehold.app import open_workspace
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


@requirement("fleet:state:words")
def test_every_way_to_fail_is_named_and_nothing_is_written(
    shell: Shell, project: Path, postgres_schema: PostgresSchema
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
