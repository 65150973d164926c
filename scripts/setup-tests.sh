#!/bin/sh
# The kill tests inject faults with strace, the review page is looked at with Chromium, and completion is tried in zsh and
# fish; axe-core and the bridge of MCP Apps come from npm. Install them where that is possible; without them those tests are
# skipped and counted.
set -u
missing=""
command -v strace >/dev/null 2>&1 || missing="strace"
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
for shell in zsh fish; do
  command -v $shell >/dev/null 2>&1 || missing="$missing $shell"
done
if [ -n "$missing" ] && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  # shellcheck disable=SC2086 - each word is a package
  apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1
fi
command -v strace >/dev/null 2>&1 || echo "strace is not installed: the kill-at-every-syscall tests will be skipped."
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
  echo "Chromium is not installed: the tests of the review page in a browser will be skipped."
if ! command -v npm >/dev/null 2>&1 || ! sh "$(dirname "$0")/conformance-setup.sh" browser; then
  echo "axe-core and the bridge of MCP Apps are not installed (npm): the tests with them will be skipped."
fi
exit 0
