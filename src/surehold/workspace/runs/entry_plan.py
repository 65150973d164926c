"""Plans how entries of any kind become others: which steps, and in which order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from surehold.disk.base import Disk, PutEntry, Rename, Replace, SetFacts, Step, StoredEntry, TakeEntry, Target
from surehold.text.snapshot import Meta, Version

_OWNER_WRITES = 0o300
_OWNER_HOLDS = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEntry:
    """What a path is to be."""

    version: Version
    data: bytes
    moved_from: str = ""
    parts: bool = False
    """It had other names, and is to be a file of its own."""
    refits: bool = False
    """The same bytes are to have other holes."""
    names_now: tuple[str, ...] = ()
    """The other names that the file has which is there now, as far as they are known."""


@dataclass(slots=True)
class EntryPlan:
    """What some paths are and what they are to be, and the steps from one to the other."""

    disk: Disk
    limit: int
    current: dict[str, StoredEntry | None]
    wanted: dict[str, WantedEntry | None]
    steps: list[Step] = field(default_factory=list[Step])
    content_done: bool = False
    """Files that stay have their new content by now."""
    locked: set[str] = field(default_factory=set[str])
    """Directories that are opened to us for the time of the change."""
    kept_directories: list[str] = field(default_factory=list[str])
    """Directories that were to go, and have other entries by now."""

    def make_steps(self) -> list[Step]:
        """Order matters: what is in the way goes first, directories are there before their entries, facts come last."""
        self._keep_used_directories()
        self._want_missing_directories()
        moves = self._find_moves()
        taken = [key for key in self.current if self._leaves(key) and key not in moves]
        made = [key for key in self.wanted if self._arrives(key)]
        self._unlock_directories()
        for key in taken:
            if not self._is_directory(key):
                self._take(key)
        for key in sorted(made, key=_depth):
            if self._becomes_directory(key):
                self._put(key, None)
        for source, to in moves.items():
            expected = self._version(source).sha256
            self.steps.append(Rename(source=self._locate(source), target=self._locate(to), expected=expected))
        for key in sorted(taken, key=_depth, reverse=True):
            if self._is_directory(key):
                self._take(key)
        self._replace_content()
        self.content_done = True
        self._put_files([key for key in made if not self._becomes_directory(key) and key not in moves.values()])
        self._set_facts(moves)
        return self.steps

    def _leaves(self, key: str) -> bool:
        """Tell whether what a path leads to goes, or becomes or was a directory."""
        current, wanted = self.current[key], self.wanted.get(key)
        if current is None:
            return False
        return wanted is None or (current.version.kind == "directory") != (wanted.version.kind == "directory")

    def _arrives(self, key: str) -> bool:
        wanted, current = self.wanted[key], self.current.get(key)
        if wanted is None:
            return False
        return current is None or (current.version.kind == "directory") != (wanted.version.kind == "directory")

    def _keep_used_directories(self) -> None:
        """Find the directories that cannot go, from the deepest up."""
        for key in sorted(self.current, key=_depth, reverse=True):
            entry = self.current[key]
            if entry is None or self.wanted.get(key) is not None:
                continue
            below = [f"{'' if key == '.' else key + '/'}{name}" for name in entry.names]
            if key == "." or any(one not in self.current or self.wanted.get(one) is not None for one in below):
                self.kept_directories.append(key)
                self.wanted[key] = WantedEntry(version=entry.version, data=b"")

    def _want_missing_directories(self) -> None:
        """Add the directories that entries come back into and that are gone: edits do not record them."""
        for key in [key for key in self.wanted if self._arrives(key)]:
            missing, above = list[str](), _parent(key)
            while (meta := self._find_facts(above)) is None:
                missing, above = [*missing, above], _parent(above)
            facts = replace(meta, mtime_ns=0, xattrs=())
            for one in missing:
                version = Version(sha256="", size=0, meta=facts, kind="directory")
                self.wanted[one] = WantedEntry(version=version, data=b"")

    def _find_facts(self, key: str) -> Meta | None:
        """Return the facts of what a path is or is to be; None if that is nothing."""
        wanted = self.wanted.get(key)
        entry = wanted or self.disk.read_entry(self._locate(key), limit=self.limit)
        return entry.version.meta or Meta(mode=0o755) if entry else None

    def _find_moves(self) -> dict[str, str]:
        """Return which files can simply be renamed: the old name stays free, and the new one is free already."""
        found: dict[str, str] = {}
        for key, wanted in self.wanted.items():
            if wanted is None or self.current.get(key) is not None:
                continue
            source = self.current.get(wanted.moved_from)
            free = self.wanted.get(wanted.moved_from) is None
            if (
                source
                and free
                and not wanted.refits
                and (source.version.kind, source.version.sha256) == ("file", wanted.version.sha256)
            ):
                found[wanted.moved_from] = key
        return found

    def _unlock_directories(self) -> None:
        """Remember the directories above the paths, of which some get their times back, and let ourselves into those of ours."""
        for key in sorted(self._directories_above(), key=_depth):
            entry = self.current.get(key) or self.disk.read_entry(self._locate(key), limit=self.limit)
            if entry is None or entry.version.kind != "directory" or (meta := entry.version.meta) is None:
                continue
            self.current[key] = entry
            self.wanted.setdefault(key, WantedEntry(version=entry.version, data=b""))
            if meta.mode & _OWNER_WRITES != _OWNER_WRITES:
                self.locked.add(key)
                opened = replace(meta, mode=meta.mode | 0o700)
                self.steps.append(SetFacts(target=self._locate(key), kind="directory", before=meta, after=opened))

    def _directories_above(self) -> set[str]:
        """Return every directory that is above a path of the plan."""
        found = set[str]()
        for key in {*self.current, *self.wanted}:
            above = key
            while above not in {".", "/"} and (above := _parent(above)) not in found:
                found.add(above)
        return found

    def _parents_of_changes(self) -> list[str]:
        changing = {key for key in {*self.current, *self.wanted} if self._differs(key) or self._may_relink(key)}
        return sorted(map(_parent, changing), key=_depth)

    def _may_relink(self, key: str) -> bool:
        """Tell whether a file may be put anew to have other names, with the same content."""
        wanted = self.wanted.get(key)
        return wanted is not None and (wanted.parts or bool(wanted.version.links))

    def _differs(self, key: str) -> bool:
        current, wanted = self.current.get(key), self.wanted.get(key)
        if current is None or wanted is None:
            return current is not None or wanted is not None
        one, other = current.version, wanted.version
        return wanted.refits or (one.kind, one.sha256) != (other.kind, other.sha256)

    def _put_files(self, keys: Sequence[str]) -> None:
        """Make files, links and FIFOs; further names of a file after the first."""
        put = set[str]()
        for key in sorted(keys):
            self._put(key, self._find_partner(key, put))
            put.add(key)

    def _find_partner(self, key: str, put: set[str]) -> Target | None:
        """Return another name that the file is to have, which leads to its bytes already or will by then."""
        wanted = self.wanted[key]
        assert wanted is not None
        for other in wanted.version.links if wanted.version.kind == "file" else ():
            if other in put:
                return self._locate(other)
            if other in self.wanted:
                target = self.wanted[other]
                fits = target is not None and target.version.sha256 == wanted.version.sha256
                if fits and self.current.get(other) and (self.content_done or not self._differs(other)):
                    return self._locate(other)
                continue
            entry = self.disk.read_entry(self._locate(other), limit=self.limit)
            if entry and (entry.version.kind, entry.version.sha256) == ("file", wanted.version.sha256):
                return self._locate(other)
        return None

    def _put(self, key: str, partner: Target | None) -> None:
        wanted, current = self.wanted[key], self.current.get(key)
        assert wanted is not None
        displaced = current.version if current and not self._leaves(key) else None
        step = PutEntry(
            target=self._locate(key), version=wanted.version, data=wanted.data, link_to=partner, expected=displaced
        )
        self.steps.append(step)

    def _take(self, key: str) -> None:
        """Remove an entry; it waits in the nearest directory that stays."""
        near = key
        while self.current.get(_parent(near)) is not None and self._leaves(_parent(near)):
            near = _parent(near)
        step = TakeEntry(target=self._locate(key), expected=self._version(key), refuge=self._locate(near))
        self.steps.append(step)

    def _replace_content(self) -> None:
        """Give paths that stay files (or links) their other content, or their other names."""
        written, put, parted = set[tuple[int, int]](), set[str](), self._find_parted_files()
        staying = sorted(self._staying_entries(), key=lambda one: one[0])  # other paths may be names of these
        for key, current, wanted in staying:
            if self._keeps_inode(key, current, wanted) and current.identity not in parted:
                put.add(key)
                if current.identity not in written:
                    written.add(current.identity)
                    self.steps.append(self._overwrite(key, current, wanted))
        for key, current, wanted in staying:
            if key in put or current.version.kind == "directory":
                continue
            if self._differs(key):
                self._put(key, self._find_partner(key, put))
            elif self._must_join(current, wanted) and (partner := self._find_partner(key, put)):
                self._put(key, partner)
            elif wanted.parts and current.links > 1:
                self._put(key, None)
            put.add(key)

    def _staying_entries(self) -> Iterator[tuple[str, StoredEntry, WantedEntry]]:
        """Yield the paths where no directory comes or goes, with what they are and are to be."""
        for key, wanted in self.wanted.items():
            current = self.current.get(key)
            if current and wanted and not self._leaves(key):
                yield key, current, wanted

    def _keeps_inode(self, key: str, current: StoredEntry, wanted: WantedEntry) -> bool:
        """Tell whether a file with several names gets its other content in place, under all of them at once."""
        if wanted.refits or not self._differs(key):
            return False
        is_file = current.version.kind == wanted.version.kind == "file" and _is_writable(current.version)
        return is_file and current.links > 1 and bool(wanted.version.links and current.data)

    def _find_parted_files(self) -> set[tuple[int, int]]:
        """Return the files that are not written in place: some of their names become other entries, or stay as they are."""
        return {
            current.identity
            for key, current, wanted in self._staying_entries()
            if not self._keeps_inode(key, current, wanted) or any(one not in self.current for one in wanted.names_now)
        }

    def _must_join(self, current: StoredEntry, wanted: WantedEntry) -> bool:
        """Tell whether a file that is to have other names is not one with them."""
        others = [
            self.current.get(one) or self.disk.read_entry(self._locate(one), limit=self.limit)
            for one in wanted.version.links
        ]
        return not any(one and one.identity == current.identity for one in others)

    def _overwrite(self, key: str, current: StoredEntry, wanted: WantedEntry) -> Step:
        expected = current.version.sha256
        holes = wanted.version.holes
        return Replace(target=self._locate(key), data=wanted.data, expected=expected, old=current.data, holes=holes)

    def _set_facts(self, moves: Mapping[str, str]) -> None:
        sources = {to: source for source, to in moves.items()}
        parents = set(self._parents_of_changes())
        for key in sorted(self.wanted, key=_depth, reverse=True):
            wanted = self.wanted[key]
            if wanted is None or (meta := wanted.version.meta) is None:
                continue
            current = self.current.get(sources.get(key, key))
            stays = key in sources or not (current and self._leaves(key))
            known = current.version.meta if current and stays else None
            made = wanted.version.kind == "directory" and (known is None or key in parents or key in self.locked)
            before = known or meta
            content_written = current is not None and self._differs(key) and key not in sources
            if made or (known is not None and known != meta) or (content_written and known is not None):
                step = SetFacts(target=self._locate(key), kind=wanted.version.kind, before=before, after=meta)
                self.steps.append(step)

    def _locate(self, key: str) -> Target:
        return self.disk.locate(key)

    def _version(self, key: str) -> Version:
        entry = self.current[key]
        assert entry is not None
        return entry.version

    def _is_directory(self, key: str) -> bool:
        return self._version(key).kind == "directory"

    def _becomes_directory(self, key: str) -> bool:
        wanted = self.wanted[key]
        return wanted is not None and wanted.version.kind == "directory"


def _is_writable(version: Version) -> bool:
    return version.meta is None or version.meta.mode & _OWNER_HOLDS == _OWNER_HOLDS


def _parent(key: str) -> str:
    above = key.rpartition("/")[0]
    return above or ("/" if key.startswith("/") else ".")


def _depth(key: str) -> tuple[int, str]:
    return (0 if key == "." else key.count("/") + 1), key
