"""The arguments of a tool: how they are declared, and how plain data becomes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from surehold.errors import InvalidArgument, SpelledText, spell
from surehold.tools.call import Json
from surehold.tools.schema import params_schema

MODEL_CONFIG = ConfigDict(frozen=True, populate_by_name=True, defer_build=True)
"""Built when first used: a server starts in the time that it takes to build what `tools/list` needs."""
_MAX_PROBLEMS = 20
_KEY_NAMES = ("idempotencyKey", "idempotency_key")
"""Every modifying tool takes it; no schema lists it, since only a program that repeats a call needs it."""

_MIN_LETTERS = 3
"""Of a name that is known in other spellings too: `-A` and `-a` may be different switches."""

PathRole = Literal["path", "destination", "trashed"]


@dataclass(frozen=True, slots=True)
class NamesFile:
    """Marks an argument that names a file: the one that the call is about, where it goes, or what the trash calls it."""

    role: PathRole = "path"


SubjectPath = Annotated[str, NamesFile()]
"""The path that a call is about."""
OptionalSubjectPath = Annotated[str | None, NamesFile()]
DestinationPath = Annotated[str, NamesFile("destination")]
TrashedName = Annotated[str | None, NamesFile("trashed")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSubject:
    """The files that a call names, as they were sent; empty where it names none."""

    path: str = ""
    destination: str = ""
    trashed: str = ""


class _Arguments(BaseModel):
    """What callers send; an attribute's docstring is its description."""

    model_config = MODEL_CONFIG

    ALIASES: ClassVar[Mapping[str, str]] = {}
    """Other names that callers use, and the arguments they mean."""
    DEPRECATED: ClassVar[Mapping[str, str]] = {}
    """Names that still work, with a warning."""
    DEMANDED: ClassVar[tuple[str, ...]] = ()
    """Arguments that the schema demands and the tool checks itself, since a setting may lift the demand."""

    @model_validator(mode="before")
    @classmethod
    def _rename_aliases(cls, values: Any) -> Any:
        """Take other names, and null for an argument that has a default as if it was not sent."""
        if not isinstance(values, Mapping) or not (cls.ALIASES or None in values.values()):
            return values  # pyright: ignore[reportUnknownVariableType]
        given = dict(cast("Mapping[str, Any]", values))
        for name in [name for name, value in given.items() if value is None and name in cls._never_null()]:
            del given[name]
        for alias, name in cls.ALIASES.items():
            if alias in given and name not in given:
                given[name] = given.pop(alias)
        return given

    @classmethod
    @cache
    def _never_null(cls) -> frozenset[str]:
        """Return the names of the arguments whose default is not null, and that cannot be null."""
        optional = ((key, info) for key, info in cls.model_fields.items() if not info.is_required())
        fields = ((key, info) for key, info in optional if type(None) not in get_args(info.annotation))
        return frozenset(name for key, info in fields for name in (key, info.alias) if name)

    @classmethod
    @cache
    def known_names(cls) -> frozenset[str]:
        named = {name for key, info in cls.model_fields.items() for name in (key, info.alias) if name}
        return frozenset(named | set(cls.ALIASES))


def _letters_of(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


class Params(_Arguments):
    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    """Optional arguments that the method of a session takes by position too; it does so for all that are required."""

    @classmethod
    def with_known_names(cls, arguments: Mapping[str, Any]) -> Json:
        """Return the arguments; a name that differs from a known one only in case, `_` or `-` is that one.

        Else `dryRun` would be ignored where the name is `dry_run`, and the file would be written.
        """
        given, unknown = dict(arguments), arguments.keys() - cls.known_names()
        for name in sorted(unknown):
            own = cls._names_by_letters().get(_letters_of(name), name)
            if own not in given:
                given[own] = given.pop(name)
        return given

    @classmethod
    @cache
    def _names_by_letters(cls) -> dict[str, str]:
        own = [info.alias or name for name, info in cls.model_fields.items()]
        found = {_letters_of(name): name for name in (*cls.DEPRECATED, *cls.ALIASES, *own)}
        return {letters: name for letters, name in found.items() if len(letters) >= _MIN_LETTERS}

    @classmethod
    def subject_of(cls, arguments: Mapping[str, Any]) -> CallSubject:
        """Return the files that a call names, whatever spelling of an argument it uses."""
        found = {role: next(cls._names_sent(arguments, role), "") for role in get_args(PathRole)}
        return CallSubject(**found)

    @classmethod
    def named_paths(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        subject = cls.subject_of(arguments)
        return tuple(path for path in (subject.path, subject.destination) if path)

    @classmethod
    def _names_sent(cls, arguments: Mapping[str, Any], role: PathRole) -> Iterator[str]:
        others = {**cls.ALIASES, **cls.DEPRECATED}
        for field, info in cls.model_fields.items():
            if NamesFile(role) not in info.metadata:
                continue
            own = (info.alias or field, field)
            spellings = (*own, *(other for other, name in others.items() if name in own))
            values = (*(arguments.get(name) for name in spellings), info.default)
            yield from (value for value in values if isinstance(value, str) and value)


class NestedParams(_Arguments):
    """An object nested in the arguments; foreign keys are refused.

    A static method `from_python` turns what a program may send instead, as its argument is typed, into plain data.
    """

    model_config = ConfigDict(extra="forbid")


P = TypeVar("P", bound=Params)


def split_idempotency_key(params: type[Params], arguments: Mapping[str, Any]) -> tuple[Json, str]:
    """Return the arguments without the key under which the call is made once, and the key; empty if there is none."""
    given, key = dict(arguments), ""
    for name in (one for one in _KEY_NAMES if one in given and one not in params.known_names()):
        sent = given.pop(name)
        if sent is not None and not isinstance(sent, str):
            message, action = f"`{name}` must be a text.", "Send the key that the earlier answer named."
            raise InvalidArgument(message, reason="bad_idempotency_key", action=action)
        key = key or sent or ""
    return given, key


def parse_arguments(
    tool: str, params: type[P], arguments: Mapping[str, Any], *, deprecated_names: bool = True
) -> tuple[P, tuple[str, ...]]:
    """Turn plain data into Params, with a warning for every unknown argument."""
    given, warnings = dict(arguments), list[str]()
    for name in sorted(set(arguments) - params.known_names()):
        instead = params.DEPRECATED.get(name) if deprecated_names else None
        value = given.pop(name)
        if instead:
            warnings.append(f"`{name}` is deprecated; use `{instead}`.")
            given.setdefault(instead, value)
        else:
            warnings.append(f"Unknown argument `{name}` was ignored.")
    try:
        return params.model_validate(given), tuple(warnings)
    except ValidationError as invalid:
        raise _invalid_argument(tool, params, invalid) from None


_OBJECT_TYPES = ("model_type", "dict_type", "model_attributes_type")
"""A value that is not an object, as pydantic puts it; its own message has the names of our classes."""


def _invalid_argument(tool: str, params: type[Params], invalid: ValidationError) -> InvalidArgument:
    problems = [
        {"argument": _name_place(error["loc"]), "problem": _describe_problem(params, error)}
        for error in invalid.errors()[:_MAX_PROBLEMS]
    ]
    sent = invalid.errors()[0]["loc"]
    fields = {info.alias or field: field for field, info in params.model_fields.items()}
    taken = (fields.get(str(sent[0]), sent[0]), *sent[1:]) if sent else ()
    place = SpelledText(_name_place(sent, quote="`"), _name_place(taken, quote="`"))
    message = spell("`{}` cannot use {}: {}.", tool, place, problems[0]["problem"])
    return InvalidArgument(message, action="Correct the arguments and call again.", problems=problems)


def _name_place(location: tuple[int | str, ...], *, quote: str = "") -> str:
    """Name an argument, or a part of one, in words: `newText` of edit 0."""
    words = list[str]()
    for step in location:
        if isinstance(step, int) and words:
            words[-1] = f"{words[-1].strip(quote or None).removesuffix('s')} {step}"
        else:
            words.append(f"{quote}{step}{quote}")
    return " of ".join(reversed(words)) or "the arguments"


def _describe_problem(params: type[Params], error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "it is required and was not sent"
    if error["type"] in _OBJECT_TYPES:
        return "Input should be an object"
    if error["type"] != "extra_forbidden":
        return error["msg"]
    allowed = _allowed_keys_at(params_schema(params), error["loc"][:-1])
    return f"Unknown key; allowed are {', '.join(allowed)}" if allowed else "Unknown key"


def _allowed_keys_at(schema: Json, location: tuple[int | str, ...]) -> list[str]:
    for step in location:
        inner = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        if not isinstance(inner, dict):
            return []
        schema = cast("Json", inner)
    return sorted(schema.get("properties", {}))
