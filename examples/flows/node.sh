# For the examples to read in: a node, unless $TESTIGO_RESP names one, and a folder that goes with the script.
folder=$(mktemp -d)
pids=
trap '[ -z "$pids" ] || kill $pids || true; wait; rm -rf "$folder"' EXIT
if [ -z "${TESTIGO_RESP:-}" ]; then
    mkfifo "$folder/said"
    testigo up --resp 127.0.0.1:0 --http 127.0.0.1:0 --data "$folder/data" > "$folder/said" &
    pids=$!
    while read -r line; do
        case $line in
            "RESP on "*) export TESTIGO_RESP="${line#RESP on }" ;;
            ready) break ;;
        esac
    done < "$folder/said"
fi
