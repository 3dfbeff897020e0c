#!/usr/bin/env bash
# Drives the dashboard in a real browser, headless, while a client talks through the gateway to a scripted provider:
# live totals, windows, badges, sessions, runs, documents of turns, costs, interventions, policy; by keyboard and by ear (axe-core), by day
# and by night, from 360 pixels to 4K. Then breaks the pages on their way to the browser, one thing at a time, and
# demands that each is noticed. Needs Python 3, node with npm, Chromium, and a release build of `larder`; where npm or
# Chromium is missing it says so and does nothing. Everything but the installation stays on the loopback address.
#
# usage: tests/dashboard/run.sh [--pictures DIR] [--only NAME] [LARDER]
#     LARDER          the program [default: ${CARGO_TARGET_DIR:-target}/release/larder]
#     --pictures DIR  takes the pictures of the guide instead
#     --only NAME     only checks whose name holds NAME
#
# CHROMIUM   the browser [default: chromium, as Debian calls it]
# ASSETS     a folder whose style/*.css and script.js the browser gets instead of the program's, to try changes
# LARDER_CORPORA  where evals/README.md puts its texts: the book is War and Peace then, else a made one
# NO_PROOFS  when set, nothing is broken; VERBOSE: says what noticed each breakage
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

larder='' flags=()
while (($#)); do
    case $1 in
    --pictures) flags+=(--pictures "$(realpath -m "$2")") && shift 2 ;;
    --only) flags+=(--only "$2") && shift 2 ;;
    *) larder=$1 && shift ;;
    esac
done
skip() {
    echo "skipped: $1"
    exit 0
}
command -v npm >/dev/null || skip "npm is not installed"
CHROMIUM=$(command -v "${CHROMIUM:-chromium}") || skip "chromium is not installed"
target=$(cd "$here/../.." && realpath -m "${CARGO_TARGET_DIR:-target}")
LARDER=$(realpath "${larder:-$target/release/larder}")
if [[ -n ${ASSETS:-} ]]; then ASSETS=$(realpath "$ASSETS"); fi
cd "$here"

playwright=1.65.1 axe=4.14.1
NODE_MODULES_HOME=$target/dashboard/node-$playwright-$axe
if [[ ! -e $NODE_MODULES_HOME/ready ]]; then
    mkdir -p "$NODE_MODULES_HOME"
    echo '{"private": true}' >"$NODE_MODULES_HOME/package.json"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$NODE_MODULES_HOME" \
        "playwright-core@$playwright" "axe-core@$axe"
    touch "$NODE_MODULES_HOME/ready"
fi

scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
source ../loopback.sh

upstream=$(port) gateway=$(port)
record=$scratch/record.jsonl
touch "$record"
PROJECT=$scratch/project LARDER_HOME=$scratch/home
cp -r project "$PROJECT"
sed "s/UPSTREAM/$upstream/" larder.toml >"$PROJECT/larder.toml"
mkdir "$PROJECT/conversations"
sed 's/^name: mediation/name: family/; s/^  most: 2/  most: 3/' \
    ../../cookbook/conversations/mediation.yaml >"$PROJECT/conversations/family.yaml"
node --input-type=module -e '
import { writeFileSync } from "node:fs";
const say = await import(process.argv[1]);
writeFileSync(`${process.argv[2]}/answers.json`, JSON.stringify(say.ANSWERS));
writeFileSync(`${process.argv[2]}/turn.json`, JSON.stringify(say.turn).replaceAll("UPSTREAM", process.argv[3]));
writeFileSync(`${process.argv[2]}/project/import.log`, say.incident.log);
writeFileSync(`${process.argv[2]}/project/notes.md`, say.incident.notes);
' "$here/scenario.mjs" "$scratch" "$upstream"
python3 upstream.py "$upstream" "$record" "$scratch/answers.json" "$scratch/turn.json" >"$scratch/upstream.log" 2>&1 &
wait_for "$upstream"
export LARDER LARDER_HOME PROJECT CHROMIUM NODE_MODULES_HOME UPSTREAM=http://127.0.0.1:$upstream
if [[ -n ${ASSETS:-} ]]; then export ASSETS; fi
(cd "$PROJECT" && exec "$LARDER" serve --listen "127.0.0.1:$gateway") >"$scratch/gateway.log" 2>&1 &
wait_for "$gateway"

failed=0
node dashboard.mjs "http://127.0.0.1:$gateway" "$record" "${flags[@]}" || failed=1
if ((failed)); then tail -n 40 "$scratch/gateway.log" "$scratch/upstream.log" >&2; fi
exit "$failed"
