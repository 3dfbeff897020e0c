#!/usr/bin/env python3
"""What a gateway costs: processor time and memory per request of Larder, and of other gateways, in one run.

    overhead.py LARDER [--requests N] [--long N] [--peers PYTHON]

LARDER is the release build of `larder`. The upstream is nginx with a fixed reply; the load comes from wrk (both are
packages of Debian), 8 connections, kept alive. Processor time is user and system time of the gateway's processes by
/proc, over N requests after 200 to warm up. `--long N` sends N more requests of the small kind to Larder and reports
its memory on the way. PYTHON is an interpreter with `tensorzero` and `litellm[proxy]` installed; without it only
nginx and Larder are measured.
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


def load(scratch, url, body, headers, requests):
    """Sends about so many requests; gives how many were answered, the median and the 99th percentile in ms."""
    (scratch / "body.json").write_bytes(body)
    lines = ['wrk.method = "POST"', f'local file = io.open("{scratch}/body.json", "rb")', 'wrk.body = file:read("*a")', "file:close()"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in {"content-type": "application/json", **headers}.items()]
    lines += ["done = function(summary, latency, requests)",
              '  io.write(string.format("RESULT %d %d %f %f\\n", summary.requests,',
              "    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout,",
              "    latency:percentile(50) / 1000, latency:percentile(99) / 1000))", "end"]
    (scratch / "load.lua").write_text("\n".join(lines))
    answered, seconds, slow = 0, 2, (0.0, 0.0)
    while answered < requests:
        out = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "-s", str(scratch / "load.lua"), url],
            capture_output=True, text=True, check=True,
        ).stdout
        done, errors, median, late = re.search(r"RESULT (\d+) (\d+) ([\d.]+) ([\d.]+)", out).groups()
        if int(errors):
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
    env = {"LARDER_HOME": str(scratch / "home"), "OPENAI_API_KEY": "sk-none"}
    url = f"http://127.0.0.1:{number}/v1/chat/completions"
    return Gateway("Larder", command, number, url, "mock", {"authorization": "Bearer sk-none"}, env, project, log)


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
    (scratch / "tensorzero.py").write_text(f"""
import time
from tensorzero.tensorzero import _start_http_gateway
gateway = _start_http_gateway(config_file={str(scratch / 'tensorzero.toml')!r}, clickhouse_url=None, postgres_url=None,
                              valkey_url=None, async_setup=False)
print("PORT", gateway.base_url, flush=True)
while True:
    time.sleep(60)
""")
    out = open(scratch / "tensorzero.out", "w+")
    process = subprocess.Popen([python, str(scratch / "tensorzero.py")], stdout=out, stderr=log, start_new_session=True)
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
    command = [program, "--config", str(scratch / "litellm.yaml"), "--port", str(number), "--host", "127.0.0.1", "--telemetry", "False"]
    url = f"http://127.0.0.1:{number}/v1/chat/completions"
    return Gateway("LiteLLM", command, number, url, "mock", {"authorization": f"Bearer {key}"}, {"LITELLM_MASTER_KEY": key, "LITELLM_LOG": "ERROR"}, None, log)


def measure(scratch, gateway, requests):
    print(f"{gateway.name:<12}", end="", flush=True)
    for messages in (small(), large()):
        body = gateway.body(messages)
        post_once(gateway.url, body, gateway.headers)
        load(scratch, gateway.url, body, gateway.headers, 200)
        before = cpu_seconds(gateway.process.pid)
        answered, (median, late) = load(scratch, gateway.url, body, gateway.headers, requests)
        spent = (cpu_seconds(gateway.process.pid) - before) * 1000 / answered
        print(f" | {spent:7.3f} CPU-ms  p50 {median:6.2f} p99 {late:7.2f} ms", end="", flush=True)
    print(f" | {memory_mb(gateway.process.pid):6.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("larder")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--long", type=int, default=0)
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
                body, sent = ours.body(small()), 0
                while sent < options.long:
                    sent += load(scratch, ours.url, body, ours.headers, options.long // 5)[0]
                    print(f"  after {sent} more requests: {memory_mb(ours.process.pid):.1f} MB", flush=True)
            if options.peers:
                for start in (tensorzero, litellm):
                    if gateway := start(scratch, options.peers, upstream, log):
                        running.append(gateway)
                        measure(scratch, gateway, options.requests if gateway.name != "LiteLLM" else options.requests // 10)
        except (SystemExit, subprocess.CalledProcessError):
            log.seek(0)
            sys.stderr.write(log.read()[-3000:])
            raise
        finally:
            for gateway in reversed(running):
                gateway.stop()


if __name__ == "__main__":
    main()
