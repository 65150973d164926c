import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import surehold
from media.samples import image, pdf
from surehold.errors import Cancelled, ImageInvalid, PdfInvalid, Unavailable
from surehold.media import workers as module
from surehold.media.documents import decode_document
from surehold.media.magic import kind_of
from surehold.media.pictures import decode_picture
from surehold.media.workers import DecodeDeadline, DecoderGone, DecoderSlow, Worker, WorkerPool
from waiting import HANG_SECONDS, wait_until


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    found = WorkerPool()
    yield found
    found.close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker()
    yield found
    found.shut_down()


def pid_of(workers: WorkerPool) -> int:
    with workers.lend_worker() as worker:
        return worker.pid


def png(workers: WorkerPool, patience: DecodeDeadline | None = None) -> bytes:
    data = image()
    kind = kind_of(data)
    assert kind is not None
    return decode_picture(data, kind, path="a.png", patience=patience, workers=workers).data


def test_a_warm_process_is_used_again(workers: WorkerPool) -> None:
    png(workers)
    first = pid_of(workers)

    png(workers)

    assert pid_of(workers) == first


def test_a_process_that_died_meanwhile_is_replaced_without_anybody_noticing(workers: WorkerPool) -> None:
    png(workers)
    dead = pid_of(workers)
    os.kill(dead, signal.SIGKILL)

    assert png(workers) == image()
    assert pid_of(workers) != dead


def test_a_crash_is_an_error_about_the_file(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_START", "import os; os.abort()")

    with pytest.raises(ImageInvalid) as refused:
        png(workers)
    with pytest.raises(PdfInvalid) as refused_too:
        decode_document(pdf(["x"]), lambda _: (1,), path="a.pdf", workers=workers)

    assert (refused.value.reason, refused_too.value.reason) == ("crashed", "crashed")


_FACTS = b'"mime": "text/html", "original": [1, 1], "display": [1, 1], "frames": 1, "orientation": 1, "mode": "L"'


@pytest.mark.parametrize(
    "answer",
    [
        b"no json\n",
        b"[]\n",
        b'{"size": -1, "more": true}\n',
        b'{"size": 99999999999, "more": true}\n',
        b'{"size": 0}\n',
        b"a line without an end" * 100,
        b'{%s, "size": 6, "more": true}\n<html>{"size": 0, "more": false}\n' % _FACTS,
    ],
)
def test_a_process_that_is_not_itself_any_more_is_not_believed(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    again = "while True: os.write(1, answer)" if answer.startswith(b"a line") else "os.write(1, answer); time.sleep(60)"
    monkeypatch.setattr(module, "_START", f"import os, time\nanswer = {answer!r}\n{again}")

    with pytest.raises(ImageInvalid) as refused:
        png(workers)

    assert refused.value.reason == "crashed"


def test_a_process_that_hangs_is_given_up_and_ended(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGSTOP)

    with pytest.raises(DecoderSlow):
        list(worker.ask({"do": "ping"}, patience=DecodeDeadline(seconds=0.3)))

    assert worker.open_answer
    worker.shut_down()
    assert not _runs(worker.pid)


def test_bytes_that_nobody_takes_are_given_up_too(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGSTOP)

    with pytest.raises(DecoderSlow):
        list(worker.ask({"do": "picture", "format": "PNG"}, bytes(50_000_000), patience=DecodeDeadline(seconds=0.3)))


def test_a_process_that_is_killed_in_the_middle_is_noticed(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGKILL)

    with pytest.raises(DecoderGone):
        list(worker.ask({"do": "ping"}))


def test_a_call_that_was_taken_back_ends_the_process(workers: WorkerPool) -> None:
    before = pid_of(workers)

    with pytest.raises(Cancelled):
        png(workers, DecodeDeadline(cancelled=lambda: True))

    assert not _runs(before)
    assert png(workers) == image()


def test_who_waits_too_long_for_a_process_is_not_told_that_the_image_is_bad() -> None:
    one = WorkerPool(most=1)
    try:
        with one.lend_worker(), pytest.raises(Unavailable) as refused:
            png(one, DecodeDeadline(seconds=0.2))
    finally:
        one.close()

    assert refused.value.reason == "decoder_busy"


def test_packages_that_are_not_installed_but_named_are_found(tmp_path: Path) -> None:
    """With a plain interpreter, as a bundle or `pip install --target` is run."""
    plain = os.path.realpath(sys.executable)
    program = (
        "import sys\n"
        "from surehold.media.magic import kind_of\n"
        "from surehold.media.pictures import decode_picture\n"
        "data = sys.stdin.buffer.read()\n"
        "print(decode_picture(data, kind_of(data), path='a').mime)\n"
    )
    named = os.pathsep.join([str(Path(surehold.__file__).parents[1]), *sys.path[1:]])

    done = subprocess.run(
        [plain, "-c", program],
        input=image(),
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": named},
    )

    assert (done.stdout, done.returncode) == (b"image/png\n", 0), done.stderr


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="limits are looked up in /proc")
def test_a_process_has_limits_and_nothing_of_our_environment(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "x")
    with workers.lend_worker() as worker:
        assert worker.is_alive()
        home = Path(f"/proc/{worker.pid}")
        limits = {row[:25].strip(): row[26:].split()[0] for row in (home / "limits").read_text().splitlines()}
        environment = (home / "environ").read_bytes()

    assert limits["Max address space"] == str(2 << 30)
    assert (limits["Max file size"], limits["Max core file size"]) == ("0", "0")
    assert limits["Max cpu time"].isdecimal()
    assert b"A_SECRET_OF_OURS" not in environment


def test_a_document_that_was_refused_leaves_the_process_in_use(workers: WorkerPool) -> None:
    first = pid_of(workers)

    with pytest.raises(PdfInvalid):
        decode_document(b"%PDF-", lambda _: (1,), path="a.pdf", workers=workers)

    assert pid_of(workers) == first


def test_processes_end_with_the_one_that_started_them() -> None:
    program = (
        "import os\n"
        "from surehold.media.workers import WORKERS\n"
        "with WORKERS.lend_worker() as worker:\n"
        "    assert worker.is_alive()\n"
        "print(worker.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=HANG_SECONDS
    )

    wait_until(lambda: not _runs(int(done.stdout)))


def test_no_decoder_is_loaded_by_whoever_asks() -> None:
    program = (
        "import sys\n"
        "from surehold.media.documents import decode_document\n"
        "from surehold.media.magic import kind_of\n"
        "from surehold.media.pictures import decode_picture\n"
        "data = sys.stdin.buffer.read()\n"
        "print(decode_picture(data, kind_of(data), path='a').mime)\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'PIL', 'pypdfium2'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=image(),
        check=True,
        capture_output=True,
        timeout=HANG_SECONDS,
    )

    assert done.stdout.decode().splitlines() == ["image/png", "[]"]
    assert done.stderr == b""


def test_a_forked_process_starts_its_own() -> None:
    program = (
        "import os\n"
        "from surehold.media.workers import WORKERS\n"
        "with WORKERS.lend_worker() as worker:\n"
        "    first = worker.pid\n"
        "if os.fork() == 0:\n"
        "    with WORKERS.lend_worker() as worker:\n"
        "        print(worker.pid != first, worker.is_alive(), flush=True)\n"
        "    WORKERS.close()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "with WORKERS.lend_worker() as worker:\n"
        "    print(worker.pid == first, worker.is_alive(), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True, timeout=HANG_SECONDS
    )

    assert done.stdout.splitlines() == ["True True", "True True"]
    assert done.stderr == ""


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
