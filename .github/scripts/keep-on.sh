#!/usr/bin/env bash
# Enable the weekly workflow, which is on. GitHub switches a schedule off when a public
# repository has seen no activity for 60 days:
# https://docs.github.com/en/actions/how-tos/manage-workflow-runs/disable-and-enable-workflows
# To enable a workflow is https://docs.github.com/en/rest/actions/workflows#enable-a-workflow
# That this counts as activity is what others have seen; GitHub does not promise it.
set -euo pipefail

if ! gh api --method PUT \
    "repos/$GITHUB_REPOSITORY/actions/workflows/weekly.yml/enable"; then
    echo "::error::The weekly check could not keep its schedule on."
    exit 1
fi
echo "The schedule of the weekly check is kept on." >>"$GITHUB_STEP_SUMMARY"
