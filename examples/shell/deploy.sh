#!/bin/sh
# A lock with nothing but redis-cli. The session outlives each connection; it may be silent for 30 s.
#
#     ./deploy.sh [PORT]
set -eu
cli="redis-cli -p ${1:-7600}"

session=$($cli SESSION OPEN TTL 30000 LABEL deploy.sh)
close() {
    printf 'SESSION RESUME %s\nSESSION CLOSE\n' "$session" | $cli >/dev/null
}
trap close EXIT

fence=$(printf 'SESSION RESUME %s\nLOCK deploy WAIT 10000 REASON release-7\n' "$session" | $cli | tail -n 1)
[ -n "$fence" ] || { echo "the wait ended"; exit 75; }

echo "inside with fence $fence"
echo "the node agrees: $($cli FENCE CHECK deploy "$fence")"
