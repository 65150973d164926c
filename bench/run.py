"""Measure everything and print one table: `python bench/run.py [bench …]`.

Times are ratios against a baseline that runs in the same minute, in turns with its subject. `above` marks a goal that
was missed; the exit code is 0 all the same, since a busy machine is not a defect.
"""

import importlib
import sys
import time

from table import Row, render

BENCHES = (  # the page comes last: what it leaves to be written back would slow the others' fsync
    "read_digest",
    "durable_edit",
    "crowded",
    "history_growth",
    "old_changes",
    "locks",
    "writers",
    "database",
    "many_agents",
    "long_history",
    "stored_bytes",
    "startup",
    "commands",
    "mcp_start",
    "mcp_calls",
    "mcp_http",
    "mcp_find",
    "mcp_edit",
    "multi_edit",
    "mcp_pages",
    "first_page",
    "notebook",
    "media",
    "read_large",
    "claude_search",
)


def main(names: list[str]) -> None:
    start = time.monotonic()
    found = list[Row]()
    for name in names or BENCHES:
        print(f"{name} …", file=sys.stderr, flush=True)
        found += importlib.import_module(name).rows()
    goals = [row for row in found if row.goal is not None]
    above = sum(row.mark == "above" for row in goals)
    print(render(found))
    print(f"\n{len(goals) - above} of {len(goals)} goals hold. {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main(sys.argv[1:])
