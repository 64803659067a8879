#!/bin/sh
# Inspects a part, which is one line of text: 0 it is good, 3 it is bent, anything else and the inspection itself broke.
# It breaks at glass, unless it is called with --gently.
read -r part
case "$part $*" in
    glass*" --gently") ;;
    glass*) echo "the gauge broke at $part" >&2; exit 1 ;;
    bent-*) code=3 ;;
esac
echo "$part"
exit "${code:-0}"
