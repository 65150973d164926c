"""What publishes a release: the workflow, and the checksums with their signature."""

import os
import re
import shutil
import subprocess
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


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")
def test_checksums_are_signed_and_a_changed_or_added_file_is_found(tmp_path: Path) -> None:
    home, dist = tmp_path / "keys", tmp_path / "dist"
    home.mkdir(mode=0o700)
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
    subprocess.run(key, env={"PATH": os.environ["PATH"], "GNUPGHOME": str(home)}, capture_output=True, check=True)

    written = check(dist, GNUPGHOME=str(home), RELEASE_KEY="release@localhost")
    intact = check(dist, "--verify", GNUPGHOME=str(home))
    (dist / "other.whl").write_bytes(b"added")
    added = check(dist, "--verify", GNUPGHOME=str(home))
    (dist / "other.whl").unlink()
    (dist / "surehold-1.whl").write_bytes(b"WHEEL")
    changed = check(dist, "--verify", GNUPGHOME=str(home))

    assert (written.returncode, intact.returncode) == (0, 0)
    assert (added.returncode, added.stderr.splitlines()[-1]) == (1, "other.whl is not in SHA256SUMS.")
    assert changed.returncode != 0
    subprocess.run(["gpgconf", "--kill", "all"], env={"PATH": os.environ["PATH"], "GNUPGHOME": str(home)}, check=False)


def test_unsigned_checksums_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")

    written = check(tmp_path)

    assert (written.returncode, written.stderr) == (0, "checksums: not signed, since RELEASE_KEY names no key.\n")
    assert (tmp_path / "SHA256SUMS").read_text().endswith("  a.txt\n")
