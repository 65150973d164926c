"""What the rules do not hold for, each with its reason. These lists only shrink."""

SMALL_MODULES: dict[str, str] = {}
"""Modules below 60 lines with one importer that are not merged into it."""

LONG_FILES = {"errors.py": "one table: every deliberate error, drawn as a tree at the top"}
"""Files above 400 lines."""

PATH_TEXT = {
    "disk/base.py": "`resolve` turns text into a Target",
    "disk/editor": "`resolve`, and the editor's own name of a buffer",
    "disk/entries.py": "a name for a system call, below an open directory",
    "disk/errno_errors.py": "an error shows the path to a person",
    "disk/kernel.py": "a name for a system call, relative to an open directory; a directory of the machine",
    "disk/local.py": "`resolve` turns text into a Target",
    "disk/paths.py": "`resolve` turns text into a Target",
    "disk/probe.py": "a directory of the machine, such as a root or the state",
    "disk/tree.py": "a root, and the parts of a path",
    "errors.py": "an error shows the path to a person",
    "media": "an error shows the path to a person",
    "search": "a result shows the path to the caller",
    "stores": "the ledger records names, which outlive their files",
    "syntax/languages.py": "the language follows from the name",
    "text/patch": "the names in the text of a patch",
    "text/sanity": "the language follows from the name",
    "workspace/finder.py": "public: callers write text",
    "workspace/history.py": "public: callers write text",
    "workspace/reader.py": "public: callers write text",
    "workspace/proposal.py": "a receipt shows the path to the caller",
    "workspace/session.py": "public: callers write text",
}
"""Where a path is text although it is not at the edge: files and folders."""

PATH_STRINGS: dict[str, int] = {
    "workspace/access/read_gate.py": 2,
    "workspace/access/seen_lines.py": 1,
    "workspace/writer.py": 1,
}
"""How many paths are text in the other modules: names in messages, and in what the ledger records. It only falls."""
