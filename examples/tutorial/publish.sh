#!/bin/sh
# Publishes a version of a site, which is the file `site.txt`, and refuses to do so with a stale fence.
# Run it under a lock: testigo lock site -- examples/tutorial/publish.sh VERSION [SECONDS OF PREPARATION]
set -eu
version=$1
if [ "${2:-0}" -gt 0 ]; then
    echo "preparing $version"
    sleep "$2"
fi
testigo guard site.fence "$TESTIGO_FENCE" -- sh -c 'echo "$1" > site.txt' write "$version"
echo "published $version with fence $TESTIGO_FENCE"
