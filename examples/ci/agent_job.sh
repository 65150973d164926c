#!/bin/sh
# Lets a command, such as an agent, work in a checkout, and leaves a bundle of what it did that anyone can verify.
#
#     agent_job.sh COMMAND...
#
# What the command changes is recorded, whatever it uses. A command that deletes 100 files, or touches a file that programs run by
# themselves, is refused there: no one can be asked in CI. Exit code: that of the command, or 1 if the bundle is not intact.
set -u
bundle=${BUNDLE:-agent.bundle}
began=$(date +%Y-%m-%dT%H:%M:%S)

code=0
surehold run --guard 100 --confine -- "$@" || code=$?

echo "Changed since $began:"
surehold log --since "$began" --stat
if surehold export --since "$began" --format bundle --output "$bundle"; then
    surehold verify "$bundle" || exit 1
    surehold diff --since "$began"
else
    echo "There is nothing to export." # a command that changed nothing
fi
exit "$code"
