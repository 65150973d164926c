"""camelCase at the door, snake_case inside."""

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from surehold.tools.spec import Params, Part, Result

CAMEL = ConfigDict(alias_generator=to_camel)


class CamelParams(Params):
    """Arguments in camelCase; snake_case is understood too."""

    model_config = CAMEL


class CamelPart(Part):
    """An object nested in such arguments."""

    model_config = CAMEL


class CamelResult(Result):
    """A result in camelCase."""

    model_config = CAMEL
