#!/usr/bin/env python3
"""Agents of other people, unmodified: each looks up a line in a long log that its own tool prints, once at the scripted
upstream itself and once through the gateway, which condenses the log, so that the model has to read the line back.
What the agent shows its user must be the same. Then each is asked while the upstream fails: errors, retries and what a user who leaves has seen must
be the same, and the upstream must get as many requests.

    matrix.py UPSTREAM GATEWAY RECORD NODE      # NODE: a Node.js that the agents run on
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

UPSTREAM, GATEWAY, RECORD, NODE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
HERE = pathlib.Path(__file__).parent
ANSWER = "The log says: crate 187 stands in row 0, weighs 542 kg and was last seen on day 1"
MODULES = os.environ["NODE_MODULES_HOME"] + "/node_modules"
AGENTS = {
    "AI SDK": [NODE, "ai_sdk.mjs"],
    "agents SDK": [sys.executable, "agents_sdk.py"],
    "pydantic-ai": [sys.executable, "pydantic_ai_agents.py"],
    "Claude Code": [sys.executable, "coding_agents.py", "claude", MODULES],
    "Codex": [sys.executable, "coding_agents.py", "codex", MODULES],
}
FAILING = {
    "SDKs": [sys.executable, "sdk_faults.py"],
    "AI SDK": AGENTS["AI SDK"],
    "Claude Code": AGENTS["Claude Code"],
    "Codex": AGENTS["Codex"],
}


def differences(direct, larder, path=""):
    """Where two reports differ, as paths with both values."""
    if isinstance(direct, dict) and isinstance(larder, dict):
        for key in {**direct, **larder}:
            yield from differences(direct.get(key), larder.get(key), f"{path}.{key}")
    elif isinstance(direct, list) and isinstance(larder, list) and len(direct) == len(larder):
        for at, pair in enumerate(zip(direct, larder)):
            yield from differences(*pair, f"{path}[{at}]")
    elif direct != larder:
        yield path[1:], direct, larder


def is_id_of_the_continuation(direct, larder):
    """A whole reply has the id of the last one that it is made of, which a later request may refer to."""
    ids = [re.fullmatch(r"(chatcmpl-|resp_|msg_)(\d)", str(id)) for id in (direct, larder)]
    return all(ids) and ids[0][1] == ids[1][1] and [ids[0][2], ids[1][2]] == ["2", "3"]


def is_usage_of_both(path, direct, larder):
    """The answer cost two replies in place of one, and everything three in place of two. The upstream charges ten tokens
    more for each further prompt."""
    if path.endswith(".iterations"):
        # Claude Code takes the size of the window from the last.
        return not direct and [one["input_tokens"] for one in larder] == [20, 30]
    is_usage = "usage" in path.lower() and isinstance(direct, int)
    return is_usage and (larder - 2 * direct in (0, 10) or 2 * larder == 3 * direct)


def is_end_of_a_cut_stream(path, larder):
    """Where a stream breaks off, the gateway ends it with an error of its format. What is shown of that differs from what
    is shown of a broken connection, but it must be an error, or the agent's next attempt must bring the same answer."""
    way = path.split(".cut")[0] if ".cut" in path else None
    if path.startswith("cut."):
        return not path.endswith(".text") and larder["cut"]["text"] == "Hello from upstream."
    return way is not None and "rror" in json.dumps(larder[way]["cut"])


def requests():
    """The bodies that the upstream has got."""
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["body"] for line in lines]


def run(command, base, *more):
    """What an agent reports, per way of asking it, and the number of requests that the upstream got."""
    before = len(requests())
    env = {**os.environ, "UPSTREAM_RECORD": str(RECORD)}
    done = subprocess.run([*command, base, *more], cwd=HERE, capture_output=True, text=True, timeout=120, env=env)
    if done.returncode:
        raise RuntimeError(f"{command[-1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    wait_until_noticed(before)
    return json.loads(done.stdout), requests()[before:]


def wait_until_noticed(before):
    """Returns when the upstream has noticed every user who left."""
    for _ in range(200):
        bodies = requests()[before:]
        if sum("left" in body for body in bodies) == sum("fault wait" in json.dumps(body) for body in bodies):
            return
        time.sleep(0.05)


def compare(name, command):
    direct, asked = run(command, UPSTREAM)
    larder, through = run(command, GATEWAY)
    wrong, charged = [], set()
    for path, before, after in differences(direct, larder):
        if is_usage_of_both(path, before, after):
            charged.add(path.split(".")[0])
        elif not is_id_of_the_continuation(before, after):
            wrong.append(f"{path}: {json.dumps(after)[:300]} instead of {json.dumps(before)[:300]}")
    wrong += [f"{way}: what was read back is not in its usage" for way in direct if way not in charged]
    wrong += [f"{way}: it says {report['text']!r}" for way, report in larder.items() if report["text"] != ANSWER]
    back = [body for body in through if "call_back" in json.dumps(body)]
    if len(back) != len(direct) or len(through) - len(back) != len(asked):
        wrong.append(f"{len(through)} requests, {len(back)} after reading back, instead of {len(asked)} and {len(direct)}")
    return [f"{name}, {line}" for line in wrong], list(direct)


def compare_faults(name, command):
    direct, asked = run(command, UPSTREAM, "faults")
    larder, through = run(command, GATEWAY, "faults")
    wrong = [
        f"{path}: {json.dumps(after)[:300]} instead of {json.dumps(before)[:300]}"
        for path, before, after in differences(direct, larder)
        if not is_end_of_a_cut_stream(path, larder)
    ]
    left = [[body["left"] for body in bodies if "left" in body] for bodies in (asked, through)]
    if len(asked) != len(through) or left[0] != left[1] or not all(left[0]):
        wrong.append(f"{len(through)} requests instead of {len(asked)}, left by the client: {left[1]} instead of {left[0]}")
    return [f"{name}, {line}" for line in wrong], list(direct)


if __name__ == "__main__":
    failed = 0
    checks = [(name, compare, command) for name, command in AGENTS.items()]
    checks += [(f"{name} with faults", compare_faults, command) for name, command in FAILING.items()]
    for name, check, command in checks:
        began = time.monotonic()
        try:
            wrong, ways = check(name, command)
        except Exception as error:  # noqa: BLE001: every agent reports
            wrong, ways = [f"{name}: {type(error).__name__}: {error}"], []
        failed += len(wrong)
        print(f"{'FAILED' if wrong else 'ok':7} {name}: {', '.join(ways)} ({time.monotonic() - began:.1f} s)")
        for line in wrong:
            print("          " + line)
    sys.exit(1 if failed else 0)
