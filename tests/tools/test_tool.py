import json
from typing import Any

import pytest
from pydantic import Field

from spec.marks import requirement
from surehold.errors import InvalidArgument, SureholdError
from surehold.tools.schema import slim_schema
from surehold.tools.spec import Answer, Hints, Params, Part, Result, tool
from surehold.workspace.session import Session
from workspaces import make_bench


class PlainWire:
    """Success and failure, spelled as plainly as possible."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> dict[str, Any]:
        return {"ok": True, "data": result.model_dump(by_alias=True), "warnings": list(warnings)}

    def failure(self, error: SureholdError) -> dict[str, Any]:
        return {"ok": False, "error": error.kind, "message": error.message}


class Word(Part):
    text: str
    """What to look for."""
    title: bool = False
    """Whether it begins with a capital."""


class CountParams(Params):
    path: str
    """The file to look at."""
    words: list[Word] = Field(default_factory=list[Word])
    """Words to count."""


class CountResult(Result):
    line_count: int = Field(serialization_alias="lineCount")


@tool("count_lines", hints=Hints(kind="read", read_only=True), wire=PlainWire())
def count_lines(session: Session, params: CountParams) -> CountResult:
    """Count the lines of a file.

    The count is that of `grep -c`.
    """
    return CountResult(line_count=session.read(params.path).line_count)


@pytest.fixture
def session(tmp_path: Any) -> Session:
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a", b"1\n2\n")
    return bench.workspace.session()


@requirement("engine:tool:once")
def test_a_tool_is_a_typed_function(session: Session) -> None:
    assert count_lines(session, CountParams(path="a")) == CountResult(line_count=2)
    assert count_lines.description == "Count the lines of a file.\n\nThe count is that of `grep -c`."


@requirement("engine:tool:once")
def test_a_tool_is_called_with_plain_data_and_answers_in_its_dialect(session: Session) -> None:
    assert count_lines.call(session, {"path": "a"}) == Answer(
        ok=True, data={"ok": True, "data": {"lineCount": 2}, "warnings": []}
    )


@requirement("engine:tool:refusal")
def test_a_refusal_is_an_answer_too(session: Session) -> None:
    answer = count_lines.call(session, {"path": "missing"})

    assert (answer.ok, answer.data) == (
        False,
        {"ok": False, "error": "not_found", "message": "`missing` does not exist."},
    )


@requirement("engine:tool:unknown_top_level")
def test_an_unknown_argument_at_the_top_is_ignored_with_a_warning(session: Session) -> None:
    answer = count_lines.call(session, {"path": "a", "wait_for_previous": True})

    assert (answer.ok, answer.warnings) == (True, ("Unknown argument `wait_for_previous` was ignored.",))


@requirement("engine:tool:unknown_nested")
def test_an_unknown_key_inside_an_object_is_an_error_that_lists_the_allowed_ones() -> None:
    with pytest.raises(InvalidArgument) as refused:
        count_lines.parse({"path": "a", "words": [{"text": "x", "txet": "y"}]})

    assert refused.value.details["problems"] == [
        {"argument": "words.0.txet", "problem": "Unknown key; allowed are text, title"}
    ]


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(InvalidArgument) as refused:
        count_lines.parse({})

    assert "`path`" in refused.value.message


@requirement("engine:tool:schema")
def test_schemas_are_slim_and_say_what_each_argument_is() -> None:
    schema = slim_schema(CountParams)

    # Compared as text, since models read it as text: the order counts too.
    assert json.dumps(schema, indent=2) == json.dumps(
        {
            "properties": {
                "path": {"description": "The file to look at.", "type": "string"},
                "words": {
                    "description": "Words to count.",
                    "items": {
                        "additionalProperties": False,
                        "properties": {
                            "text": {"description": "What to look for.", "type": "string"},
                            "title": {
                                "default": False,
                                "description": "Whether it begins with a capital.",
                                "type": "boolean",
                            },
                        },
                        "required": ["text"],
                        "type": "object",
                    },
                    "type": "array",
                },
            },
            "required": ["path"],
            "type": "object",
        },
        indent=2,
    )
