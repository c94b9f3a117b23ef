#!/usr/bin/env bash
# Open, update or close the one issue that says what the weekly check found. It ends with
# that check's own status.
#
# STATUS is 0 if all is well, RUN the address of the run; the text lies in issue.md.
set -euo pipefail

open=$(gh issue list --label drift --state open --limit 1 \
    --json number --jq '.[0].number // empty')
if [ "$STATUS" -ne 0 ] && [ -n "$open" ]; then
    gh issue edit "$open" --body-file issue.md
    gh issue comment "$open" --body "Still red, the text above is new: $RUN"
elif [ "$STATUS" -ne 0 ]; then
    gh label create drift --force --color B60205 \
        --description "What the book says no longer holds"
    gh issue create --label drift --title "Claims broke in the weekly check" \
        --body-file issue.md
elif [ -n "$open" ]; then
    gh issue close "$open" --comment "All claims hold again: $RUN"
fi
exit "$STATUS"
