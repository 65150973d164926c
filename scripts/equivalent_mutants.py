"""Mutants that behave like the original, by judgement: they do not count, since no test could notice them."""

_TIME = "it saves time and decides nothing: both ways lead to the same result"

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "disk/kernel.py",
        "_find_filesystem",
        "len(fields) < 5",
        "(len(fields) <= 5)",
    ): "a row of the mount table has six fields or more before the dash",
    ("disk/steps/overwrite.py", "OverwriteAction._append_bytes", "start != self._length", "True"): _TIME,
    ("disk/probe.py", "_try_access_lists", "4", "5"): "the probe asks whether a list can be set, whatever it permits",
    ("stores/postgres/ledger_writer.py", "LedgerWriter.record", "draft.ok", "True"): _TIME,
    (
        "stores/postgres/store.py",
        "PostgresStore.finish",
        "bool(shown) and waiting is not None",
        "((waiting is not None))",
    ): _TIME,
    (
        "text/patch/refusals.py",
        "PatchRefusals.context_needed",
        "0",
        "1",
    ): "lines after the last one are not shown anyway",
    (
        "workspace/undo/part.py",
        "_hunk_ranges",
        "1",
        "2",
    ): "with lines around each change, a side of one line is a file of one line",
    ("disk/tree.py", "has_content", "piece := os.read(fd, _COMPARE_BYTES)", "False"): _TIME,
    ("stores/packing.py", "pack_smallest", "len(delta) * _OBVIOUS_RATIO < len(data)", "False"): _TIME,
    ("stores/sqlite/blobs.py", "_RecentVersions._keep", "False", "True"): _TIME,
    (
        "stores/postgres/blobs.py",
        "BlobRows.remember",
        "len(self._lately) > _LATELY_STORED",
        "(len(self._lately) >= _LATELY_STORED)",
    ): _TIME,
    ("stores/sqlite/entry_rows.py", "find_entries", "len(found) >= query.limit", "False"): _TIME,
    (
        "workspace/past/git_commit.py",
        "_name_blob",
        "False",
        "True",
    ): "only a system that refuses sha1 where it is to be secure tells them apart",
    (
        "workspace/recovery.py",
        "_PathState.is_half_done",
        "ours and not self.at_before and not self.at_after",
        "((ours) and (not self.at_before))",
    ): "what holds its new version gets its old one back by the same step, and its bytes are stored already",
    (
        "stores/packing.py",
        "pack_smallest",
        "len(delta) * _OBVIOUS_RATIO < len(data)",
        "(len(delta) * _OBVIOUS_RATIO <= len(data))",
    ): _TIME,
    (
        "text/anchored/resolve.py",
        "AnchorResolver._explain_failures",
        "len(pointers) == 1 or self._find_home((each,)) is None",
        "((self._find_home((each,)) is None))",
    ): "of one pointer alone it is known already that it has no home",
    ("text/relocate.py", "_count_equal", "0", "1"): "a direction is -1 or 1",
    (
        "stores/sqlite/writers.py",
        "LogSync._stop_leading",
        "self._shared or self._open_shared()",
        "((self._shared) and (self._open_shared()))",
    ): _TIME,
    (
        "text/align.py",
        "align_lines",
        "inner.a < inner.a_end and inner.b < inner.b_end and (inner.a_end - inner.a, inner.b_end - inner.b) != (1, 1)",
        "((inner.a < inner.a_end) and (inner.b < inner.b_end))",
    ): _TIME,
    ("text/anchored/lines.py", "_anchor_numbered_lines", "isinstance(numbers, range)", "True"): _TIME,
    ("text/page.py", "FilePage", "False", "True"): "only pages of a stream are asked, and they say it themselves",
    (
        "text/quoted/matching.py",
        "Haystack._find_by_quotes",
        "wanted == plain and not self._has_curly_quotes",
        "False",
    ): _TIME,
    (
        "text/quoted/styled_edit.py",
        "StyledEdit._uniform_replacement",
        'style == "mixed" and re.search(r"[\\r\\n]", self.new)',
        '((style == "mixed"))',
    ): _TIME,
    ("workspace/paths.py", "Policy.__post_init__", "self.protected is PROTECTED", "False"): _TIME,
    (
        "workspace/finder.py",
        "_check_search",
        "GlobFilter(search.include, search.exclude)",
        "pass",
    ): "the search makes the same filter, which refuses the same",
    (
        "workspace/reader.py",
        "WorkspaceReader._look_at",
        "dead := [busy for busy in view.holding if self.recovery.leases.may_settle(busy)]",
        "((dead := [busy for busy in view.holding if self.recovery.leases.may_settle(busy)]), True)[1]",
    ): _TIME,
    (
        "workspace/writer.py",
        "WorkspaceWriter._make_draft",
        "current.exists and self._disk.replaces_in_place(place.target)",
        "((self._disk.replaces_in_place(place.target)))",
    ): _TIME,
    (
        "workspace/undo/timeline.py",
        "Timeline._switched_by",
        "self._positions.get(change.undoes, len(self.changes)) < self._positions[change.id]",
        "(self._positions.get(change.undoes, len(self.changes)) <= self._positions[change.id])",
    ): "no change undoes itself",
    (
        "workspace/access/read_gate.py",
        "ReadGate.__call__",
        "subtract_spans(touched, case.spans) and subtract_spans(touched, case.known)",
        "((subtract_spans(touched, case.known)))",
    ): _TIME,
}
"""By path, function, original and mutant: the reason."""
