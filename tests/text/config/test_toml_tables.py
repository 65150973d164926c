"""Setting and taking out one table of a TOML file, while every other byte stays."""

import tomllib

import pytest

from surehold.text.config.toml_tables import remove_table, set_table

KEYS = ("mcp_servers", "surehold")
VALUES = {"command": "surehold", "args": ["mcp"], "startup_timeout_sec": 30}
TABLE = '[mcp_servers.surehold]\ncommand = "surehold"\nargs = ["mcp"]\nstartup_timeout_sec = 30\n'
HANDWRITTEN = """\
# mine
model = "x" # a model
notes = \"\"\"
[mcp_servers.surehold]
\"\"\"
list = [
  "[mcp_servers.surehold]", # not a table
]

[mcp_servers.other]
command = 'y'

# the next one
[[rules]]
a = { b = 1 }
"""


@pytest.mark.parametrize(
    "before", ["", HANDWRITTEN, "a = 1\n", "[mcp_servers.other]\nx = 1\n\n\n", "# only a comment\n"]
)
def test_a_table_is_added_at_the_end_and_taken_out_again(before: str) -> None:
    text = set_table(before, KEYS, VALUES)

    assert text == (f"{before}\n{TABLE}" if before else TABLE)
    assert remove_table(text, KEYS) == before
    assert set_table(text, KEYS, VALUES) == text


def test_a_table_that_is_there_is_replaced_where_it_is() -> None:
    text = HANDWRITTEN.replace("[[rules]]", '[mcp_servers."surehold"]\ncommand = "old"\n# why\n\n[[rules]]')

    assert set_table(text, KEYS, VALUES) == text.replace('[mcp_servers."surehold"]\ncommand = "old"\n', TABLE)


def test_tables_inside_it_go_with_it() -> None:
    text = f'a = 1\n\n{TABLE}\n[mcp_servers.surehold.env]\nX = "1"\n\n[b]\n'

    assert remove_table(text, KEYS) == "a = 1\n\n[b]\n"


def test_line_endings_are_those_of_the_file() -> None:
    assert set_table("a = 1\r\n", KEYS, {"x": 1}) == "a = 1\r\n\r\n[mcp_servers.surehold]\r\nx = 1\r\n"


@pytest.mark.parametrize(
    "text", ["a = ", "mcp_servers = { other = 1 }\n", "mcp_servers = 3\n", "[mcp_servers]\nsurehold.x = 1\n"]
)
def test_what_cannot_be_edited_by_tables_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_table(text, KEYS, VALUES)


def test_what_comes_out_says_what_it_should() -> None:
    assert tomllib.loads(set_table(HANDWRITTEN, KEYS, VALUES))["mcp_servers"] == {
        "other": {"command": "y"},
        "surehold": VALUES,
    }
