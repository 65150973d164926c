"""Outside programs: what holds against programs that know nothing of Surehold."""

from spec.model import section

_LEASES = section(
    "Programs that write at the same moment",
    "engine contract",
    {
        "outside:facts:before": "A file that changed since it was read is not exchanged: nothing is shown that will be refused.",
        "outside:facts:refused_text": "The text of a refused edit is never left in the file; what was written to it is kept.",
        "outside:lease:editor": "While an editor is asked to write, no lease keeps it, or what it starts, from the other files of the change; their facts are compared.",
        "outside:lease:waits": "A program that opens the file for writing during a change waits, then writes to the right file.",
        "outside:open:removed": "A file that a program has open for writing is not removed or replaced by another one; the refusal says why.",
        "outside:open:in_place": "A file that a program has open for writing is changed in place, and the answer says so.",
        "outside:open:shorter": "Such a file is not made shorter: what the program writes could be lost.",
        "outside:in_place:append": "What is appended to a file that is written in place stays after the new bytes.",
        "outside:race:append": "Programs that append to small, large and hard-linked files lose nothing, and nor does the agent.",
        "outside:race:save": "Programs that save by renaming lose nothing: it is in the file or in the history.",
        "outside:race:git": "While git changes the tree no acknowledged edit is lost, and no refused one is in the file.",
        "outside:retry:taken_over": "A change that another program read in the moment before it was taken back, and wrote back with its own, counts as made: it is neither refused nor made twice, and the answer says so.",
        "outside:refused:left_alone": "What another program does to a file before a change is refused stays as it is, also where it looks like the change: a deleted file is not made again, the same edit is not taken back.",
        "outside:retry:again": "A change that met another program is read, checked and planned again before it is refused.",
    },
)

_RECORD = section(
    "What is known of outside edits",
    "engine contract",
    {
        "outside:record:noticed": "An outside edit is recorded when it is noticed: by a read, a page, a search that shows it, a dry run or a refusal.",
        "outside:record:counted": "The log counts the lines that an outside edit added and removed, where both versions are kept and not large, and names it by its whole id.",
        "outside:record:kept": "Bytes of others that had to leave a path have entries, and are reached by log, undo and trash.",
        "outside:record:ours": "A version of another Surehold process is never recorded as an outside edit.",
        "outside:root:replaced": "A root whose path leads to another directory is not written to.",
        "outside:root:read": "Tools that read below such a root say so in text and data.",
    },
)

OUTSIDE = (*_LEASES, *_RECORD)
