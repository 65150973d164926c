import subprocess
import sys
from pathlib import Path

from spec.marks import requirement

PROJECT = Path(__file__).parents[3]


@requirement("host:hook:doctor")
def test_the_page_says_what_is_known_of_each_host() -> None:
    done = subprocess.run([sys.executable, "scripts/host_coverage.py"], cwd=PROJECT, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
