"""The gate as a person sets it where the server is started: `--require-read` and `--on-stale`."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dialects.claude.desk import Desk, numbered
from dialects.place import Place
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement


@contextmanager
def started(base: Path, *flags: str) -> Generator[Desk]:
    root, state = base / "root", base / "state"
    (root / "work").mkdir(parents=True)
    with StdioClient(
        surehold("mcp", str(root), "--state-dir", str(state), "--tools", "claude,files", *flags)
    ) as client:
        yield Desk(Place(client, root, state, "work"))


@requirement("claude:gate:settings")
def test_matched_lets_an_exact_text_of_an_unread_file_be_edited(tmp_path: Path) -> None:
    with started(tmp_path, "--require-read", "matched") as desk:
        desk.put("file.txt", numbered(40))

        assert desk.edit("file.txt", "line 1", "x", replace_all=True).kind == "not_read"
        assert desk.write("file.txt", "x\n").kind == "not_read"
        assert desk.edit("file.txt", "line 30\n", "thirty\n").ok
        assert desk.get("file.txt").decode() == numbered(40).replace("line 30\n", "thirty\n")


@requirement("claude:gate:settings")
def test_off_asks_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "--require-read", "off") as desk:
        desk.put("file.txt", numbered(40))

        assert desk.edit("file.txt", "line 30\n", "thirty\n").ok
        desk.put("file.txt", "of somebody else\n")
        assert desk.write("file.txt", "new\n").data["originalFile"] == "of somebody else\n"
        assert desk.get("file.txt") == b"new\n"


@requirement("claude:gate:settings")
def test_rebase_goes_on_in_lines_that_are_provably_the_same(tmp_path: Path) -> None:
    with started(tmp_path, "--on-stale", "rebase") as desk:
        desk.put("file.txt", numbered(40))
        desk.read("file.txt")
        changed = "first\n" + numbered(40).replace("line 20\n", "twenty\n")
        desk.put("file.txt", changed)

        assert desk.edit("file.txt", "twenty\n", "20\n").kind == "stale"
        desk.put("file.txt", "zero\n" + changed)
        assert desk.edit("file.txt", "line 30\n", "thirty\n").ok
        assert desk.get("file.txt").decode() == "zero\n" + changed.replace("line 30\n", "thirty\n")
        desk.put("file.txt", "other\n")
        assert desk.write("file.txt", "x\n").kind == "stale"


@requirement("claude:gate:settings")
def test_without_the_flags_the_gate_is_strict_and_rejects(tmp_path: Path) -> None:
    with started(tmp_path) as desk:
        desk.put("file.txt", numbered(40))
        assert desk.edit("file.txt", "line 30\n", "thirty\n").kind == "not_read"
        desk.read("file.txt")
        desk.put("file.txt", "first\n" + numbered(40))
        assert desk.edit("file.txt", "line 30\n", "thirty\n").kind == "stale"
