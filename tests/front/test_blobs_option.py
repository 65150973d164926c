"""`--blobs`, on every command and in the settings of a person."""

import random
from pathlib import Path

import pytest

from doubles.object_service import ObjectService
from front.shell import Shell
from spec.marks import requirement

LINES = [str(random.Random(number).random()) for number in range(6000)]
LARGE = "\n".join(LINES) + "\n"


@requirement("fleet:blobs:place")
@pytest.mark.parametrize("kind", ["s3", "directory"])
def test_every_command_finds_large_versions_where_the_option_says(
    shell: Shell, service: ObjectService, tmp_path: Path, kind: str
) -> None:
    place = "s3://bucket/versions" if kind == "s3" else "../versions"
    shell.write("a.txt", LARGE)
    options = ("--blobs", place)
    change = shell.json("edit", "a.txt", "--old", LINES[5], "--new", "five", *options)["change_id"]

    assert shell("read", "a.txt", "--before", change, *options).out == LARGE
    assert shell.json("verify", *options)["ok"] is True
    assert shell("export", "a.txt", "--format", "patch", *options).code == 0
    assert shell("export", "a.txt", "--format", "bundle", "--output", "../b", *options).code == 0
    assert shell("undo", change, *options).code == 0
    assert (shell.root / "a.txt").read_text() == LARGE
    assert shell("delete", "a.txt", *options).code == 0
    assert shell("--blobs", place, "restore", "a.txt").code == 0
    assert (shell.root / "a.txt").read_text() == LARGE
    assert len(service.objects if kind == "s3" else list((tmp_path / "versions").glob("*/*/*"))) == 2
    assert "five" in shell("diff", change, *options).out


@requirement("fleet:blobs:away")
def test_a_refused_change_says_that_nothing_was_written_and_names_the_service(
    shell: Shell, service: ObjectService
) -> None:
    shell.write("a.txt", LARGE)
    with service.away():
        said = shell("edit", "a.txt", "--old", LINES[5], "--new", "five", "--blobs", "s3://bucket/versions")
        through_tool = shell(
            *("tool", "write_file", "--text", "--blobs", "s3://bucket/versions", "--allow-unchecked"),
            *("--json", '{"path": "a.txt", "content": "short"}'),
        )

    assert said.code == 1
    assert "Nothing was written" in said.err
    assert "s3://bucket/versions" in said.err
    assert "Nothing was written" in through_tool.out
    assert "s3://bucket/versions" in through_tool.out
    assert (shell.root / "a.txt").read_text() == LARGE


@requirement("fleet:blobs:place")
def test_a_person_may_name_the_place_in_their_settings_and_a_repository_may_not(
    shell: Shell, service: ObjectService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = tmp_path / "config" / "surehold" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('blobs = "s3://bucket/mine"\n')
    shell.write("surehold.toml", 'blobs = "s3://bucket/theirs"\n')
    shell.write("a.txt", LARGE)

    change = shell.edit("a.txt", LINES[5], "five")
    assert shell("undo", change).code == 0

    assert service.objects
    assert all(path.startswith("/bucket/mine/") for path in service.objects)
    found = shell.json("config")
    assert {"name": "blobs", "value": "s3://bucket/mine", "source": str(settings)} in found["settings"]
    assert any("`blobs` has no effect" in one for one in found["without_effect"])
    settings.write_text('blobs = "here"\n')
    assert "must be a directory from / or ~ on" in shell("log").err


def test_a_command_that_runs_records_large_versions_there_too(shell: Shell, service: ObjectService) -> None:
    shell.write("a.txt", LARGE)
    more = service.environment | {"XDG_CACHE_HOME": str(shell.root.parent / "cache")}

    words = ("--blobs", "s3://bucket/versions", "run", "--", "sh", "-c", "echo short > a.txt")
    ran = shell.process(*words, stdin=b"", **more)
    assert ran.returncode == 0, ran.stderr
    assert shell("undo", "--blobs", "s3://bucket/versions").code == 0

    assert (shell.root / "a.txt").read_text() == LARGE
    assert len(service.objects) == 1
