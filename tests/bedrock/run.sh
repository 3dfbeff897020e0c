#!/usr/bin/env bash
# Holds Larder to Amazon's own code, as a client of Bedrock and as a gateway in front of it: botocore verifies its
# signatures and reads its streams, boto3 and an agent of Strands go through the gateway. Versions are pinned in
# requirements.txt. Needs Python 3 with pip and a release build of `larder`; what signs is checked only if that was built
# with the feature `bedrock`. Everything stays on the loopback address.
#
# usage: tests/bedrock/run.sh [LARDER [signs]]      # the program [default: ${CARGO_TARGET_DIR:-target}/release/larder];
#                                                   # `signs`: fail if it cannot sign
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
larder=$(realpath "${1:-$target/release/larder}")
home=${XDG_CACHE_HOME:-$HOME/.cache}/larder/clients

# Installed again when what is pinned changes.
python=$home/bedrock-$(sha256sum requirements.txt | cut -c1-12)
if [[ ! -e $python/ready ]]; then
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement requirements.txt
    touch "$python/ready"
fi

scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
source ../loopback.sh

for name in $(compgen -e AWS_ || true); do unset "$name"; done
upstream=$(port)
touch "$scratch/record.jsonl"
"$python/bin/python" upstream.py "$upstream" "$scratch/record.jsonl" >"$scratch/upstream.log" 2>&1 &
wait_for "$upstream"
if ! "$python/bin/python" check.py "$larder" "http://127.0.0.1:$upstream" "$scratch/record.jsonl" "$scratch" ${2:+"$2"}; then
    tail -n 40 "$scratch"/*.log >&2
    exit 1
fi
