#!/usr/bin/env python3
"""Mixed load on the gateway while things break: the upstream is killed, answers with errors, breaks off or half closes
its replies; the gateway is killed with SIGKILL; the disk runs full. Counts what must be 0: wrong answers, pointers that
lead nowhere, connections, threads and requests left over.

    faults.py LARDER [--seconds 600] [--clients 8] [--seed N]

Every client holds conversations of its own: a long tool result with a secret in it, then questions, streamed and
not, in both wire formats, some of which make the upstream read the original back. A request may fail while
something is broken; what is answered must be right. In the last third of the time the gateway is not killed any more,
so that what it leaks adds up. The store lies on a small file system in memory where that can be mounted (Linux, as
root); otherwise the disk is never full, and the last line says so.
"""
import argparse
import http.client
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

UPSTREAM = pathlib.Path(__file__).resolve().parents[2] / "tests/clients/upstream.py"
POINTER = re.compile(r"lp1-[0-9a-z]{13}-[0-9a-z]{6}")
HELLO = "Hello from upstream."
# The disk holds this, and so much for each second of load.
DISK_MB, DISK_MB_A_SECOND = 64, 0.5
# Seconds that what is left over may take to go.
GRACE = 30
# Threads that may wait for work at any time: what the gateway does every second takes one, and a new one now and then.
SPARE = {"threads": 3}


def serve_faults(number, record, mode):
    """The scripted upstream, which does what the file `mode` says to some of its replies."""
    spec = importlib.util.spec_from_file_location("upstream", UPSTREAM)
    upstream = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(upstream)

    class Limited:
        """Writes so many bytes, then ends the connection, or its own half of it."""

        def __init__(self, handler, left, half):
            self.file, self.connection, self.left, self.half = handler.wfile, handler.connection, left, half

        def write(self, data):
            self.file.write(data[: self.left])
            self.left -= len(data)
            if self.left < 0:
                self.file.flush()
                self.connection.shutdown(socket.SHUT_WR if self.half else socket.SHUT_RDWR)
                if self.half:
                    time.sleep(1)
                raise ConnectionAbortedError

        def flush(self):
            self.file.flush()

    class Handler(upstream.Handler):
        def do_POST(self):
            kind = pathlib.Path(mode).read_text()
            if not kind or random.random() < 0.3:
                return super().do_POST()
            if kind in ("429", "500"):
                self.record(self.rfile.read(int(self.headers.get("content-length") or 0)))
                wire = upstream.Messages if "messages" in self.path else upstream.Chat
                more = {"retry_after": "1"} if kind == "429" and random.random() < 0.5 else {}
                return self.json(wire.error(int(kind), f"scripted error {kind}"), int(kind), **more)
            whole = self.wfile
            self.wfile, self.close_connection = Limited(self, random.randrange(1200), kind == "half"), True
            try:
                super().do_POST()
            except ConnectionAbortedError:
                pass
            self.wfile = whole

    class Server(upstream.http.server.ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 128

        def handle_error(self, *_):
            pass

    server = Server(("127.0.0.1", number), Handler)
    server.record = record
    server.serve_forever()


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def listens(number):
    try:
        socket.create_connection(("127.0.0.1", number), 1).close()
        return True
    except OSError:
        return False


def held_by(pid):
    """Sockets and threads of a process."""
    sockets = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets += os.readlink(link).startswith("socket:")
        except OSError:
            pass
    return {"sockets": sockets, "threads": len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))}


class Program:
    """A program that is killed and started again."""

    def __init__(self, number, command, log, env=None, cwd=None):
        self.number, self.command, self.log, self.cwd = number, command, log, cwd
        self.env = {**os.environ, **(env or {})}
        self.start()
        # Nobody has asked it anything yet.
        time.sleep(1)
        self.at_rest = held_by(self.process.pid)

    def start(self):
        for _ in range(3):
            self.process = subprocess.Popen(self.command, env=self.env, cwd=self.cwd, stdout=self.log, stderr=self.log)
            for _ in range(400):
                if listens(self.number):
                    return
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError(f"{self.command[0]} does not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Client(threading.Thread):
    """One user of the gateway."""

    def __init__(self, number, gateway, seed, stop):
        super().__init__(daemon=True)
        self.number, self.gateway, self.stop = number, gateway, stop
        self.random = random.Random(seed * 1000 + number)
        self.answered, self.failed, self.wrong, self.originals = 0, {}, [], []
        self.words = {}

    def run(self):
        while not self.stop.is_set():
            self.conversation()

    def conversation(self):
        secret = f"{self.number}-{self.random.getrandbits(48):012x}"
        lines = [f"entry {n}: value {self.random.randrange(10**6)} read at {self.random.randrange(86400)} s" for n in range(150)]
        lines[self.random.randrange(20, 130)] = f"the password of the vault is {secret}"
        result = "\n".join(lines)
        self.originals.append(result)
        claude = self.random.random() < 0.4
        turns = []
        for _ in range(self.random.randrange(2, 6)):
            back = self.random.random() < 0.5
            turns.append({"role": "user", "content": "read it back" if back else f"hello {self.random.random()}"})
            told = self.ask(claude, result, turns, self.random.random() < 0.5)
            if told is None:
                turns.pop()
                if self.stop.wait(0.05):
                    return
                continue
            self.answered += 1
            # While the store cannot write, results that fit go whole, and the upstream has nothing to ask for.
            if told != HELLO and not (back and secret in told):
                self.wrong.append(f"client {self.number}: {'secret ' + secret if back else HELLO!r} expected, got {told[:300]!r}")
            turns.append({"role": "assistant", "content": told if len(told) < 200 else "I have read it."})

    def ask(self, claude, result, turns, stream):
        if claude:
            path = "/v1/messages"
            head = [{"role": "user", "content": "Look it up."},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "look", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": result}]},
                    {"role": "assistant", "content": "Done."}]
            tools = [{"name": "look", "description": "Looks it up.", "input_schema": {"type": "object"}}]
            body = {"model": "claude-sonnet-4-5", "max_tokens": 64, "tools": tools}
        else:
            path = "/v1/chat/completions"
            call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            head = [{"role": "user", "content": "Look it up."}, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "call_0", "content": result}, {"role": "assistant", "content": "Done."}]
            body = {"model": "gpt-4o", "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]}
        body |= {"messages": head + turns, "stream": stream}
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.gateway, timeout=60)
            headers = {"content-type": "application/json", "authorization": "Bearer sk-test", "anthropic-version": "2023-06-01"}
            connection.request("POST", path, json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read().decode()
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            return self.fail(type(error).__name__)
        if reply.status != 200:
            try:
                error = json.loads(text)["error"]
                return self.fail(f"{reply.status} {error['type']}", error["message"])
            except (ValueError, KeyError, TypeError):
                self.wrong.append(f"an error without the format's shape: {reply.status} {text[:200]!r}")
                return self.fail(str(reply.status))
        try:
            told = self.streamed(claude, text) if stream else self.whole(claude, text)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self.wrong.append(f"a reply that cannot be read: {error!r} {text[:300]!r}")
            return self.fail("unreadable")
        return told

    def fail(self, why, words=""):
        self.failed[why] = self.failed.get(why, 0) + 1
        self.words.setdefault(why, words)

    def whole(self, claude, text):
        reply = json.loads(text)
        if claude:
            return "".join(block["text"] for block in reply["content"] if block["type"] == "text")
        return reply["choices"][0]["message"]["content"] or ""

    def streamed(self, claude, text):
        told, ended = "", False
        for line in text.splitlines():
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                ended = True
                continue
            event = json.loads(line[6:])
            if event.get("error"):
                return self.fail("error event", json.dumps(event["error"]))
            if claude:
                told += event.get("delta", {}).get("text", "") if event["type"] == "content_block_delta" else ""
                ended |= event["type"] == "message_stop"
            else:
                told += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
        return told if ended else self.fail("cut stream")


def breakages(seed, disk, mode, upstream, gateway, stop, counts, calm):
    """Breaks something every few seconds, each thing once a round; from `calm` on nothing is broken."""
    rng = random.Random(seed)
    kinds = []
    while not stop.wait(rng.uniform(0.5, 2)):
        if not kinds:
            kinds = ["upstream", "gateway", "429", "500", "cut", "half"] + (["disk"] if disk else [])
            rng.shuffle(kinds)
        kind = kinds.pop()
        if kind == "gateway" and time.monotonic() > calm:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "upstream":
            upstream.kill()
            stop.wait(rng.uniform(0, 1))
            upstream.start()
        elif kind == "gateway":
            gateway.kill()
            gateway.start()
        elif kind == "disk":
            ballast = disk / "ballast"
            fill(ballast)
            until = time.monotonic() + rng.uniform(1, 3)
            while time.monotonic() < until and not stop.wait(0.05):
                fill(ballast)
            ballast.unlink(missing_ok=True)
        else:
            mode.write_text(kind)
            stop.wait(rng.uniform(0.5, 2))
            mode.write_text("")


def fill(ballast):
    """Takes all room that is left on the disk."""
    try:
        with open(ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    pass
    except OSError:
        pass


def get(gateway, path):
    connection = http.client.HTTPConnection("127.0.0.1", gateway, timeout=60)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, text


def pointers_seen(record):
    """Pointers in the windows that the upstream saw, without those in definitions of tools."""
    seen = set()
    for line in pathlib.Path(record).read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            body = json.loads(line)["body"]
        except ValueError:  # The upstream was killed as it wrote.
            seen |= set(POINTER.findall(line.split('"tools"')[0]))
            continue
        if isinstance(body, dict):
            seen |= set(POINTER.findall(json.dumps([body.get(name) for name in ("system", "messages", "input")])))
    return sorted(seen)


def dangling(larder, home, gateway, seen, originals):
    """Pointers that do not resolve to their bytes: by the gateway, and some by the command line too."""
    known, bad = set(originals), []
    for at, pointer in enumerate(seen):
        status, got = get(gateway, f"/api/v1/pointers/{pointer}/content")
        if status != 200 or got.decode("utf-8", "replace") not in known:
            bad.append(f"{pointer}: {status} {got[:200]!r}")
        elif at % 50 == 0:
            read = subprocess.run([larder, "rehydrate", pointer], env={**os.environ, "LARDER_HOME": home}, capture_output=True)
            if read.returncode or read.stdout != got:
                bad.append(f"{pointer}: the command line gives {read.returncode} {read.stderr[:200]!r}")
    return bad


def left_over(gateway):
    """What the gateway holds more than at rest, once it has had time to let go."""
    flights = re.findall(rb"^larder_requests_in_flight\S* (\d+)", get(gateway.number, "/metrics")[1], re.M)
    for _ in range(GRACE * 2):
        now = held_by(gateway.process.pid)
        left = {name: now[name] - gateway.at_rest[name] for name in now}
        if all(value <= SPARE.get(name, 0) for name, value in left.items()):
            break
        time.sleep(0.5)
    return {**left, "requests": sum(map(int, flights))}


def total(dicts):
    sums = {}
    for one in dicts:
        for name, number in one.items():
            sums[name] = sums.get(name, 0) + number
    return dict(sorted(sums.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("larder")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    larder = str(pathlib.Path(options.larder).resolve())
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        home = scratch / "home"
        home.mkdir()
        size = int(DISK_MB + DISK_MB_A_SECOND * options.seconds)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(home)]
        disk = home if subprocess.run(mount, capture_output=True).returncode == 0 else None
        log, record, mode = open(scratch / "log", "w+"), scratch / "record.jsonl", scratch / "mode"
        record.touch()
        mode.touch()
        above, below = port(), port()
        project = scratch / "project"
        project.mkdir()
        (project / "larder.toml").write_text(
            f'[gateway]\nopenai = "http://127.0.0.1:{above}/v1"\nanthropic = "http://127.0.0.1:{above}"\ntranscripts = false\n'
            # Results are condensed from the first, however long the conversation.
            "[policy]\nentry_cap = 144\nexpected_turns = 1000\n"
        )
        running = []
        try:
            command = [sys.executable, __file__, "--upstream", str(above), str(record), str(mode)]
            upstream = Program(above, command, log)
            running.append(upstream)
            command = [larder, "serve", "--listen", f"127.0.0.1:{below}"]
            gateway = Program(below, command, log, {"LARDER_HOME": str(home)}, project)
            running.append(gateway)
            code = run(options, larder, home, disk, record, mode, upstream, gateway)
            if code:
                log.flush()
                log.seek(0)
                print(log.read()[-3000:], file=sys.stderr)
        finally:
            for program in running:
                program.kill()
            if disk:
                subprocess.run(["umount", "-l", str(home)])
        sys.exit(code)


def run(options, larder, home, disk, record, mode, upstream, gateway):
    stop, broken, counts = threading.Event(), threading.Event(), {}
    clients = [Client(n, gateway.number, options.seed, stop) for n in range(options.clients)]
    calm = time.monotonic() + options.seconds * 2 / 3
    failures = lambda: sum(sum(client.failed.values()) for client in clients)
    breaker = threading.Thread(
        target=breakages, args=(options.seed, disk, mode, upstream, gateway, broken, counts, calm), daemon=True
    )
    for thread in [breaker, *clients]:
        thread.start()
    until = time.monotonic() + options.seconds
    while time.monotonic() < until and breaker.is_alive():
        time.sleep(0.2)
    whole = breaker.is_alive()
    broken.set()
    breaker.join(60)
    # Whole again: everything must go well for a while before it ends.
    time.sleep(2)
    before = failures()
    time.sleep(5)
    late = failures() - before
    stop.set()
    for client in clients:
        client.join(90)
    seen = pointers_seen(record)
    bad = dangling(larder, str(home), gateway.number, seen, [text for client in clients for text in client.originals])
    # What the gateway keeps open to use again closes with its other end.
    upstream.kill()
    left = left_over(gateway)
    verify = subprocess.run([larder, "verify"], env={**os.environ, "LARDER_HOME": str(home)}, capture_output=True, text=True)
    gateway.process.terminate()
    try:
        ended = gateway.process.wait(40)
    except subprocess.TimeoutExpired:
        ended = "never"
    wrong = [one for client in clients for one in client.wrong]
    words = {why: said for client in clients for why, said in client.words.items() if said}
    print(f"{options.seconds} s, {options.clients} clients, broken: {total([counts])}")
    print(f"answered {sum(client.answered for client in clients)}, failed while something was broken: {total(client.failed for client in clients)}")
    print(f"wrong answers {len(wrong)}, pointers {len(seen)}, dangling {len(bad)}, failures once whole again {late}")
    print(f"left over beside rest {left}, store {'clean' if verify.returncode == 0 else verify.stdout + verify.stderr}, ended with {ended}")
    for why, said in sorted(words.items()):
        print(f"  {why}: {said[:400]}")
    for one in wrong[:5] + bad[:5]:
        print(f"  WRONG {one}")
    if not whole:
        print("  WRONG what breaks things could not go on")
    if not disk:
        print("the disk was never full: no file system could be mounted here")
    sys.stdout.flush()
    return int(bool(wrong or bad or late or verify.returncode or ended or not whole or any(value > SPARE.get(name, 0) for name, value in left.items())))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--upstream"]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve_faults(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        main()
