"""The six promises, and the product as one thing."""

from spec.model import section

PROMISE = (
    *section(
        "The six promises",
        "product contract",
        {
            "promise:nothing_lost:undo": "The bytes that any write replaced come back exactly by undoing it.",
            "promise:nothing_lost:trash": "A deleted file comes back exactly from the trash.",
            "promise:nothing_lost:checkpoint": "The old bytes are stored durably before the first byte at the path changes.",
            "promise:nothing_lost:outside_edit": "Bytes of an outside program that our write displaces in a race are put back or kept.",
            "promise:half_done:one_file": "A write killed at any moment leaves, after recovery, the old version or the new one.",
            "promise:half_done:many_files": "A call over several files killed at any moment leaves, after recovery, all of it or none.",
            "promise:half_done:refusal": "When one proposal of a call is refused, no file of the call has changed.",
            "promise:half_done:machine": "An acknowledged write is synced (file, directory and ledger), so it survives a dead machine.",
            "promise:unseen:stale": "A write is refused when the file is not what the caller saw.",
            "promise:unseen:race": "Of racing writers that saw one version exactly one wins, and no acknowledged edit is lost.",
            "promise:untouched:bytes": "Only the bytes of the edit change: encoding, mark, line ends and final newline stay.",
            "promise:untouched:mode": "A replaced file keeps its permission bits.",
            "promise:untouched:owner": "A replaced file keeps its owner and group.",
            "promise:untouched:xattrs": "A replaced file keeps its extended attributes and access control list.",
            "promise:untouched:hard_links": "A file with several names is still one file with all of them after a write.",
            "promise:untouched:symlinks": "Writing through a link inside the root changes its target and leaves the link a link.",
            "promise:contained:dotdot": "No `..` leads out of the roots; trying it is `outside_workspace`.",
            "promise:contained:links": "No symbolic link leads out of the roots, as the leaf or as a directory on the way.",
            "promise:contained:races": "Swapping a directory for a link while a call runs leaks no read and no write.",
            "promise:contained:devices": "Devices, endless ones too, FIFOs and sockets are refused by name, without hanging.",
            "promise:contained:spelling": "Absolute paths, repeated slashes, dots, NUL, tilde and look-alike prefixes of a root open no other way out.",
            "promise:refusal:next_step": "Every deliberate error says what to do next in a field of its own.",
            "promise:refusal:carries_data": "A refusal carries what the next call needs, such as the current sha256 or the lines of all candidates.",
            "promise:one_engine:one_door": "Nothing but the disk layer changes anything below a workspace root.",
            "promise:one_engine:library": "`from surehold import open_workspace` gives a library on the same engine as every front end.",
        },
    ),
    *section(
        "Words",
        "product contract",
        {
            "promise:words:one_meaning": "No word of the glossary in ARCHITECTURE.md names two classes, and names that say nothing (utils, helper, manager) are not used."
        },
    ),
    *section(
        "Refusals and tools",
        "product contract",
        {
            "promise:refusal:first_words": "The text of a refused tool call begins with `Nothing was written.`.",
            "promise:refusal:one_retry": "One retry built from the refusal alone succeeds without another read.",
            "promise:refusal:readable": "The text of a refusal is sentences and rows to copy: no value in the notation of a program, no path into JSON, no control character.",
            "promise:product:one_definition": "All front ends serve the same tools from the same definitions.",
            "promise:product:shared_tools": "`read_file` and `write_file` are one tool each, listed by the anchored and the files family.",
            "promise:product:default_tools": "`surehold mcp` serves `anchored,files` by default, and takes any comma list.",
            "promise:product:all_tools": "`--tools all` serves every family at once, `edit` beside `Edit` and `glob` beside `Glob`.",
        },
    ),
)
