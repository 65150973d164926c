"""An editor in this process: real buffers over real files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from surehold.errors import Unavailable


def as_it_is(text: str) -> str:
    return text


@dataclass
class Buffer:
    """An open file."""

    text: str
    loaded: str
    """What was on the disk when it was last loaded or saved."""


@dataclass(kw_only=True)
class Editor:
    """Opens files when it is asked for them, keeps what is typed, and loads again what changed below a clean buffer."""

    saves: bool = False
    """Every write is saved at once, as some clients do."""
    normalises: bool = False
    """Lines are shown with LF, and saved with CRLF where they had it."""
    lazy: bool = False
    """It does not notice that a file changed on the disk."""
    formatter: Callable[[str], str] = as_it_is
    closed: set[str] = field(default_factory=set[str])
    """Names of files that it does not have."""
    broken: set[str] = field(default_factory=set[str])
    """Names of files that it fails to write."""
    deaf: set[str] = field(default_factory=set[str])
    """Names of files that it does not change, whatever it says."""
    silent: bool = False
    """It cannot be asked."""
    on_write: Callable[[str], None] = lambda _: None
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    asked: list[str] = field(default_factory=list[str])
    written: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def read_text(self, path: str) -> str | None:
        self._answer(path)
        if Path(path).name in self.closed or not Path(path).is_file():
            return None
        return self._open(path).text

    def write_text(self, path: str, text: str) -> None:
        self.on_write(path)
        self._answer(path)
        self.written.append((path, text))
        if Path(path).name in self.broken:
            raise Unavailable("The editor said no.", reason="editor_refused")
        if Path(path).name not in self.deaf:
            self._open(path).text = self.formatter(text)
            if self.saves:
                self.save(Path(path))

    def _answer(self, path: str) -> None:
        self.asked.append(path)
        if self.silent:
            raise Unavailable("The editor is not there.", reason="editor_gone")

    def type(self, path: Path, text: str) -> None:
        """Change the buffer as a user does, without saving it."""
        self._open(str(path)).text = text

    def text(self, path: Path) -> str:
        """Return what the user sees."""
        return self._open(str(path)).text

    def save(self, path: Path) -> None:
        buffer = self._open(str(path))
        end = "\r\n" if self.normalises and b"\r\n" in path.read_bytes() else "\n"
        path.write_bytes(buffer.text.replace("\n", end).encode())
        buffer.loaded = buffer.text

    def _open(self, path: str) -> Buffer:
        on_disk = self._load(path)
        buffer = self.buffers.setdefault(path, Buffer(on_disk, on_disk))
        if not self.lazy and buffer.text == buffer.loaded:
            buffer.text = buffer.loaded = on_disk
        return buffer

    def _load(self, path: str) -> str:
        text = Path(path).read_bytes().decode("utf-8", "replace")
        return text.replace("\r\n", "\n") if self.normalises else text
