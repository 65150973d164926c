"""Time, cancellation, processes that die, files that change: a search ends, and says how."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from disk.suite import as_nobody
from search.scenes import Scene, make_scene
from spec.marks import requirement
from surehold.disk.base import DiskReader, StoredFile, Target
from surehold.errors import Cancelled, DiskFailed, InvalidPattern, SearchTimeout
from surehold.search.engine import Deadline
from surehold.search.query import Search
from surehold.search.ripgrep import output_format
from surehold.search.ripgrep.engine import find_binary
from surehold.search.ripgrep.program import CompletedRun
from surehold.workspace.finder import Finder
from waiting import wait_until

EVIL = r"(a+)+$|(a|aa)+$|(.*a){12}c"


def children() -> set[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in listed}


def sleepy(tmp_path: Path, script: str) -> str:
    """Make a program that replaces ripgrep and takes its time."""
    path = tmp_path / "rg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def halting(tmp_path: Path, script: str) -> str:
    """Make such a program for trees; one file, which may be too new to be trusted, is searched by ripgrep itself."""
    path = find_binary()
    return sleepy(tmp_path, f'case "$*" in *"-- -") exec {path} "$@";; esac; {script}')


@requirement("files:search_files:regex")
def test_an_evil_expression_is_quick_with_ripgrep(local: Scene) -> None:
    local.put("a", data=b"a" * 5000 + b"!\n")

    assert local.search(EVIL, "regex").total_matches == 0
    assert local.search(r"(\w+\s?)*;", "regex").total_matches == 0


def test_time_that_runs_out_says_how_far_it_got_and_kills_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = make_scene(tmp_path, seconds=0.3)
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, "printf 'a\\0001:1:0:\\r\\n'; exec sleep 60"))
    before = children()

    with pytest.raises(SearchTimeout) as caught:
        scene.search("needle")

    assert caught.value.message == "The search took longer than 0.3 s; 1 matches were found so far."
    assert caught.value.details == {"seconds": 0.3, "done": 1}
    assert children() == before


def test_cancelling_kills_the_search(local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, "exec sleep 60"))
    asked = list[set[int]]()

    def cancelled() -> bool:
        asked.append(children())
        return len(asked) > 3

    before = children()
    with pytest.raises(Cancelled):
        local.finder.search(Search(query="needle"), cancelled=cancelled)

    assert len(asked[0] - before) == 1
    assert children() == before


@pytest.mark.parametrize("ask", ["glob", "path", "python"])
def test_everything_can_be_cancelled(local: Scene, monkeypatch: pytest.MonkeyPatch, ask: str) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")
    local.put("a")

    def yes() -> bool:
        return True

    search = Search(query="a", mode="path" if ask == "path" else "text")
    with pytest.raises(Cancelled):
        local.finder.glob("**", cancelled=yes) if ask == "glob" else local.finder.search(search, cancelled=yes)


@requirement("files:search_files:time_is_up")
def test_progress_rises_although_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, enough = make_scene(tmp_path), tmp_path / "enough"
    script = f"while [ ! -e {enough} ]; do sleep 0.02; done; exit 1"
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, script))
    told = list[tuple[float, float | None, str]]()

    def tell(done: float, total: float | None, message: str) -> None:
        told.append((done, total, message))
        if len(told) == 3:
            enough.touch()

    scene.finder.search(Search(query="needle", hidden=True, ignore=False), progress=tell)

    seconds = [done for done, _, _ in told]
    assert seconds == sorted(set(seconds))
    assert {(total, message) for _, total, message in told} == {(20, "0 matches found")}


def test_progress_counts_the_matches_of_a_running_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, enough = make_scene(tmp_path), tmp_path / "enough"
    rows = r"printf 'a\0001:1:n\n2:1:n\n\nb\0001:1:n\n'"
    script = f"{rows}; while [ ! -e {enough} ]; do sleep 0.02; done"
    monkeypatch.setenv("SUREHOLD_RIPGREP", halting(tmp_path, script))
    told = list[str]()

    def tell(_done: float, _total: float | None, message: str) -> None:
        told.append(message)
        enough.touch()

    scene.put("a", data=b"n\nn\n")
    scene.put("b", data=b"n\n")
    found = scene.finder.search(Search(query="n"), progress=tell)

    assert told[0] == "3 matches found"
    assert found.total_matches == 3


@requirement("files:search_files:time_is_up")
def test_matches_that_were_found_when_time_was_up_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = make_scene(tmp_path, seconds=0.3)
    scene.put("a", "b", "c", data=b"needle\n" * 2)
    rows = r"printf 'a\0001:1:n\n2:1:n\n\nb\0001:1:n\n2:1:n\n'"
    monkeypatch.setenv("SUREHOLD_RIPGREP", halting(tmp_path, f"{rows}; exec sleep 60"))

    found = scene.search("needle", limit=3)
    rest = scene.search("needle", limit=3, after=found.next)

    assert [(hit.path, hit.line) for hit in found.matches] == [("a", 1), ("a", 2), ("b", 1)]
    assert [(hit.path, hit.line) for hit in rest.matches] == [("b", 2)]
    for page in (found, rest):
        assert (page.complete, page.truncated, page.files_scanned) == (False, True, None)
        assert page.next
        assert page.notes == ("Time was up after 0.3 s: this is what was found until then, not all there is.",)


@requirement("files:search_files:time_is_up")
def test_counting_the_files_does_not_cost_the_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = make_scene(tmp_path, seconds=0.5)
    scene.put("d/a")
    slow = """case "$*" in *--files*) exec sleep 60;; esac; printf 'd/a\\0001:1:n\\n'"""
    monkeypatch.setenv("SUREHOLD_RIPGREP", halting(tmp_path, slow))

    found = scene.search("needle", include=("d/*",))

    assert [hit.path for hit in found.matches] == ["d/a"]
    assert found.files_scanned is None


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 7", "The search program failed: it ended with code 7."),
        ("kill -SEGV $$", "The search program failed: it ended with code -11."),
        ("echo 'rg: something new' >&2; exit 2", "The search program failed: `rg: something new`."),
    ],
)
def test_a_crash_is_an_error_and_never_an_empty_result(
    local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, script))

    with pytest.raises(DiskFailed) as caught:
        local.search("needle")

    assert (caught.value.message, caught.value.reason) == (message, "search_failed")


def test_too_many_matches_are_cut_at_the_same_place_every_time(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_format, "MAX_OUTPUT_BYTES", 5000)
    local.put(*(f"d{number % 7}/{number:03}" for number in range(300)), data=b"needle\n" * 5)

    results = [local.search("needle") for _ in range(5)]

    assert 0 < (results[0].total_matches or 0) < 1500
    assert not results[0].complete
    assert results[0].notes == ("There are more matches than can be collected; narrow the search.",)
    assert all(result == results[0] for result in results)


def test_a_ripgrep_that_does_not_exist_is_an_error(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", "/nowhere/rg")

    with pytest.raises(DiskFailed, match="Could not start"):
        local.search("needle")


def test_the_configuration_of_the_user_does_not_matter(
    local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("--invert-match\n--hidden\n")
    (tmp_path / ".gitignore").write_text("*\n")
    home = tmp_path / "home/git"
    home.mkdir(parents=True)
    (home / "ignore").write_text("*\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    local.put("a", ".b")

    assert local.found() == ["a"]


@requirement("files:search_files:skipped")
@pytest.mark.parametrize("engine", ["", "off"])
def test_what_cannot_be_read_is_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    monkeypatch.setenv("SUREHOLD_RIPGREP", engine)
    for directory in (tmp_path, *tmp_path.parents):
        if directory.name.startswith(("pytest", "test_", "popen")):
            directory.chmod(0o755)
    scene = make_scene(tmp_path)
    scene.put("a", "closed/b", "c")
    (scene.root / "closed").chmod(0o700)
    (scene.root / "c").chmod(0o600)

    def work() -> str:
        result = scene.search("needle")
        listing = scene.finder.list(recursive=True)
        return repr((result.counts, result.skipped.unreadable, result.notes, listing.notes))

    said = as_nobody(work)

    assert said == repr(((("a", 1),), 2, ("Could not be read: c, closed.",), ("Could not be read: closed.",)))


def test_a_file_that_changed_since_the_search_is_searched_again(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a", data=b"needle\n")
    _meddle(monkeypatch, local, lambda: local.put("a", data=b"first\nno\nthe needle\n"))

    result = local.search("needle")

    assert [(hit.line, hit.column, hit.preview) for hit in result.matches] == [(3, 5, "the needle")]
    assert result.files[0].snapshot.data == b"first\nno\nthe needle\n"


@pytest.mark.parametrize("after", [b"nothing here\n", None])
def test_a_file_that_lost_its_match_is_not_shown(
    local: Scene, monkeypatch: pytest.MonkeyPatch, after: bytes | None
) -> None:
    local.put("a", "b")
    _meddle(monkeypatch, local, lambda: local.bench.put("a", after))

    assert local.places("needle") == [("b", 1, 1)]


def test_a_file_that_keeps_changing_is_counted(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put("a", data=b"needle\n" * 1000)
    stop = threading.Event()

    def scribble() -> None:
        number = 0
        with (local.root / "a").open("r+b", buffering=0) as file:
            while not stop.is_set():
                number += 1
                os.pwrite(file.fileno(), b"needle\n" * (1000 + number % 7), 0)
                os.ftruncate(file.fileno(), 7000 + number % 7)

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        results = [local.search("needle", limit=5) for _ in range(20)]
    finally:
        stop.set()
        thread.join()

    for result in results:
        assert result.skipped.changed + len(result.files) <= 1
        assert all(hit.preview == "needle" for hit in result.matches)


def _meddle(monkeypatch: pytest.MonkeyPatch, scene: Scene, meddle: Callable[[], object]) -> None:
    """Change something right after the engine is done, before the file is read for the answer."""
    disk: DiskReader = scene.bench.disk
    read = disk.read
    done = list[bool]()

    def late(target: Target, *, limit: int) -> StoredFile | None:
        if target.key == "a" and not done:
            done.append(True)
            meddle()
        return read(target, limit=limit)

    monkeypatch.setattr(disk, "read", late)


def test_a_workspace_finds_with_the_finder_that_it_holds(local: Scene) -> None:
    local.put("a")

    assert isinstance(local.bench.workspace.finder, Finder)
    assert local.bench.workspace.finder is local.bench.workspace.finder
    assert local.bench.workspace.finder.search(Search(query="needle")).total_matches == 1


def test_ripgrep_is_found_where_it_was_installed() -> None:
    path = find_binary()
    assert path is not None
    assert subprocess.run([path, "--version"], check=True, capture_output=True).stdout.startswith(b"ripgrep ")


_MEASURED_SEARCH = """
import resource, sys
from pathlib import Path
from search.scenes import make_scene
scene = make_scene(Path(sys.argv[1]), seconds=3_600)
scene.put("a", data=b"a" * 5_050)
print(scene.search("[a-z]{5000}", "regex").total_matches, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


@requirement("files:search_files:memory")
def test_an_expression_with_a_huge_automaton_takes_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _MEASURED_SEARCH, str(tmp_path)]
    path = os.pathsep.join(str(Path(__file__).parents[one]) for one in (1, 2))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})

    assert done.returncode == 0, done.stderr
    matches, megabytes = map(int, done.stdout.split())
    assert matches == 1
    assert megabytes < 85


@requirement("files:search_files:memory")
@pytest.mark.parametrize("query", [r"\w{50000}", r"(\w{2,200}){50}x"])
def test_an_expression_that_is_too_large_is_refused_with_the_cause(local: Scene, query: str) -> None:
    local.put("a", data=b"a\n")

    with pytest.raises(InvalidPattern) as refused:
        local.search(query, "regex")

    assert refused.value.details["cause"] == "it is too large when its repetitions are written out"


@requirement("files:search_files:memory")
def test_a_search_that_runs_out_of_memory_says_so(
    local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "echo 'memory allocation of 8388608 bytes failed' >&2; kill -ABRT $$"
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, script))

    with pytest.raises(InvalidPattern) as refused:
        local.search("x", "regex")

    assert refused.value.details["cause"] == "it needs too much memory for some line"


@requirement("files:search_files:memory")
def test_a_program_beyond_its_memory_gets_none(local: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = tmp_path / "limit"
    script = f"while [ $(ulimit -v) = unlimited ]; do :; done; ulimit -v > {measured}; exit 1"
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, script))

    local.search("x", "regex")

    assert int(measured.read_text()) == 1 << 20  # kilobytes


@requirement("files:search_files:memory")
def test_only_a_few_searches_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = make_scene(tmp_path, seconds=100)
    started, go = tmp_path / "started", tmp_path / "go"
    started.mkdir()
    script = f"touch {started}/$$; while [ ! -e {go} ]; do sleep 0.02; done; exit 1"
    monkeypatch.setenv("SUREHOLD_RIPGREP", sleepy(tmp_path, script))
    threads = [threading.Thread(target=scene.search, args=("x", "regex")) for _ in range(7)]
    for thread in threads:
        thread.start()

    wait_until(lambda: len(list(started.iterdir())) == 4)
    with pytest.raises(SearchTimeout):
        Finder(scene.bench.workspace.reader, seconds=0.3).search(Search(query="y", mode="regex"))
    assert len(list(started.iterdir())) == 4
    go.touch()
    for thread in threads:
        thread.join()
    assert len(list(started.iterdir())) >= 7


@requirement("files:search_files:time_is_up")
def test_reading_a_long_output_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surehold.search.engine._PROGRESS_SECONDS", 0)
    blocks = [b"./%d\0001:1:n\n2:1:n" % number for number in range(3_000)]
    blocks[7] = b"./7\0001:1:\n1:2:n\n3:"
    done = CompletedRun(code=0, output=b"\n\n".join(blocks) + b"\n", errors="", overflowed=False)
    told = list[str]()

    def tell(_done: float, _total: float | None, message: str) -> None:
        told.append(message)

    deadline = Deadline(-1, progress=tell)  # what was found is read, however late it is
    found = output_format.parse_output(done, Search(query="n"), "matches", deadline)

    assert told == [f"{number} files with matches read" for number in (0, 1024, 2048)]
    assert (len(found.counts), sum(found.counts.values())) == (3_000, 6_000)
    assert found.counts["7"] == len(found.positions_in("7")) == 2
