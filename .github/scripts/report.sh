#!/usr/bin/env bash
# Write what the weekly check found to issue.md and to the run's page. The step's output
# `status` is 0 if all claims hold and the schedule stays on.
#
# RUN is the address of the run, KEPT_ON the result of the job that keeps the schedule on.
set -euo pipefail

status=0
{
    sh tools/setup/bootstrap.sh book >&2 &&
        .venv/bin/python -m tools.drift.alert report \
            latest=results/latest newest=results/newest colab=results/colab
} >issue.md || status=$?
if [ "$status" -ne 0 ] && [ ! -s issue.md ]; then
    echo "The weekly check could not even write its report." >issue.md
fi
if [ "$KEPT_ON" != success ]; then
    [ "$status" -ne 0 ] || status=1
    printf '\nThe weekly check could not keep its schedule on (%s): %s\n' "$KEPT_ON" \
        "after 60 days without a change, GitHub switches it off." >>issue.md
fi
if [ "$status" -ne 0 ]; then
    printf '\nThe logs: %s\n' "$RUN" >>issue.md
fi
cat issue.md >>"$GITHUB_STEP_SUMMARY"
echo "status=$status" >>"$GITHUB_OUTPUT"
