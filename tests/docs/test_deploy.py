"""The files in `deploy/`: they can be parsed, belong together, and use options that exist."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from databases.postgres_server import shared_server
from front.shell import Shell
from spec.marks import requirement
from surehold.front.cli.main import build_parser

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return Shell(root=root, state_home=state, capsys=capsys, patch=monkeypatch)


def load(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


@requirement("fleet:deploy:files")
def test_the_compose_file_has_a_database_objects_three_replicas_a_balancer_and_prometheus() -> None:
    (compose,) = load("compose.yaml")
    services: dict[str, Any] = compose["services"]

    replicas = [name for name in services if name.startswith("replica-")]
    assert len(replicas) == 3
    assert {"db", "objects", "balancer", "prometheus"} <= set(services)
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service.get("secrets", ())) <= set(compose["secrets"]), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists(), (name, volume)
    targets = load("prometheus.yaml")[0]["scrape_configs"][0]["static_configs"][0]["targets"]
    assert targets == [f"{name}:8765" for name in replicas]
    assert all(f"{name}:8765" in (DEPLOY / "Caddyfile").read_text() for name in replicas)
    identity = json.loads((DEPLOY / "s3.json").read_text())["identities"][0]["credentials"][0]
    assert identity["secretKey"] == services["replica-1"]["environment"]["AWS_SECRET_ACCESS_KEY"]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file, each on one line."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], " ".join(line.partition(" ")[2].split())) for line in lines]


@requirement("fleet:deploy:files")
def test_the_container_file_is_one_that_a_builder_and_a_careful_reader_accept() -> None:
    steps = instructions()
    words = dict(steps)
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]

    assert [name for name, _ in steps] == ["FROM", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "CMD"]
    assert re.fullmatch(r"python:3\.1[1-4]-slim", words["FROM"])  # a version, never `latest`
    assert words["COPY"] == ". /source"
    assert f"useradd --create-home --uid 10001 {words['USER']}" in words["RUN"]
    assert "--no-cache-dir" in words["RUN"]
    assert "rm -rf /source" in words["RUN"]
    chosen = re.findall(r"/source\[([\w,]+)\]", words["RUN"])[0].split(",")
    assert set(chosen) <= set(extras)
    started: list[str] = json.loads(words["ENTRYPOINT"]) + json.loads(words["CMD"])
    args = build_parser().parse_args(started[1:])
    assert (started[0], args.command, args.port) == ("surehold", "serve", int(words["EXPOSE"]))


@requirement("fleet:deploy:files")
def test_a_builder_is_sent_what_the_package_is_built_from_and_nothing_else(tmp_path: Path) -> None:
    lines = (PROJECT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    kept = [line.removeprefix("!") for line in rules if line.startswith("!")]

    assert (rules[0], rules[-1]) == ("*", "**/__pycache__")
    assert len(rules) == len(kept) + 2
    for name in kept:
        source, copy = PROJECT / name, tmp_path / "context" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    [wheel] = WheelBuilder(str(tmp_path / "context")).build(directory=str(tmp_path), versions=["standard"])
    assert Path(wheel).is_file()


def commands_of(text: str) -> list[list[str]]:
    """Return the calls of `surehold` in a shell line."""
    found = [part.split() for part in text.replace("\n", " ").split("&&") if "surehold " in part]
    return [words[words.index("surehold") + 1 :] for words in found]


@requirement("fleet:deploy:files")
def test_the_compose_file_comes_up_from_nothing() -> None:
    (compose,) = load("compose.yaml")
    services = compose["services"]
    state, replica, database = services["state"], services["replica-1"], services["db"]

    (init,), (serve,) = commands_of(state["command"][0]), commands_of(replica["command"][0])
    assert init == ["state", "init", "postgresql://owner@db/surehold", "--role", "agents"]
    assert serve[:2] == ["serve", "/work"]
    assert serve[serve.index("--state") + 1] == "postgresql://agents@db/surehold"
    build_parser().parse_args(init)
    build_parser().parse_args(serve)
    assert state["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert replica["depends_on"]["state"] == {"condition": "service_completed_successfully"}
    assert "owner" not in replica["secrets"], "a replica cannot change what is recorded"
    assert database["environment"]["POSTGRES_USER"] == "owner"
    assert "-h 127.0.0.1" in database["healthcheck"]["test"][1]
    made = (DEPLOY / "database.sh").read_text()
    assert "CREATE ROLE agents LOGIN" in made
    assert "./database.sh:/docker-entrypoint-initdb.d/database.sh:ro" in database["volumes"]
    assert "mkdir /work && chown surehold:surehold /work" in (DEPLOY / "Dockerfile").read_text()
    assert replica["volumes"] == ["work:/work"]


@requirement("fleet:deploy:files")
def test_the_steps_of_the_compose_file_work_on_a_new_database(shell: Shell) -> None:
    """As the containers do it, with the same statements and commands: a role, the schema, and a change as that role."""
    (compose,) = load("compose.yaml")
    (init,) = commands_of(compose["services"]["state"]["command"][0])
    role, name = f"agents_{os.getpid()}_new", f"deployed_{os.getpid()}"
    statement = next(row for row in (DEPLOY / "database.sh").read_text().splitlines() if row.startswith("CREATE ROLE"))
    with psycopg.connect(f"{shared_server()}/postgres", autocommit=True) as connection:
        connection.execute(statement.replace("agents", role).replace(":'password'", "'x'").encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    places = {"postgresql://owner@db/surehold": f"{shared_server()}/{name}", "agents": role}
    (shell.root / "a.txt").write_text("one\n")
    agents = f"{shared_server().replace('postgres@', f'{role}@')}/{name}"
    try:
        early = shell("log", "--state", agents)
        assert shell(*(places.get(word, word) for word in init)).code == 0
        edit = ("edit", "a.txt", "--old", "one", "--new", "two", "--state", agents)
        assert shell(*edit).code == 0
        assert shell("verify", "--state", agents).code == 0
    finally:
        with psycopg.connect(f"{shared_server()}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            connection.execute(f"DROP ROLE {role}".encode())

    assert early.code == 1
    assert (shell.root / "a.txt").read_text() == "two\n"


@requirement("fleet:deploy:files")
def test_the_kubernetes_manifest_probes_what_the_server_answers() -> None:
    parts = load("kubernetes/surehold.yaml")
    assert [one["kind"] for one in parts] == ["PersistentVolumeClaim", "Job", "Deployment", "Service"]
    claim, job, deployment, service = parts
    (state,) = job["spec"]["template"]["spec"]["containers"]
    assert state["args"] == ["state", "init", "--role=agents"]
    assert state["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "surehold-owner", "key": "state"}
    pod = deployment["spec"]["template"]["spec"]
    (container,) = cast("list[Any]", pod["containers"])

    assert deployment["spec"]["replicas"] == 3
    assert not any("STATE" in one or "postgresql" in one for one in container["args"]), "processes can be listed"
    secrets = {one["name"]: one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]}
    assert secrets["SUREHOLD_STATE"] == "surehold"
    (waits,) = pod["initContainers"]
    assert "surehold state status" in waits["command"][2]
    build_parser().parse_args(container["args"])
    build_parser().parse_args(state["args"])
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    drain = next(int(one.rpartition("=")[2]) for one in container["args"] if one.startswith("--drain-seconds"))
    assert drain < pod["terminationGracePeriodSeconds"]
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]


@requirement("fleet:deploy:files")
def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    text = (DEPLOY / "surehold.service").read_text()
    assert "KillSignal=SIGTERM" in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("There is no systemd-analyze here.")
    unit = tmp_path / "surehold.service"
    unit.write_text(text.replace("/usr/local/bin/surehold", "/bin/true"))

    found = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)

    assert [line for line in found.stderr.splitlines() if "surehold.service" in line] == []
