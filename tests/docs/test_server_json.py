"""`server.json` is what the MCP registry publishes: it must fit its schema, the package, and the README."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from surehold import __version__
from surehold.front.cli.main import build_parser

PROJECT = Path(__file__).parents[2]
NAME = "io.github.surehold/surehold"
TEXT = {"type": "string", "minLength": 1}
ARGUMENT = {
    "type": "object",
    "properties": {
        "type": {"const": "positional"},
        "value": TEXT,
        "valueHint": TEXT,
        "description": TEXT,
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "isRequired": {"type": "boolean"},
        "isRepeated": {"type": "boolean"},
    },
    "required": ["type"],
    "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
    "additionalProperties": False,
}
PACKAGE = {
    "type": "object",
    "properties": {
        "registryType": {"const": "pypi"},
        "identifier": TEXT,
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "runtimeHint": {"const": "uvx"},
        "transport": {"const": {"type": "stdio"}},
        "packageArguments": {"type": "array", "items": ARGUMENT},
    },
    "required": ["registryType", "identifier", "version", "transport"],
    "additionalProperties": False,
}
SHAPE = {
    "type": "object",
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "packages": {"type": "array", "items": PACKAGE, "minItems": 1},
    },
    "required": ["$schema", "name", "description", "version"],
    "additionalProperties": False,
}
"""What the registry's schema of 2025-12-11 asks for, as far as we use it."""


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    return json.loads((PROJECT / "server.json").read_text("utf-8"))


def test_it_has_the_shape_that_the_registry_asks_for(published: dict[str, Any]) -> None:
    jsonschema.validate(published, SHAPE)  # pyright: ignore[reportUnknownMemberType]

    assert published["name"] == NAME


def test_its_versions_are_those_of_the_package(published: dict[str, Any]) -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    (package,) = published["packages"]

    assert [published["version"], package["version"]] == [__version__] * 2
    assert (project["dynamic"], settings["tool"]["hatch"]["version"]["path"]) == (
        ["version"],
        "src/surehold/__init__.py",
    )
    assert package["identifier"] == project["name"]
    assert package["identifier"] in project["scripts"]  # what `uvx NAME` runs


def test_the_readme_that_is_published_with_the_package_carries_the_name(published: dict[str, Any]) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (PROJECT / project["readme"]).read_text("utf-8")

    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [published["name"]]


def test_its_arguments_start_the_server(published: dict[str, Any]) -> None:
    arguments = published["packages"][0]["packageArguments"]
    words = [one.get("value") or f"/{one['valueHint']}" for one in arguments]

    args = build_parser().parse_args(words)

    assert (args.command, args.roots) == ("mcp", ["/ROOT"])
