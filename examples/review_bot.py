"""A review bot: says in Markdown what the agents did in a workspace, and what a person should look at.

    python review_bot.py DIRECTORY [SINCE]

A job in CI posts it as a comment. Exit code 1 if something should be looked at.
"""

import sys
from collections import defaultdict

from surehold import open_workspace

MANY_LINES = 200
CAREFUL = (".github/", "migrations/", "Makefile", "pyproject.toml")


def main(root: str, since: str) -> int:
    """Print the review of everything since a time; `24h`, `10:00` and dates are understood."""
    with open_workspace(root) as workspace:
        changes = [one for one in workspace.changes(since=since) if not one.undone_by]
    by_agent, concerns = defaultdict[str, list[str]](list), list[str]()
    for one in changes:
        removed = sum(entry.change.removed for entry in one.entries)
        by_agent[one.agent or "unknown"].append(
            f"`{one.change_id[-8:]}` {', '.join(one.paths)}: {one.reason or 'no reason'}"
        )
        if removed > MANY_LINES:
            concerns.append(f"`{one.change_id[-8:]}` removes {removed} lines")
        concerns += [f"`{one.change_id[-8:]}` touches {path}" for path in one.paths if path.startswith(CAREFUL)]
    for agent, rows in sorted(by_agent.items()):
        print(f"## {agent}: {len(rows)} changes\n")
        print("\n".join(f"- {row}" for row in rows), end="\n\n")
    if concerns:
        print("## Please look at\n")
        print("\n".join(f"- {row}, take it back with `surehold undo {row[1:9]}`" for row in concerns))
    return 1 if concerns else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "24h"))
