#!/usr/bin/env bash
# Build the pages of a release, if the commit has the tag of one, into
# _build/release/site.zip. Their links to Colab open the notebooks of that tag. The step's
# output `tag` is the tag, or nothing.
set -euo pipefail

tag=$(git tag --points-at HEAD --list 'v[0-9]*' | sort -V | tail -n 1)
echo "tag=$tag" >>"$GITHUB_OUTPUT"
[ -n "$tag" ] || exit 0

python=.venv/bin/python
url="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"
$python -m tools.model.address --set "$url" --branch "$tag"
$python -m tools.notebooks.sync
BOOK_RELEASE=${tag#v} make book
$python -m tools.site.kept pack _build/html _build/release/site.zip
$python -m tools.model.address --set "$url" --branch "$GITHUB_REF_NAME"
$python -m tools.notebooks.sync
rm -r _build/html _build/built-from.json # the next build shall not take these pages
