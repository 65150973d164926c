"""Every requirement of the contract, as data.

Each has at least one test that carries `@requirement(id)`; test_coverage checks both directions. The sentences are in
`areas/`, one file per area; where we differ from the original contract, `divergences.py` says what we do instead and why.
`docs/contract.md` is generated from here (`make fix`).
"""

from dataclasses import replace

from spec.areas.anchored import ANCHORED
from spec.areas.approval import APPROVAL
from spec.areas.claude import CLAUDE
from spec.areas.engine import ENGINE
from spec.areas.files import FILES
from spec.areas.fleet import FLEET
from spec.areas.front import FRONT
from spec.areas.history import HISTORY
from spec.areas.host import HOST
from spec.areas.multi_edit import MULTI_EDIT
from spec.areas.outside import OUTSIDE
from spec.areas.promise import PROMISE
from spec.areas.run import RUN
from spec.areas.session import SESSION
from spec.areas.stores import STORES
from spec.areas.text import TEXT
from spec.divergences import DIVERGENCES
from spec.model import Requirement

_SENTENCES = (
    *PROMISE,
    *TEXT,
    *ANCHORED,
    *FILES,
    *MULTI_EDIT,
    *CLAUDE,
    *HOST,
    *OUTSIDE,
    *RUN,
    *SESSION,
    *HISTORY,
    *FRONT,
    *APPROVAL,
    *ENGINE,
    *STORES,
    *FLEET,
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(replace(r, divergence=DIVERGENCES.get(r.id, "")) for r in _SENTENCES)
IDS = frozenset(r.id for r in REQUIREMENTS)
