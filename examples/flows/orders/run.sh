#!/bin/sh
# Three orders: one is good, one needs rework, and one breaks the check until a clerk has seen to it.
set -eu
here=$(dirname "$(realpath "$0")")
. "$here/../node.sh"
testigo flow apply orders "$here/orders.flow"

testigo job create orders/orders "3 apples" --name good > "$folder/ids"
testigo job create orders/orders "some pears" --name vague > "$folder/ids"
testigo job create orders/orders "" --name empty > "$folder/ids"

check() { testigo work orders check --drain --quiet --exit 0=checked --exit 3=rework -- "$here/check.sh" || true; }
check
testigo work orders mend --drain --quiet -- sed 's/^[a-z]*/1/'
check
echo "rejected: $(testigo job count orders/failed)"
testigo work orders clerk --drain --quiet -- echo "2 melons"
check
testigo work orders ship --drain --quiet -- sed 's/^/shipped /'
