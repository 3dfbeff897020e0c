#!/usr/bin/env bash
# Runs the contract of the documents over an S3 server that others wrote: moto from PyPI, installed once into
# ~/.cache/larder.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../../.." && pwd)
cache=${LARDER_TEST_CACHE:-$HOME/.cache/larder}
port=${LARDER_TEST_S3_PORT:-8014}
mkdir -p "$cache"

if [ ! -x "$cache/moto/bin/moto_server" ]; then
    python3 -m venv "$cache/moto"
    "$cache/moto/bin/pip" install --quiet 'moto[server]'
fi

export AWS_ACCESS_KEY_ID=larder AWS_SECRET_ACCESS_KEY=larder-secret AWS_REGION=us-east-1
export AWS_ENDPOINT="http://127.0.0.1:$port" AWS_ALLOW_HTTP=true
"$cache/moto/bin/moto_server" -H 127.0.0.1 -p "$port" >/dev/null 2>&1 &
server=$!
trap 'kill "$server"' EXIT

for _ in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 0.1
done
curl --silent --fail --request PUT "$AWS_ENDPOINT/larder" >/dev/null

cd "$root"
# Of all crates, so that what the other checks have built is used again.
LARDER_TEST_S3=s3://larder cargo test --release --workspace --locked --test documents "$@"
