from dialects.anchored.lines import Lines
from spec.marks import requirement

CODE = "".join(f"def function_{n}():\n    value = {n}\n\n    return value\n\n\n" for n in range(6))


def rows(lines: Lines) -> list[str]:
    data = lines.place.on("read_file", lines.name, hashes=True, anchors="sparse").data
    return str(data["content"]).split("\n")


@requirement("anchored:anchor:sparse")
def test_every_line_of_a_sparse_page_is_addressed_by_the_anchor_above_it_and_an_offset(lines: Lines) -> None:
    for number in range(1, len(CODE.splitlines()) + 1):
        lines.put(CODE)
        shown = rows(lines)
        above = max(n for n in range(number) if "#" in shown[n].partition("|")[0])
        offset = number - 1 - above
        anchor = shown[above].partition("|")[0] + (f"+{offset}" if offset else "")
        expected = CODE.splitlines()
        expected[number - 1] = "    # changed"

        answer = lines.edit({"op": "replace_line", "hash": anchor, "content": "    # changed"}, safety_check="off")

        assert answer.ok, (anchor, answer.text)
        assert lines.get().splitlines() == expected


@requirement("anchored:anchor:sparse")
def test_an_offset_is_verified(lines: Lines) -> None:
    lines.put(CODE)
    shown = rows(lines)
    anchor = shown[0].partition("|")[0]
    lines.put(CODE.replace("    value = 0\n", "    value = 100\n"))

    answer = lines.edit({"op": "replace_line", "hash": f"{anchor}+1", "content": "x"}, safety_check="off")

    assert answer.error["error"] == "anchor_stale"


def test_a_sparse_page_is_shorter(lines: Lines) -> None:
    lines.put(CODE)
    full = lines.place.on("read_file", lines.name, hashes=True).data["content"]

    assert sum("#" in row.partition("|")[0] for row in rows(lines)) <= len(CODE.splitlines()) // 5
    assert len("\n".join(rows(lines))) < 0.8 * len(full)
