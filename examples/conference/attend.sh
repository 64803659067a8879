#!/bin/sh
# What a participant does in the hall: here, it stays until its input ends.
echo "inside with fence $TESTIGO_FENCE"
cat >/dev/null
