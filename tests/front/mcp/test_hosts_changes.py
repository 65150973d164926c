"""What arrives at the model of each host when a call makes many edits: the rows of data that fit, and what says of the rest."""

from collections.abc import Iterator

import pytest

from front.mcp.client import MODERN, StdioClient, data_of, surehold
from front.mcp.site import Site
from front.mcp.test_hosts import LIMITS, HostClient, assert_fits
from spec.marks import requirement
from surehold.text.snapshot import Snapshot, digest_text


@pytest.fixture(scope="module")
def hosts(shared: Site) -> Iterator[HostClient]:
    words = surehold("mcp", shared.root, "--state-dir", shared.state, "--tools", "all")
    with StdioClient(words, version=MODERN) as client:
        yield HostClient(shared, client)


@requirement("host:budget:both_fit", "multi_edit:case:tc6_hundred")
@pytest.mark.parametrize("count_of_edits", [100, 700, 3_000])
@pytest.mark.parametrize("host", LIMITS)
def test_as_many_line_ranges_as_fit_are_beside_the_diff(hosts: HostClient, host: str, count_of_edits: int) -> None:
    path = hosts.site.put("many.txt", "".join(f"unique string {number} end\n" for number in range(count_of_edits)))
    edits = [
        {"old_string": f"unique string {number} end", "new_string": f"now {number}"} for number in range(count_of_edits)
    ]
    edited = hosts.call(host, "multi_edit_text_file", path=str(path), edits=edits)

    assert_fits(host, edited)
    data = data_of(edited)
    assert (data["applied_count"], data["diff"][:8]) == (count_of_edits, "--- many")
    left_out = count_of_edits - len(data["line_ranges"])
    assert (f"[line_ranges of {left_out} more edits are left out]" in data["diff"]) is (left_out > 0)
    if count_of_edits == 100 and host == "some-host":
        assert left_out == 0


@requirement("host:budget:both_fit", "anchored:result:fields")
@pytest.mark.parametrize("count_of_edits", [60, 600])
@pytest.mark.parametrize("host", LIMITS)
def test_as_many_operations_as_fit_are_beside_the_diff(hosts: HostClient, host: str, count_of_edits: int) -> None:
    before = "".join(f"line {number} of it\n" for number in range(count_of_edits)).encode()
    path = hosts.site.put("rows.txt", before)
    hashes = [digest_text(digest) for digest in Snapshot(before).digests]
    operations = [{"op": "replace_line", "hash": hash_, "content": f"row {n}"} for n, hash_ in enumerate(hashes)]
    edited = hosts.call(host, "edit", path=str(path), operations=operations, expected_sha256=Snapshot(before).sha256)

    assert_fits(host, edited)
    data = data_of(edited)
    assert (edited["isError"], data["operations_applied"]) == (False, count_of_edits)
    left_out = len(data["operations"]) < count_of_edits
    note = f"`operations` and `new_anchors` show the first {len(data['operations'])}."
    assert data["warnings"] == ([note] if left_out else [])
    if count_of_edits == 60 and host in {"claude-code", "some-host"}:
        assert not left_out


@requirement("files:result:diff_limit", "host:budget:both_fit")
@pytest.mark.parametrize("host", LIMITS)
def test_a_diff_that_is_cut_in_the_data_is_said_to_be(hosts: HostClient, host: str) -> None:
    text = "".join(f"unique string {number} end\n" for number in range(100))
    path = hosts.site.put("said.txt", text)
    edits = [{"oldText": f"unique string {number} end", "newText": f"now {number}"} for number in range(100)]
    edited = hosts.call(host, "edit_file", path=str(path), edits=edits, expectedSha256=Snapshot(text.encode()).sha256)

    data = data_of(edited)["data"]
    assert_fits(host, edited)
    assert data["diffTruncated"] is not data["diff"].endswith("\n+now 99\n")
