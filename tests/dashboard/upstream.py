#!/usr/bin/env python3
"""The scripted provider of tests/clients with figures as providers report them: usage grows with what was sent, what a
request has in common with an earlier one was cached, and some questions have answers of their own.

    upstream.py PORT RECORD ANSWERS TURN
        # ANSWERS: a JSON object: words of the user -> what is said to them
        # TURN: who answers which phase of a turn, and the pages that its tools read (scenario.mjs)
"""
import http.server
import importlib.util
import json
import os
import pathlib
import sys
import threading

PLAIN = pathlib.Path(__file__).resolve().parent.parent / "clients" / "upstream.py"
spec = importlib.util.spec_from_file_location("plain_upstream", PLAIN)
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

# Characters per token, and the step in which caches count.
PER_TOKEN, STEP = 4, 128
seen = []


def counted(raw):
    """Tokens in, and how many of them were cached."""
    text = raw.decode("utf-8", "replace")
    cached = max((len(os.path.commonprefix([text, before])) for before in seen), default=0) // PER_TOKEN
    seen.append(text)
    return len(text) // PER_TOKEN, cached // STEP * STEP if cached >= 1024 else 0


class Handler(plain.Handler):
    def record(self, raw):
        self.tokens, self.cached = counted(raw) if raw else (0, 0)
        return super().record(raw)

    def json(self, value, status=200, **headers):
        usage = value.get("usage") if isinstance(value, dict) else None
        if usage and "prompt_tokens_details" in usage:
            said = 40 + len(json.dumps(value)) // PER_TOKEN % 200
            usage |= {"prompt_tokens": self.tokens, "completion_tokens": said, "total_tokens": self.tokens + said}
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached}
        elif usage and "cache_read_input_tokens" in usage:
            usage |= {"input_tokens": self.tokens - self.cached, "cache_read_input_tokens": self.cached, "output_tokens": 120}
        super().json(value, status, **headers)

    def do_GET(self):
        if self.path == "/release":
            released.set()
            return self.json({"released": True})
        page = turn["pages"].get(self.path)
        if page is None:
            return super().do_GET()
        raw = page.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


# A turn that waits goes on when somebody asks for /release.
released = threading.Event()


def phase(body):
    """What the phase says whose prompt this is: the first of its replies whose words the prompt holds."""
    prompt = json.dumps(body["messages"], ensure_ascii=False) if "messages" in body else ""
    replies = next((replies for mark, replies in turn["phases"].items() if mark in prompt), None)
    if replies is None:
        return None
    words, reply = next(each for each in replies if each[0] in prompt)
    if words == turn["waits"]:
        released.wait(60)
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def decide(wire, body):
    if (said := phase(body)) is not None:
        return (said, [], None)
    asked = next((text for role, text in reversed(list(wire.history(body))) if role == "user"), "")
    said = next((said for words, said in answers.items() if words in asked), None)
    return (said, [], None) if said is not None else scripted(wire, body)


if __name__ == "__main__":
    scripted, plain.decide = plain.decide, decide
    answers, turn = (json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in sys.argv[3:5])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.record = sys.argv[2]
    server.daemon_threads = True
    server.serve_forever()
