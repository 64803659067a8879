#!/bin/sh
# Announces the address that this process has, until its input ends or it is stopped.
set -eu
if [ -n "${DEVICE:-}" ]; then
    ip address add "$TESTIGO_SLOT/32" dev "$DEVICE"
    trap 'ip address del "$TESTIGO_SLOT/32" dev "$DEVICE"' EXIT
    # Not every shell runs that when it dies of a signal, so it ends by itself.
    trap 'exit 143' HUP INT TERM
    ip -oneline address show dev "$DEVICE" | grep -F "$TESTIGO_SLOT/32"
fi
echo "announcing $TESTIGO_SLOT with fence $TESTIGO_FENCE"
# `read` and not `cat`: a shell runs its traps only when a program that it waits for has ended.
while read -r _; do :; done
