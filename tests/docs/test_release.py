"""What publishes a release: the workflow, and the checksums with their signature."""

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((PROJECT / ".github/workflows/release.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def check(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(PROJECT / "scripts/checksums.sh"), *words, str(folder)]
    return subprocess.run(
        command, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, check=False
    )


def test_the_workflow_publishes_without_a_secret_and_each_job_may_do_only_its_part() -> None:
    jobs = WORKFLOW["jobs"]

    assert WORKFLOW["permissions"] == {}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["attest", "publish"]
    assert "secrets." not in (PROJECT / ".github/workflows/release.yml").read_text("utf-8")
    assert [step["run"] for step in STEPS if "${{" in step.get("run", "")] == []
    order = {name: job.get("needs") for name, job in jobs.items()}
    assert order == {"build": None, "attest": "build", "publish": "attest", "announce": "publish"}


def test_the_workflow_runs_what_is_in_the_repository() -> None:
    runs = "\n".join(step.get("run", "") for step in STEPS)

    assert [name for name in re.findall(r"scripts/[\w.]+", runs) if not os.access(PROJECT / name, os.X_OK)] == []
    assert "\n.venv/.ready:" in (PROJECT / "Makefile").read_text("utf-8").replace("$(STAMP):", ".venv/.ready:")
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"]) for step in STEPS if "uses" in step)


def python_versions(folder: Path, **versions: str) -> list[str]:
    """Return what the script finds where only these programs are, each with what it says of its version."""
    folder.mkdir()
    for name, version in versions.items():
        program = folder / name.replace("_", ".")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
    words = [shutil.which("sh") or "/bin/sh", str(PROJECT / "scripts/interpreters.sh")]
    environment = {"PATH": str(folder), "PYENV_ROOT": str(folder)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return [str(Path(line).relative_to(folder)) for line in done.stdout.splitlines()]


def test_every_supported_python_is_found_whatever_it_is_called(tmp_path: Path) -> None:
    assert python_versions(tmp_path / "none") == []
    assert python_versions(tmp_path / "plain", python3="3.13", python="3.12") == ["python", "python3"]
    assert python_versions(tmp_path / "named", python3_11="3.11", python3="3.11", python="2.7") == ["python3.11"]
    assert python_versions(tmp_path / "broken", python3_14="3.15", python3="3.14") == ["python3"]
    managed = tmp_path / "managed" / "cpython"
    assert python_versions(tmp_path / "managed", uv=str(managed), cpython="3.12") == ["cpython"]
    kept = {"versions/3_12_1/bin/python3": "3.12", "versions/3_14_0/bin/python3": "3.14", "python3_12": ""}
    found = [name.replace("_", ".") for name in kept][:2]
    assert python_versions(tmp_path / "kept", **kept) == found


def test_the_versions_that_the_release_tries_are_those_that_the_package_names() -> None:
    wanted = re.findall(r"3\.\d+", (PROJECT / "scripts/interpreters.sh").read_text("utf-8").partition("; do")[0])
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    setup = next(step for step in STEPS if "setup-python" in step.get("uses", ""))

    assert wanted == named == setup["with"]["python-version"].split()


@pytest.fixture
def keys() -> Iterator[str]:
    """A place for keys, with a path that fits the address of the agent's socket."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="keys-") as home:
        yield home
        subprocess.run(["gpgconf", "--kill", "all"], env={"PATH": os.environ["PATH"], "GNUPGHOME": home}, check=False)


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")
def test_checksums_are_signed_and_a_changed_or_added_file_is_found(tmp_path: Path, keys: str) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "surehold-1.whl").write_bytes(b"wheel")
    key = [
        "gpg",
        "--batch",
        "--quiet",
        "--passphrase",
        "",
        "--quick-generate-key",
        "release@localhost",
        "ed25519",
        "sign",
    ]
    subprocess.run(key, env={"PATH": os.environ["PATH"], "GNUPGHOME": keys}, capture_output=True, check=True)

    written = check(dist, GNUPGHOME=keys, RELEASE_KEY="release@localhost")
    intact = check(dist, "--verify", GNUPGHOME=keys)
    (dist / "other.whl").write_bytes(b"added")
    added = check(dist, "--verify", GNUPGHOME=keys)
    (dist / "other.whl").unlink()
    (dist / "surehold-1.whl").write_bytes(b"WHEEL")
    changed = check(dist, "--verify", GNUPGHOME=keys)

    assert (written.returncode, intact.returncode) == (0, 0)
    assert (added.returncode, added.stderr.splitlines()[-1]) == (1, "other.whl is not in SHA256SUMS.")
    assert changed.returncode != 0


def test_unsigned_checksums_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")

    written = check(tmp_path)

    assert (written.returncode, written.stderr) == (0, "checksums: not signed, since RELEASE_KEY names no key.\n")
    assert (tmp_path / "SHA256SUMS").read_text().endswith("  a.txt\n")
