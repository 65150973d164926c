import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialects.claude.read_place import Desk, Said, desk_at
from media.samples import bomb, decoded, encoded, image, noise, pdf, turned
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.dialects.claude.read import FileReadParams, read
from surehold.tools.call import CallContext

TWELVE = [f"this is page {number}" for number in range(1, 13)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("media")) as found:
        yield found


def picture(said: Said, index: int) -> Any:
    """Return the image of a content block, decoded completely."""
    block = said.raw["content"][index]
    assert block["type"] == "image"
    data = base64.b64decode(block["data"], validate=True)
    assert len(block["data"]) <= 5 << 20
    found = decoded(data)
    assert max(found.size) <= 2000
    assert f"image/{str(found.format).lower()}" == block["mimeType"]
    return found


@requirement("claude:read:image", "claude:read:types")
def test_an_image_is_a_content_block_and_its_base64_stands_nowhere_else(desk: Desk) -> None:
    data = image("PNG")
    path = desk.put("a.png", data)

    said = desk.read(path)

    assert said.data == {
        "type": "image",
        "filePath": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "mimeType": "image/png",
        "originalSize": len(data),
        "dimensions": {"originalWidth": 40, "originalHeight": 30, "displayWidth": 40, "displayHeight": 30},
        "frames": 1,
        "contentIndex": 1,
        "notice": f"PNG, 40x30 pixels, {len(data)} bytes",
    }
    assert base64.b64decode(said.blocks[0]["data"]) == data
    assert json.dumps(said.raw).count(said.blocks[0]["data"]) == 1
    assert picture(said, 1).size == (40, 30)


@requirement("claude:read:image")
def test_the_bytes_decide_and_not_the_name(desk: Desk) -> None:
    said = desk.read(desk.put("really.jpg", image("PNG")))
    bare = desk.read(desk.put("no-extension", image("JPEG")))

    assert (said.data["mimeType"], bare.data["mimeType"]) == ("image/png", "image/jpeg")


@requirement("claude:read:image_limits")
def test_a_large_image_is_shrunk_and_the_factor_for_coordinates_is_told(desk: Desk) -> None:
    said = desk.read(desk.put("large.jpg", encoded(noise((4000, 3000)), "JPEG")))

    assert said.data["dimensions"] == {
        "originalWidth": 4000,
        "originalHeight": 3000,
        "displayWidth": 1568,
        "displayHeight": 1176,
    }
    assert picture(said, 1).size == (1568, 1176)
    assert "multiply coordinates by 2.551" in said.text
    narrow = desk.read(desk.put("narrow.png", image("PNG", (1, 100_000))))
    assert "shown as 1x1568; multiply coordinates by 63.776" in narrow.text


@requirement("claude:read:image_limits")
def test_a_photo_is_upright_and_an_animation_says_how_many_frames_it_has(desk: Desk) -> None:
    upright = desk.read(desk.put("turned.jpg", turned(6)))
    frames = [image("GIF", colour=colour) for colour in ("red", "lime", "blue")]
    moving = encoded(decoded(frames[0]), "GIF", save_all=True, append_images=[decoded(one) for one in frames[1:]])
    animated = desk.read(desk.put("moving.gif", moving))

    assert (upright.data["dimensions"]["displayWidth"], picture(upright, 1).size) == (30, (30, 40))
    assert "turned upright" in upright.text
    assert (animated.data["frames"], "the first of 3 frames" in animated.text) == (3, True)


@requirement("claude:read:image_limits")
@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("bomb.png", bomb(24_500), "image_too_large"),
        ("cut.jpg", encoded(noise((300, 300)), "JPEG")[:-3000], "image_invalid"),
        ("empty.png", b"", "image_invalid"),
        ("phone.heic", b"\0\0\0\x18ftypheic" + bytes(99), "image_invalid"),
    ],
)
def test_an_image_that_cannot_be_shown_is_refused_with_the_cause(desk: Desk, name: str, data: bytes, kind: str) -> None:
    said = desk.read(desk.put(name, data))

    assert said.error["kind"] == kind
    assert said.error["suggested_action"]
    assert said.blocks == []
    assert "structuredContent" not in said.raw


@requirement("claude:read:pdf_parts", "claude:read:types")
def test_a_short_document_is_shown_page_by_page_as_text_and_picture(desk: Desk) -> None:
    data = pdf(["Hello", "World"])
    path = desk.put("short.pdf", data)

    said = desk.read(path)

    size = {"mimeType": "image/jpeg", "width": 1211, "height": 1567}
    assert said.data == {
        "type": "parts",
        "filePath": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "originalSize": len(data),
        "count": 2,
        "pages": [
            {"page": 1, "text": "Hello", "image": {**size, "contentIndex": 1}},
            {"page": 2, "text": "World", "image": {**size, "contentIndex": 2}},
        ],
        "truncated": False,
        "notice": "PDF, pages 1-2 of 2",
    }
    assert said.text == "### page 1 · image 1\nHello\n### page 2 · image 2\nWorld\n[PDF, pages 1-2 of 2]"
    assert [picture(said, index).size for index in (1, 2)] == [(1211, 1567), (1211, 1567)]


@requirement("claude:read:pdf_required")
def test_a_long_document_without_pages_is_refused_with_its_count_and_outline(desk: Desk) -> None:
    outline = [("Introduction", 1), ("Results", 7)]

    error = desk.read(desk.put("long.pdf", pdf(TWELVE, outline=outline))).error

    assert error["kind"] == "pdf_pages_required"
    assert error["details"]["page_count"] == 12
    assert error["details"]["outline"] == ["Introduction · page 1", "Results · page 7"]
    assert error["details"]["characters_per_page"] == [14] * 9 + [15] * 3
    assert desk.read(desk.put("ten.pdf", pdf(TWELVE[:10]))).data["count"] == 10
    many = desk.read(desk.put("marks.pdf", pdf(TWELVE, outline=outline * 40))).error["details"]["outline"]
    assert (len(many), many[-1]) == (61, "… more headings are not listed")


@requirement("claude:read:pdf_pages")
@pytest.mark.parametrize(
    ("pages", "shown"), [("3", [3]), ("1-5", [1, 2, 3, 4, 5]), ("1,4,7-9", [1, 4, 7, 8, 9]), ("12", [12]), (3, [3])]
)
def test_pages_are_named_by_numbers_ranges_and_lists(desk: Desk, pages: str | int, shown: list[int]) -> None:
    said = desk.read(desk.put("long.pdf", pdf(TWELVE)), pages=pages)

    assert [(page["page"], page["text"]) for page in said.data["pages"]] == [(n, TWELVE[n - 1]) for n in shown]
    assert len(said.blocks) == len(shown)


@requirement("claude:read:pdf_pages")
@pytest.mark.parametrize("pages", ["0", "5-3", "3-", "1-21", "900", "x"])
def test_pages_that_are_not_there_are_refused(desk: Desk, pages: str) -> None:
    path = desk.put("thirty.pdf", pdf(["x"] * 30))

    error = desk.read(path, pages=pages).error

    assert (error["kind"], error["details"]["page_count"]) == ("pdf_bad_range", 30)


def test_twenty_pages_fit_into_one_answer(desk: Desk) -> None:
    said = desk.read(desk.put("thirty.pdf", pdf(["x"] * 30)), pages="11-30")

    assert [page["page"] for page in said.data["pages"]] == list(range(11, 31))
    assert len(said.blocks) == 20


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("locked.pdf", pdf(["secret"], password=True), "pdf_encrypted"),
        ("fake.pdf", b"%PDF-1.7\nnothing else", "pdf_invalid"),
        ("page.pdf", b"<!doctype html><p>Not found</p>", "pdf_invalid"),
        ("none.pdf", pdf([]), "pdf_invalid"),
        ("empty.pdf", b"", "pdf_invalid"),
    ],
)
def test_a_document_that_cannot_be_shown_is_refused_with_the_cause(
    desk: Desk, name: str, data: bytes, kind: str
) -> None:
    error = desk.read(desk.put(name, data)).error

    assert error["kind"] == kind
    assert error["suggested_action"]


def test_what_a_page_shown_as_html_begins_with_is_told(desk: Desk) -> None:
    error = desk.read(desk.put("page.pdf", b"<!doctype html>\n<p>Not found</p>")).error

    assert error["details"]["begins_with"] == "<!doctype html>"


def test_pages_with_more_text_than_fits_are_shown_in_the_next_call(desk: Desk) -> None:
    dense = "\n".join(f"row {number} " + "word " * 60 for number in range(60))
    path = desk.put("dense.pdf", pdf([dense] * 6, size=(3000, 2000)))

    first = desk.read(path).data
    rest = desk.read(path, pages=first["nextPages"]).data

    assert [page["page"] for page in first["pages"]] == [1, 2]
    assert (first["truncated"], first["nextPages"]) == (True, "3-6")
    assert first["notice"] == "PDF, pages 1-2 of 6; goes on: pages=3-6"
    assert [page["page"] for page in rest["pages"]] == [3, 4]


@requirement("claude:read:pdf_parts", "claude:read:types")
def test_a_host_that_takes_documents_gets_the_small_ones_as_they_are(tmp_path: Path) -> None:
    from dialects.claude.test_read_gate import Relay

    (tmp_path / "root").mkdir()
    data = pdf(["Hello"])
    (tmp_path / "root" / "a.pdf").write_bytes(data)
    (tmp_path / "root" / "a #1.pdf").write_bytes(data)
    workspace = open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state", durability="none"))
    relay = Relay(workspace, id="one", agent="ada")
    relay.deliveries.raw_documents = True

    found = read(CallContext(session=relay), FileReadParams(file_path="a.pdf"))

    assert (found.type, found.count, found.original_size) == ("pdf", 1, len(data))
    assert base64.b64decode(found.base64 or "") == data
    (block,) = found.content_blocks()
    assert base64.b64decode(block["resource"]["blob"]) == data
    (spelled,) = read(CallContext(session=relay), FileReadParams(file_path="a #1.pdf")).content_blocks()
    assert spelled["resource"]["uri"] == (tmp_path / "root" / "a #1.pdf").as_uri()
    assert read(CallContext(session=relay), FileReadParams(file_path="a.pdf", pages="1")).type == "parts"


def notebook(*cells: dict[str, Any]) -> bytes:
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


def code(name: str, source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"cell_type": "code", "id": name, "metadata": {}, "execution_count": 1}
    return {**facts, "source": source, "outputs": list(outputs)}


def displayed(mime: str, content: str) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": {mime: content}}


@requirement("claude:read:notebook", "claude:read:types")
def test_a_notebook_is_shown_as_cells_with_their_outputs(desk: Desk) -> None:
    plot = base64.b64encode(image("PNG", (2400, 20))).decode()
    said = desk.read(
        desk.put(
            "a.ipynb",
            notebook(
                code("first", "print(1)", {"output_type": "stream", "name": "stdout", "text": "\x1b[31m1\x1b[0m\n"}),
                {"cell_type": "markdown", "id": "words", "metadata": {}, "source": "# Title"},
                code("plot", "plot()", displayed("image/png", plot)),
            ),
        )
    )

    assert (said.data["type"], said.data["totalCells"], said.data["language"]) == ("notebook", 3, "python")
    assert [cell["id"] for cell in said.data["cells"]] == ["first", "words", "plot"]
    assert said.data["cells"][0]["outputs"] == [{"kind": "text", "text": "1"}]
    assert said.data["images"] == [
        {"mimeType": "image/png", "contentIndex": 1, "width": 1568, "height": 13, "image": 1}
    ]
    assert picture(said, 1).size == (1568, 13)
    assert "[image 1: image/png" in said.text
    assert plot not in json.dumps(said.raw)


@requirement("claude:read:notebook")
def test_an_image_in_a_notebook_that_cannot_be_decoded_is_left_out_and_said_to_be(desk: Desk) -> None:
    broken = base64.b64encode(encoded(noise((300, 300)), "PNG")[:-5000]).decode()
    good = base64.b64encode(image("PNG")).decode()
    cells = notebook(code("a", "x", displayed("image/png", broken)), code("b", "y", displayed("image/png", good)))

    said = desk.read(desk.put("broken.ipynb", cells))

    assert "image 1 is not shown" in said.data["notice"]
    assert [(one["image"], one["contentIndex"]) for one in said.data["images"]] == [(2, 1)]
    assert picture(said, 1).size == (40, 30)


@requirement("claude:read:notebook")
def test_a_notebook_with_very_much_output_fits(desk: Desk) -> None:
    flood = {"output_type": "stream", "name": "stdout", "text": ["spam and eggs\n"] * 2_000_000}
    path = desk.put("flood.ipynb", notebook(code("a", "x", flood), code("b", "y")))

    said = desk.read(path)

    assert [cell["id"] for cell in said.data["cells"]] == ["a", "b"]
    assert len(said.text) < 20_000
    assert said.data["cells"][0]["outputs"][0]["truncated"] is True


def test_cells_are_paged_as_lines_are(desk: Desk) -> None:
    path = desk.put("many.ipynb", notebook(*(code(f"c{number}", "x = 1") for number in range(9))))

    said = desk.read(path, offset=4, limit=3)

    assert [cell["id"] for cell in said.data["cells"]] == ["c3", "c4", "c5"]
    assert (said.data["nextOffset"], said.data["totalCells"]) == (7, 9)
    assert "goes on: offset=7" in said.text


def test_what_is_no_notebook_is_shown_as_text_so_that_it_can_be_repaired(desk: Desk) -> None:
    said = desk.read(desk.put("torn.ipynb", b'{"cells": [\n'))

    assert (said.data["type"], said.data["content"]) == ("text", '1→{"cells": [')
    assert said.data["notice"].startswith("not a notebook: ")


def test_a_notebook_that_was_read_can_be_edited(desk: Desk) -> None:
    path = desk.put("edit.ipynb", notebook(code("a", "x = 1"), code("b", "y = 2")))
    change = {"notebook_path": path, "cell_id": "b", "new_source": "y = 3"}

    before = desk.call("NotebookEdit", **change).error["kind"]
    desk.read(path)

    assert (before, desk.call("NotebookEdit", **change).data["cell_id"]) == ("not_read", "b")
