"""Blame and net differences beside git's own, on real histories: those of the files of this repository."""

import hashlib
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from front.test_history_git import Repository
from spec.marks import requirement
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.net_diff import net_diff
from surehold.workspace.past.selectors import Selectors

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
HERE = Path(__file__).parents[2]
FILES = 200 if SOAK else 8
MOST_VERSIONS = 40 if SOAK else 10
MOST_BYTES = 200_000


def ask_git(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=HERE, input=stdin, capture_output=True, check=False).stdout


def find_histories() -> dict[str, list[str]]:
    """Return the versions of files, oldest first, by the names of their blobs; all there are in a shallow clone."""
    rows = ask_git(
        "log", "--reverse", "--first-parent", "-m", "--format=", "--raw", "--no-renames", "--no-abbrev", "-z"
    )
    fields, found = rows.decode("utf-8", "replace").split("\0"), dict[str, list[str]]()
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        *_, blob, status = facts.split()
        if status in {"A", "M"}:
            found.setdefault(path, []).append(blob)
        else:
            found.pop(path, None)
    return found


def read_versions(blobs: list[str]) -> list[bytes]:
    versions = [ask_git("cat-file", "blob", name) for name in blobs]
    usable = [one for one in versions if 0 < len(one) <= MOST_BYTES and b"\0" not in one and b"\r" not in one]
    return [one for at, one in enumerate(usable) if not at or one != usable[at - 1]][-MOST_VERSIONS:]


def choose_histories() -> list[tuple[str, list[bytes]]]:
    """Return some files with their versions: the same ones for the same history, of all kinds, with several versions first."""
    found = find_histories() or {"README.md": []}
    ordered = sorted(found, key=lambda path: (len(found[path]) < 4, hashlib.sha256(path.encode()).digest()))
    chosen = list[tuple[str, list[bytes]]]()
    for path in ordered:
        versions = read_versions(found[path]) if found[path] else [(HERE / path).read_bytes()]
        if versions:
            chosen.append((path, versions))
        if len(chosen) == FILES:
            break
    return chosen


def replay(repository: Repository, versions: list[bytes]) -> None:
    session = repository.workspace.session(agent="bot")
    for number, data in enumerate(versions):
        text = data.decode("utf-8", "surrogateescape")
        if number:
            session.read("a.txt")
            session.write("a.txt", text, reason=f"step {number}")
        else:
            session.create("a.txt", text, reason="step 0")
        assert (repository.root / "a.txt").read_bytes() == data
        repository.commit_all(f"step {number}")


def split(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n")


def may_differ(line: bytes, versions: list[bytes], steps: tuple[str, str]) -> bool:
    """Tell whether two answers to who wrote a line are both right.

    They are where equal lines are in one version, so that no one can say which is which; and where the line was there before
    the later of both steps, which moved it past others: one of them has to count as new, and either may.
    """
    rows = [split(data) for data in versions]
    if any(Counter(one)[line] > 1 for one in rows):
        return True
    later = max(int(one.removeprefix("step ")) for one in steps)
    return later > 0 and line in rows[later - 1]


@requirement("history:blame:git")
def test_blame_and_net_difference_agree_with_git_on_real_histories(tmp_path: Path) -> None:
    wrong = list[str]()
    for number, (path, versions) in enumerate(choose_histories()):
        repository = Repository(tmp_path / f"{number}")
        replay(repository, versions)
        wrong += [
            f"{path}: {one}" for one in (*compare_blame(repository, versions), *compare_net(repository, versions))
        ]
        repository.workspace.close()

    assert wrong == []


def compare_blame(repository: Repository, versions: list[bytes]) -> Iterator[str]:
    ours = [one.entry.call.reason if one.entry else "" for one in blame_file(repository.workspace, "a.txt")]
    shown = repository.git("blame", "--minimal", "--line-porcelain", "a.txt").split("\n")
    theirs = [row.removeprefix("summary ") for row in shown if row.startswith("summary ")]
    for at, (line, *both) in enumerate(zip(split(versions[-1]), ours, theirs, strict=True), start=1):
        if both[0] != both[1] and not may_differ(line, versions, (both[0], both[1])):
            yield f"line {at} is from {both[0]}, for git from {both[1]}"


def compare_net(repository: Repository, versions: list[bytes]) -> Iterator[str]:
    """Compare what all steps but the first did: it applies, and is not longer than git's shortest."""
    entries = repository.workspace.history.select_done(Selectors(agent="bot"))
    later = [one for one in entries if one.call.reason != "step 0"]
    if not later:
        return
    (net,) = net_diff(repository.workspace, later)
    patch = repository.root.parent / "patch"
    patch.write_bytes(net.diff.encode("utf-8", "surrogateescape"))
    (repository.root / "a.txt").write_bytes(versions[0])
    repository.git("apply", "-p0", str(patch))
    if (repository.root / "a.txt").read_bytes() != versions[-1]:
        yield "the net difference leads elsewhere"
    counted = repository.git("diff", "--numstat", "--diff-algorithm=minimal", f"HEAD~{len(versions) - 1}", "HEAD")
    added, removed, *_ = counted.split()
    if net.added + net.removed > int(added) + int(removed):
        yield f"the net difference has +{net.added} -{net.removed}, that of git +{added} -{removed}"
