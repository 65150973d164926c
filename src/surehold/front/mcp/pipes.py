"""The standard streams, taken away from everybody but the client."""

import os
import sys
from dataclasses import dataclass

from surehold.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Pipes:
    """The two descriptors of the client, out of reach for everybody else."""

    incoming: int
    outgoing: int


def divert() -> Pipes:
    """Take the standard streams away: what is printed from now on goes to standard error."""
    sys.stdout.flush()
    try:
        pipes = Pipes(os.dup(0), os.dup(1))
    except OSError:
        raise InvalidArgument(
            "Standard input or output is closed, so no client can be served on them.",
            reason="no_pipes",
            action="Let an MCP client start it, or serve HTTP with --http.",
        ) from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes
