#!/bin/sh
# Announces the address that this process has, until its input ends or it is stopped.
set -eu
if [ -n "${DEVICE:-}" ]; then
    ip address add "$TESTIGO_SLOT/32" dev "$DEVICE"
    trap 'ip address del "$TESTIGO_SLOT/32" dev "$DEVICE"' EXIT
    ip -oneline address show dev "$DEVICE" | grep -F "$TESTIGO_SLOT/32"
fi
echo "announcing $TESTIGO_SLOT with fence $TESTIGO_FENCE"
cat >/dev/null
