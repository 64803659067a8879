#!/bin/sh
# A service on a port of its own: here, it serves nobody and stays until its input ends.
#
#     ./serve.sh NAME
set -eu
echo "$1 serves on port $((20000 + TESTIGO_SLOT)) with fence $TESTIGO_FENCE"
cat >/dev/null
