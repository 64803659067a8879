#!/bin/sh
# The scheme with all its processes running at once: 12 jobs in by four queues, 12 lines out.
set -eu
here=$(dirname "$(realpath "$0")")
. "$here/../node.sh"
testigo flow apply scheme "$here/scheme.flow"

mkfifo "$folder/out"
head -n 12 "$folder/out" &
printed=$!
work() {
    testigo work scheme "$@" &
    pids="$pids $!"
}
work p2 --quiet --jobs 2 -- "$here/step.sh"
work p3 --quiet --jobs 2 --exit 0=c5 --exit 8=c8 -- "$here/step.sh"
work p4 --quiet --exit 0=c5 --exit 3=c3 --exit 6=c6 -- "$here/step.sh"
work p5 --quiet -- "$here/step.sh" > "$folder/out"
work p6 --quiet -- "$here/step.sh" > "$folder/out"

for number in 1 2 3; do
    testigo job create scheme/c1 "long-$number: p1"
    testigo job create scheme/c2 "short-$number: p1"
    testigo job create scheme/c3 "loop-$number: p1"
    testigo job create scheme/c4 "other-$number: p1"
done > "$folder/ids"
wait $printed
