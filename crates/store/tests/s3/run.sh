#!/usr/bin/env bash
# Runs the contract of the documents over a real S3 server: s3s-fs from crates.io, installed once into ~/.cache/larder, or
# moto from PyPI where that does not build.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../../.." && pwd)
cache=${LARDER_TEST_CACHE:-$HOME/.cache/larder}
port=${LARDER_TEST_S3_PORT:-8014}
data=$(mktemp -d)
mkdir -p "$cache"

if [ ! -x "$cache/bin/s3s-fs" ] && [ ! -x "$cache/moto/bin/moto_server" ]; then
    cargo install s3s-fs --debug --version 0.14.1 --features binary --root "$cache" --locked ||
        { python3 -m venv "$cache/moto" && "$cache/moto/bin/pip" install --quiet 'moto[server]'; }
fi

export AWS_ACCESS_KEY_ID=larder AWS_SECRET_ACCESS_KEY=larder-secret AWS_REGION=us-east-1
export AWS_ENDPOINT="http://127.0.0.1:$port" AWS_ALLOW_HTTP=true
mkdir "$data/larder"
if [ -x "$cache/bin/s3s-fs" ]; then
    "$cache/bin/s3s-fs" --host 127.0.0.1 --port "$port" \
        --access-key "$AWS_ACCESS_KEY_ID" --secret-key "$AWS_SECRET_ACCESS_KEY" "$data" &
else
    "$cache/moto/bin/moto_server" -H 127.0.0.1 -p "$port" &
fi
server=$!
trap 'kill "$server"; rm -rf "$data"' EXIT

for _ in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 0.1
done
if [ ! -x "$cache/bin/s3s-fs" ]; then
    curl --silent --fail --request PUT "$AWS_ENDPOINT/larder" >/dev/null
fi

cd "$root"
LARDER_TEST_S3=s3://larder cargo test -p larder-store --test documents "$@"
