"""The anchored family: `edit`, and `read_file` with hashes. Digest and quality of a line are in the text area."""

from spec.model import section

_ANCHOR = section(
    "Anchors",
    "anchored contract",
    {
        "anchored:anchor:row": "`read_file(hashes: true)` prints `N#HHHHHH|content` with nothing between `|` and the line.",
        "anchored:anchor:marks": "`!` marks a low line and `~` a medium one; the structured result spells the quality.",
        "anchored:anchor:collision": "Different lines that collide at 6 digits are printed with the shortest unique prefix, at least 8.",
        "anchored:anchor:occurrence_suffix": "Equal lines carry their occurrence, as in `118#5da3f1.7|`.",
        "anchored:anchor:spellings": "4 to 64 hex digits in any case, `.K`, `N#…` and copied rows are accepted in every hash field.",
        "anchored:anchor:copied_tail": "The tail of a copied row must equal the line.",
        "anchored:anchor:malformed": "Any other spelling of an anchor is `schema_invalid` with a suggestion.",
        "anchored:anchor:sparse": '`anchors: "sparse"` prints anchors on good lines only, and offsets such as `119#c812f1+2` are verified.',
    },
)

_RESOLUTION = section(
    "Which line an anchor means",
    "anchored contract",
    {
        "anchored:resolution:ladder": "The rungs are tried in order: occurrence, prefix, exact line number, sighting, context.",
        "anchored:resolution:adaptive_length": "A hash that is ambiguous at 6 digits resolves by as many digits as were sent or shown.",
        "anchored:resolution:line_number": "An exact copied line number decides only when that very line matches, never by being near.",
        "anchored:resolution:sighting": "The only candidate that this session was shown is taken.",
        "anchored:resolution:context_id": "A context id that a refusal offered, or 6 digits of it, is taken in every hash field; it names the line that has it alone.",
        "anchored:resolution:context": "Previous and next non-empty lines of the version that was shown decide between candidates.",
        "anchored:resolution:level": "The details name the `resolution_level` of every operation.",
        "anchored:stale:unknown_hash": 'A hash that no line has is `anchor_stale` naming it, with `suggested_action: "re-read_file"`.',
        "anchored:stale:was_line": "The refusal says which line it was, or that it was never shown in this session.",
        "anchored:stale:fresh_rows": "The refusal carries fresh rows around the place.",
        "anchored:ambiguous:single_line": "Several candidates with different surroundings are `anchor_ambiguous`.",
        "anchored:ambiguous:context": "Candidates that are equal even in context are `anchor_context_ambiguous`.",
        "anchored:ambiguous:range": "An ambiguous endpoint is `anchor_context_ambiguous` with `which`.",
        "anchored:ambiguous:candidates": "Both refusals list every candidate with occurrence, line, copyable anchor and preview.",
        "anchored:occurrence:third": "`occurrence: 3` of lines 2, 5, 7 and 12 is line 7.",
        "anchored:occurrence:first": "`occurrence: 1` of lines 2, 5 and 7 is line 2.",
        "anchored:occurrence:out_of_range": "An occurrence out of range is `anchor_ambiguous` with given and available.",
        "anchored:low:bare_hash": "A low line addressed by a bare hash in a single-line operation is `anchor_low_entropy`.",
        "anchored:low:neighbours": "The refusal carries line, content and the nearest 3 high anchors on each side.",
        "anchored:low:explicit": "An explicit occurrence or an exact copied `N#HASH` of a low line is accepted.",
        "anchored:low:range_endpoint": "Range endpoints may be low.",
    },
)

_REBASE = section(
    "A file that changed since it was shown",
    "anchored contract",
    {
        "anchored:moved_on:rebased": "When the file changed elsewhere, each operation is rebased alone where two proofs agree, with `cross_version: true`.",
        "anchored:moved_on:report": "Every rebased operation carries a machine-readable `rebase`.",
        "anchored:moved_on:changed_target": "An operation whose target lines changed since they were shown is `anchor_stale`.",
        "anchored:moved_on:range_bytes": "Every line inside a rebased range must be byte-identical to what was shown.",
        "anchored:moved_on:expected_sha256": "`expected_sha256` turns rebasing off: any difference is `stale_file`.",
        "anchored:moved_on:no_sighting": "Without any sighting anchors resolve on the live file alone, and only lines whose digest is unique there.",
        "anchored:moved_on:no_sighting_retry": "The refusal of a line that is not unique shows rows, and a retry with a fresh anchor works.",
        "anchored:moved_on:named_version": "A caller who names the version by `expected_sha256` may use its numbers and occurrences without a sighting.",
        "anchored:unseen:refused": "A range over lines that were never shown is `range_unseen`, and the refusal shows them.",
        "anchored:unseen:retry": "A plain retry after `range_unseen` works.",
        "anchored:unseen:whole_lines": "A line counts as shown by a refusal only if all of it was shown; a cut one can be named by its anchor, no more.",
    },
)

_OPERATIONS = section(
    "Operations",
    "anchored contract",
    {
        "anchored:replace_line:success": "`replace_line` replaces exactly the one line.",
        "anchored:replace_range:success": "`replace_range` replaces lines 5 to 8 with 3 new ones.",
        "anchored:insert_after:success": "`insert_after` puts new lines after the line.",
        "anchored:insert_before:success": "`insert_before` puts new lines before the line, also before line 1.",
        "anchored:delete_line:success": "`delete_line` removes exactly the one line.",
        "anchored:delete_range:success": "`delete_range` removes both ends and everything between.",
        "anchored:operations:peers": "Situations that tests of other tools with line hashes look at have the outcome that is written down here, and a reason where it is another one.",
        "anchored:fields:wrong": "An argument or a field that is missing, unknown or of another type is `schema_invalid`.",
        "anchored:fields:foreign": "A field of another operation is a validation error that names the right one.",
        "anchored:content:final_terminator": 'One final terminator of `content` is dropped; `""` is one blank line.',
        "anchored:content:copied_prefixes": "Rows that all begin with real anchors are stripped with a correction; some but not all are refused.",
        "anchored:batch:snapshot": "All operations address the snapshot at the start of the batch.",
        "anchored:batch:invalid_hash": "One invalid hash refuses the whole batch and is listed.",
        "anchored:batch:ambiguous_hash": "One ambiguous hash without an occurrence refuses the whole batch as `anchor_ambiguous`.",
        "anchored:batch:all_problems": "Every problem is listed, with precedence stale, low entropy, ambiguous, overlap.",
        "anchored:batch:overlap": "Overlapping spans are `overlapping_operations` naming both indices; inserts at an edge are fine.",
        "anchored:batch:compose": "`replace_line` and an insert at the same line compose; an exact duplicate collapses with a note.",
        "anchored:batch:insert_order": "Several inserts at one gap keep the order of the array.",
        "anchored:range:swapped": "A reversed range is swapped with the correction `range_order_swapped` and the sentence `start_line (791) was after end_line (17). Swapped automatically.`.",
        "anchored:range:strict_order": "With `strict_order`, or an endpoint found only by rebase, a reversed range is `invalid_range_order`.",
        "anchored:range:same_line": "Both ends on one line is `invalid_range_order` saying no-op, with the ready single-line operation.",
        "anchored:result:no_change": "A result equal to the file is `no_change`, and nothing is written.",
        "anchored:virtual:ends": "`BOF` and `EOF` anchor inserts, also in an empty file.",
        "anchored:path:required": "A call without `path` is a parameter error that says so.",
        "anchored:path:alias": "`file_path` alone works with a deprecation warning, and a setting turns it off.",
        "anchored:path:both": "With both `path` and `file_path`, `path` wins.",
        "anchored:dry_run:same": "`dry_run` returns the same diagnostics, writes nothing and changes neither writer nor checkpoint.",
    },
)

_SANITY = section(
    "Sanity checks",
    "anchored contract",
    {
        "anchored:sanity:rolled_back": "A suspicious edit leaves the file as it was and is `safety_check_failed` with `safety_warnings`.",
        "anchored:sanity:clean": "A clean edit commits and leaves no open checkpoint.",
        "anchored:sanity:parse": "A file that parsed before and does not now is suspicious.",
        "anchored:sanity:delimiters": "Without a parser, delimiters that were balanced and are not now are suspicious.",
        "anchored:sanity:seam_duplicate": "An edge line of the new block that newly equals the line it touches is suspicious.",
        "anchored:sanity:markers": "Newly introduced conflict markers or anchor prefixes are suspicious.",
        "anchored:sanity:only_warnings": "Everything else, such as equal new lines elsewhere, is a warning with status clean.",
        "anchored:sanity:habits": "A `+` as in a diff before every new line, and a replacement that loses all indentation, are warnings with status clean.",
        "anchored:sanity:names_operation": "The error names the operation that broke the file.",
        "anchored:sanity:broken_before": "A file that did not parse before is never blocked.",
        "anchored:sanity:settings": "`safety_check` is strict, warn or off, by default strict.",
        "anchored:sanity:measured": "On real commits at most 0.1 % of edits are refused falsely, and planted corruptions of the four kinds are caught.",
        "anchored:sanity:time_box": "A file too large to parse is not blocked, and the result says so.",
    },
)

_RESULT = section(
    "Results",
    "anchored contract",
    {
        "anchored:result:summary": "The text begins with `2 operations applied`, and the result counts lines before, after and net.",
        "anchored:result:horizon": "An edit of lines 20 to 22 has `anchors_valid_through: 19` and `must_refresh_from_line: 20`.",
        "anchored:result:diff": "The diff has real unified hunks whose lines carry fresh anchors with quality marks.",
        "anchored:result:fields": 'The structured result has `operations_applied`, `lines_before`, `lines_after`, `net_line_change`, `anchors_valid_through`, `must_refresh_from_line`, `line_shift`, `diff`, `new_anchors`, `baseline_continuity`, `writer_type: "edit"`, `writers`, `safety_status`, `safety_warnings`, `auto_corrections`, `warnings`, `cross_version`, `sha256` and `change_id`.',
        "anchored:result:refusal": "A refusal is `{error, message, suggested_action, details}` with `isError`, and the text says the same.",
        "anchored:continuity:mixed": "When anything but `edit` (another tool, an outside program) wrote the file since the session first saw it, `baseline_continuity` is mixed, also after a new read, and the edit proceeds.",
        "anchored:continuity:clean": "When nothing but `edit` wrote the file since the session first saw it, `baseline_continuity` is clean.",
        "anchored:continuity:refused_edit": "A refused edit changes neither writer nor checkpoint.",
    },
)

_GUIDANCE = section(
    "Guidance for models",
    "anchored contract",
    {
        "anchored:guidance:freshness": "The guidance asks to apply edits in the same or the next turn, one file completely after the other.",
        "anchored:guidance:selection": "The guidance asks for distinctive lines as anchors, and for ranges around repetitive ones.",
        "anchored:guidance:operations": "The guidance has the table of situations and operations.",
        "anchored:guidance:multi_file": "The guidance orders read A, edit A, read B, edit B, and batches per file.",
        "anchored:guidance:parameters": "The guidance says which fields each operation takes, that mixing them is refused, and that `file_path` is deprecated and will be rejected.",
        "anchored:guidance:identity": "The guidance says that line numbers are advisory and the hash is the identity.",
        "anchored:guidance:places": "The description itself carries the whole guidance in at most 2,000 characters; server instructions, MCP prompt and `surehold prompt` carry the long form.",
        "anchored:guidance:lean": "The `lean` profile says the same in a third of the tokens.",
    },
)

ANCHORED = (*_ANCHOR, *_RESOLUTION, *_REBASE, *_OPERATIONS, *_SANITY, *_RESULT, *_GUIDANCE)
