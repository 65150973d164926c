"""How many edits are refused when 200 agents edit 200 files by anchors, each some seconds after it read.

1. The calls are real, and made one after the other; only the thinking between them is counted instead of waited for.
2. All files are wanted alike, or few often and most rarely. An edit replaces three of 300 lines; a refused one is tried again after a read.
"""

import heapq
import random
import sys
import tempfile
from pathlib import Path

from table import Row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from databases.postgres_server import PostgresServer
from surehold import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.workspace import AgentWorkspace
from surehold.stores.postgres import schema
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.database import PostgresDatabase
from surehold.text.anchored.operations import ReplaceRange

_AGENTS, _FILES, _LINES, _CHANGED = 200, 200, 300, 3
_THINKING, _THINKING_AGAIN = 8.0, 4.0
_TRIES = 600
_MOST_REFUSED = 0.09


def rows() -> list[Row]:
    server = PostgresServer.create()
    try:
        server.start()
        url = f"{server.url}/postgres"
        database = PostgresDatabase(parse_address(url))
        schema.set_up(database)
        database.close()
        with tempfile.TemporaryDirectory(prefix="surehold-bench-") as folder:
            root = Path(folder) / "files"
            root.mkdir()
            for number in range(_FILES):
                lines = (f"line {line} of file {number}\n" for line in range(_LINES))
                (root / _name(number)).write_text("".join(lines))
            with open_workspace(root, settings=Settings(state=url)) as workspace:
                even, _ = _count_refused(workspace, root, [1.0] * _FILES)
                refused, overlapping = _count_refused(workspace, root, [1 / (place + 1) for place in range(_FILES)])
    finally:
        server.remove()
    name = f"refused edits by anchors of {_AGENTS} agents on {_FILES} files"
    shares = f"{refused / _TRIES:.1%} of {_TRIES:,} tries; in {overlapping / _TRIES:.1%} the lines had changed since the read"
    return [
        Row(
            name=f"{name}, over {_MOST_REFUSED:.0%}",
            measured=even / _TRIES / _MOST_REFUSED,
            goal=1.0,
            note=f"{even / _TRIES:.1%} of {_TRIES:,} tries; all files are wanted alike",
        ),
        Row(name=f"{name}, over true conflicts", measured=refused / max(1, overlapping), goal=1.0, note=shares),
    ]


def _count_refused(workspace: AgentWorkspace, root: Path, weights: list[float]) -> tuple[int, int]:
    """Let agents read and edit in the order of their moments.

    Return how many tries were refused, and in how many the lines to replace were no longer as they were read.
    """
    chance = random.Random(17)
    sessions = [workspace.session(agent=f"a{number}") for number in range(_AGENTS)]
    moments = [(chance.uniform(0, _THINKING), agent, "") for agent in range(_AGENTS)]
    heapq.heapify(moments)
    asked, replaced = dict[int, ReplaceRange](), dict[int, str]()
    tries = refused = overlapping = 0
    while tries < _TRIES:
        moment, agent, name = heapq.heappop(moments)
        thinking = _THINKING
        if name:
            tries += 1
            overlapping += replaced[agent] not in (root / name).read_text()
            try:
                sessions[agent].edit_lines(name, [asked[agent]])
                name = ""
            except SureholdError:
                refused += 1
                thinking = _THINKING_AGAIN
        name = name or _name(chance.choices(range(_FILES), weights)[0])
        facts = sessions[agent].read_file(name, hashes=True).lines
        assert facts is not None
        first = chance.randrange(len(facts) - _CHANGED)
        start, end = facts[first], facts[first + _CHANGED - 1]
        replaced[agent] = "".join((root / name).read_text().splitlines(keepends=True)[first : first + _CHANGED])
        new = "\n".join(f"line {number} by {agent} in try {tries}" for number in range(_CHANGED))
        asked[agent] = ReplaceRange(
            start_hash=start.hash, end_hash=end.hash, start_line=start.line, end_line=end.line, content=new
        )
        heapq.heappush(moments, (moment + chance.uniform(0.5, 1.5) * thinking, agent, name))
    return refused, overlapping


def _name(number: int) -> str:
    return f"{number}.txt"
