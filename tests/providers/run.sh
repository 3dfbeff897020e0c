#!/usr/bin/env bash
# Holds the providers to a mock server that others wrote (npm package @copilotkit/aimock): our reading of the wire
# formats against theirs. Needs node; everything else stays on the loopback address.
# (`--workspace` builds with the features of all other tests, so nothing is compiled twice.)
#
# usage: tests/providers/run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

version=1.43.0
home="${CARGO_TARGET_DIR:-target}/aimock-$version"
if [[ ! -x "$home/node_modules/.bin/llmock" ]]; then
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$home" "@copilotkit/aimock@$version"
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$home/node_modules/.bin/llmock" --port "$port" --fixtures tests/providers/fixtures.json --chunk-size 5 \
    --log-level warn &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 0.1
done

LARDER_TEST_AIMOCK="http://127.0.0.1:$port" cargo test --release --workspace --locked --test aimock -- --ignored "$@"
