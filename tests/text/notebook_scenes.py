"""Notebooks as different programs write them."""

import json
from dataclasses import dataclass
from typing import Any

from surehold.text.notebook.edit import CellChange, CellEdit, CellKind, CellRequest, EditMode, InsertPosition
from surehold.text.snapshot import Snapshot

Json = dict[str, Any]

JUPYTER = ("attachments", "cell_type", "execution_count", "id", "metadata", "outputs", "source")
COLAB = ("cell_type", "source", "metadata", "id", "attachments", "execution_count", "outputs")
OLD_COLAB = ("metadata", "id", "cell_type", "source", "attachments", "execution_count", "outputs")
BACKWARDS = JUPYTER[::-1]


@dataclass(frozen=True)
class Hand:
    """How a program writes notebooks."""

    indent: int | str | None = 1
    ascii_only: bool = False
    listed: bool = True
    crlf: bool = False
    tight: bool = False
    mark: bool = False
    final_newline: bool = True
    order: tuple[str, ...] = JUPYTER
    minor: int = 5

    def written(self, cells: list[Json], metadata: Json | None = None) -> bytes:
        """Write a notebook with these cells."""
        top = {
            "cells": [self.cell(one) for one in cells],
            "metadata": metadata or {},
            "nbformat": 4,
            "nbformat_minor": self.minor,
        }
        separators = (",", ":" if self.tight else ": ") if self.indent is not None or self.tight else (", ", ": ")
        text = json.dumps(top, indent=self.indent, ensure_ascii=self.ascii_only, separators=separators)
        text += "\n" * self.final_newline
        return ("\ufeff" * self.mark + (text.replace("\n", "\r\n") if self.crlf else text)).encode()

    def cell(self, cell: Json) -> Json:
        """Return a cell with its keys in order and its source as a list or a string."""
        return {key: self._part(key, cell[key]) for key in self.order if key in cell}

    def _part(self, key: str, value: Any) -> Any:
        return lines(value) if key == "source" and self.listed else value


def lines(source: str) -> list[str]:
    """Split as nbformat does, at line feeds."""
    return [row + "\n" for row in source.split("\n")[:-1]] + [row for row in source.split("\n")[-1:] if row]


def code(source: str, name: str = "", *, count: int | None = None, outputs: list[Json] | None = None) -> Json:
    cell: Json = {"cell_type": "code", "execution_count": count, "metadata": {}, "outputs": outputs or []}
    return {**cell, "source": source, **({"id": name} if name else {})}


def prose(source: str, name: str = "", kind: str = "markdown", **more: Any) -> Json:
    return {"cell_type": kind, "metadata": {}, "source": source, **({"id": name} if name else {}), **more}


def printed(text: str) -> Json:
    return {"name": "stdout", "output_type": "stream", "text": lines(text)}


def edit(
    mode: EditMode,
    name: str = "",
    source: str = "",
    *,
    kind: CellKind | None = None,
    position: InsertPosition | None = None,
    seed: int = 0xABCDEF01,
) -> CellEdit:
    return CellEdit(CellRequest(mode=mode, name=name, source=source, kind=kind, position=position, seed=seed))


def edited(data: bytes, wanted: CellEdit) -> bytes:
    return wanted.plan(Snapshot(data)).after.data


def changed(data: bytes, wanted: CellEdit) -> CellChange:
    return wanted.change_for(Snapshot(data))
