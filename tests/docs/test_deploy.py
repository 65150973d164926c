"""The files in `deploy/`: they can be parsed, belong together, and use options that exist."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from spec.marks import requirement

DEPLOY = Path(__file__).parents[2] / "deploy"


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


@requirement("fleet:deploy:files")
def test_the_kubernetes_manifest_probes_what_the_server_answers() -> None:
    parts = load("kubernetes/surehold.yaml")
    assert [one["kind"] for one in parts] == ["PersistentVolumeClaim", "Deployment", "Service"]
    claim, deployment, service = parts
    pod = deployment["spec"]["template"]["spec"]
    (container,) = cast("list[Any]", pod["containers"])

    assert deployment["spec"]["replicas"] == 3
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
