#!/usr/bin/env python3
"""Claude Code and Codex, as their packages ship them: they look up a line in a log by running a command. Prints what
their user sees, but for what is new in each run: times, ids of sessions, folders. With a fault, they are asked while
the upstream fails.

    coding_agents.py claude|codex NODE_MODULES BASE [faults]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from crates import LOG, UUID, fault, runs

CLAUDE = "@anthropic-ai/claude-code-linux-x64/claude"
CODEX = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
CODEX_CONFIG = """
model = "gpt-5.2"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{base}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
# What is new in each run, or depends on how long it took or on the machine.
NEW = {"uuid", "session_id", "thread_id", "timestamp", "messaging_socket_path", "memory_paths", "total_cost_usd", "costUSD"}
FAULT_KEY = re.compile(UUID)
TIME = re.compile(r".*(_ms|Ms|_at|_time|duration)$")


def without_new(value):
    if isinstance(value, dict):
        return {k: without_new(v) for k, v in value.items() if k not in NEW and not TIME.fullmatch(k)}
    return [without_new(one) for one in value] if isinstance(value, list) else value


def started(question):
    """Waits until the upstream has the request, for a user who leaves then."""
    name = FAULT_KEY.search(question)[0]
    for _ in range(1_000):
        if name in pathlib.Path(os.environ["UPSTREAM_RECORD"]).read_text(encoding="utf-8"):
            return
        time.sleep(0.05)
    raise TimeoutError("the upstream got no request")


def run(command, home, leaves=None, **variables):
    """What the agent prints. `leaves`: the question at whose answer the user presses Ctrl-C."""
    (home / "work").mkdir()
    (home / "work" / "crates.log").write_text(LOG + "\n", encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "TMPDIR": str(home), **variables}
    agent = subprocess.Popen(
        command, cwd=home / "work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )
    if leaves:
        started(leaves)
        agent.send_signal(signal.SIGINT)
    try:
        printed = agent.communicate(timeout=100)[0]
    finally:
        agent.kill()
    lines = [json.loads(line) for line in printed.replace(str(home), "HOME").splitlines() if line.startswith("{")]
    if leaves:
        # How much of the answer is printed before depends on the moment.
        lines = [line for line in lines if line["type"] == "result"]
    return [*map(without_new, lines), {"type": "exit", "code": agent.returncode}]


def claude(program, base, home, asked):
    lines = run(
        [
            program, "-p", asked, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash",
            "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--strict-mcp-config",
        ],
        home,
        asked if "fault wait" in asked else None,
        ANTHROPIC_BASE_URL=base,
        ANTHROPIC_AUTH_TOKEN="sk-client",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
    )
    events = [line["event"] for line in lines if line["type"] == "stream_event"]
    result = next((line for line in lines if line["type"] == "result"), {})
    return {
        "text": result.get("result"),
        "events": runs([event["type"] for event in events]),
        "ends": [event for event in events if event["type"] == "message_delta"],
        "lines": [line for line in lines if line["type"] != "stream_event"],
    }


def codex(program, base, home, asked):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX_CONFIG.format(base=base), encoding="utf-8")
    lines = run(
        [
            program, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            asked,
        ],
        home,
        asked if "fault wait" in asked else None,
        OPENAI_API_KEY="sk-client",
    )
    said = [line["item"]["text"] for line in lines if line.get("item", {}).get("type") == "agent_message"]
    return {"text": said[-1] if said else None, "lines": lines}


AGENTS = {
    "claude": (claude, CLAUDE, {"name": "Bash", "arguments": {"command": "cat crates.log", "description": "Reads"}}),
    # Of a model that it does not know it shows 10,000 bytes of output.
    "codex": (codex, CODEX, {"name": "exec_command", "arguments": {"cmd": "sed -n 100,235p crates.log"}}),
}
FAULTS = {"retried": (429, 1), "overloaded": (529, 1), "refused": (400, 9), "cut": ("cut", 1), "left": ("wait", 1)}

if __name__ == "__main__":
    name, modules, base, *faults = sys.argv[1:]
    ask, program, call = AGENTS[name]
    questions = {kind: fault(*what) for kind, what in FAULTS.items()}
    if not faults:
        questions = {"streamed": f"Look it up: {json.dumps(call)}"}
        if name == "claude":
            # It asks again unstreamed where streaming is not found. Codex always streams.
            questions["unstreamed"] = f"{questions['streamed']} {fault('streaming', 99)}"
    reports = {}
    for kind, question in questions.items():
        with tempfile.TemporaryDirectory() as home:
            report = ask(str(pathlib.Path(modules) / program), base, pathlib.Path(home), question)
            reports[kind] = json.loads(re.sub(UUID, "ID", json.dumps(report)))
    print(json.dumps(reports))
