#!/bin/sh
# Writes FILE as a comment of a pull request, in place of the one that an earlier
# gate wrote: that one begins with the same line.
#   REPOSITORY=owner/name PULL_REQUEST=7 sh comment.sh FILE
set -eu
file=$1
[ -s "$file" ] || exit 0
marker=$(head -n 1 "$file")
comments="repos/$REPOSITORY/issues/$PULL_REQUEST/comments"
id=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$marker\")) | .id" | head -n 1)
if [ -n "$id" ]; then
  gh api --method PATCH "repos/$REPOSITORY/issues/comments/$id" --field "body=@$file"
else
  gh api --method POST "$comments" --field "body=@$file"
fi
