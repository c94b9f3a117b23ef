#!/usr/bin/env bash
# Make the release on GitHub whose file site.zip keeps the pages of the tag TAG. One that
# is there stays as it is: what was kept does not change.
set -euo pipefail

if gh release view "$TAG" >/dev/null 2>&1; then
    echo "The release $TAG is kept already."
    exit 0
fi
gh release create "$TAG" _build/release/site.zip --verify-tag --title "${TAG#v}" \
    --notes "The claims of this release: book/releases/${TAG#v}.json"
