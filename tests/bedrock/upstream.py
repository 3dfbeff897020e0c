#!/usr/bin/env python3
"""A scripted Amazon Bedrock on the loopback address, with the sources of credentials that its clients know: the role of
a container, the role of a machine (IMDSv2), and STS. Signatures are verified by botocore; frames are written here, and
read by botocore in the checks. What a model answers depends on the last text that it is asked.

    upstream.py PORT RECORD      # RECORD gets one JSON line for each request
"""
import base64
import datetime
import hashlib
import http.server
import json
import re
import struct
import sys
import threading
import urllib.parse
import zlib

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

PORT, RECORD = int(sys.argv[1]), sys.argv[2]
BEARER = "bedrock-api-key"
# Key → its secret and its session token.
KEYS = {
    "AKIAENVIRONMENT": ("environment/secret", None),
    "AKIAPROFILE": ("profile+secret", None),
    "ASIACONTAINER": ("container-secret", "container-token"),
    "ASIAMACHINE": ("machine-secret", "machine-token"),
    "ASIAROLE": ("role-secret", "role-token"),
    "ASIAWEB": ("web-secret", "web-token"),
}
POINTER = re.compile(r"lp1-[0-9a-z]{13}-[0-9a-z]{6}")
LOCK = threading.Lock()


def expiry():
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def verified(method, path, headers, body):
    """The key and the service that a request is signed with; an error in words if the signature is wrong."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)",
        headers["authorization"],
    )
    if not found:
        raise ValueError("malformed: " + headers["authorization"])
    key, day, region, service, names, signature = found.groups()
    secret, token = KEYS[key]
    if headers.get("x-amz-security-token") != token:
        raise ValueError(f"session token {headers.get('x-amz-security-token')}")
    names = names.split(";")
    for name in ["host", "x-amz-date"] + (["x-amz-security-token"] if token else []):
        if name not in names:
            raise ValueError(f"{name} is not signed")
    signed = {name: headers[name] for name in names}
    sent = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs(datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds() > 300 or not headers["x-amz-date"].startswith(day):
        raise ValueError("the time is wrong")
    url = f"http://{headers['host']}{path}"
    request = AWSRequest(method=method, url=url, data=body, headers=signed)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(key, secret, token), service, region)
    auth_headers = auth.headers_to_sign(request)
    if sorted(auth_headers.keys()) != sorted(names):
        raise ValueError(f"signed {names}, botocore would sign {sorted(auth_headers.keys())}")
    expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    if expected != signature:
        raise ValueError(f"signature {signature}, botocore says {expected}")
    return key, service, region


def frame(kind, payload, message="event"):
    headers = b""
    for name, value in [(f":{message}-type", kind), (":content-type", "application/json"), (":message-type", message)]:
        headers += struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    prelude += struct.pack("!I", zlib.crc32(prelude))
    message = prelude + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def texts_of(message):
    """The texts of a message, results included, in order."""
    for block in message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]:
        result = block.get("toolResult") or (block if block.get("type") == "tool_result" else None)
        if result:
            inner = result["content"]
            yield from [inner] if isinstance(inner, str) else [part["text"] for part in inner if "text" in part]
        elif "text" in block:
            yield block["text"]


def answer(body):
    """What the model says: texts and calls, and why it stops."""
    everything = [text for message in body["messages"] for text in texts_of(message)]
    last = list(texts_of(body["messages"][-1])) or [""]
    asked = " ".join(everything)
    tools = [tool.get("toolSpec", tool).get("name") for tool in (body.get("toolConfig") or body).get("tools", [])]
    if "NEEDLE" in last[-1] and "[…" not in last[-1] and len(last[-1]) < 4_000:
        return [("text", "It is the " + re.search(r"NEEDLE (\w+)", last[-1]).group(1) + " seal.")], "end_turn"
    if "be cut" in last[-1]:
        return [("text", "So far")], "max_tokens"
    if "guard me" in last[-1]:
        return [("text", "Blocked.")], "guardrail_intervened"
    pointer = POINTER.search(last[-1])
    rehydrate = next((tool for tool in tools if tool and tool.startswith("larder_rehydrate")), None)
    if pointer and rehydrate:
        call = ("call", "back_1", rehydrate, {"id": pointer.group(), "pattern": "NEEDLE"})
        return [("text", "Let me look it up."), call], "tool_use"
    if "read_log" in tools and "Which seal" in asked and "toolResult" not in json.dumps(body["messages"]):
        return [("call", "log_1", "read_log", {"name": "seals"})], "tool_use"
    return [("text", "Grüße, 世界!")], "end_turn"


USAGE = {"inputTokens": 100, "outputTokens": 20, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 10, "totalTokens": 190}


def converse(body):
    parts, stop = answer(body)
    content = [
        {"text": part[1]} if part[0] == "text" else {"toolUse": {"toolUseId": part[1], "name": part[2], "input": part[3]}}
        for part in parts
    ]
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop, "usage": USAGE, "metrics": {"latencyMs": 5}}


def converse_stream(body):
    parts, stop = answer(body)
    yield frame("messageStart", {"role": "assistant", "p": "abcd"})
    for index, part in enumerate(parts):
        if part[0] == "text":
            deltas = [{"text": part[1][:5]}, {"text": part[1][5:]}]
        else:
            yield frame("contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": part[1], "name": part[2]}}})
            text = json.dumps(part[3])
            deltas = [{"toolUse": {"input": text[:9]}}, {"toolUse": {"input": text[9:]}}]
        for delta in deltas:
            yield frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "ab"})
        yield frame("contentBlockStop", {"contentBlockIndex": index})
    if any("fail midway" in text for text in texts_of(body["messages"][-1])):
        yield frame("throttlingException", {"message": "Too many tokens"}, "exception")
        return
    yield frame("messageStop", {"stopReason": stop})
    yield frame("metadata", {"usage": USAGE, "metrics": {"latencyMs": 5}})


def anthropic(body):
    parts, stop = answer(body)
    content = [
        {"type": "text", "text": part[1]} if part[0] == "text" else {"type": "tool_use", "id": part[1], "name": part[2], "input": part[3]}
        for part in parts
    ]
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def anthropic_stream(body):
    reply = anthropic(body)
    def chunk(event):
        return frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"})
    yield chunk({"type": "message_start", "message": reply | {"content": [], "stop_reason": None}})
    for index, block in enumerate(reply["content"]):
        if block["type"] == "text":
            start, deltas = block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
        else:
            start, deltas = block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield chunk({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield chunk({"type": "content_block_delta", "index": index, "delta": delta})
        yield chunk({"type": "content_block_stop", "index": index})
    yield chunk({"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 20}})
    yield chunk({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 100, "outputTokenCount": 20}})


def titan(body):
    digest = hashlib.sha256(body["inputText"].encode()).digest()
    return {"embedding": [digest[at % 32] / 255 for at in range(body.get("dimensions", 1024))], "inputTextTokenCount": 3}


def assumed(action, key):
    secret, token = KEYS[key]
    return f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>
        <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
        <Expiration>{expiry()}</Expiration></Credentials><AssumedRoleUser><AssumedRoleId>a:b</AssumedRoleId>
        <Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn></AssumedRoleUser></{action}Result></{action}Response>"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, kind="application/json", **headers):
        body = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, frames):
        self.send_response(200)
        self.send_header("content-type", "application/vnd.amazon.eventstream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for bytes_ in frames:
            # Cut anywhere, as networks do.
            for piece in [bytes_[:7], bytes_[7:]]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def keys(self, key, **more):
        secret, token = KEYS[key]
        return {"AccessKeyId": key, "SecretAccessKey": secret, "Token": token, "Expiration": expiry(), **more}

    def do_PUT(self):
        if self.path == "/latest/api/token":
            return self.send(200, "imds-token", "text/plain", x_aws_ec2_metadata_token_ttl_seconds="21600")
        self.send(404, {})

    def do_GET(self):
        if self.path == "/container":
            wanted = self.headers.get("authorization") == "container-authorization"
            return self.send(200, self.keys("ASIACONTAINER")) if wanted else self.send(403, {})
        base = "/latest/meta-data/iam/security-credentials"
        if self.path.startswith(base):
            if self.headers.get("x-aws-ec2-metadata-token") != "imds-token":
                return self.send(401, "", "text/plain")
            if self.path.rstrip("/") == base:
                return self.send(200, "machine-role", "text/plain")
            return self.send(200, self.keys("ASIAMACHINE", Code="Success", Type="AWS-HMAC", LastUpdated=expiry()))
        self.send(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path == "/":
            return self.sts(headers, body)
        record = {"path": self.path, "headers": headers, "body": json.loads(body)}
        try:
            sent = headers.get("authorization", "")
            if sent.startswith("Bearer "):
                if sent != f"Bearer {BEARER}":
                    raise ValueError("unknown key")
                record["key"] = "bearer"
            else:
                record["key"], service, record["region"] = verified("POST", self.path, headers, body)
                if service != "bedrock":
                    raise ValueError(f"service {service}")
        except (KeyError, ValueError) as error:
            record["refused"] = str(error)
        with LOCK, open(RECORD, "a") as file:
            file.write(json.dumps(record) + "\n")
        if "refused" in record:
            return self.send(403, {"message": record["refused"]}, x_amzn_errortype="InvalidSignatureException")
        self.model(urllib.parse.unquote(self.path), record["body"])

    def model(self, path, body):
        _, _, rest = path.partition("/model/")
        model, _, operation = rest.rpartition("/")
        if operation == "invoke" and "titan" in model:
            return self.send(200, titan(body))
        if operation == "converse":
            return self.send(200, converse(body))
        if operation == "converse-stream":
            return self.stream(converse_stream(body))
        if operation == "invoke":
            return self.send(200, anthropic(body))
        if operation == "invoke-with-response-stream":
            return self.stream(anthropic_stream(body))
        self.send(404, {"message": "no such operation"}, x_amzn_errortype="ResourceNotFoundException")

    def sts(self, headers, body):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        if form.get("Action") == "AssumeRoleWithWebIdentity":
            good = form.get("WebIdentityToken") == "web-identity"
            return self.send(200, assumed("AssumeRoleWithWebIdentity", "ASIAWEB"), "text/xml") if good else self.send(403, "")
        try:
            key, service, _ = verified("POST", self.path, headers, body)
        except (KeyError, ValueError) as error:
            return self.send(403, f"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>{error}</Message></Error></ErrorResponse>", "text/xml")
        if (key, service) != ("AKIAPROFILE", "sts"):
            return self.send(403, "")
        self.send(200, assumed("AssumeRole", "ASIAROLE"), "text/xml")


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
