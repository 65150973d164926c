"""`surehold view`: images, PDF documents, notebooks and texts on a terminal."""

import base64
import hashlib
import json
import sys
from typing import Any

import pytest

from front.shell import Shell
from media.samples import bomb, image, pdf, turned
from spec.marks import requirement


def put(shell: Shell, name: str, data: bytes) -> str:
    (shell.root / name).write_bytes(data)
    return hashlib.sha256(data).hexdigest()


@requirement("front:cli:view")
def test_an_image_is_summed_up(shell: Shell) -> None:
    put(shell, "a.png", image("PNG", (2400, 100)))

    said = shell("view", "a.png")

    assert (said.code, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith("a.png: PNG image, 2400 x 100 pixels, ")
    assert second.startswith("a model sees 1568 x 65 pixels, ")


@requirement("front:cli:view")
def test_an_image_as_json_has_all_facts_and_no_pixels(shell: Shell) -> None:
    data = turned(6)
    name = put(shell, "a.jpg", data)

    found = shell.json("view", "a.jpg")

    assert {key: found[key] for key in found if key != "shown"} == {
        "path": "a.jpg",
        "type": "image",
        "size": len(data),
        "sha256": name,
        "format": "JPEG",
        "mode": "RGB",
        "width": 30,
        "height": 40,
        "frames": 1,
        "orientation": 6,
    }
    assert (found["shown"]["width"], found["shown"]["height"], found["shown"]["mime"]) == (30, 40, "image/jpeg")


@requirement("front:cli:view")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a terminal of its own")
def test_an_image_is_drawn_on_a_colour_terminal_and_nowhere_else(shell: Shell) -> None:
    put(shell, "a.png", image("PNG", (60, 30), (255, 0, 0)))

    code, drawn = shell.terminal("view", "a.png")
    _, plain = shell.terminal("view", "a.png", "--no-color")

    assert (code, drawn.count("▀")) == (0, 72 * 18)
    assert "\x1b[38;2;255;0;0;48;2;255;0;0m▀" in drawn
    assert "▀" not in plain
    assert "▀" not in shell("view", "a.png").out


@requirement("front:cli:view")
def test_a_document_is_summed_up_with_its_outline_and_its_first_pages(shell: Shell) -> None:
    put(shell, "a.pdf", pdf([f"text {n}" for n in range(1, 6)], outline=[("Start", 1), ("End", 5)]))

    said = shell("view", "a.pdf")

    assert said.code == 0
    assert said.out.splitlines()[0].startswith("a.pdf: PDF, 5 pages, ")
    assert said.out.splitlines()[1:] == [
        "  Start  page 1",
        "  End  page 5",
        "── page 1",
        "text 1",
        "── page 2",
        "text 2",
        "── page 3",
        "text 3",
    ]
    assert shell("view", "a.pdf", "--pages", "5").out.splitlines()[-2:] == ["── page 5", "text 5"]


@requirement("front:cli:view")
def test_a_document_as_json_has_the_texts_that_were_asked_for(shell: Shell) -> None:
    put(shell, "a.pdf", pdf(["one", "two"], outline=[("Start", 1)]))

    found = shell.json("view", "a.pdf", "--pages", "2")

    assert (found["type"], found["pages"], found["text"]) == ("pdf", 2, [{"page": 2, "text": "two"}])
    assert found["outline"] == [{"title": "Start", "level": 0, "page": 1}]


def test_a_refusal_is_one_of_every_command(shell: Shell) -> None:
    put(shell, "a.pdf", pdf(["one"]))
    put(shell, "bomb.png", bomb(24_500))

    pages, large = shell("view", "a.pdf", "--pages", "9"), shell("view", "bomb.png")

    assert (pages.code, large.code) == (1, 1)
    assert "the last page is 1" in pages.err
    assert "Reason: it has 24500 x 24500 pixels" in large.err
    assert shell.json("view", "nothing.png", code=1)["error"]["kind"] == "not_found"


def test_a_notebook_is_shown_cell_by_cell_and_cannot_attack_a_terminal(shell: Shell) -> None:
    source = "hello\x1b[2J\nthere"
    cells: list[Any] = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": source}]
    body: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    put(shell, "a.ipynb", json.dumps(body).encode())

    said, found = shell("view", "a.ipynb"), shell.json("view", "a.ipynb")

    assert said.out.splitlines()[0] == "a.ipynb: notebook, 1 cell, python"
    assert said.out.splitlines()[-2:] == ["hello\\x1b[2J", "there"]
    assert (found["type"], found["cells"][0]["source"]) == ("notebook", "hello\x1b[2J\nthere")


def test_text_falls_back_to_its_first_lines(shell: Shell) -> None:
    shell.write("a.txt", "".join(f"line {n}\n" for n in range(1, 251)))
    put(shell, "torn.ipynb", b"{")

    said, torn = shell("view", "a.txt"), shell("view", "torn.ipynb")

    rows = said.out.splitlines()
    assert rows[:2] == ["a.txt: text, 250 lines, 2.1 KB", "  1  line 1"]
    assert rows[-2:] == ["200  line 200", "50 more lines: surehold read a.txt"]
    assert (torn.code, torn.out.splitlines()[-1]) == (0, "1  {")
    assert torn.err


def test_the_pixels_are_never_printed_as_base64(shell: Shell) -> None:
    put(shell, "a.png", image())

    assert base64.b64encode(image()[:30]).decode()[:30] not in shell("view", "a.png", "--json").out


def test_a_binary_file_is_refused_with_its_kind(shell: Shell) -> None:
    put(shell, "a.zip", b"PK\x03\x04 and so on")
    put(shell, "a.dat", b"a\0b")

    packed, other = shell.json("view", "a.zip", code=1)["error"], shell.json("view", "a.dat", code=1)["error"]

    assert (packed["kind"], packed["path"]) == ("binary_file", "a.zip")
    assert "`a.zip` is a binary file (ZIP archive)" in packed["message"]
    assert (other["kind"], other["path"]) == ("binary_file", "a.dat")


def test_a_very_long_line_does_not_flood_the_terminal(shell: Shell) -> None:
    shell.write("long.txt", "x" * 100_000 + "\n")

    assert shell("view", "long.txt").out.splitlines()[1] == f"1  {'x' * 2_000} … 98,000 more characters"


def test_pages_of_something_else_than_a_document_are_ignored_and_that_is_said(shell: Shell) -> None:
    shell.write("a.txt", "one\n")

    said = shell("view", "a.txt", "--pages", "3")

    assert (said.code, said.err) == (0, "--pages applies to PDF documents only and was ignored\n")


def test_a_notebook_is_one_whatever_the_case_of_its_name(shell: Shell) -> None:
    put(shell, "A.IPYNB", json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode())

    assert shell.json("view", "A.IPYNB")["type"] == "notebook"


def test_a_text_that_is_too_large_is_pointed_to_its_reader(shell: Shell) -> None:
    with (shell.root / "large.txt").open("wb") as file:
        file.truncate(129 << 20)

    assert shell("view", "large.txt").err.splitlines()[-1].endswith("surehold read large.txt --lines 1:200")
