"""The multi_edit family: its test cases, its error codes, and its events for editors."""

from spec.model import section

MULTI_EDIT = (
    *section(
        "Test cases",
        "multi-edit contract",
        {
            "multi_edit:case:tc1_multiple_edits": "Three edits of one file succeed with line_ranges [{0,3,3},{1,2,2},{2,6,6}] and one cumulative diff.",
            "multi_edit:case:tc2_sequential": "`AAA` → `BBB` → `CCC` succeeds with 2 edits, and the diff shows only AAA and CCC.",
            "multi_edit:case:tc3_not_found": "A string missing in edit 1 is -32010 `Edit 1: String not found: line 3`, and nothing is written.",
            "multi_edit:case:tc4_empty_edits": "An empty array is -32600 `Edits array cannot be empty`.",
            "multi_edit:case:tc5_duplicate": "The same string twice is -32010 `Edit 1: String not found: foo`.",
            "multi_edit:case:tc6_hundred": "100 edits succeed in well under 500 ms.",
            "multi_edit:case:tc7_ambiguity": "An edit that an earlier one made ambiguous is -32011 `Edit 1: String appears 2 times: A`.",
        },
    ),
    *section(
        "Edits, results and errors",
        "multi-edit contract",
        {
            "multi_edit:edit:staged": "Edits apply one after the other to staged text, with one write at the end, all or nothing.",
            "multi_edit:edit:unique": "Every old_string must occur exactly once in the staged text.",
            "multi_edit:result:shape": "The result is exactly `success`, `diff`, `applied_count` and `line_ranges`.",
            "multi_edit:result:line_ranges": "A line range is that of the match in the staged text just before its edit.",
            "multi_edit:result:diff": "The diff is one real unified diff from original to final with `--- name` and `+++ name`.",
            "multi_edit:result:dry_run": "A dry run answers the same with `dry_run: true`, and writes nothing.",
            "multi_edit:result:reason": "The reason of a change reaches the ledger from every tool.",
            "multi_edit:error:file_not_found": "A missing file is -32001 `File not found: {path}`.",
            "multi_edit:error:permission_denied": "A path that may not be used is -32002 `Permission denied: {path}`.",
            "multi_edit:error:outside_roots": "A path outside the roots is -32002 `Permission denied: {path}`.",
            "multi_edit:error:relative_path": "A relative path is -32600 `Path must be absolute: {path}`.",
            "multi_edit:error:binary": "A binary file is -32004 `Cannot edit binary file: {path}`.",
            "multi_edit:error:conflict": "A string that occurred once but was partly consumed by a different edit is -32012 `Edit 1 conflicts with edit 0`.",
            "multi_edit:error:default_plane": "Errors are by default tool results with `isError`, the structured error, and the message as text.",
            "multi_edit:error:contract_plane": "With `--contract-errors` they are JSON-RPC errors of the same code and message.",
            "multi_edit:sibling:read_text_file": "`read_text_file(path, line, limit)` reads with the same codes.",
            "multi_edit:sibling:write_text_file": "`write_text_file(path, content)` writes with the same codes.",
            "multi_edit:sibling:edit_text_file": "`edit_text_file(path, old_string, new_string)` edits with the same codes.",
        },
    ),
    *section(
        "Events for editors (ACP)",
        "multi-edit contract",
        {
            "multi_edit:acp:pending": "A tool call begins as pending with title `multi_edit_text_file (3 edits)`, kind edit, locations and raw input.",
            "multi_edit:acp:permission": "Permission is asked between pending and in_progress when the mode asks, bound to the plan's hashes.",
            "multi_edit:acp:in_progress": "A call that may run is reported as in_progress.",
            "multi_edit:acp:completed": "A call ends as completed or failed with raw output, text and diff content.",
            "multi_edit:acp:v1_schema": "Events validate against today's ACP v1 schema.",
            "multi_edit:acp:contract_dialect": '`dialect="contract"` emits the literal event shape of the multi-edit contract.',
            "multi_edit:acp:editor_files": "Reads and writes go through the editor where it offers that, so unsaved buffers are what is edited.",
            "multi_edit:acp:weaker_guarantee": "An edit through the editor reports that its guarantee is weaker.",
        },
    ),
)
