"""Make real changes again through the tools, and compare bytes: `make replay`.

    python -m replay                                        the usual packages, some files of each
    python -m replay --packages django==5.1..5.2,npm:express==4.18.2..4.19.0
    python -m replay --git PATH                             the newest commits of a repository
    python -m replay --all                                  every changed file, however large

The exit code is 1 when a file ended with wrong bytes, or when a change could not be said at all.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from replay.change import Difference
from replay.fresh import open_bench, replay
from replay.outcome import Score, total
from replay.report import goals, tables
from replay.sources import History, NotFetched, Releases, Source, chosen
from replay.stale import replay_stale

USUAL = (
    "npm:typescript==5.4.5..5.5.2",
    "sympy==1.13.3..1.14.0",
    "django==5.1.15..5.2",
    "npm:@angular/core==17.3.12..18.0.0",
    "npm:react-dom==18.2.0..18.3.1",
    "npm:react-dom==18.3.1..19.0.0",
    "npm:bootstrap==5.3.2..5.3.3",
    "sdist:cryptography==41.0.0..41.0.7",
    "sdist:psutil==5.9.8..6.0.0",
    "npm:better-sqlite3==11.0.0..11.1.2",
    "requests==2.31.0..2.32.3",
    "npm:express==4.18.2..4.21.0",
)
LIMIT = 120
LARGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How much is replayed of each source."""

    cache: Path
    limit: int | None
    largest: int
    fresh: bool
    deals: int


def run(source: Source, asked: Asked) -> Score:
    """Replay one source in a workspace of its own."""
    start, score = time.monotonic(), Score(name=source.name)
    try:
        changes = chosen(source, asked.cache, limit=asked.limit, largest=asked.largest)
    except NotFetched as error:
        score.note("fetch", source.name, "not fetched", str(error))
        return score
    with open_bench() as (bench, folder):
        for change in changes:
            difference = Difference(change, folder)
            if asked.fresh:
                replay(bench, difference, score)
            for deal in range(asked.deals):
                replay_stale(bench, difference, score, deal=deal)
    score.seconds = time.monotonic() - start
    print(f"{source.name}: {score.files} files, {score.seconds:.0f} s", file=sys.stderr, flush=True)
    return score


def main() -> int:
    options = _options()
    sources: list[Source] = [Releases.parse(text) for text in options.packages.split(",") if text.strip()]
    if options.git:
        sources = [History(repository=Path(options.git), commits=options.commits)]
    asked = Asked(
        cache=Path(options.cache),
        limit=None if options.all else options.limit,
        largest=sys.maxsize if options.all else options.largest,
        fresh=not options.stale,
        deals=options.deals,
    )
    with ProcessPoolExecutor(max_workers=min(len(sources), os.cpu_count() or 1)) as pool:
        scores = list(pool.map(run, sources, [asked] * len(sources)))
    whole = total(scores)
    if options.json:
        Path(options.json).write_text(json.dumps([score.as_dict() for score in (*scores, whole)], indent=1))
    print(tables(scores, whole, shown=options.show))
    return int(any(row.mark == "above" for row in goals(whole)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surehold-replay"
    parser.add_argument("--packages", default=",".join(USUAL), help="a comma list of name==old..new")
    parser.add_argument("--git", metavar="PATH", help="a repository instead of packages")
    parser.add_argument("--commits", type=int, default=200, help="how many commits of it (%(default)s)")
    parser.add_argument("--limit", type=int, default=LIMIT, help="how many files of each package (%(default)s)")
    parser.add_argument("--largest", type=int, default=LARGEST, help="leave larger files out (%(default)s bytes)")
    parser.add_argument("--all", action="store_true", help="every changed file, of any size")
    parser.add_argument("--stale", action="store_true", help="only the edits of files that moved on")
    parser.add_argument("--deals", type=int, default=1, help="how often hunks are dealt anew (%(default)s)")
    parser.add_argument("--show", type=int, default=40, help="how many incidents are listed (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all figures there, too")
    parser.add_argument("--cache", default=str(cache), help="where packages are kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
