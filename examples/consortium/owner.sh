#!/bin/sh
# What an owner may do on the page of the worker, from a terminal: look at the open request, and approve the study.
#   sh owner.sh study north 8777
set -eu
study=$1 owner=$2 port=$3
desk="--url wss://127.0.0.1:$port --ca $study/scientist/$owner.pem --token-from $study/$owner/owner.token"
request=$(syft-core requests list $desk --state open --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
syft-core requests show "$request" $desk
syft-core requests approve "$request" $desk
