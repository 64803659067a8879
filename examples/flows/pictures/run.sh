#!/bin/sh
# Three pictures and a broken one through the pipeline: what is left is an archive of edges, and a reject queue of one.
set -eu
here=$(dirname "$(realpath "$0")")
. "$here/../node.sh"
testigo flow apply pictures "$here/pictures.flow"

archive=${ARCHIVE:-$folder/archive}
mkdir -p "$archive"
cd "$folder"
for size in 16 32 64; do
    python3 "$here/paint.py" $size disc-$size.ppm
    testigo job create pictures/scanned --data disc-$size.ppm
done > ids
head -c 100 disc-16.ppm > torn.ppm
testigo job create pictures/scanned --data torn.ppm > ids

testigo work pictures grey --files --jobs 2 --drain --quiet -- python3 "$here/grey.py" {in} {out} || true
testigo work pictures edges --files --jobs 2 --drain --quiet -- python3 "$here/edges.py" {in} {out}
testigo work pictures archive --files --drain --quiet -- sh -c 'cp "$TESTIGO_IN" "$1/$TESTIGO_JOB_NAME.pgm"' archive "$archive"

for picture in "$archive"/*; do
    echo "$(basename "$picture"): $(wc -c < "$picture") bytes"
done
echo "left in the queues' directories: $(ls scanned grey edged | grep -c disc)"
testigo job list pictures/broken
# Its file goes with this folder.
testigo job delete --find torn.ppm --in pictures/broken --yes > ids
