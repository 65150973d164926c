#!/bin/sh
# Builds a release, checks what was built, and tags it. With --dry-run nothing is tagged, and `make check` is not run.
# See RELEASING.md.
set -eu
cd "$(dirname "$0")/.."

dry_run=""
[ "${1:-}" = "--dry-run" ] && dry_run=yes
python=.venv/bin/python
version=$($python -c "import surehold; print(surehold.__version__)")

fail() {
    echo "release: $1" >&2
    exit 1
}

warn_or_fail() {
    if [ -n "$dry_run" ]; then echo "release: would stop here: $1" >&2; else fail "$1"; fi
}

[ -z "$(git status --porcelain)" ] || warn_or_fail "the working tree has changes that are not committed."
grep -q "^## \[$version\] - [0-9]" CHANGELOG.md || warn_or_fail "CHANGELOG.md has no dated heading for $version."
git rev-parse -q --verify "refs/tags/v$version" >/dev/null && warn_or_fail "the tag v$version exists already."

[ -n "$dry_run" ] || make check

echo "release: building $version"
rm -rf dist
$python -m build --outdir dist .
$python -m twine check --strict dist/*
$python scripts/plugin.py dist/plugins
mv dist/plugins/surehold.mcpb "dist/surehold-$version.mcpb"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tried=""
for interpreter in $(sh scripts/interpreters.sh); do
    echo "release: installing the wheel and the sdist with $interpreter"
    for built in dist/*.whl dist/*.tar.gz; do
        rm -rf "$fresh/venv" "$fresh/project" "$fresh/state"
        "$interpreter" -m venv "$fresh/venv"
        "$fresh/venv/bin/python" -m pip install --quiet --upgrade pip
        "$fresh/venv/bin/python" -m pip install --quiet "$built[all]"
        mkdir "$fresh/project"
        cd "$fresh/project" # so that nothing is imported from the source
        "$fresh/venv/bin/surehold" version | grep -qF "$version" || fail "the installed command does not print $version."
        echo "hello" | "$fresh/venv/bin/surehold" write hello.txt --state-dir "$fresh/state" >/dev/null
        "$fresh/venv/bin/surehold" undo --state-dir "$fresh/state" >/dev/null
        [ ! -e hello.txt ] || fail "an undo with $interpreter has not removed the file."
        "$fresh/venv/bin/surehold" verify --state-dir "$fresh/state"
        cd - >/dev/null
    done
    tried="$tried $interpreter"
done
[ -n "$tried" ] || fail "there is no Python 3.11 to 3.14."

echo "release: listing what an installation contains"
python3 -m venv "$fresh/lister" # an environment of its own, so that it does not list itself
"$fresh/lister/bin/python" -m pip install --quiet cyclonedx-bom
"$fresh/lister/bin/cyclonedx-py" environment "$fresh/venv" \
    --output-reproducible --output-file "dist/surehold-$version.cdx.json"
sh scripts/checksums.sh dist

if [ -n "$dry_run" ]; then
    echo "release: $version can be built and installed with$tried. Nothing was tagged."
else
    git tag -a "v$version" -m "Surehold $version"
    echo "release: tagged v$version. To publish: git push origin v$version; the release workflow does the rest."
fi
