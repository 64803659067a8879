#!/bin/sh
# A process of the scheme: notes in the body that it was here, and says by its exit code where the job goes.
read -r body
echo "$body $TESTIGO_PROCESS"
case "$TESTIGO_PROCESS $TESTIGO_QUEUE $body" in
    "p4 c4 "*) exit 6 ;;               # what came by c4 leaves by c6
    "p4 c8 loop"*) exit 3 ;;           # once more through c3
    "p3 "*" loop"*" p4"*) exit 0 ;;    # but once only
    "p3 "*" loop"* | "p3 "*" long"*) exit 8 ;;
esac
