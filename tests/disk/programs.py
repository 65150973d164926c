"""Real programs that write into files, and how to see that one of them waits."""

import subprocess
import sys
from pathlib import Path

from waiting import wait_until

APPEND = "import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND); os.write(fd, b'OUTSIDE'); os.close(fd)"


def start_append(path: Path) -> "subprocess.Popen[bytes]":
    """Start a program that appends, and return when it waits for the file, or is done."""
    program = subprocess.Popen([sys.executable, "-c", APPEND, str(path)])
    inode = f":{path.stat().st_ino} "
    wait_until(lambda: program.poll() is not None or is_waited_for(inode))
    return program


def is_waited_for(inode: str) -> bool:
    rows = Path("/proc/locks").read_text().splitlines()
    return any("LEASE" in row and "BREAKING" in row and inode in f"{row} " for row in rows)
