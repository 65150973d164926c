"""Where real changes come from: two releases of a package, or a git history."""

import random
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

from replay.change import Change
from surehold.text.snapshot import Snapshot

Index = Literal["pypi", "sdist", "npm"]
_SPELLING = re.compile(r"(?:(pypi|sdist|npm):)?(@?[\w./-]+)==(.+?)\.\.(\S+)")
_CROWDS = (".map", ".po")
"""So many, and so much alike, that a sample would hold little else."""


class NotFetched(Exception):
    """A release could not be had."""


class Source(Protocol):
    """Gives the files that changed."""

    @property
    def name(self) -> str:
        """How it is called in a table."""
        ...

    def changes(self, cache: Path) -> Iterator[Change]:
        """Yield every file that is there before and after, and differs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Two releases of one package."""

    index: Index
    package: str
    old: str
    new: str

    @classmethod
    def parse(cls, text: str) -> "Releases":
        """Read `name==1.0..1.1`, `npm:name==1.0..1.1` or `sdist:name==1.0..1.1`."""
        match = _SPELLING.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"`{text}` is not like django==5.1..5.2 or npm:express==4.18.2..4.19.0.")
        index: Index = "npm" if match[1] == "npm" else "sdist" if match[1] == "sdist" else "pypi"
        return cls(index=index, package=match[2], old=match[3], new=match[4])

    @property
    def name(self) -> str:
        return f"{self.package} {self.old}..{self.new}"

    def changes(self, cache: Path) -> Iterator[Change]:
        before = _files(self._archive(self.old, cache))
        after = _files(self._archive(self.new, cache))
        for path in sorted(before.keys() & after.keys()):
            if before[path] != after[path]:
                yield Change(path=path, before=before[path], after=after[path])

    def _archive(self, version: str, cache: Path) -> Path:
        """Return the archive of a release; fetched once, by its name."""
        folder = cache / f"{self.index}-{self.package.replace('/', '-')}-{version}"
        if not folder.exists():
            cache.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=cache) as fresh:
                told = subprocess.run(self._fetch(version, fresh), check=False, capture_output=True, cwd=fresh)
                if told.returncode:
                    raise NotFetched(told.stderr.decode(errors="replace").strip()[-200:])
                shutil.copytree(fresh, folder)
        return next(path for path in sorted(folder.iterdir()) if path.suffix in (".whl", ".gz", ".tgz", ".zip"))

    def _fetch(self, version: str, folder: str) -> list[str]:
        if self.index == "npm":
            return ["npm", "pack", "--silent", "--pack-destination", folder, f"{self.package}@{version}"]
        kind = ["--no-binary", self.package] if self.index == "sdist" else ["--only-binary", ":all:"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        return [*pip, *kind, "--dest", folder, f"{self.package}=={version}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The newest commits of a git repository, each a change of its own."""

    repository: Path
    commits: int

    @property
    def name(self) -> str:
        return f"{self.repository.resolve().name} ({self.commits} commits)"

    def changes(self, cache: Path) -> Iterator[Change]:  # noqa: ARG002 - nothing is fetched
        listed = self._git("log", "--no-merges", "--min-parents=1", "--format=%H", f"-n{self.commits}")
        for commit in listed.decode().split():
            told = self._git("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=M", f"{commit}~", commit)
            fields = told.decode("utf-8", "surrogateescape").split("\0")
            for facts, path in zip(fields[::2], fields[1::2], strict=False):
                mode, _, old, new, _ = facts.split(" ")
                if mode.startswith(":100") and old != new:
                    before, after = (self._git("cat-file", "blob", blob) for blob in (old, new))
                    yield Change(path=f"{commit[:12]}/{path}", before=before, after=after)

    def _git(self, *words: str) -> bytes:
        return subprocess.run(("git", "-C", self.repository, *words), check=True, capture_output=True).stdout


def chosen(source: Source, cache: Path, *, limit: int | None, largest: int) -> list[Change]:
    """Return the changed text files, or as many of them as asked for: always the same ones."""
    fit = [change for change in source.changes(cache) if _fits(change, largest)]
    if limit is None:
        return fit
    fit = [change for change in fit if not change.path.endswith(_CROWDS)]
    if len(fit) <= limit:
        return fit
    picked = random.Random(source.name).sample(range(len(fit)), limit)
    return [fit[number] for number in sorted(picked)]


def _fits(change: Change, largest: int) -> bool:
    if max(len(change.before), len(change.after)) > largest:
        return False
    return Snapshot(change.before).is_text and Snapshot(change.after).is_text


def _files(archive: Path) -> dict[str, bytes]:
    """Return the files of an archive by their names, which must not hold the version."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            inside = {name: packed.read(name) for name in packed.namelist() if not name.endswith("/")}
        return {re.sub(r"^[^/]+\.(dist-info|data)/", r"\1/", name): data for name, data in inside.items()}
    found = dict[str, bytes]()
    with tarfile.open(archive) as packed:
        for member in packed:
            opened = packed.extractfile(member) if member.isreg() else None
            if opened is not None:
                found[member.name.partition("/")[2]] = opened.read()
    return found
