"""Teaches pytest the mark, and `--requirement ID` to run only the tests that prove a sentence."""

from typing import cast

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirement", default="", metavar="ID", help="run only tests of ids that begin like this")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the sentences of the contract that this test proves")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = cast("str", config.getoption("--requirement"))
    if not wanted:
        return
    chosen = [item for item in items if any(id_.startswith(wanted) for id_ in _ids(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _ids(item: pytest.Item) -> list[str]:
    return [id_ for mark in item.iter_markers("requirement") for id_ in cast("tuple[str, ...]", mark.args)]
