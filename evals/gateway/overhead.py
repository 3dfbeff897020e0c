#!/usr/bin/env python3
"""What a gateway costs: processor time and memory per request of Larder, and of other gateways, in one run.

    overhead.py LARDER [--requests N] [--long N] [--tools N] [--peers PYTHON]

LARDER is the release build of `larder`. The upstream is nginx with a fixed reply; the load comes from wrk (Debian has
both: nginx-light, wrk), 8 connections, kept alive. Processor time is user and system time of the gateway's processes
by /proc, over N requests after 200 to warm up. Prompts of 100 bytes come as fast as they are answered, those of 200 kB
at most 400 a second. Every request is the same, so its counts are known after the first.

`--long N` sends N more requests of the small kind to Larder and reports its memory on the way. `--tools N` sends it N
new tool results each of JSON of 1 MB and 5 MB and of a unified diff of 1 MB, every one of which is condensed. By its own
records it reports what that adds to a request, what a second request with the same result costs, and the tokens of a
result: as it came (diff_tokens for diffs, json_tokens for JSON), as it was sent (pointer_tokens), and the difference
(tokens_saved). PYTHON is an interpreter with `tensorzero` and
`litellm[proxy]` installed, or only one of them; without it only nginx and Larder are measured.
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

REPLY = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "mock",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
TICK = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 8
# A model whose tokenizer is known, so that counts are exact. It is in no table: its requests pass to the upstream.
MODEL = "gpt-4o"
# Milliseconds that each connection waits before its next large request.
PAUSE = 20
# How many requests each gateway refused or broke off: there should be none.
FAILED = {}


def small():
    return [{"role": "user", "content": "Say hello, and then say in a few words what the day is like where you are. Thank you!"}]


def large():
    """Some 200 kB in 100 messages of a conversation."""
    words = "the harbour crane lifted crate number {} from the barge and set it down beside the others near gate {}; "
    text = lambda turn: "".join(words.format(turn * 20 + n, (turn * 7 + n) % 97) for n in range(20))
    return [{"role": ("user", "assistant")[turn % 2], "content": text(turn)} for turn in range(99)]


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(number, process, seconds=120):
    for _ in range(seconds * 20):
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", number), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {number}")


def family(pid):
    """A process and all that it started."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found


def cpu_seconds(pid):
    total = 0
    for one in family(pid):
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def memory_mb(pid):
    total = 0
    for one in family(pid):
        try:
            status = pathlib.Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        if found := re.search(r"VmRSS:\s+(\d+) kB", status):
            total += int(found[1])
    return total / 1024


def post_once(url, body, headers):
    host, path = re.match(r"http://([^/]+)(/.*)", url).groups()
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", path, body, {"content-type": "application/json", **headers})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    if reply.status != 200 or b"Hello." not in text:
        sys.exit(f"{url}: {reply.status} {text[:300]!r}")


def load(scratch, url, body, headers, requests, pause=0):
    """Sends about so many requests; gives how many were answered, the median and the 99th percentile in ms."""
    (scratch / "body.json").write_bytes(body)
    lines = ['wrk.method = "POST"', f'local file = io.open("{scratch}/body.json", "rb")', 'wrk.body = file:read("*a")', "file:close()"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in {"content-type": "application/json", **headers}.items()]
    if pause:
        lines += [f"delay = function() return {pause} end"]
    lines += ["done = function(summary, latency, requests)",
              '  io.write(string.format("RESULT %d %d %f %f\\n", summary.requests,',
              "    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout,",
              "    latency:percentile(50) / 1000, latency:percentile(99) / 1000))", "end"]
    (scratch / "load.lua").write_text("\n".join(lines))
    answered, seconds, slow = 0, 2, (0.0, 0.0)
    while answered < requests:
        out = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "-s", str(scratch / "load.lua"), url],
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout
        done, errors, median, late = re.search(r"RESULT (\d+) (\d+) ([\d.]+) ([\d.]+)", out).groups()
        FAILED[url] = FAILED.get(url, 0) + int(errors)
        if 2 * int(errors) > int(done):
            sys.exit(f"{url}: {errors} of {done} requests failed\n{out}")
        answered += int(done)
        slow = (float(median), float(late))
        seconds = max(2, min(60, int((requests - answered) / max(int(done) / seconds, 1)) + 1))
    return answered, slow


class Gateway:
    def __init__(self, name, command, number, url, model, headers=None, env=None, cwd=None, log=None):
        self.name, self.url, self.model, self.headers = name, url, model, headers or {}
        self.process = subprocess.Popen(
            command, env={**os.environ, **(env or {})}, cwd=cwd, stdout=log, stderr=log, start_new_session=True
        )
        wait_for(number, self.process)

    def body(self, messages):
        return json.dumps({"model": self.model, "messages": messages}).encode()

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


def nginx(scratch, number):
    (scratch / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {scratch}/nginx.pid; error_log {scratch}/nginx.log;
events {{ worker_connections 512; }}
http {{
    access_log off; client_body_temp_path {scratch}/body; client_max_body_size 64m; client_body_buffer_size 1m;
    keepalive_requests 1000000000; default_type application/json;
    server {{ listen 127.0.0.1:{number}; location / {{ return 200 '{json.dumps(REPLY)}'; }} }}
}}""")
    url = f"http://127.0.0.1:{number}/v1/chat/completions"
    return Gateway("nginx alone", ["nginx", "-c", str(scratch / "nginx.conf"), "-p", str(scratch)], number, url, "mock")


def larder(scratch, program, upstream, log):
    number = port()
    project = scratch / "project"
    project.mkdir()
    (project / "larder.toml").write_text(f'[gateway]\nopenai = "http://127.0.0.1:{upstream}/v1"\n')
    command = [str(pathlib.Path(program).resolve()), "serve", "--listen", f"127.0.0.1:{number}"]
    env = {"LARDER_HOME": str(scratch / "home")}
    url = f"http://127.0.0.1:{number}/v1/chat/completions"
    return Gateway("Larder", command, number, url, MODEL, {"authorization": "Bearer sk-none"}, env, project, log)


def tensorzero(scratch, python, upstream, log):
    (scratch / "tensorzero.toml").write_text(f"""
[gateway]
observability.enabled = false
[models.mock]
routing = ["mock"]
[models.mock.providers.mock]
type = "openai"
model_name = "mock"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "none"
""")
    (scratch / "start.py").write_text(f"""
import time
from tensorzero.tensorzero import _start_http_gateway
gateway = _start_http_gateway(config_file={str(scratch / 'tensorzero.toml')!r}, clickhouse_url=None, postgres_url=None,
                              valkey_url=None, async_setup=False)
print("PORT", gateway.base_url, flush=True)
while True:
    time.sleep(60)
""")
    out = open(scratch / "tensorzero.out", "w+")
    process = subprocess.Popen([python, str(scratch / "start.py")], stdout=out, stderr=log, start_new_session=True)
    for _ in range(1200):
        out.seek(0)
        if found := re.search(r"PORT (http://[^\s/]+)", out.read()):
            break
        if process.poll() is not None:
            print("tensorzero did not start", file=sys.stderr)
            return None
        time.sleep(0.05)
    gateway = Gateway.__new__(Gateway)
    gateway.name, gateway.process, gateway.headers = "TensorZero", process, {}
    gateway.url, gateway.model = f"{found[1]}/openai/v1/chat/completions", "tensorzero::model_name::mock"
    return gateway


def litellm(scratch, python, upstream, log):
    number, key = port(), "sk-" + secrets.token_hex(24)
    (scratch / "litellm.yaml").write_text(f"""
model_list:
  - model_name: mock
    litellm_params: {{model: openai/mock, api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-none}}
""")
    program = str(pathlib.Path(python).parent / "litellm")
    if not pathlib.Path(program).exists():
        return None
    command = [program, "--config", str(scratch / "litellm.yaml"), "--port", str(number), "--host", "127.0.0.1", "--telemetry", "False"]
    url = f"http://127.0.0.1:{number}/v1/chat/completions"
    env = {"LITELLM_MASTER_KEY": key, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return Gateway("LiteLLM", command, number, url, "mock", {"authorization": f"Bearer {key}"}, env, scratch, log)


def measure(scratch, gateway, requests):
    print(f"{gateway.name:<12}", end="", flush=True)
    for messages, pause in ((small(), 0), (large(), PAUSE)):
        body = gateway.body(messages)
        post_once(gateway.url, body, gateway.headers)
        load(scratch, gateway.url, body, gateway.headers, 200, pause)
        before = cpu_seconds(gateway.process.pid)
        answered, (median, late) = load(scratch, gateway.url, body, gateway.headers, requests, pause)
        time.sleep(1)  # What is written after the reply counts too.
        spent = (cpu_seconds(gateway.process.pid) - before) * 1000 / answered
        print(f" | {spent:7.3f} CPU-ms  p50 {median:6.2f} p99 {late:7.2f} ms", end="", flush=True)
    print(f" | {memory_mb(gateway.process.pid):6.1f} MB")


def records(about, size):
    """A tool result of JSON, of about so many bytes."""
    rows = [{"id": f"{about}-{n}", "path": f"src/module_{n % 89}/file_{n % 613}.rs", "line": n * 7 % 1999, "score": n * 31 % 1000 / 1000,
             "text": f"the crane at gate {n % 97} lifted crate {n * 17 % 10007} from barge {n % 13}", "ok": n % 50 != 0}
            for n in range(size // 170)]
    return json.dumps(rows)


def diff(about, size):
    """A tool result of a unified diff, of about so many bytes."""
    text, length, n = [], 0, 0
    while length < size:
        path = f"src/module_{n % 89}/file_{n}.rs"
        text.append(f"diff --git a/{path} b/{path}\nindex {n * 7919 + 4096:07x}..{n * 104729 + 65536:07x} 100644\n--- a/{path}\n+++ b/{path}\n")
        for at in range(10):
            line = 10 + 40 * at
            text.append(f"@@ -{line},4 +{line + at},5 @@ fn lift_{n}_{at}(gate: u32) -> Crate {{\n"
                        f"     let crate_{at} = barge.take({n * 17 % 10007});\n"
                        f"-    gate.lower(crate_{at}, {line % 97});\n"
                        f"+    // {about}: crates of barge {n % 13} are weighed first.\n"
                        f"+    let weight = scales.weigh(&crate_{at}, {n * 31 % 1000});\n"
                        f"     log.note(\"gate {line % 97} lifted crate {n * line % 10007}\");\n"
                        "     Ok(())\n")
        length += sum(map(len, text[-11:]))
        n += 1
    return "".join(text)


def post(gateway, path, body=None):
    host = re.match(r"http://([^/]+)", gateway.url)[1]
    connection = http.client.HTTPConnection(host, timeout=60)
    headers = {"content-type": "application/json", **gateway.headers} if body else {}
    connection.request("POST" if body else "GET", path, body, headers)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    if reply.status != 200:
        sys.exit(f"{path}: {reply.status} {text[:300]!r}")
    return json.loads(text)


def tools(gateway, count):
    """What condensing a tool result adds to the request that brings it, and to the next one, and what it saves."""
    for kind, make, megabytes, limit in (("JSON", records, 1, 5), ("JSON", records, 5, 25), ("diff", diff, 1, None)):
        first, again = [], []
        for number in range(count):
            about = f"{kind}-{megabytes}-{number}"
            call = {"id": "call_0", "type": "function", "function": {"name": "search", "arguments": "{}"}}
            messages = [{"role": "user", "content": f"Which crates did the crane at gate 12 lift? {about}"},
                        {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_0", "content": make(about, megabytes * 1_000_000)}]
            definition = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
            for at in range(2):
                body = json.dumps({"model": gateway.model, "messages": messages, "tools": [definition]}).encode()
                post(gateway, "/v1/chat/completions", body)
                messages += [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": f"And then? {at}"}]
        for _ in range(40):
            time.sleep(0.25)
            found = post(gateway, f"/api/v1/exchanges?limit={2 * count}")["exchanges"]
            if len(found) == 2 * count and all(one["shape"]["parts"]["condensed"] + one["shape"]["parts"]["pointer"] for one in found):
                break
        else:
            sys.exit(f"not every tool result was condensed: {[one['shape'] for one in found][:2]}")
        # The newest comes first.
        for at, one in enumerate(found):
            times = one["times"]
            (first if at % 2 else again).append((times["policy_us"] / 1000, (times["total_us"] - times["upstream_us"]) / 1000))
        for name, group in (("new", first), ("seen before", again)):
            policy, added = (statistics.median(values) for values in zip(*group))
            goal = f", to be below {limit} ms" if limit and name == "new" else ""
            print(f"  {kind} of {megabytes} MB, {name}: policy and compaction {policy:.2f} ms{goal}; all that was added {added:.2f} ms", flush=True)
        report_tokens(gateway, kind, found)


def report_tokens(gateway, kind, found):
    """The tokens of a result, as it came and as it was sent, by the windows of the requests."""
    came, sent = [], []
    for one in found:
        window = post(gateway, f"/api/v1/exchanges/{one['id']}")["window"]
        part = next(part for part in window if part["role"] == "tool")
        came.append(part["original_tokens"])
        sent.append(part["tokens"])
    came, sent = statistics.median(came), statistics.median(sent)
    print(f"    {kind.lower()}_tokens={came:.0f} pointer_tokens={sent:.0f} tokens_saved={came - sent:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("larder")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--tools", type=int, default=0)
    parser.add_argument("--peers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        log = open(scratch / "gateways.log", "w+")
        running = []
        try:
            upstream = port()
            running.append(nginx(scratch, upstream))
            print("gateway      | prompt of 100 bytes                       | prompt of 200 kB                          | memory")
            measure(scratch, running[0], options.requests)
            ours = larder(scratch, options.larder, upstream, log)
            running.append(ours)
            measure(scratch, ours, options.requests)
            if options.long:
                body, sent, trend = ours.body(small()), 0, []
                while sent < options.long:
                    sent += load(scratch, ours.url, body, ours.headers, options.long // 10)[0]
                    trend.append((sent, memory_mb(ours.process.pid)))
                    print(f"  after {sent} more requests: {trend[-1][1]:.1f} MB", flush=True)
                late = trend[len(trend) // 2:]
                if len(late) > 1:
                    slope = statistics.linear_regression(*zip(*late)).slope
                    print(f"  growth over the second half: {slope * 10_000:+.2f} MB in 10,000 requests", flush=True)
            if options.tools:
                tools(ours, options.tools)
            if options.peers:
                for start in (tensorzero, litellm):
                    if gateway := start(scratch, options.peers, upstream, log):
                        running.append(gateway)
                        measure(scratch, gateway, options.requests if gateway.name != "LiteLLM" else options.requests // 10)
            for gateway in running:
                if FAILED[gateway.url]:
                    print(f"{gateway.name}: {FAILED[gateway.url]} requests failed under this load")
            if FAILED[ours.url]:
                sys.exit(1)
        except (SystemExit, subprocess.CalledProcessError):
            log.flush()
            log.seek(0)
            sys.stderr.write(log.read()[-3000:])
            raise
        finally:
            for gateway in reversed(running):
                gateway.stop()


if __name__ == "__main__":
    main()
