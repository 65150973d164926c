"""Which promises hold on a disk."""

import errno
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.disk import probe as probing
from surehold.disk.probe import ProbeResult
from surehold.front.cli.upkeep_commands import Promise, judge_promises


def finding(name: str, *, ok: bool = True, fallback: str = "") -> ProbeResult:
    return ProbeResult(name=name, ok=ok, detail="tried", fallback=fallback)


@requirement("front:cli:doctor")
def test_the_doctor_leaves_nothing_behind_and_ends_with_a_verdict(shell: Shell, tmp_path: Path) -> None:
    said = shell("doctor")

    assert said.code == 0
    assert said.out.splitlines()[-1].startswith("Every promise holds here")
    assert f"Workspace  {shell.root}" in said.out
    assert list(shell.root.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


@requirement("front:cli:doctor_hosts")
def test_the_doctor_prints_what_is_known_of_hosts(shell: Shell) -> None:
    rows, document = shell("doctor", "--hosts").out, shell.json("doctor", "--hosts")

    for host in document["hosts"]:
        assert f"{host['limit']:,}" in rows
        assert host["name"] in rows
    known = {host["client"]: (host["limit"], host["unit"]) for host in document["hosts"]}
    assert (known["codex"], known["@cline/"], known[""]) == ((12_000, "bytes"), (8_000, "json"), (20_000, "bytes"))


def test_the_doctor_as_json_has_promises_and_findings(shell: Shell) -> None:
    document = shell.json("doctor")

    assert list(document) == ["root", "state_dir", "state", "ok", "promises", "findings"]
    assert [one["name"] for one in document["promises"]] == [
        "Nothing is lost",
        "Nothing is half done",
        "No unseen change is overwritten",
        "Untouched bytes stay untouched",
        "Nothing outside is reachable",
    ]
    assert all(set(one) == {"name", "ok", "detail", "fallback"} for one in document["findings"])


def test_a_promise_holds_when_everything_it_rests_on_works() -> None:
    assert judge_promises((finding("exchange"), finding("lock")))[2] == Promise(
        name="No unseen change is overwritten", state="holds"
    )


def test_a_fallback_is_named(shell: Shell) -> None:
    promise = judge_promises((finding("exchange", ok=False, fallback="do it slowly"),))[2]

    assert promise == Promise(
        name="No unseen change is overwritten",
        state="holds with a fallback",
        because=("exchange two files: do it slowly",),
    )


@requirement("front:cli:doctor")
def test_a_promise_without_a_fallback_does_not_hold_and_the_doctor_ends_in_1(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(probing, "sync", failing)

    said = shell("doctor")

    assert said.code == 1
    assert said.out.splitlines()[-1] == "Not every promise holds here: Nothing is lost; Nothing is half done."
    assert shell.json("doctor", code=1)["ok"] is False


def test_a_root_that_does_not_exist_is_refused(shell: Shell) -> None:
    said = shell("doctor", "--root", "missing")

    assert (said.code, said.err.splitlines()[-1]) == (1, "Next: Name a directory with --root.")


def test_a_directory_in_which_nothing_can_be_made_is_refused(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", "/there")

    monkeypatch.setattr("tempfile.mkdtemp", denied)

    said = shell("doctor")

    assert said.code == 1
    assert said.err.startswith(
        "Refused: The disk cannot be tested: Permission denied.\nNext: Allow new directories there"
    )
