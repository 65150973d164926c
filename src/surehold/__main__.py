"""Runs the command line with `python -m surehold`.

Python looks for modules in the working directory first when it is started so. That is a directory that agents write to, so
it is taken off the path before anything else is imported.
"""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    from surehold.front.cli.main import entry

    entry()
