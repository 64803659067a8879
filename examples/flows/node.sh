# For the examples to read in: a node, unless $TESTIGO_RESP names one, and a folder that goes with the script.
folder=$(mktemp -d)
pids=
node=
# First who works, who may have something to say to the node yet.
trap '[ -z "$pids" ] || { kill $pids; wait $pids; } || true; [ -z "$node" ] || kill $node; wait; rm -rf "$folder"' EXIT
if [ -z "${TESTIGO_RESP:-}" ]; then
    mkfifo "$folder/said"
    testigo up --resp 127.0.0.1:0 --http 127.0.0.1:0 --data "$folder/data" > "$folder/said" &
    node=$!
    while read -r line; do
        case $line in
            "RESP on "*) export TESTIGO_RESP="${line#RESP on }" ;;
            ready) break ;;
        esac
    done < "$folder/said"
fi
