"""Errors, disk, workspace, tools and state: what the promises rest on."""

from spec.model import section

_ERRORS = section(
    "Errors",
    "engine contract",
    {
        "engine:errors:tree": "Every deliberate error is in one tree, which its module draws as it is.",
        "engine:errors:kinds": "The kind of an error is one of a closed set; the reason is finer and stable.",
        "engine:errors:same_everywhere": "Every error serialises, prints and pickles the same way, without losing a field.",
        "engine:errors:sentence": "A message is one sentence; what to do next is a separate field.",
    },
)

_DISK = section(
    "The disk",
    "engine contract",
    {
        "engine:disk:two_disks": "The disk in memory passes the same suite as the local one.",
        "engine:disk:target": "Every spelling of a path resolves to one Target, which has no link left in it.",
        "engine:disk:fallbacks": "Without openat2, exchange or nameless files the same suite passes on the fallbacks.",
        "engine:disk:links_inside": "Relative and absolute links that stay inside a root are followed, at most 40 of them.",
        "engine:disk:several_roots": "Absolute paths below any root are reached, relative ones below the first.",
        "engine:disk:create_once": "Of N processes that create one path exactly one succeeds.",
        "engine:disk:create_parents": "Missing parent directories are made, and taken away again when the call fails.",
        "engine:disk:replace": "Replacing shows the old or the new file at every moment.",
        "engine:disk:verified_exchange": "What a replacement displaced is compared, and put back when it is not what was expected.",
        "engine:disk:delete": "Only the expected version is removed.",
        "engine:disk:move": "Moving is atomic and never overwrites what is not expected at its destination.",
        "engine:disk:in_place": "A file whose inode must stay (several links, foreign owner) is written in place.",
        "engine:disk:restored_facts": "A recreated file gets its mode, owner, times and attributes back.",
        "engine:disk:durability": "Durability `full` syncs file and directory, `file` the file, `none` nothing.",
        "engine:disk:known_pages": "A further page of a large file that no program wrote to takes no pass over all of it; the sha256 is of its bytes in any case.",
        "engine:disk:one_read": "Reading a file takes a consistent version, or says that it keeps changing.",
    },
)

_LOCKS = section(
    "Locks",
    "engine contract",
    {
        "engine:lock:processes": "Writers of one file in different processes take turns.",
        "engine:lock:names": "Only writers of the same name wait for each other; what makes a directory or a repository counts as one name.",
        "engine:lock:line": "Who waits for a name goes before who comes later, and a stopped holder delays only its own names.",
        "engine:lock:timeout": "A lock that is held too long is `lock_timeout`, with the next step.",
        "engine:lock:order": "Several files are locked in one order, so that crossing calls do not deadlock.",
        "engine:lock:dies_with_process": "A killed process leaves no lock.",
    },
)

_WRITE = section(
    "Writing, proofs and rules",
    "engine contract",
    {
        "engine:write:receipt": "A write answers with a receipt: change id, both hashes, diff, warnings.",
        "engine:write:many": "Several proposals are one change with one id and one entry per file.",
        "engine:write:twice": "One path named twice in a call, also by two spellings, is refused.",
        "engine:write:no_change": "A result equal to the file writes nothing.",
        "engine:write:dry_run": "A dry run gives the same answer or refusal, and changes neither disk nor ledger.",
        "engine:write:checks": "The checks of a proposal run before anything is written, and may warn or refuse.",
        "engine:write:refusal_recorded": "A refused call is recorded with its error kind.",
        "engine:write:no_record_no_write": "When the change cannot be recorded, it is not made.",
        "engine:write:planned_ahead": "A change of very many places is worked out before its directory is locked, so that others do not wait for it.",
        "engine:write:mode": "A change of the permission bits alone is a change, recorded and undoable.",
        "engine:proof:sha256": "A sha256 that is not the file's is `stale_file` with both hashes; a malformed one is refused at once.",
        "engine:proof:still_applies": "A stale refusal says whether the same edits still apply, and then with which hash to retry.",
        "engine:proof:already_applied": "A repeated call whose result is already there succeeds and says so.",
        "engine:proof:absent": "The proof of absence refuses an existing file and lets a missing one be created.",
        "engine:proof:exact": "An edit that quotes what it replaces needs no other evidence than the quotation.",
        "engine:proof:seen": "A file that this session did not read, or that changed since, is not overwritten.",
        "engine:proof:seen_whole": "A file that was read only in part is not overwritten as a whole.",
        "engine:proof:not_times": "A touched mtime alone never refuses, and an equal mtime never excuses.",
        "engine:policy:protected": "Shell, git, editor, agent and package manager configuration is read but not written.",
        "engine:policy:programs": "Protected names are data with the name of the program: shells, version control, editors, agents and their MCP files, build tools, package managers, start-up files of languages, debuggers, direnv and the like.",
        "engine:policy:ordinary": "Files that projects are made of are not protected, although programs run them.",
        "engine:policy:git_directory": "A directory that has or would get `HEAD`, `objects` and `refs` is protected like `.git`, in whatever order and by whatever call its files come.",
        "engine:policy:unprotected": "A rule may say that a path is not protected; an allow rule does not, and nothing opens what is denied.",
        "engine:policy:deny": "A denied path is neither read nor written, in gitignore syntax.",
        "engine:policy:both_paths": "Rules are checked for the requested and for the final path.",
        "engine:policy:case": "Rules match whatever the case of the name.",
        "engine:policy:state_dir": "The state directory inside a root is closed to every tool.",
    },
)

_HISTORY = section(
    "History, undo and trash",
    "engine contract",
    {
        "engine:history:log": "The log lists entries newest first, by path, folder, session, agent or change.",
        "engine:history:show": "A change is shown by its id or a unique part of it; an ambiguous part is refused with candidates.",
        "engine:history:diff": "The whole diff of a change is shown, also where the ledger keeps only its beginning.",
        "engine:undo:every_operation": "Create, write, edit, delete, move, restore and changes of several files can be undone.",
        "engine:undo:selective": "An earlier change is undone over later ones when that is provably clean.",
        "engine:undo:conflict": "An undo that later changes touch is refused with the lines, and changes nothing.",
        "engine:undo:any_order": "Undoing everything, in any order, gives back every file with its bytes and its mode.",
        "engine:undo:moves": "Undo and redo follow a file to the name that it has now; a name that another file has is a conflict.",
        "engine:undo:adjacent": "An undo is clean when a later change, or an outside edit, touches only the lines next to it.",
        "engine:undo:advice": "A refused undo names the changes that must be undone first, in an order that works, or what happened outside.",
        "engine:undo:itself": "An undo is itself a change that can be undone, and redo makes the change again.",
        "engine:undo:once": "A change that is already undone, or changed nothing, is refused.",
        "engine:undo:newest": "Undo without a name takes the newest change that is not undone.",
        "engine:trash:list": "A deleted or displaced file is listed in the trash until it is restored or emptied.",
        "engine:trash:pages": "The trash is read a page at a time, wherever it is listed, searched or emptied.",
        "engine:trash:restore": "Restoring is verified by hash, gives mode and times back and never overwrites a file.",
        "engine:trash:elsewhere": "A file can be restored to another path.",
        "engine:trash:empty": "Emptying gives up all or the named items, whose bytes go with the next gc.",
        "engine:trash:permanent": "A permanent deletion is not offered in the trash.",
        "engine:gc:in_turns": "A clean-up works in short turns, others write in between, and what they come to need stays.",
        "engine:gc:shrinks": "After a clean-up the file of the history is shorter.",
        "engine:gc:keeps": "`gc` drops only bytes that nothing younger than the limit, no head, no trash and no open intent needs.",
        "engine:gc:recorded": "`gc` is recorded and has a dry run; nothing is pruned silently.",
        "engine:archive:sealed": "`gc` seals entries older than the limit in compressed blocks of an archive; none is lost, altered or sealed twice.",
        "engine:archive:read": "Archived entries are found and shown as before, and only blocks that may have them are read.",
        "engine:archive:chain": "The chain of hashes goes on from the archive into later entries.",
        "engine:archive:verified": "`verify` checks the archive: every flipped bit is found, and nothing that was altered is sealed.",
        "engine:archive:interrupted": "A kill, a power cut or a full disk during a clean-up leaves the history whole, and the next one goes on.",
        "engine:verify:clean": "`verify` finds nothing wrong with an unaltered ledger and its blobs.",
        "engine:verify:first_broken": "`verify` names the first broken entry and every blob that is damaged or missing.",
    },
)

_RECOVERY = section(
    "Recovery and races",
    "engine contract",
    {
        "engine:recover:forward": "A dead call whose files all hold the new version is recorded as done.",
        "engine:recover:backward": "A dead call that is not complete is taken back in every file.",
        "engine:recover:torn": "A torn in-place write gets its old bytes back.",
        "engine:recover:outside_edit": "A path that holds neither version is left alone and reported.",
        "engine:recover:lock_first": "Recovery takes the locks first, so it never settles a change whose owner is still at work on it.",
        "engine:recover:again": "Recovery may run twice, be killed itself, and run in several processes.",
        "engine:recover:on_open": "Opening a workspace closes what dead processes left open.",
        "engine:recover:own_paths": "A call settles what dead processes left open at its own paths. Intents of other paths, of dead, stopped or slow processes, are not looked at and delay nothing.",
        "engine:recover:temporaries": "After recovery no temporary file is left in the workspace.",
        "engine:crash:kill": "Killed at every mutating system call of every operation, no byte is lost and nothing is half done.",
        "engine:crash:disk_errors": "ENOSPC and EIO at every mutating system call give a clear error, the old file and no temporary.",
        "engine:crash:power": "A power cut at any moment takes nothing that was acknowledged, however many processes write.",
        "engine:race:one_file": "N processes editing one file lose, double and invent no edit.",
        "engine:race:crossing_moves": "Processes that move files across each other neither deadlock nor lose one.",
        "engine:model:dictionary": "A random sequence of operations agrees with a plain dictionary of bytes.",
    },
)

_VIEWS = section(
    "Checkpoints and writers",
    "anchored contract",
    {
        "engine:views:checkpoints": "`CheckpointManager` lists open checkpoints with their old bytes, and none after a committed write.",
        "engine:views:roll_back": "`CheckpointManager` rolls back what a dead process left.",
        "engine:views:last_writer": "`FileWriteTracker` names the tool family that last wrote a file, or `external`.",
        "engine:views:writers": "All writers of a file are known without reading its entries, however many there are.",
        "engine:views:continuity": "`FileWriteTracker` tells whether anything but `edit` wrote since the last full read with anchors.",
    },
)

_STATE = section(
    "State on disk",
    "engine contract",
    {
        "engine:state:place": "State lies below XDG_STATE_HOME, one folder per root, outside the workspace, or in the configured directory.",
        "engine:state:private": "The state directory has mode 0700 and explains itself in a README.",
    },
)

_TOOL = section(
    "Tools and the public API",
    "engine contract",
    {
        "engine:tool:once": "Name, Params, Result, docstring, hints and wire are one definition, callable with types and with plain data.",
        "engine:tool:refusal": "A refusal is an answer spelled by the wire, not an exception.",
        "engine:tool:unknown_top_level": "An unknown top-level argument is ignored with a warning.",
        "engine:tool:other_spelling": "A top-level name that differs from an argument's own only in case, `_` or `-` is that argument: `dryRun` is `dry_run`.",
        "engine:tool:null": "Null for an argument that has a default and cannot be null is as if it was not sent.",
        "engine:tool:unknown_nested": "An unknown key in a nested object is an error that lists the allowed names.",
        "engine:tool:schema": "Schemas have no titles and no references, and their order is stable.",
        "engine:api:all": "`surehold.__all__` is sorted and complete, and every name in it is documented and typed.",
        "engine:api:light_import": "`import surehold` loads no protocol, image or PDF library.",
        "engine:api:settings": "`open_workspace` refuses no root, a root that is not a directory, and takes several roots.",
        "engine:layers:contracts": "The import contracts in pyproject.toml hold.",
    },
)

_BAD_INPUT = section(
    "Bad input",
    "engine contract",
    {
        "engine:bad_input:missing": "A missing file is `not_found` with the next step.",
        "engine:bad_input:unreadable": "A file without read permission is `permission_denied`.",
        "engine:bad_input:directory": "A directory where a file is meant is `is_a_directory`.",
        "engine:bad_input:dangling_link": "A dangling link is `not_found` when read, and nothing is created through one that leads out of the roots.",
        "engine:bad_input:looping_link": "A looping link is refused with its cause.",
        "engine:bad_input:nul": "A path with NUL, and an empty one, is refused as an argument.",
        "engine:bad_input:long_path": "A path of 5 KB, and a name too long for a file, is refused clearly.",
        "engine:bad_input:name_not_utf8": "A file name that is not UTF-8 is read, written, logged and restored like any other.",
        "engine:bad_input:content_not_utf8": "Content that is not UTF-8 is edited with ASCII, and other text is refused naming the characters.",
        "engine:bad_input:too_large": "A file of 2 GB is `file_too_large` with the limit, and its pages can be read.",
        "engine:bad_input:vanishing": "A file that disappears in the middle of a call is a clear refusal.",
        "engine:bad_input:disk_full": "A full disk is `disk_full`; the file is untouched and no temporary file is left.",
        "engine:bad_input:read_only_directory": "A directory that cannot be written is `permission_denied`; the file is untouched.",
        "engine:bad_input:state_not_writable": "A state directory that cannot be written is refused naming it, before any file changes.",
        "engine:bad_input:state_too_new": "State of a newer version is refused clearly and left as it is.",
        "engine:bad_input:corrupt_blob": "A corrupt blob is `state_corrupt`, and is never written into a file.",
        "engine:bad_input:truncated_database": "A truncated or foreign database is a clear error with the next step.",
        "engine:bad_input:nothing_left": "After every refusal the file is untouched and no temporary file is left.",
    },
)

ENGINE = (*_ERRORS, *_DISK, *_LOCKS, *_WRITE, *_HISTORY, *_RECOVERY, *_VIEWS, *_STATE, *_TOOL, *_BAD_INPUT)
