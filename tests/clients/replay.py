#!/usr/bin/env python3
"""Sends requests that other people's clients were recorded sending, as recorded, and compares what the upstream got.

    replay.py GATEWAY RECORD FOLDER

Each line of FOLDER/*.jsonl holds `method`, `path` (still percent-encoded), `headers` and `body`. Accepted means a
status of 2xx; the body that reaches the upstream has an equal JSON value; headers that are not of the connection
itself are passed on. Requests that are signed with AWS credentials for the gateway's address are refused, and nothing
is sent: their signature would not hold for Amazon Bedrock.
"""
import http.client
import json
import pathlib
import sys
import urllib.parse

# Of one connection, or made anew for the next: nothing to pass on.
OWN = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "authorization", "x-api-key", "keep-alive"}


def last(record):
    lines = pathlib.Path(record).read_text(encoding="utf-8").splitlines()
    return len(lines), json.loads(lines[-1]) if lines else None


def main(gateway, record, folder):
    address = urllib.parse.urlsplit(gateway).netloc
    wrong, sent = [], 0
    for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            request = json.loads(line)
            name = f"{path.name}:{number} {request['method']} {request['path']}"
            headers = request["headers"]
            headers = list(headers.items()) if isinstance(headers, dict) else [tuple(pair) for pair in headers]
            body = None if request.get("body") is None else json.dumps(request["body"]).encode()
            before, _ = last(record)
            connection = http.client.HTTPConnection(address, timeout=30)
            connection.putrequest(request["method"], request["path"], skip_host=True, skip_accept_encoding=True)
            for key, value in headers:
                if key == "host":
                    value = address
                elif key == "content-length":
                    value = str(len(body or b""))
                elif key == "authorization":
                    value = "Bearer sk-recorded" if value.startswith("Bearer") else value
                connection.putheader(key, value.encode("utf-8") if not value.isascii() else value)
            connection.endheaders(body)
            reply = connection.getresponse()
            answer = reply.read()
            connection.close()
            sent += 1
            if any(key.lower() == "authorization" and value.startswith("AWS4-") for key, value in headers):
                after, _ = last(record)
                if (reply.status, after) != (403, before) or b"nothing was sent" not in answer:
                    wrong.append(f"{name}: signed, but not refused: status {reply.status}, {after - before} sent")
                continue
            if reply.status // 100 != 2:
                wrong.append(f"{name}: status {reply.status}: {answer[:200]!r}")
                continue
            after, got = last(record)
            if request["path"] == "/v1/models" and after == before:
                continue  # answered from the table of models
            if after != before + 1:
                wrong.append(f"{name}: the upstream got {after - before} requests")
                continue
            if got["path"] != request["path"]:
                wrong.append(f"{name}: the upstream saw the path {got['path']}")
            if got["body"] != request.get("body"):
                wrong.append(f"{name}: another body: {got['body']}")
            passed = {key.lower(): value for key, value in got["headers"]}
            for key, value in headers:
                if key.lower() not in OWN and passed.get(key.lower()) != value:
                    wrong.append(f"{name}: header {key}: {passed.get(key.lower())!r} instead of {value!r}")
    print(f"{sent} recorded requests, {len(wrong)} differences")
    for line in wrong:
        print("  " + line)
    return 1 if wrong or not sent else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
