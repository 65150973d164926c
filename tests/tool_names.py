"""The tools of each family, written by hand once: every other test counts or compares with these."""

FAMILY_TOOLS = {
    "anchored": {"edit", "read_file", "write_file"},
    "files": {
        "apply_patch",
        "create_file",
        "delete_file",
        "edit_file",
        "glob",
        "list_directory",
        "move_file",
        "read_file",
        "restore_file",
        "search_files",
        "write_file",
    },
    "multi_edit": {"edit_text_file", "multi_edit_text_file", "read_text_file", "write_text_file"},
    "claude": {"Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"},
}
DEFAULT_TOOLS = sorted(FAMILY_TOOLS["anchored"] | FAMILY_TOOLS["files"])
ALL_TOOLS = sorted(set[str]().union(*FAMILY_TOOLS.values()))
