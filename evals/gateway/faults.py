#!/usr/bin/env python3
"""Mixed load on the gateway while things break: the upstream is killed, the gateway is killed with SIGKILL, the disk
runs full. Counts what must be 0: wrong answers, pointers that lead nowhere, connections and requests left over.

    faults.py LARDER [--seconds 600] [--clients 8] [--seed N]

Every client holds conversations of its own: a long tool result with a secret in it, then questions, streamed and
not, in both wire formats, some of which make the upstream read the original back. A request may fail while
something is broken; what is answered must be right. The store lies on a small file system in memory where that can be
mounted (Linux, as root); otherwise the disk is never full, and the last line says so.
"""
import argparse
import http.client
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
DISK_MB = 96


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


class Program:
    """A program that is killed and started again."""

    def __init__(self, number, command, log, env=None, cwd=None):
        self.number, self.command, self.log, self.cwd = number, command, log, cwd
        self.env = {**os.environ, **(env or {})}
        self.start()

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
            if (secret not in told) if back else (told != HELLO):
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
            body = {"model": "claude-mock", "max_tokens": 64, "tools": tools}
        else:
            path = "/v1/chat/completions"
            call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            head = [{"role": "user", "content": "Look it up."}, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "call_0", "content": result}, {"role": "assistant", "content": "Done."}]
            body = {"model": "gpt-mock", "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]}
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
                json.loads(text)["error"]["message"]
            except (ValueError, KeyError, TypeError):
                self.wrong.append(f"an error without the format's shape: {reply.status} {text[:200]!r}")
            return self.fail(str(reply.status))
        return self.streamed(claude, text) if stream else self.whole(claude, text)

    def fail(self, why):
        self.failed[why] = self.failed.get(why, 0) + 1

    def whole(self, claude, text):
        reply = json.loads(text)
        if claude:
            return "".join(block["text"] for block in reply["content"] if block["type"] == "text")
        return reply["choices"][0]["message"]["content"]

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
                return self.fail("error event")
            if claude:
                told += event.get("delta", {}).get("text", "") if event["type"] == "content_block_delta" else ""
                ended |= event["type"] == "message_stop"
            else:
                told += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
        return told if ended else self.fail("cut stream")


def breakages(seed, disk, upstream, gateway, stop, counts):
    """Breaks something every few seconds."""
    rng = random.Random(seed)
    while not stop.wait(rng.uniform(1, 4)):
        kind = rng.choice(["upstream", "gateway", "disk"] if disk else ["upstream", "gateway"])
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "upstream":
            upstream.kill()
            stop.wait(rng.uniform(0, 1))
            upstream.start()
        elif kind == "gateway":
            gateway.kill()
            gateway.start()
        else:
            ballast = disk / "ballast"
            try:
                with open(ballast, "wb") as file:
                    while True:
                        file.write(b"\0" * 65536)
                        file.flush()
            except OSError:
                pass
            stop.wait(rng.uniform(0.5, 2))
            ballast.unlink(missing_ok=True)


def connections_of(pid):
    """Sockets that a process holds."""
    held = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            held += os.readlink(link).startswith("socket:")
        except OSError:
            pass
    return held


def dangling(larder, home, record, originals):
    """Pointers that the upstream saw and that do not lead back to the bytes they stand for."""
    seen = sorted(set(POINTER.findall(pathlib.Path(record).read_text(encoding="utf-8", errors="replace"))))
    known, bad = set(originals), []
    for pointer in seen:
        got = subprocess.run([larder, "rehydrate", pointer], env={**os.environ, "LARDER_HOME": home}, capture_output=True)
        if got.returncode or got.stdout.decode() not in known:
            bad.append(f"{pointer}: {got.stderr.decode()[:200] or got.stdout[:100]!r}")
    return seen, bad


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
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(home)]
        disk = home if subprocess.run(mount, capture_output=True).returncode == 0 else None
        log, record = open(scratch / "log", "w+"), scratch / "record.jsonl"
        record.touch()
        above, below = port(), port()
        project = scratch / "project"
        project.mkdir()
        (project / "larder.toml").write_text(
            f'[gateway]\nopenai = "http://127.0.0.1:{above}/v1"\nanthropic = "http://127.0.0.1:{above}"\ntranscripts = false\n'
        )
        upstream = Program(above, [sys.executable, str(UPSTREAM), str(above), str(record)], log)
        command = [larder, "serve", "--listen", f"127.0.0.1:{below}"]
        gateway = Program(below, command, log, {"LARDER_HOME": str(home)}, project)
        stop, broken = threading.Event(), threading.Event()
        counts = {}
        clients = [Client(n, below, options.seed, stop) for n in range(options.clients)]
        try:
            at_rest = connections_of(gateway.process.pid)
            breaker = threading.Thread(target=breakages, args=(options.seed, disk, upstream, gateway, broken, counts), daemon=True)
            for thread in [breaker, *clients]:
                thread.start()
            time.sleep(options.seconds)
            broken.set()
            breaker.join(60)
            # Whole again: everything must go well for a while before it ends.
            before = sum(sum(client.failed.values()) for client in clients)
            time.sleep(1)
            before = sum(sum(client.failed.values()) for client in clients)
            time.sleep(5)
            late = sum(sum(client.failed.values()) for client in clients) - before
            stop.set()
            for client in clients:
                client.join(90)
            time.sleep(6)
            left = connections_of(gateway.process.pid) - at_rest
            verify = subprocess.run([larder, "verify"], env={**os.environ, "LARDER_HOME": str(home)}, capture_output=True, text=True)
            originals = [text for client in clients for text in client.originals]
            seen, bad = dangling(larder, str(home), record, originals)
        finally:
            stop.set()
            gateway.process.terminate()
            try:
                drained = gateway.process.wait(40)
            except subprocess.TimeoutExpired:
                drained = "never"
                gateway.kill()
            upstream.kill()
            if disk:
                subprocess.run(["umount", "-l", str(home)])
        failed = {}
        for client in clients:
            for why, times in client.failed.items():
                failed[why] = failed.get(why, 0) + times
        wrong = [one for client in clients for one in client.wrong]
        print(f"{options.seconds} s, {options.clients} clients, broken: {counts}")
        print(f"answered {sum(client.answered for client in clients)}, failed while something was broken: {failed}")
        print(f"wrong answers {len(wrong)}, pointers {len(seen)}, dangling {len(bad)}, failures once whole again {late}")
        print(f"sockets beside those at rest {left}, store {'clean' if verify.returncode == 0 else verify.stdout + verify.stderr}, ended with {drained}")
        for one in (wrong + bad)[:10]:
            print("  " + one)
        if not disk:
            print("the disk was never full: no file system could be mounted here")
        if wrong or bad or verify.returncode:
            log.seek(0)
            print(log.read()[-3000:], file=sys.stderr)
        sys.exit(1 if wrong or bad or late or verify.returncode or left > 2 * options.clients else 0)


if __name__ == "__main__":
    main()
