"""Mutants that behave like the original, by judgement: they do not count, since no test could notice them."""

_TIME = "it saves time and decides nothing: both ways lead to the same result"

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "disk/kernel.py",
        "_find_filesystem",
        "len(fields) < 5",
        "(len(fields) <= 5)",
    ): "a row of the mount table has six fields or more before the dash",
    ("stores/sqlite/blobs.py", "pack_smallest", "len(delta) * _OBVIOUS_RATIO < len(data)", "False"): _TIME,
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
    ("workspace/access/policy.py", "Policy.__post_init__", "self.protected is PROTECTED", "False"): _TIME,
    (
        "workspace/writer.py",
        "WorkspaceWriter._make_draft",
        "current.exists and self._disk.replaces_in_place(place.target)",
        "((self._disk.replaces_in_place(place.target)))",
    ): _TIME,
}
"""By path, function, original and mutant: the reason."""
