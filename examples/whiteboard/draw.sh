#!/bin/sh
# Draws one line on the board, which is a file; the fence says which turn of the board it belongs to.
echo "$TESTIGO_FENCE $1" >>"${BOARD:-board.txt}"
echo "drawn"
cat >/dev/null
