"""Our own loop and the SDK's server give the same answers to the same messages, in both eras."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    InitializeRequestParams,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.methods import validate_client_request
from pydantic import BaseModel, ValidationError

from front.mcp.client import MODERN, Json, Version
from front.mcp.traffic import CAPABILITIES, INFO, PARAMS, PREFIX, Traffic
from front.mcp.twins import ERAS, Twins
from spec.marks import requirement
from surehold.front.mcp import json_rpc
from surehold.front.mcp.request_shapes import HANDSHAKE_METHODS, STATELESS_METHODS
from surehold.front.mcp.sdk import stdio as sdk_stdio

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
MESSAGES = 20_000 if SOAK else 300
LINES = 200_000 if SOAK else 3_000
MODELS: dict[str, type[BaseModel]] = {
    "ping": RequestParams,
    "server/discover": RequestParams,
    "prompts/get": GetPromptRequestParams,
    "resources/read": ReadResourceRequestParams,
    "resources/subscribe": SubscribeRequestParams,
    "resources/unsubscribe": UnsubscribeRequestParams,
    "subscriptions/listen": SubscriptionsListenRequestParams,
    "tools/call": CallToolRequestParams,
    "completion/complete": CompleteRequestParams,
    "initialize": InitializeRequestParams,
    "logging/setLevel": SetLevelRequestParams,
}


ENVELOPE: Json = {
    f"{PREFIX}protocolVersion": MODERN,
    f"{PREFIX}clientCapabilities": CAPABILITIES,
    f"{PREFIX}clientInfo": INFO,
}


@pytest.fixture
def twins(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Twins]:
    both = Twins(tmp_path, request.param)
    yield both
    both.close()


@requirement("front:mcp:same_as_sdk")
@pytest.mark.parametrize("twins", ERAS, indirect=True)
def test_generated_messages_are_answered_alike(twins: Twins) -> None:
    twins.start()
    opening = [twins.plain(name, client.opening) for name, client in twins.clients.items()]
    assert opening[0] == opening[1]
    traffic = {name: Traffic(7, twins.version, str(site.root)).lines(MESSAGES) for name, site in twins.sites.items()}

    for pair in zip(*traffic.values(), strict=True):
        answers = list[Any]()
        for sent, (name, client) in zip(pair, twins.clients.items(), strict=True):
            client.send_line(sent.line)
            answers.append([twins.plain(name, client.reaction_to(each)) for each in sent.expects])
        assert answers[0] == answers[1], pair[0].line

    last = [client.raw_answer(client.start("tools/list")) for client in twins.clients.values()]
    assert last[0] == last[1]
    assert [client.junk for client in twins.clients.values()] == [[], []]


@requirement("front:mcp:same_as_sdk")
@pytest.mark.parametrize("version", ERAS)
def test_generated_lines_are_read_alike(version: Version) -> None:
    for sent in Traffic(11, version, "/root").lines(LINES):
        assert _as_plain(json_rpc.parse_line(sent.line)) == _as_plain(sdk_stdio.parse_line(sent.line)), sent.line


def _as_plain(found: Any) -> Any:
    if isinstance(found, tuple):
        return [_as_plain(one) for one in cast("tuple[Any, ...]", found)]
    if isinstance(found, (JSONRPCRequest, json_rpc.RpcRequest)):
        return ("request", found.id, type(found.id), found.method, repr(found.params))
    if isinstance(found, (JSONRPCNotification, json_rpc.RpcNotification)):
        return ("notification", found.method, repr(found.params))
    if isinstance(found, JSONRPCError):
        return found.model_dump(exclude_none=True) if found.error.code == -32600 else ("reply", found.id)
    return cast("Json", found) if isinstance(found, dict) else ("reply", found.id)


@requirement("front:mcp:same_as_sdk")
@pytest.mark.parametrize("version", ERAS)
def test_generated_parameters_are_accepted_alike(version: Version) -> None:
    shapes = STATELESS_METHODS if version == MODERN else HANDSHAKE_METHODS
    for sent in Traffic(13, version, "/root").lines(LINES):
        found = json_rpc.parse_line(sent.line)
        if isinstance(found, json_rpc.RpcRequest) and found.method in shapes:
            accepted = shapes[found.method](found.params)
            assert accepted == _is_accepted_by_sdk(found.method, version, found.params), sent.line


def _is_accepted_by_sdk(method: str, version: str, params: Json | None) -> bool:
    try:
        validate_client_request(method, version, params)
        MODELS.get(method, PaginatedRequestParams).model_validate(params or {}, by_name=False)
    except ValidationError:
        return False
    return True


@requirement("front:mcp:same_as_sdk")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("method", sorted(PARAMS))
def test_a_member_that_is_missing_or_null_is_accepted_alike(method: str, version: Version) -> None:
    shapes = STATELESS_METHODS if version == MODERN else HANDSHAKE_METHODS
    whole = {**PARAMS[method], **({"_meta": ENVELOPE} if version == MODERN else {})}
    for place in _places(whole) if method in shapes else ():
        for params in _without(whole, place):
            assert shapes[method](params) == _is_accepted_by_sdk(method, version, params), (place, params)


def _places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where the members are of every object in a value."""
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            yield (*at, key)
            yield from _places(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from _places(inner, (*at, number))


def _without(whole: Json, place: tuple[str | int, ...]) -> Iterator[Json]:
    """Yield the value without the member at this place, and with null there."""
    for is_null in (False, True):
        copy: Any = json.loads(json.dumps(whole))
        holder = copy
        for step in place[:-1]:
            holder = holder[step]
        del holder[place[-1]]
        if is_null:
            holder[place[-1]] = None
        yield copy
