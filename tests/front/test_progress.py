"""The line that shows that a command is at work."""

import io
import re
from datetime import UTC, datetime

from front.shell import Shell
from spec.marks import requirement
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.output import Output
from waiting import wait_until


def make_output(stream: io.StringIO, *, is_terminal: bool, columns: int = 40) -> Output:
    return Output(stream, colour=False, columns=columns, now=datetime.now(UTC), is_terminal=is_terminal)


@requirement("history:terminal:progress")
def test_long_work_shows_a_line_that_is_gone_afterwards() -> None:
    stream = io.StringIO()
    with ProgressLine(make_output(stream, is_terminal=True), "Exporting", delay=0) as progress:
        assert [*progress.count("abc")] == ["a", "b", "c"]
        wait_until(lambda: "3 done" in stream.getvalue())

    *_, last, end = stream.getvalue().split("\r")
    assert (last.strip(), end) == ("", "")
    assert re.search(r"\rExporting … \d+ s, 3 done", stream.getvalue())
    assert "\n" not in stream.getvalue()


@requirement("history:terminal:progress")
def test_a_pipe_and_short_work_show_nothing() -> None:
    stream = io.StringIO()
    with ProgressLine(make_output(stream, is_terminal=False), "Exporting", delay=0) as progress:
        assert [*progress.count(range(1000))] == [*range(1000)]
    with ProgressLine(make_output(stream, is_terminal=True), "Exporting"):
        pass
    assert stream.getvalue() == ""


@requirement("history:terminal:progress")
def test_a_line_of_progress_fits_a_narrow_terminal() -> None:
    stream = io.StringIO()
    with ProgressLine(make_output(stream, is_terminal=True, columns=10), "Exporting a lot", delay=0):
        wait_until(stream.getvalue)

    assert {len(part) for part in stream.getvalue().split("\r")} <= {0, 9}


@requirement("history:terminal:progress")
def test_commands_that_may_take_long_work_on_a_terminal(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    shell.edit("a.txt", "one", "two")
    for words in (
        ["blame", "a.txt"],
        ["verify"],
        ["undo"],
        ["redo"],
        ["export", "--since", "1h", "--output", "x.patch"],
    ):
        code, shown = shell.terminal(*words)
        assert (code, "…" in shown) == (0, False), shown
