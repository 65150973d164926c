#!/bin/sh
# The kill tests inject faults with strace. Install it where that is possible; without it those tests are skipped
# and counted.
set -u
command -v strace >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq strace >/dev/null 2>&1
fi
command -v strace >/dev/null 2>&1 || echo "strace is not installed: the kill-at-every-syscall tests will be skipped."
