#!/bin/sh
# Installs what others wrote into .conformance/: `clients`, `hosts` and `frameworks` for `make conformance`, `browser` for the
# tests of the review page, `peers` for `make bench` and `make compare`. Versions are pinned: by package.json and package-lock.json for npm, by tests/conformance/pip/*.txt for pip.
# A second run with the same pins does nothing.
set -eu
cd "$(dirname "$0")/.."

# Each framework gets an environment of its own: they need different versions of the protocol's SDK.
install_environments() {
    for list in "$1"/*.txt; do
        into=".conformance/$2/$(basename "$list" .txt)"
        if ! cmp -s "$list" "$into/installed.txt"; then
            echo "Installing into $into (once) …" >&2
            "${PYTHON:-python3}" -m venv --clear "$into"
            "$into/bin/python" -m pip install --quiet --requirement "$list"
            cp "$list" "$into/installed.txt"
        fi
    done
}

install_packages() {
    from="tests/conformance/npm/$1"
    into=".conformance/$1"
    if ! command -v npm >/dev/null 2>&1; then
        echo "npm is missing. Install Node.js 18 or newer, then run this again." >&2
        exit 3
    fi
    mkdir -p "$into"
    if ! cmp -s "$from/package-lock.json" "$into/installed.json"; then
        echo "Installing into $into (once) …" >&2
        cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$into/"
        # One peer brings a library that would download a browser of its own, which no task needs.
        (cd "$into" && PUPPETEER_SKIP_DOWNLOAD=true npm install --no-save >/dev/null)
        cp "$from/package-lock.json" "$into/installed.json"
    fi
    find "$from" -name '*.mjs' -exec cp {} "$into/" \;
}

case "${1:-}" in
    clients | hosts | browser) install_packages "$1" ;;
    peers) install_packages peers; install_environments tests/conformance/pip/peers peers-python ;;
    frameworks) install_environments tests/conformance/pip frameworks ;;
    *) echo "usage: $0 clients|hosts|browser|frameworks|peers" >&2; exit 2 ;;
esac
