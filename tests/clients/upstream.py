#!/usr/bin/env python3
"""A provider that answers by script and records every request: OpenAI chat completions and responses, embeddings and
models, Anthropic messages and token counts, in their wire formats, whole and streamed.

    upstream.py PORT RECORD      # RECORD: a JSON Lines file of what was sent: method, path, headers, body

What it answers depends on the last text of the user:
    "use the tool"       one call of the client's first tool
    "use both tools"     two parallel calls of it
    "all at once"        a call of it, a call of larder_rehydrate with the first pointer that stands in a tool result, and
                         a second call of the client's tool, in one turn
    "think first"        as well: a thought before anything else (messages)
    "read it back ID"    a call of larder_rehydrate with that id, if it is offered; then what came of it as text
    "read it back"       the same with the first pointer that stands in a tool result
    "error NNN"          an error with that status in the format's own shape
    "Look it up: {…}"    what an agent does that the user asks about a log: it calls the named tool with the given
                         arguments, {"name": …, "arguments": …}, and tells the line of the log about crate 187; where
                         the result of the tool lacks that line, it reads it back
    "fault F N times: K" fault F for the first N requests that name the key K: a status, with which the format's error
                         is given and a retry is asked for at once; "cut", a stream that breaks off; "wait", a stream
                         that goes on only when the client has left, which is recorded; "streaming", 404 for what is to
                         be streamed, and no fault for anything else
    anything else        "Hello from upstream."; as JSON {"name": "Ada", "age": 36} where a schema is asked for
"""
import collections
import hashlib
import http.server
import json
import re
import sys
import threading

HELLO = "Hello from upstream."
POINTER = re.compile(r"lp1-[0-9a-z]{13}-[0-9a-z]{6}")
SCRIPT = "Look it up: "
LOOKED_FOR = re.compile(r"crate 187 stands.*")
FAULT = re.compile(rb"fault (\w+) (\d+) times: ([\w-]+)")
# The events of a stream that arrive before its fault.
EVENTS_BEFORE = 5
RECORD_LOCK = threading.Lock()


def texts(content):
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict) and "text" in part)


def nth(wire, body):
    """Which reply of the conversation this is: one more than there are results of tools."""
    return 1 + sum(role == "tool" for role, _ in wire.history(body))


class Chat:
    """OpenAI chat completions."""

    @staticmethod
    def history(body):
        for message in body["messages"]:
            yield message["role"], texts(message.get("content"))

    @staticmethod
    def tools(body):
        return [tool["function"]["name"] for tool in body.get("tools", []) if tool["type"] == "function"]

    @staticmethod
    def schema(body):
        return (body.get("response_format") or {}).get("type") == "json_schema"

    @staticmethod
    def whole(body, text, calls):
        message = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message["tool_calls"] = [
                {"id": call[0], "type": "function", "function": {"name": call[1], "arguments": json.dumps(call[2])}}
                for call in calls
            ]
        finish = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return {
            "id": f"chatcmpl-{nth(Chat, body)}", "object": "chat.completion", "created": 1700000000,
            "model": body["model"], "choices": [choice], "usage": Chat.usage(body), "x_unknown": {"kept": [1.50, "é"]},
        }

    @staticmethod
    def usage(body):
        given, details = 10 * nth(Chat, body), {"cached_tokens": 3}
        return {"prompt_tokens": given, "completion_tokens": 5, "total_tokens": given + 5, "prompt_tokens_details": details}

    @staticmethod
    def events(body, text, calls):
        def chunk(delta, finish=None, **more):
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return None, {
                "id": f"chatcmpl-{nth(Chat, body)}", "object": "chat.completion.chunk", "created": 1700000000,
                "model": body["model"], "choices": [choice], **more,
            }

        yield chunk({"role": "assistant", "content": ""})
        for piece in re.findall(r".{1,7}", text or "", re.S):
            yield chunk({"content": piece})
        for index, (id, name, arguments) in enumerate(calls):
            start = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
            yield chunk({"tool_calls": [start]})
            for piece in re.findall(r".{1,5}", json.dumps(arguments), re.S):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls" if calls else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            last = chunk({})[1]
            yield None, {**last, "choices": [], "usage": Chat.usage(body)}
        yield None, "[DONE]"

    @staticmethod
    def error(status, message):
        kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": f"code_{status}"}}


class Responses:
    """OpenAI responses."""

    error = Chat.error

    @staticmethod
    def history(body):
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        for item in items:
            if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                yield "tool", texts(item["output"])
            elif "role" in item:
                yield item["role"], texts(item.get("content"))

    @staticmethod
    def tools(body):
        return [tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"]

    @staticmethod
    def schema(body):
        return ((body.get("text") or {}).get("format") or {}).get("type") == "json_schema"

    @staticmethod
    def output(text, calls, n):
        items = []
        if text is not None:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            items.append({"type": "message", "id": f"msg_{n}", "status": "completed", "role": "assistant", "content": [part]})
        for id, name, arguments in calls:
            items.append({
                "type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name,
                "arguments": json.dumps(arguments), "status": "completed",
            })
        return items

    @staticmethod
    def whole(body, text, calls, status="completed", output=None):
        n = nth(Responses, body)
        usage = {
            "input_tokens": 10 * n, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 10 * n + 5,
        }
        return {
            "id": f"resp_{n}", "object": "response", "created_at": 1700000000, "status": status, "model": body["model"],
            "output": Responses.output(text, calls, n) if output is None else output, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
            "temperature": 1.0, "tool_choice": "auto", "tools": body.get("tools", []), "top_p": 1.0,
            "usage": usage if status == "completed" else None, "x_unknown": {"kept": [1.50, "é"]},
        }

    @staticmethod
    def events(body, text, calls):
        number = iter(range(10_000))

        def event(kind, **more):
            return kind, {"type": kind, "sequence_number": next(number), **more}

        yield event("response.created", response=Responses.whole(body, None, [], "in_progress", []))
        output = Responses.output(text, calls, nth(Responses, body))
        for index, item in enumerate(output):
            where = {"output_index": index, "item_id": item["id"]}
            if item["type"] == "message":
                part = item["content"][0]
                begun = {**item, "content": [], "status": "in_progress"}
                yield event("response.output_item.added", output_index=index, item=begun)
                empty = {**part, "text": ""}
                yield event("response.content_part.added", **where, content_index=0, part=empty)
                for piece in re.findall(r".{1,7}", part["text"], re.S):
                    yield event("response.output_text.delta", **where, content_index=0, delta=piece, logprobs=[])
                yield event("response.output_text.done", **where, content_index=0, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **where, content_index=0, part=part)
            else:
                begun = {**item, "arguments": "", "status": "in_progress"}
                yield event("response.output_item.added", output_index=index, item=begun)
                for piece in re.findall(r".{1,5}", item["arguments"], re.S):
                    yield event("response.function_call_arguments.delta", **where, delta=piece)
                yield event("response.function_call_arguments.done", **where, arguments=item["arguments"], name=item["name"])
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=Responses.whole(body, text, calls))


class Messages:
    """Anthropic messages."""

    @staticmethod
    def history(body):
        for message in body["messages"]:
            content = message["content"]
            if isinstance(content, str):
                yield message["role"], content
                continue
            for block in content:
                if block["type"] == "tool_result":
                    yield "tool", texts(block.get("content"))
                elif block["type"] == "text":
                    yield message["role"], block["text"]

    @staticmethod
    def tools(body):
        return [tool["name"] for tool in body.get("tools", []) if "input_schema" in tool]

    @staticmethod
    def schema(body):
        return ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get("type") == "json_schema"

    @staticmethod
    def thinks(body):
        last = [text for role, text in Messages.history(body)][-1]
        return "think first" in last

    @staticmethod
    def content(text, calls, thinks):
        blocks = [{"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}] if thinks else []
        blocks += [] if text is None else [{"type": "text", "text": text, "citations": None}]
        return blocks + [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in calls]

    @staticmethod
    def whole(body, text, calls):
        n = nth(Messages, body)
        usage = {"input_tokens": 10 * n, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 0}
        return {
            "id": f"msg_{n}", "type": "message", "role": "assistant", "model": body["model"],
            "content": Messages.content(text, calls, Messages.thinks(body)), "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None, "usage": usage, "x_unknown": {"kept": [1.50, "é"]},
        }

    @staticmethod
    def events(body, text, calls):
        def event(kind, **more):
            return kind, {"type": kind, **more}

        whole = Messages.whole(body, text, calls)
        begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield event("message_start", message=begun)
        yield event("ping")
        for index, block in enumerate(whole["content"]):
            blank = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(block["type"], {"input": {}})
            yield event("content_block_start", index=index, content_block={**block, **blank})
            if block["type"] == "thinking":
                for name, value in [("thinking", block["thinking"]), ("signature", block["signature"])]:
                    yield event("content_block_delta", index=index, delta={"type": f"{name}_delta", name: value})
            elif block["type"] == "text":
                for piece in re.findall(r".{1,7}", block["text"], re.S):
                    yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
            else:
                for piece in re.findall(r".{1,5}", json.dumps(block["input"]), re.S):
                    delta = {"type": "input_json_delta", "partial_json": piece}
                    yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=delta, usage=whole["usage"])
        yield event("message_stop")

    @staticmethod
    def error(status, message):
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(
            status, "invalid_request_error" if status < 500 else "api_error"
        )
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_upstream"}


def decide(wire, body):
    """What to say and which tools to call: (text, calls, status of an error)."""
    history = list(wire.history(body))
    tools = wire.tools(body)
    asked = next((text for role, text in reversed(history) if role == "user"), "")
    script = next((text.split(SCRIPT, 1)[1] for role, text in history if role == "user" and SCRIPT in text), None)
    if script:
        return look_up(json.JSONDecoder().raw_decode(script)[0], tools, [text for role, text in history if role == "tool"])
    if history and history[-1][0] == "tool":
        return "The tool said: " + history[-1][1], [], None
    if failing := re.search(r"error (\d{3})", asked):
        return None, [], int(failing[1])
    own = [name for name in tools if name != "larder_rehydrate"]
    if "all at once" in asked and own:
        calls = [(f"call_{n}", own[0], {"city": city}) for n, city in enumerate(["Paris", "Oslo"])]
        pointer = next((found for role, text in history if role == "tool" and (found := POINTER.search(text))), None)
        if pointer and "larder_rehydrate" in tools:
            calls.insert(1, ("call_back", "larder_rehydrate", {"id": pointer[0], "pattern": "crate 87 "}))
        return None, calls, None
    if "read it back" in asked and "larder_rehydrate" in tools:
        places = [asked.split("read it back")[1]] + [text for role, text in history if role == "tool"]
        found = next((found for place in places if (found := POINTER.search(place))), None)
        return None, [("call_back", "larder_rehydrate", {"id": found[0] if found else "none"})], None
    if "use both tools" in asked and own:
        return None, [(f"call_{n}", own[0], {"city": city}) for n, city in enumerate(["Paris", "Oslo"])], None
    if "use the tool" in asked and own:
        return None, [("call_0", own[0], {"city": "Paris"})], None
    return ('{"name": "Ada", "age": 36}' if wire.schema(body) else HELLO), [], None


def look_up(call, tools, results):
    """The next step of an agent whose tool prints a log: see "Look it up" above."""
    if not results:
        # What agents ask beside the conversation, such as its title, comes without the tool.
        return (None, [("call_0", call["name"], call["arguments"])], None) if call["name"] in tools else (HELLO, [], None)
    if found := LOOKED_FOR.search(results[-1]):
        return f"The log says: {found[0]}", [], None
    pointer = POINTER.search(results[-1])
    if pointer and "larder_rehydrate" in tools:
        return None, [("call_back", "larder_rehydrate", {"id": pointer[0], "pattern": "crate 187 "})], None
    return "The log does not say.", [], None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body of a reply are two writes.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def record(self, raw):
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw.decode("utf-8", "replace")
        entry = {
            "method": self.command, "path": self.path, "headers": self.headers.items(), "body": body,
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
        with RECORD_LOCK, open(self.server.record, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return body

    def json(self, value, status=200, **headers):
        data = json.dumps(value, ensure_ascii=False, separators=(",", ": ")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", "req_upstream")
        self.send_header("x-request-id", "req_upstream")
        self.send_header("x-ratelimit-remaining-requests", "41")
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(data)

    def fault(self, raw):
        """The fault that is to come of a request, if any."""
        found = FAULT.search(raw)
        if not found:
            return None
        with RECORD_LOCK:
            self.server.faults[found[3]] += 1
            return found[1].decode() if self.server.faults[found[3]] <= int(found[2]) else None

    def end_early(self, fault):
        self.close_connection = True
        if fault == "wait":
            self.connection.settimeout(20)
            try:
                left = self.connection.recv(1) == b""
            except ConnectionError:
                left = True
            with RECORD_LOCK, open(self.server.record, "a", encoding="utf-8") as file:
                file.write(json.dumps({"body": {"left": left}}) + "\n")

    def stream(self, events, fault=None):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", "req_upstream")
        self.send_header("x-request-id", "req_upstream")
        self.end_headers()
        for at, (name, data) in enumerate(events):
            if fault and at == EVENTS_BEFORE:
                return self.end_early(fault)
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
            raw = event.encode()
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            except ConnectionError:
                return self.end_early(fault)
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        self.record(b"")
        if self.path.startswith("/v1/models"):
            model = {"id": "gpt-mock", "object": "model", "created": 1700000000, "owned_by": "upstream"}
            return self.json({"object": "list", "data": [model]})
        return self.json({"error": {"message": "no such path", "type": "invalid_request_error"}}, 404)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = self.record(raw)
        path = self.path.split("?")[0]
        if self.headers.get("x-answer-plainly"):
            return self.json({})
        if path == "/v1/embeddings":
            many = body["input"] if isinstance(body["input"], list) else [body["input"]]
            as_text = "AACAPwAAAEA="  # 1.0 and 2.0, little-endian, base64
            vector = as_text if body.get("encoding_format") == "base64" else [1.0, 2.0]
            data = [{"object": "embedding", "index": n, "embedding": vector} for n in range(len(many))]
            usage = {"prompt_tokens": 2, "total_tokens": 2}
            return self.json({"object": "list", "data": data, "model": body["model"], "usage": usage})
        if path == "/v1/messages/count_tokens":
            return self.json({"input_tokens": 8})
        if path.startswith("/model/"):
            return self.json({"output": {"message": {"role": "assistant", "content": [{"text": HELLO}]}}, "stopReason": "end_turn"})
        wire = {"/v1/chat/completions": Chat, "/v1/responses": Responses, "/v1/messages": Messages}.get(path)
        if wire is None:
            return self.json({"error": {"message": "no such path", "type": "invalid_request_error"}}, 404)
        fault = self.fault(raw)
        if fault == "streaming":
            fault = "404" if body.get("stream") else None
        if fault and fault.isdigit():
            return self.json(wire.error(int(fault), f"scripted error {fault}"), int(fault), retry_after_ms="10")
        text, calls, status = decide(wire, body)
        if status:
            more = {"retry_after": "7"} if status == 429 else {}
            return self.json(wire.error(status, f"scripted error {status}"), status, **more)
        if body.get("stream"):
            return self.stream(wire.events(body, text, calls), fault)
        return self.json(wire.whole(body, text, calls))


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.record = sys.argv[2]
    server.faults = collections.Counter()
    server.daemon_threads = True
    server.serve_forever()
