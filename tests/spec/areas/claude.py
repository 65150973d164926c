"""The claude family: Read, Write, Edit, Glob, Grep and NotebookEdit, and how permission is given."""

from spec.model import section

_GATE = section(
    "Parameters, and reading before writing",
    "claude contract",
    {
        "claude:parameters:names": "The six tools are `Read(file_path, offset=1, limit=2000, pages)`, `Write(file_path, content)`, `Edit(file_path, old_string, new_string, replace_all=false)`, `Glob(pattern, path)`, `Grep(pattern, path, glob, output_mode=files_with_matches, -i, -n, -A, -B, -C, context, type, head_limit=250, offset=0, multiline)` and `NotebookEdit(notebook_path, new_source, edit_mode=replace, cell_id, cell_type)`; additions are optional.",
        "claude:parameters:absolute": "A relative path resolves against the first root, and the absolute path is echoed.",
        "claude:gate:not_read": "An existing file that was not read in this session is `not_read` for Write, Edit and NotebookEdit.",
        "claude:gate:stale": "A file that changed since is `stale` with a compact diff, which counts as a read of those lines.",
        "claude:gate:content_hash": "A touched mtime never refuses, and an equal mtime never excuses.",
        "claude:gate:any_spelling": "Any spelling of the canonical path counts as the same file.",
        "claude:gate:lines_seen": "Edit needs the touched lines seen, Write the whole file; else `partially_read`.",
        "claude:gate:adds_up": "Paged reads and search hits add up.",
        "claude:gate:own_writes": "Own writes refresh the sighting.",
        "claude:gate:checked_again": "The gate is checked again after an approval and immediately before the commit.",
        "claude:gate:settings": "`require_read` and `on_stale` are settings, by default strict and reject.",
    },
)

_READ = section(
    "Read",
    "claude contract",
    {
        "claude:read:types": "The result's type is text, image, notebook, pdf, parts or file_unchanged.",
        "claude:read:text": "Text has `N→` prefixes, numLines, startLine and totalLines, and starts at `offset` for `limit` lines.",
        "claude:read:long_line": "A very long line continues as `N.2→`.",
        "claude:read:empty": "An empty file and an offset past the end are results with a notice.",
        "claude:read:image": "An image, known by its magic bytes, has base64, mimeType, originalSize and dimensions.",
        "claude:read:image_limits": "A large image is resized, EXIF-rotated and proven to decode; a bomb is refused.",
        "claude:read:pdf_pages": "`pages` takes numbers, ranges and lists, at most 20 a call.",
        "claude:read:pdf_required": "More than 10 pages without `pages` is `pdf_pages_required` with page count and outline.",
        "claude:read:pdf_parts": "A PDF is shown as text and image per page, or raw where the host can take it.",
        "claude:read:notebook": "A notebook is shown as cells with their outputs, ANSI stripped and capped.",
        "claude:read:unchanged": "The same range of the same bytes may be `file_unchanged`; it is off by default in MCP.",
        "claude:read:devices": "Devices, FIFOs, sockets and endless files are refused.",
        "claude:read:binary": "A binary file that is neither image nor PDF is refused.",
    },
)

_WRITE = section(
    "Write",
    "claude contract",
    {
        "claude:write:create": "A new file is made with its parents: type create, originalFile null.",
        "claude:write:update": "An overwrite is atomic: type update, structuredPatch, originalFile, or its hash above 20 KB.",
        "claude:write:keeps_style": "Encoding, mark and dominant line ending of the file stay.",
        "claude:write:equal": "Equal content is success without touching the file.",
        "claude:write:size_limit": "More than 1 GiB is refused.",
        "claude:write:notebook": "An `.ipynb` is `use_notebook_edit`, for Write and Edit.",
    },
)

_EDIT = section(
    "Edit",
    "claude contract",
    {
        "claude:edit:unique": "The text must occur exactly once unless `replace_all`.",
        "claude:edit:tiers": "Tiers are exact bytes, line endings, quotes; each needs uniqueness, and `matchTier` names it.",
        "claude:edit:no_similarity": "Similarity never matches; it is used only to write the error.",
        "claude:edit:style_kept": "Stretches that old and new share keep the file's own characters.",
        "claude:edit:quote_purpose": "An edit whose purpose is the quote style works.",
        "claude:edit:literal": "The replacement is literal.",
        "claude:edit:no_change": "`old_string == new_string` is `no_change`.",
        "claude:edit:not_found": "`not_found` explains the cause with the closest lines.",
        "claude:edit:not_unique": "`not_unique` gives count, lines and contexts.",
        "claude:edit:result": "The result has filePath, structuredPatch, replaceAll, userModified, oldString, newString, replacements, matchTier and sha256.",
    },
)

_SEARCH = section(
    "Glob and Grep",
    "claude contract",
    {
        "claude:glob:order": "Glob sorts newest first, ties by path, relative to the working directory.",
        "claude:glob:cap": "Glob returns at most 250 files and says truncated, totalMatches and countIsComplete.",
        "claude:glob:syntax": "`**`, `*`, `?`, `[]` and `{a,b}` work.",
        "claude:grep:modes": "Output modes are files_with_matches (default), content and count.",
        "claude:grep:options": "Case, numbers, context, glob, type, multiline, head_limit and offset work.",
        "claude:grep:excluded": "VCS and build directories are excluded.",
        "claude:grep:look_around": "Look-around is retried with PCRE2.",
        "claude:grep:type_aliases": "Type aliases such as `rs`, `tsx` and `yml` work.",
        "claude:grep:bad_input": "A bad regex, glob or type is an error with the cause, never an empty result.",
        "claude:grep:long_lines": "A long line is shown as a 500-character window centred on the match.",
        "claude:grep:totals": "Totals are over the full set, and paging is stable.",
        "claude:search:not_looked_at": "Both say what was not searched, and on zero hits whether ignored files would have matched.",
        "claude:search:sightings": "Search hits count as sightings.",
        "claude:search:cut_line": "A line that a search shows only in part does not count as seen, whichever tool searched.",
    },
)

_NOTEBOOK = section(
    "NotebookEdit",
    "claude contract",
    {
        "claude:notebook:find": "A cell is found by its real id first, then `cell-N`; two meanings are `cell_ambiguous`.",
        "claude:notebook:insert": "Insert goes after `cell_id`, without one at the start with a notice.",
        "claude:notebook:replace": "Replace clears outputs and execution_count when the source changed.",
        "claude:notebook:delete": "Delete removes the cell.",
        "claude:notebook:untouched": "Everything but the target cell stays byte-identical.",
        "claude:notebook:ids": "Ids are generated only from nbformat 4.5 on, and the minor version is never raised.",
        "claude:notebook:result": "The result has notebook_path, cell_id, edit_mode, original_file, updated_file (hashes above 20 KB), cell_type, language, old_source and new_source.",
    },
)

_PERMISSIONS = section(
    "Refusals and permission",
    "claude contract",
    {
        "claude:refusal:shape": "A refusal is `{error: {kind, message, suggested_action, details}}` with one of the kinds not_read, partially_read, stale, not_found, not_unique, no_change, use_notebook_edit, file_not_found, is_directory, not_regular_file, binary_file, file_too_large, permission_denied, permission_required, protected_path, outside_roots, encoding_unencodable, cell_not_found, cell_ambiguous, notebook_invalid, pdf_pages_required, pdf_bad_range, pdf_encrypted, pdf_invalid, image_invalid, image_too_large, bad_pattern, bad_type, timeout_partial and invalid_arguments.",
        "claude:permission:modes": "The modes are default, acceptEdits, bypassPermissions, plan and dontAsk.",
        "claude:permission:order": "Deny, containment, protection, bypass, plan, allow, acceptEdits and ask decide in this order.",
        "claude:permission:channels": "Asking goes to a callback, MCP elicitation, ACP or the page.",
        "claude:permission:no_channel": "Without a channel it is `permission_required` with the diff and how to grant.",
        "claude:permission:user_modified": "The approver may change the content: `userModified: true` with the final diff.",
        "claude:permission:protected": "Protected paths always ask, are denied in dontAsk, and are allowed in bypass only.",
        "claude:permission:five_names": "The protected paths include `.gitconfig`, `.bashrc`, `.zshrc`, `.mcp.json` and `.claude.json`.",
        "claude:permission:stdio_default": "Over stdio without elicitation the mode is acceptEdits, printed at start.",
    },
)

CLAUDE = (*_GATE, *_READ, *_WRITE, *_EDIT, *_SEARCH, *_NOTEBOOK, *_PERMISSIONS)
