"""The standard streams, taken away from everybody but the client."""

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pipes:
    """The two descriptors of the client, out of reach for everybody else."""

    incoming: int
    outgoing: int


def divert() -> Pipes:
    """Take the standard streams away: what is printed from now on goes to standard error."""
    sys.stdout.flush()
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes
