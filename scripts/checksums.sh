#!/bin/sh
# Writes SHA256SUMS for the files of a release, signs it, and checks both. To sign, name a key of gpg in RELEASE_KEY.
#
#     checksums.sh DIRECTORY            writes
#     checksums.sh --verify DIRECTORY   checks, as anyone can who has the public key
set -eu

verify() {
    sha256sum --check --strict --quiet SHA256SUMS
    if [ -e SHA256SUMS.asc ]; then gpg --quiet --verify SHA256SUMS.asc SHA256SUMS; fi
    for file in *; do
        case "$file" in SHA256SUMS*) continue ;; esac
        [ -d "$file" ] || grep -qF "  $file" SHA256SUMS || { echo "$file is not in SHA256SUMS." >&2; exit 1; }
    done
}

if [ "$1" = "--verify" ]; then
    cd "$2"
    verify
    exit 0
fi
cd "$1"
rm -f SHA256SUMS SHA256SUMS.asc
find . -maxdepth 1 -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >"${TMPDIR:-/tmp}/sums.$$"
mv "${TMPDIR:-/tmp}/sums.$$" SHA256SUMS
if [ -n "${RELEASE_KEY:-}" ]; then
    gpg --batch --yes --local-user "$RELEASE_KEY" --armor --detach-sign SHA256SUMS
else
    echo "checksums: not signed, since RELEASE_KEY names no key." >&2
fi
verify
