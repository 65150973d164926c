#!/bin/sh
# Prints an interpreter for each supported Python that is here, one a line: `python3.X`, `python3`, `python`, or one of uv's or pyenv's.
set -eu
versions=${PYENV_ROOT:-${HOME:-}/.pyenv}/versions

for wanted in 3.11 3.12 3.13 3.14; do
    managed=$(uv python find --no-python-downloads "$wanted" 2>/dev/null) || managed=""
    for candidate in "python$wanted" python3 python "$managed" "$versions/$wanted".*/bin/python3; do
        [ -n "$candidate" ] || continue
        found=$("$candidate" -c "import sys; print('%d.%d' % sys.version_info[:2])" 2>/dev/null) || continue
        if [ "$found" = "$wanted" ]; then
            command -v "$candidate"
            break
        fi
    done
done
