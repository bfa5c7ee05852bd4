#!/bin/sh
# Make what the three owners of the study have, each in a folder of its own: made-up patients, a certificate, tokens,
# a key and a configuration. In a real study, each owner runs these commands on a machine of its own, and the owners
# compare the fingerprints of their keys by telephone.
set -eu
study=$1
here=$(dirname "$0")
owners="north east south"
[ ! -e "$study/scientist" ] || exit 0
umask 077
rm -rf "$study/scientist.new"
mkdir -p "$study/scientist.new"

add_token() { # prints the secret, which is the last line
    added=$(syft-core token add "$folder/tokens.json" "$@")
    printf '%s\n' "$added" | tail -n 1
}

make_patients() { # 240 patients: pressure and glucose depend on age, and some values are missing
    awk -v seed="$1" 'BEGIN { srand(seed); print "age,pressure,glucose,outcome"
        for (i = 0; i < 240; i++) {
            age = 20 + int(65 * rand()); pressure = 95 + 0.5 * age + 40 * rand(); glucose = 3.5 + 6 * rand()
            risk = (age - 52) / 19 + (pressure - 141) / 15 + 1.5 * (glucose - 6.5) / 1.7 + rand() - 0.5
            printf "%d,%.1f,%s,%s\n", age, pressure, (i % 12 ? sprintf("%.2f", glucose) : ""), (risk > 0 ? "ill" : "well")
        } }'
}

number=0
for owner in $owners; do
    number=$((number + 1))
    folder=$study/$owner
    rm -rf "$folder"
    mkdir -p "$folder/records" "$folder/store"
    cp "$here/owners/$owner.toml" "$folder/worker.toml"
    make_patients $number >"$folder/patients.csv"
    syft-core certs "$folder/certs" --host "$owner" localhost 127.0.0.1 >/dev/null
    cp "$folder/certs/ca.pem" "$study/scientist.new/$owner.pem"
    add_token --user dana >"$study/scientist.new/$owner.token"
    add_token --user owner --admin >"$folder/owner.token"
    syft-core key --config "$folder/worker.toml" >"$folder/fingerprint"
done
for owner in $owners; do # each owner writes down the fingerprints that the others have told
    printf '\n[members]\n' >>"$study/$owner/worker.toml"
    for other in $owners; do
        printf '%s = "%s"\n' "$other" "$(cat "$study/$other/fingerprint")" >>"$study/$owner/worker.toml"
    done
done
mv "$study/scientist.new" "$study/scientist"
