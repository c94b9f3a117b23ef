#!/usr/bin/env bash
# Put the pages of each release into the site that is published, below releases/: this
# commit's own, and those that earlier deployments kept as files of releases on GitHub.
set -euo pipefail

mkdir -p _build/releases
gh release list --repo "$GITHUB_REPOSITORY" --limit 1000 --exclude-drafts \
    --json tagName --jq '.[].tagName | select(test("^v[0-9]"))' >_build/releases/tags
while read -r tag; do
    gh release download "$tag" --repo "$GITHUB_REPOSITORY" --pattern site.zip \
        --output "_build/releases/$tag.zip" --clobber
    .venv/bin/python -m tools.site.kept unpack "_build/releases/$tag.zip" \
        "_build/html/releases/${tag#v}"
done <_build/releases/tags

own=$(git tag --points-at HEAD --list 'v[0-9]*' | sort -V | tail -n 1)
if [ -n "$own" ] && [ ! -e "_build/html/releases/${own#v}" ]; then
    .venv/bin/python -m tools.site.kept unpack _build/release/site.zip \
        "_build/html/releases/${own#v}"
fi
