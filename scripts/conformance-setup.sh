#!/bin/sh
# Installs what others wrote into .conformance/: `clients` for `make conformance`, `peers` for `make bench`.
# Versions are pinned by package.json and package-lock.json; a second run with the same lock does nothing.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
    clients) from=tests/conformance/npm/clients ;;
    peers) from=tests/conformance/npm/peers ;;
    *) echo "usage: $0 clients|peers" >&2; exit 2 ;;
esac
into=".conformance/$1"

if ! command -v npm >/dev/null 2>&1; then
    echo "npm is missing. Install Node.js 18 or newer, then run this again." >&2
    exit 3
fi

mkdir -p "$into"
if ! cmp -s "$from/package-lock.json" "$into/installed.json"; then
    echo "Installing into $into (once) …" >&2
    cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$into/"
    (cd "$into" && npm install --no-save >/dev/null)
    cp "$from/package-lock.json" "$into/installed.json"
fi
find "$from" -name '*.mjs' -exec cp {} "$into/" \;
