"""What a store promises: intents, the ledger, blobs, migrations, several processes."""

from spec.model import section

STORES = section(
    "Stores and the ledger",
    "engine contract",
    {
        "engine:store:log_removed": "A history whose log was removed while it was open acknowledges nothing more until it is opened again.",
        "engine:store:two_stores": "The store in memory passes the same suite as the SQLite one.",
        "engine:store:intent": "A finished intent becomes entries, heads and writers in one transaction; its author has then seen what it wrote.",
        "engine:store:abort": "An aborted intent leaves failed entries and changes no head.",
        "engine:store:exclusive": "A path belongs to one open intent at a time, for a move both of its paths.",
        "engine:store:lease": "A lease that is over makes an intent settleable, whoever owns it; renewing extends it.",
        "engine:store:living_owner": "The intent of a living owner is not settled by another process while its lease runs.",
        "engine:store:settled_once": "An intent that was settled cannot be finished or aborted again.",
        "engine:store:retry": "A retry with the same idempotency key gets the first answer.",
        "engine:store:retry_waits": "A retry waits while the first attempt is under way, and is a first attempt after a failure.",
        "engine:store:external": "Unknown bytes at a path are an outside edit and become an `external` entry before ours.",
        "engine:store:fence": "On a mount that is not coherent, an older version of ours is a stale cache and is refused.",
        "engine:store:fence_local": "On a local file system an older version of ours is an outside edit, not a stale cache.",
        "engine:store:blobs": "A blob is immutable, stored once under its sha256 and checked whenever it is read.",
        "engine:store:deltas": "Versions are kept as zstd deltas in chains of at most 8; large blobs are files.",
        "engine:ledger:entry": "An entry holds timestamp, session, agent, tool, operation, paths, hashes, diff, outcome, change and seq.",
        "engine:ledger:indexes": "Entries of an agent, a session, a path or an operation are found without reading the others.",
        "engine:ledger:chained": "Every entry carries the hash of the one before, and the ledger only grows.",
        "engine:ledger:bounded_diff": "The diff in an entry is at most 64 KiB and says when it was cut.",
        "engine:store:migrations": "Migrations are numbered and only go forward; every older schema opens with its data.",
        "engine:store:group_commit": "Writers that wait for the disk share one sync, outside the lock; none is answered before it, and none waits for a stopped one.",
        "engine:store:failed_sync": "After a sync that failed, nothing is acknowledged until everything was written again.",
        "engine:store:threads": "Several threads may use one store at once.",
        "engine:store:processes": "Several processes may use one state directory at once, and wait for their turn.",
        "engine:store:durable": "What a store acknowledged is there after the process is killed.",
        "engine:checker:pairs": "The history checker finds nothing on every pair of store and disk.",
        "engine:checker:controls": "The history checker catches the negative controls: no lock, no fence.",
    },
)
