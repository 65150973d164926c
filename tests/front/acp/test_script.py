"""Prompts read as tool calls."""

from typing import Any

import pytest

from surehold.library.families import tools_of
from surehold_acp_agent.script import ScriptError, ScriptParser

READER = ScriptParser({one.name: one for one in tools_of("all")}, root="/project")
READ = ("read_file", {"path": "a.txt"})


def calls(prompt: str) -> list[tuple[str, dict[str, Any]]]:
    return [(one.tool.name, one.arguments) for one in READER.parse_prompt(prompt)]


@pytest.mark.parametrize(
    "prompt",
    [
        '{"tool": "read_file", "arguments": {"path": "a.txt"}}',
        '[{"tool": "read_file", "arguments": {"path": "a.txt"}}]',
        '```json\n{"tool": "read_file",\n "arguments": {"path": "a.txt"}}\n```',
        "~~~\n/read a.txt\n~~~\n",
        '{"name": "read_file", "input": {"path": "a.txt"}}',
        '{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}',
        "/read a.txt",
        '/tool read_file {\n  "path": "a.txt"\n}',
        'tool read_file {"path": "a.txt"}',
    ],
)
def test_one_call_can_be_written_in_many_ways(prompt: str) -> None:
    assert calls(prompt) == [READ]


@pytest.mark.parametrize(
    "prompt",
    [
        '{"tool": "read_file", "arguments": {"path": "a.txt"}}\n/read a.txt',
        '[{"tool": "read_file", "arguments": {"path": "a.txt"}}, {"tool": "read_file", "arguments": {"path": "a.txt"}}]',
        '```\n{"tool": "read_file", "arguments": {"path": "a.txt"}}\n```\n\n```\n/read a.txt\n```',
        '{"tool": "read_file", "arguments": {"path": "a.txt"}},\n{"tool": "read_file", "arguments": {"path": "a.txt"}}',
        'tool read_file {"path": "a.txt"} /read a.txt',
    ],
)
def test_several_calls_keep_their_order(prompt: str) -> None:
    assert calls(prompt) == [READ, READ]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/read src/a.py:10-60", ("read_file", {"path": "src/a.py", "startLine": 10, "endLine": 60})),
        ("/read src/a.py:10-", ("read_file", {"path": "src/a.py", "startLine": 10})),
        ("/read src/a.py:10", ("read_file", {"path": "src/a.py", "startLine": 10, "endLine": 10})),
        ("/read 'my file.txt'", ("read_file", {"path": "my file.txt"})),
        ("/create b.txt 'some text'", ("create_file", {"path": "b.txt", "content": "some text"})),
        ("/grep 'def \\w+' src", ("search_files", {"mode": "regex", "query": "def \\w+", "root": "src"})),
        ("/find **/*.py", ("glob", {"pattern": "**/*.py"})),
        ("/ls", ("list_directory", {"path": "."})),
        (
            "/edit a.py 'x = 1' 'x = 2' y z",
            (
                "multi_edit_text_file",
                {
                    "path": "/project/a.py",
                    "edits": [{"old_string": "x = 1", "new_string": "x = 2"}, {"old_string": "y", "new_string": "z"}],
                },
            ),
        ),
    ],
)
def test_a_command_becomes_the_call_of_a_tool(prompt: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert calls(prompt) == [expected]


@pytest.mark.parametrize("prompt", ["", "  \n", "help", "/help", "```\n/help\n```"])
def test_a_prompt_that_asks_for_help_has_no_calls(prompt: str) -> None:
    assert calls(prompt) == []


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("Please fix the bug.", "This is neither JSON nor a command: Please fix the bug."),
        ("x" * 200, f"This is neither JSON nor a command: {'x' * 80}…"),
        ('{"tool": "read_file"', 'This is not JSON (Expecting \',\' delimiter): {"tool": "read_file"'),
        ('{"tool": "rm", "arguments": {}}', "No tool is called `rm`."),
        ('{"tool": "read_file", "arguments": 1}', "The arguments of `read_file` must be a JSON object: 1"),
        ("[7]", 'A call looks like {"tool": …, "arguments": …}; this does not: 7'),
        ("/tool read_file", "This is not JSON (Expecting value): "),
        ("/fly a.txt", "There is no command /fly."),
        ("/read", "It is used like this: /read PATH[:FIRST-LAST]"),
        ("/read a b", "It is used like this: /read PATH[:FIRST-LAST]"),
        ("/edit a.py x", "It is used like this: /edit PATH OLD NEW [OLD NEW …]"),
        ("/create a.py", "It is used like this: /create PATH TEXT"),
        ("/grep", "It is used like this: /grep PATTERN [PATH]"),
        ("/ls a b", "It is used like this: /ls [PATH]"),
        ('/read "a', "The quotes of /read do not match: No closing quotation."),
        ("[" * 100_000, f"This is not JSON (it is nested too deeply, or a number too long): {'[' * 80}…"),
    ],
)
def test_what_cannot_be_read_is_named(prompt: str, why: str) -> None:
    with pytest.raises(ScriptError) as trouble:
        calls(prompt)
    assert str(trouble.value) == why


def test_commands_whose_tool_is_not_served_do_not_exist() -> None:
    reader = ScriptParser({one.name: one for one in tools_of("anchored")}, root="/project")

    assert [one.name for one in reader.shortcuts] == ["read"]
    with pytest.raises(ScriptError, match="There is no command /ls"):
        reader.parse_prompt("/ls")
