"""Several machines: large versions elsewhere, and servers that work side by side."""

from spec.model import section

FLEET = section(
    "Many machines",
    "engine contract",
    {
        "fleet:state:place": "With `--state postgresql://…`, which every command takes, the history is in PostgreSQL; the same store contract holds there.",
        "fleet:state:trips": "An edit waits for the database three times, and a read once.",
        "fleet:state:commands": "`surehold state init URL` sets a database up, `state status [URL] --json` names schema, workspaces and the lease in seconds, `state migrate TARGET` moves a history.",
        "fleet:state:words": "A database that is missing, unreachable, not set up, older, newer, read-only or refuses the password is named, with the next step, and nothing is written.",
        "fleet:state:moved": "A history that was moved to a database and back is what it was, hash for hash.",
        "fleet:state:chain": "In a database every path has a chain, and a seal covers the entries of a second; `verify` finds every planted change.",
        "fleet:state:unknown": "An answer whose fate is unknown says so and names the idempotency key that settles it.",
        "fleet:blobs:place": "With `--blobs DIR` or `--blobs s3://bucket/prefix`, which every command takes, versions above 64 KB are there and smaller ones in the history; everything that reads history works on both.",
        "fleet:blobs:immutable": "An object is never overwritten; its name ends with the sha256 of its bytes.",
        "fleet:blobs:checked": "Bytes from a blob store are compared with their sha256 on every read, also those from the cache.",
        "fleet:blobs:once": "A new large version costs one put, before the change begins; an edit fetches nothing.",
        "fleet:blobs:away": "When the blob store is away, a change that must store a large version is refused and names it; reads and other changes go on.",
        "fleet:blobs:probe": "A service that overwrites what must not exist, or loses what it accepted, is refused at the start.",
        "fleet:blobs:cache": "What was put or read lately is kept on the local disk, within a bound.",
        "fleet:blobs:gc": "Objects are removed only when nothing referred to them for a day; no change ever refers to one that is being removed.",
        "fleet:operations:health": "`/healthz` and `/readyz` answer without sign-in; a server that cannot read its history, or is ending, is not ready.",
        "fleet:operations:metrics": "`/metrics` counts edits, refusals by kind, durations, open changes and lost leases for Prometheus, and shows no path and no secret.",
        "fleet:operations:drain": "On SIGTERM a server is not ready at once, takes no more calls, answers those that run, and exits with 0.",
        "fleet:workers:sessions": "With `serve --workers N` any process answers any client: sessions of both eras, and answers that were too large.",
        "fleet:workers:end": "A worker that is killed is replaced; on SIGTERM all of them end in order, and with 0.",
        "fleet:files:locks": "`surehold doctor` names file systems whose locks hold on one machine only: nfs, smb, 9p and FUSE.",
        "fleet:deploy:files": "`deploy/` has a compose file, a systemd unit and a Kubernetes manifest that fit together.",
        "fleet:deploy:here": "`make fleet` runs a database, objects and replicas on this machine, kills them while agents edit, and fails if an edit is lost, doubled or invented.",
        "fleet:operations:logs": "`--log-format json` writes one document for each line, and one for each call.",
    },
)
