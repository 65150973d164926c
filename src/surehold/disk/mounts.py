"""Tells which type of file system a directory is on."""

import os
from pathlib import Path

_NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "lustre", "gpfs", "glusterfs", "vboxsf", "prl_fs"}
    | {"virtiofs", "ncpfs", "coda", "ocfs2", "gfs2", "beegfs", "davfs", "drvfs", "hgfs", "vmhgfs", "orangefs"}
)
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def is_coherent(path: str, *, table: str = "/proc/self/mountinfo") -> bool:
    """Tell whether every read sees the latest write of every machine: not so on network and FUSE mounts."""
    kind = filesystem_of(path, table=table)
    return kind not in _NETWORK_FILESYSTEMS and not kind.startswith("fuse")


def filesystem_of(path: str, *, table: str = "/proc/self/mountinfo") -> str:
    """Return the name of the file system that a path is on; empty if unknown."""
    try:
        lines = Path(table).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    try:
        status = os.stat(path)  # noqa: PTH116  # the device number is all we want
    except OSError:
        return _find_filesystem(lines, path, "")
    return _find_filesystem(lines, path, f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}")


def _find_filesystem(lines: list[str], path: str, device: str) -> str:
    """Find the mount by its device, else (a subvolume has its own device) by the longest mount point."""
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:  # noqa: PLR2004  # id, parent, device, root, mount point
            continue
        name = after.split(" ", 1)[0]
        if fields[2] == device:
            return name
        point = _unescape_field(fields[4]).rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= best:
            best, kind = len(point), name
    return kind


def _unescape_field(field: str) -> str:
    for escaped, character in _ESCAPES:
        field = field.replace(escaped, character)
    return field
