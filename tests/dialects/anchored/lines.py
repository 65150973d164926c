"""An agent that edits by anchors: it reads, copies anchors from the rows, and sends operations."""

from dataclasses import dataclass
from typing import Any

from dialects.place import Place
from front.mcp.client import data_of


@dataclass(frozen=True)
class Edited:
    """What one edit came to."""

    raw: dict[str, Any]

    @property
    def ok(self) -> bool:
        assert self.raw["structuredContent"].keys() <= self.result.keys()
        return not self.raw.get("isError", False)

    @property
    def result(self) -> dict[str, Any]:
        return data_of(self.raw)

    @property
    def data(self) -> dict[str, Any]:
        assert self.ok, self.text
        return self.result

    @property
    def error(self) -> dict[str, Any]:
        assert not self.ok, self.text
        assert set(self.result) == {"error", "message", "suggested_action", "details"}
        return self.result

    @property
    def text(self) -> str:
        (block,) = self.raw["content"]
        return str(block["text"])


@dataclass(frozen=True)
class Lines:
    """One file of a place, as an agent sees it."""

    place: Place
    name: str

    def put(self, text: str) -> None:
        self.place.put(self.name, text.encode())

    def get(self) -> str:
        return self.place.get(self.name).decode()

    def read(self, **arguments: Any) -> dict[int, str]:
        """Read with hashes; return the anchor of every line, by its number."""
        data = self.place.on("read_file", self.name, hashes=True, **arguments).data
        rows: list[str] = str(data["content"]).split("\n") if data["content"] else []
        anchors: list[str] = [str(row).partition("|")[0].rstrip("!~") for row in rows]
        return {int(anchor.partition("#")[0]): anchor for anchor in anchors}

    def edit(self, *operations: dict[str, Any], **arguments: Any) -> Edited:
        call = {"path": self.place.path(self.name), "operations": list(operations), **arguments}
        return Edited(self.place.client.call("edit", call))


def bare(anchor: str) -> str:
    """Return only the hash of a copied anchor."""
    return anchor.partition("#")[2].partition(".")[0]
