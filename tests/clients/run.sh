#!/usr/bin/env bash
# Holds the gateway to the clients that people use, unmodified: openai and anthropic from PyPI and npm, and requests
# that such clients were recorded sending. Needs Python 3 with pip, node with npm, and a release build of `larder`.
# Everything stays on the loopback address.
#
# usage: tests/clients/run.sh [LARDER]      # the program [default: ${CARGO_TARGET_DIR:-target}/release/larder]
#
# LARDER_CORPORA: the folder with clients/*.jsonl, the recorded requests; without it they are skipped
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
larder=$(realpath "${1:-$target/release/larder}")
home=$target/clients
openai_python=3.54.0 anthropic_python=2.12.0 openai_node=6.49.0 anthropic_node=1.12.0

if [[ ! -e $home/python/ready-$openai_python-$anthropic_python ]]; then
    python3 -m venv "$home/python"
    "$home/python/bin/pip" install --quiet --disable-pip-version-check \
        "openai==$openai_python" "anthropic==$anthropic_python"
    touch "$home/python/ready-$openai_python-$anthropic_python"
fi
if [[ ! -e $home/node/ready-$openai_node-$anthropic_node ]]; then
    mkdir -p "$home/node"
    echo '{"private": true}' >"$home/node/package.json"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$home/node" \
        "openai@$openai_node" "@anthropic-ai/sdk@$anthropic_node"
    touch "$home/node/ready-$openai_node-$anthropic_node"
fi

scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
source ../loopback.sh

upstream=$(port) gateway=$(port)
record=$scratch/record.jsonl
touch "$record"
python3 upstream.py "$upstream" "$record" >"$scratch/upstream.log" 2>&1 &
wait_for "$upstream"
mkdir "$scratch/project"
sed "s/UPSTREAM/$upstream/" larder.toml >"$scratch/project/larder.toml"
(cd "$scratch/project" && LARDER_HOME=$scratch/home exec "$larder" serve --listen "127.0.0.1:$gateway") \
    >"$scratch/gateway.log" 2>&1 &
wait_for "$gateway"

failed=0
"$home/python/bin/python" python_clients.py "http://127.0.0.1:$gateway" "$record" || failed=1
NODE_MODULES_HOME=$home/node node node_clients.mjs "http://127.0.0.1:$gateway" "$record" || failed=1
if [[ -n ${LARDER_CORPORA:-} ]]; then
    python3 replay.py "http://127.0.0.1:$gateway" "$record" "$LARDER_CORPORA/clients" || failed=1
else
    echo "skipped: recorded requests (LARDER_CORPORA names no folder)"
fi
if ((failed)); then tail -n 40 "$scratch/gateway.log" >&2; fi
exit "$failed"
