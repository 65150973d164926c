"""What the README and `make run` show a newcomer is run here, as a newcomer runs it."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import review_bot
from docs.official_client import tools_over_http
from spec.marks import requirement
from surehold import open_workspace
from surehold.tools.call import CallContext
from tool_names import DEFAULT_TOOLS
from waiting import HANG_SECONDS
from workspaces import make_bench

PROJECT = Path(__file__).parents[2]


def run(script: str, directory: Path) -> list[str]:
    """Run an example in an empty directory of its own and return the lines that it prints."""
    work, temporary = directory / "work", directory / "tmp"
    work.mkdir()
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "COV_", "PYTEST"))}
    done = subprocess.run(
        (sys.executable, "-X", "utf8", PROJECT / "examples" / script),
        cwd=work,
        env={**kept, "XDG_STATE_HOME": str(directory / "state"), "TMPDIR": str(temporary), "SUREHOLD_DEMO_FAST": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(work.iterdir()) == []
    assert [one.name for one in temporary.iterdir() if not one.name.startswith("surehold-locks-")] == []  # of the user
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Run the demo once, and return the lines that it prints."""
    directory = tmp_path_factory.mktemp("demo")
    lines = run("demo.py", directory)
    assert not (directory / "state").exists()
    return lines


@requirement("front:make:run", "front:make:serve")
def test_the_demo_drives_the_real_server_through_its_seven_scenes(demo: list[str]) -> None:
    assert [line for line in demo if re.match(r"\d  ", line)] == [
        "1  An agent connects",
        "2  Read, then edit: only the named bytes change",
        "3  A person saves the file between two edits",
        "4  A patch for three files: all or nothing",
        "5  kill -9 in the middle of a patch for two hundred files",
        "6  Deleted, and back",
        "7  What you see of it, at any time later",
    ]
    claims = [re.sub(r"\d+ recipes are new, \d+ are old", "…", line) for line in demo if line.startswith("  ✓ ")]
    assert claims == [
        f"  ✓ Surehold answers, with {len(DEFAULT_TOOLS)} tools.",
        "  ✓ 123 bytes, 1 is different: the 5 that became an 8.",
        "  ✓ Refused as stale_file. It says what changed, and that the edit still fits.",
        "  ✓ Both changes are in the file. No unseen change was overwritten.",
        "  ✓ Two files would have been fine; none was touched.",
        "  ✓ All three files are changed, as one change that can be undone as one.",
        "  ✓ Half done: …, and staged files are left.",
        "  ✓ All two hundred recipes are as they were, byte for byte, and no temporary file is left.",
        "  ✓ The file is gone from the workspace, and is in the trash.",
        "  ✓ It is back, byte for byte.",
        "  ✓ Tea costs 2.50 again. Coffee and the opening hours, which changed later, stayed.",
        "  ✓ The log is intact: every entry fits the one before it, and every stored byte is there.",
    ]


def test_the_demo_shows_the_refusal_the_log_and_the_verdict_without_colour(demo: list[str]) -> None:
    text = "\n".join(demo)

    assert "    Nothing was written. stale_file: `menu.txt` is not the version you saw." in demo
    assert re.search(r"^\S+ +\w{8} +agent/edit_file +edit +menu\.txt +refused: stale_file$", text, re.MULTILINE)
    assert re.search(r"^Intact: \d+ entries", text, re.MULTILINE)
    assert "\x1b" not in text


def make(*words: str) -> tuple[str, ...]:
    """Return a call of make that takes the programs of this environment, and sets nothing up."""
    binaries = Path(sys.executable).parent
    return ("make", "--no-print-directory", "-C", str(PROJECT), "-o", ".venv/.runs", f"BIN={binaries}", *words)


@requirement("front:make:run")
def test_make_run_is_the_demo() -> None:
    done = subprocess.run(make("-n", "run"), capture_output=True, text=True, check=True)

    assert done.stdout == f"{Path(sys.executable).parent}/python examples/demo.py\n"


@requirement("front:make:run")
def test_make_run_from_nothing_installs_the_product_alone_and_make_test_adds_the_rest(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_bytes((PROJECT / name).read_bytes())
    run, test = (
        subprocess.run(("make", "-n", target), cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for target in ("run", "test")
    )

    assert re.findall(r"pip install .*", run) == [
        "pip install --quiet --upgrade pip",
        'pip install --quiet --editable ".[all]"',
    ]
    assert re.findall(r"pip install .*", test) == [
        *re.findall(r"pip install .*", run),
        "pip install --quiet --group dev",
    ]


@requirement("front:make:serve")
def test_make_serve_keeps_a_server_running_and_prints_how_to_connect(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with subprocess.Popen(
        make("serve", f"ROOT={root}", "PORT=0"),
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert f" {len(DEFAULT_TOOLS)} tools on {root} " in process.stderr.readline()
            printed = json.loads(process.stderr.readline().removeprefix("Clients connect with: "))
            entry = printed["mcpServers"]["surehold"]
            for _ in range(2):
                assert "edit_file" in tools_over_http(entry["url"], entry["headers"])
            assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(HANG_SECONDS)


def test_the_agent_loop_shows_both_tool_lists_a_refusal_an_edit_and_its_undo(tmp_path: Path) -> None:
    lines = [re.sub(r"\b[0-9a-f]{64}\b", "…", line) for line in run("agent_loop.py", tmp_path)]

    assert lines == [
        f"{len(DEFAULT_TOOLS)} tools for anthropic",
        f"{len(DEFAULT_TOOLS)} tools for openai-responses",
        "search_files: 1 match · 1 file searched",
        "read_file: notes.txt · lines 1-1 of 1 · sha256 …",
        "edit_file: Nothing was written. stale_file: `notes.txt` is not the version you saw.",
        "edit_file: notes.txt: 1 edit applied in 1 place.",
        "The color of the door is red.",
        "The colour of the door is red.",
    ]


@requirement("front:library:open_workspace")
def test_the_refactoring_is_made_and_undone_as_a_patch_and_as_a_turn(tmp_path: Path) -> None:
    assert run("refactor.py", tmp_path) == [
        "one patch: 60 files, change made",
        "undone: 0 files",
        "file by file: 60 files, 60 changes",
        "undone as one: 0 files, 60 in one change",
    ]


@requirement("promise:unseen:race")
def test_two_agents_in_one_checkout_lose_nothing_and_one_of_them_is_undone(tmp_path: Path) -> None:
    assert run("two_agents.py", tmp_path) == ["both worked: 40 of 40 boxes", "without bob: 20 of ada's, 0 of bob's"]


def test_the_review_bot_names_every_agent_and_what_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "work"
    root.mkdir()
    with open_workspace(root) as workspace:
        made = workspace.session(agent="ada").create_file("Makefile", "all:\n", reason="a build")
        taken_back = workspace.session(agent="bob").create_file("notes.txt", "x\n")
        workspace.undo(taken_back.change_id)

    outcome = review_bot.main(str(root), "1h")

    name = made.change_id[-8:]
    assert outcome == 1
    assert f"## ada: 1 changes\n\n- `{name}` Makefile: a build\n" in (said := capsys.readouterr().out)
    assert f"- `{name}` touches Makefile, take it back with `surehold undo {name}`\n" in said
    assert "bob" not in said


@requirement("front:library:open_workspace")
def test_the_first_steps_print_their_diff_and_tidy_up(tmp_path: Path) -> None:
    assert run("first_steps.py", tmp_path) == [
        "--- hello.txt",
        "+++ hello.txt",
        "@@ -1 +1 @@",
        "-Hello, wrold!",
        "+Hello, world!",
        "",
    ]


def test_the_readme_shows_the_first_steps_as_they_are() -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)

    assert blocks == [(PROJECT / "examples" / "first_steps.py").read_text("utf-8")]


def prose_of(page: Path) -> str:
    """Return a page without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_every_file_that_the_documents_link_to_exists() -> None:
    missing = [
        (page.name, link)
        for page in [*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md")]
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", prose_of(page))
        if not (page.parent / link).exists()
    ]

    assert missing == []


def test_the_architecture_page_lists_every_module() -> None:
    page = (PROJECT / "ARCHITECTURE.md").read_text("utf-8")
    tree = page.partition("\nsrc/surehold/\n")[2].partition("```")[0]
    listed, folders = list[str](), list[str]()
    for line in tree.splitlines():
        indent, name = re.fullmatch(r"( +)(\S+).*", line, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
        folders = [*folders[: len(indent) // 2 - 1], name]
        if name.endswith(".py"):
            listed.append("".join(folders))
    source = PROJECT / "src" / "surehold"
    modules = [path.relative_to(source) for path in source.rglob("*.py")]

    assert sorted(listed) == sorted(str(m) for m in modules if m.name != "__init__.py" or len(m.parts) == 1)


def test_the_tool_that_the_contributing_page_shows_works(tmp_path: Path) -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "replace_text.py").write_text(blocks[0], encoding="utf-8")
    shown = runpy.run_path(str(tmp_path / "replace_text.py"))
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a.txt", b"one two\n")
    context = CallContext(session=bench.workspace.session())
    (replace_text,) = shown["TOOLS"]

    digest = context.session.read("a.txt").sha256
    arguments = {"path": "a.txt", "old": "two", "new": "2"}

    answers = [replace_text.call(context, {**arguments, **more}) for more in ({"expectedSha256": digest}, {})]

    assert [answer.ok for answer in answers] == [True, False]
    assert answers[0].data["data"]["diff"] == "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one two\n+one 2\n"
    assert answers[1].data["error"]["reason"] == "expected_sha256_missing"
    assert bench.get("a.txt") == b"one 2\n"
