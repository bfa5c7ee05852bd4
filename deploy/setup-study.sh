#!/bin/sh
# Make certificates, tokens, configurations and made-up data for the study of compose.yaml in a folder, once.
set -eu
study=$1
workers="north south west provider"
[ ! -e "$study/client" ] || exit 0
umask 077
rm -rf "$study/authority" "$study/client.new"
mkdir -p "$study/client.new"

add_token() { # prints the secret, which is the last line
    added=$(syft-core token add "$folder/access/tokens.json" "$@")
    printf '%s\n' "$added" | tail -n 1
}

number=0
for worker in $workers; do
    number=$((number + 1))
    folder=$study/$worker
    rm -rf "$folder"
    mkdir -p "$folder/access" "$folder/data" "$folder/records"
    syft-core certs "$study/authority" --host "$worker" localhost 127.0.0.1 >/dev/null
    mv "$study/authority/server.pem" "$study/authority/server.key" "$folder/access"
    cp "$study/authority/ca.pem" "$folder/access"
    add_token --user ana >"$study/client.new/$worker-ana.token"
    add_token --user owner --admin >"$study/client.new/$worker-owner.token"
    {
        echo "id = \"$worker\""
        echo 'host = "0.0.0.0"'
        echo 'port = 8777'
        echo 'token_file = "access/tokens.json"'
        echo 'cert = "access/server.pem"'
        echo 'key = "access/server.key"'
        echo 'ledger = "records/ledger.jsonl"'
        echo 'store = "store"'
        echo "trusted = [$(for other in $workers; do [ "$other" = "$worker" ] || printf '"%s", ' "$other"; done)]"
        if [ "$worker" != provider ]; then
            echo 'page_port = 8778'
            echo 'data = ["data/patients.csv#patients:private="]'
        fi
        for other in $workers; do
            [ "$other" = "$worker" ] || printf '[peers.%s]\nurl = "wss://%s:8777"\nca = "access/ca.pem"\n' "$other" "$other"
        done
    } >"$folder/worker.toml"
    awk -v seed="$number" 'BEGIN { srand(seed); print "age,dose"
        for (i = 0; i < 50; i++) { age = 20 + int(60 * rand()); print age "," 2 * age + 1 } }' >"$folder/data/patients.csv"
done

cp "$study/authority/ca.pem" "$study/client.new"
mv "$study/client.new" "$study/client"
