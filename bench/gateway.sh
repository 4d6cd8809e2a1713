#!/usr/bin/env bash
# What one second of one session costs the gateway: the reference's (Python, mock workers), then ours (stub_server, whose engine answers
# at once), with the same client on the same machine. Prints one line each; JSON lines go to build/release/gateway.jsonl.
#   bench/gateway.sh REFERENCE_CHECKOUT [sessions…]        (20 100 200)
# REFERENCE_CHECKOUT: github.com/OpenBMB/MiniCPM-o-Demo. PYTHON needs websockets, and for the reference fastapi, uvicorn, httpx, pydantic,
# python-multipart, numpy. UVLOOP=folder with uvloop: also the reference with uvloop and without compression.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
reference=$(realpath "${1:?the checkout of the reference}")
shift
sessions=("$@")
[ $# -gt 0 ] || sessions=(20 100 200)
python=${PYTHON:-python3}
out=$PWD/build/release/gateway.jsonl
client=bench/reference_gateway/bench_reference.py
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -f "$out"

of_reference() { # label, number of sessions
  REF_DIR=$reference WORK=$scratch PY=$python PORT=8796 bench/reference_gateway/run_reference.sh "$2" -- bash -c \
    "'$python' $client --url \$GW_URL --dialect duplex --mode audio --server-pid \$GW_PID --worker-pid \$FARM_PID --sessions $2 --label '$1' --out '$out'" \
    2>&1 >/dev/null | grep rtt
}
of_ours() { # label, number of sessions, arguments of stub_server…
  local label=$1 number=$2 server
  shift 2
  build/release/stub_server server.port=8797 limits.connections=12000 log.level=warn "$@" >"$scratch/ready" 2>"$scratch/log" &
  server=$!
  until grep -q ready "$scratch/ready"; do kill -0 "$server"; sleep 0.1; done
  "$python" $client --url ws://127.0.0.1:8797 --dialect realtime --mode video --jpeg-file tests/data/pictures/frame.jpg \
    --server-pid "$server" --sessions "$number" --label "$label" --out "$out" 2>&1 >/dev/null | grep rtt
  kill "$server"
  wait "$server"
}

for n in "${sessions[@]}"; do
  of_reference reference "$n"
  of_ours parley-listen "$n"
  of_ours parley-speak "$n" speak
done
if [ -n "${UVLOOP:-}" ]; then
  export GW_PYTHONPATH=$UVLOOP FARM_ARGS="--compression none"
  for n in "${sessions[@]}"; do of_reference reference-uvloop-plain "$n"; done
fi
