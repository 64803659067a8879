#!/bin/sh
# Runs the tests on every machine that this run has; fails if one of them does.
set -eu
for machine in $TESTIGO_SLOT; do
    ${REMOTE:-echo} "$machine" make check
done
