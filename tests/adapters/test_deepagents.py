"""`surehold.adapters.deepagents` in a real deep agent, with a scripted model."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.project import make_project
from spec.marks import requirement

if TYPE_CHECKING:
    from adapters.scripted_chat import Step


def run_deep_agent(backend: Any, steps: "list[Step]") -> list[str]:
    """Run a deep agent whose model makes these calls, and return what the tools answered."""
    from adapters.scripted_chat import ScriptedChat

    model = ScriptedChat.of(steps)
    deepagents: Any = import_module("deepagents")  # its types are not complete
    agent = deepagents.create_deep_agent(model, backend=backend)
    agent.invoke({"messages": [{"role": "user", "content": "go"}]}, {"recursion_limit": 200})
    return model.answers


@requirement("front:adapters:frameworks", "front:adapters:deepagents", "front:adapters:shell")
def test_a_deep_agent_reads_edits_is_refused_and_runs_commands(tmp_path: Path) -> None:
    from surehold.adapters.deepagents import SessionSandbox

    project = make_project(tmp_path)
    before = {"a.txt": b"one\r\ntwo\r\n", "old.txt": b"old\n", "dir/x.txt": b"x\n", "dir/sub/y.txt": b"y\n"}
    for path, data in before.items():
        project.put(path, data)
    root = str(project.root)

    def change(_: list[str]) -> tuple[str, dict[str, Any]]:
        project.put("a.txt", b"one\r\n2\r\noutside\r\n")
        return "write_file", {"file_path": f"{root}/a.txt", "content": "all new\n"}

    answers = run_deep_agent(
        SessionSandbox(project.session),
        [
            ("ls", {"path": "/"}),
            ("read_file", {"file_path": f"{root}/a.txt"}),
            ("edit_file", {"file_path": f"{root}/a.txt", "old_string": "two", "new_string": "2"}),
            change,
            ("read_file", {"file_path": "/a.txt"}),
            ("write_file", {"file_path": "/a.txt", "content": "all new\n"}),
            ("write_file", {"file_path": "/new/b.txt", "content": "new\n"}),
            ("edit_file", {"file_path": "/new/b.txt", "old_string": "missing", "new_string": "x"}),
            ("delete", {"file_path": "/dir"}),
            ("execute", {"command": "mv old.txt renamed.txt && cat renamed.txt"}),
        ],
    )

    assert f"{root}/a.txt" in answers[0]
    assert "lines 1-2 of 2" in answers[1]
    assert "changed since this session read it" in answers[3]
    assert "outside" in answers[4]
    assert "Nothing was written." in answers[7]
    assert "old\n" in answers[9]
    assert project.files() == {"a.txt": b"all new\r\n", "new/b.txt": b"new\n", "renamed.txt": b"old\n"}
    assert not (project.root / "dir").exists()
    project.undo_all()
    assert project.files() == {**before, "a.txt": b"one\r\ntwo\r\noutside\r\n"}


@requirement("front:adapters:deepagents")
def test_write_creates_overwrites_what_was_not_read_and_its_own_files(tmp_path: Path) -> None:
    from surehold.adapters.deepagents import SessionBackend

    project = make_project(tmp_path)
    project.put("a.txt", b"never read\n")
    backend = SessionBackend(project.session)

    assert backend.write("/a.txt", "one\n").error is None
    assert backend.write("/a.txt", "two\n").error is None
    assert backend.write("/b/c.txt", "new\n").path == "/b/c.txt"
    project.put("a.txt", b"outside\n")
    assert "changed since" in str(backend.write("/a.txt", "three\n").error)
    assert (
        "outside the workspace" in str(backend.write("/../x.txt", "x").error) or backend.write("/../x.txt", "x").error
    )
    assert project.files() == {"a.txt": b"outside\n", "b/c.txt": b"new\n"}


@requirement("front:adapters:deepagents")
def test_pages_searches_and_transfers_are_as_the_protocol_wants_them(tmp_path: Path) -> None:
    from deepagents.backends.protocol import FileDownloadResponse, FileUploadResponse, ReadResult

    from surehold.adapters.deepagents import SessionBackend

    project = make_project(tmp_path)
    project.put("src/app.py", b"a = 1\nb = 2  # TODO\nc = 3\n")
    project.put("src/.hidden.py", b"hidden\n")
    project.put("top.py", b"TODO\nTODO\n")
    project.put("empty.txt", b"")
    project.put("data.bin", b"\x00\x01\xff")
    backend = SessionBackend(project.session)

    page = ReadResult(
        file_data={"content": "b = 2  # TODO\n", "encoding": "utf-8"},
        start_line=2,
        end_line=2,
        total_lines=3,
        next_offset=2,
    )
    assert backend.read("/src/app.py", 1, 1) == page
    assert backend.read("/empty.txt") == ReadResult(file_data={"content": "", "encoding": "utf-8"})
    assert backend.read("/src/app.py", 0, 0).no_lines_requested
    assert backend.read("/data.bin").file_data == {"content": "AAH/", "encoding": "base64"}
    assert "3 lines" in str(backend.read("/src/app.py", 9).error)
    assert "There is no file `none.txt`" in str(backend.read("/none.txt").error)

    found = backend.grep("TODO", glob="*.py", max_count=2)
    assert found.truncated
    assert [(one["path"], one["line"]) for one in found.matches or []] == [("/src/app.py", 2), ("/top.py", 1)]
    for pattern, path, expected in (
        ("*.py", None, ["/src/app.py", "/top.py"]),
        ("/*.py", None, ["/top.py"]),
        ("src/*.py", "/", ["/src/app.py"]),
        (".*.py", "/src", ["/src/.hidden.py"]),
    ):
        assert [one["path"] for one in backend.glob(pattern, path).matches or []] == expected, pattern
    assert [one["path"] for one in backend.ls("/src").entries or []] == ["/src/.hidden.py", "/src/app.py"]

    up = backend.upload_files([("/up.bin", b"\x00"), ("/src", b"no")])
    assert up == [FileUploadResponse(path="/up.bin"), FileUploadResponse(path="/src", error="is_directory")]
    down = backend.download_files(["/up.bin", "/none.txt"])
    assert down == [
        FileDownloadResponse(path="/up.bin", content=b"\x00"),
        FileDownloadResponse(path="/none.txt", error="file_not_found"),
    ]
    assert backend.edit("/top.py", "TODO", "DONE", replace_all=True).occurrences == 2
    assert "exist" in str(backend.delete("/none").error)
