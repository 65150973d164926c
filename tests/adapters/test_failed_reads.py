"""A read that fails says what is wrong, and nothing of writing, in every framework."""

import asyncio
import warnings
from pathlib import Path

import pytest

from adapters.project import make_project
from spec.marks import requirement


@requirement("front:adapters:failed_reads")
def test_a_failed_read_says_nothing_of_writing_and_a_failed_write_does(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn of their own experiments while they are imported
        from anthropic.lib.tools import ToolError

        from surehold.adapters.anthropic import MemoryTool, TextEditorTool
        from surehold.adapters.deepagents import SessionBackend
        from surehold.adapters.google_adk import SessionEnvironment
        from surehold.adapters.tool_calls import session_tools

        project = make_project(tmp_path)
        backend, environment = SessionBackend(project.session), SessionEnvironment(project.session)
    reads = [str(backend.read("/none.txt").error), str(backend.ls("/none").error)]
    with pytest.raises(FileNotFoundError) as refused:
        asyncio.run(environment.read_file("none.txt"))
    reads.append(str(refused.value))
    for tool, path in ((TextEditorTool, "none.txt"), (MemoryTool, "/memories/none.txt")):
        with pytest.raises(ToolError) as failed:
            tool(project.session).call({"command": "view", "path": path})
        reads.append(str(failed.value))
    tools = {one.name: one for one in session_tools(project.session)}
    reads += [tools["read_file"].call("{broken").text, tools["read_file"].call({"path": "none.txt"}).text]

    assert [text for text in reads if "Nothing was written" in text] == []
    assert [text for text in reads if "not_found" not in text and "not JSON" not in text] == []
    writes = [str(backend.edit("/none.txt", "a", "b").error), tools["edit_file"].call("{broken").text]
    with pytest.raises(ToolError) as failed:
        TextEditorTool(project.session).call({"command": "str_replace", "path": "none.txt", "old_str": "a"})
    writes.append(str(failed.value))
    assert [text for text in writes if not text.startswith("Nothing was written.")] == []
