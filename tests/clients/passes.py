#!/usr/bin/env python3
"""Sends an instance of every kind of object that the clients' types know through the gateway, made from the types, and
compares with the table of fields: the body reaches the upstream byte for byte, and a long text in a field raises the
count of the prompt as the field's rule says.

    passes.py GATEWAY RECORD
"""
import collections
import hashlib
import http.client
import json
import pathlib
import sys
import typing
import urllib.parse

import fields

GATEWAY, RECORD = urllib.parse.urlsplit(sys.argv[1]).netloc, pathlib.Path(sys.argv[2])
WORDS = 1_000
LONG = "word " * WORDS
PATHS = {
    "chat completions": ("/v1/chat/completions", "gpt-5.2"),
    "responses": ("/v1/responses", "gpt-5.2"),
    "messages and count_tokens": ("/v1/messages", "claude-sonnet-4-5"),
}
# Rules under which a long text in a field of the kind leaves the count nearly as it is: what is charged depends on
# something else.
FLAT = {"picture": 400, "file": 400, "sound": 400}
UNCOUNTED = {"setting", "model", "stream", "reply length", "header", "held", "breakpoint", "unseen"}
AS_TEXT = {"tool", "schema", "JSON"}
# Of an object of these kinds only the fields with its content count, the first that it has.
CONTENT = {
    "text": ["content", "text"], "result": ["content", "text", "output"], "call": ["arguments", "input"],
    "thought": ["encrypted_content", "thinking", "data"],
}


def value(hint, depth=0):
    """A small value of a type."""
    hint = fields.bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, fields.types.UnionType):
        return value(next(one for one in arguments if one is not type(None)), depth)
    if origin in (list, tuple, collections.abc.Iterable, collections.abc.Sequence):
        return [value(arguments[0], depth + 1)] if depth < 6 else []
    if origin in (dict, collections.abc.Mapping) or hint in (object, typing.Any, dict):
        return {}
    if fields.is_object(hint):
        return instance(hint, depth + 1)
    return {str: "text", bool: True, int: 1, float: 0.5}.get(hint, "text")


def instance(kind, depth=0, whole=False):
    """An object of a kind, with the fields that it must have, or all."""
    return {name: value(hint, depth) for name, hint in fields.fields(kind).items() if whole or is_required(hint)}


def is_required(hint):
    return typing.get_origin(hint) is typing.Required or typing.get_origin(hint) is fields.typing_extensions.Required


def holding(hint, kind, inner):
    """A value of a type that has an object of a kind, here `inner`, as one of its possibilities."""
    hint = fields.bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, fields.types.UnionType):
        return holding(next(one for one in arguments if kind in fields.members(one)), kind, inner)
    if origin in (list, tuple, collections.abc.Iterable, collections.abc.Sequence):
        return [holding(arguments[0], kind, inner)]
    if origin in (dict, collections.abc.Mapping):
        return {"name": holding(arguments[1], kind, inner)}
    return inner


def objects(root):
    """Every kind of object that a body leads to, at its first place, as fields.walk finds them: its place, type, and a
    function that gives a body with an object of the kind."""
    seen, queue = set(), collections.deque([("", root, lambda inner: inner)])
    while queue:
        place, kind, body = queue.popleft()
        if kind in seen:
            continue
        seen.add(kind)
        yield place, kind, body
        for field, hint in fields.fields(kind).items():
            for inner in fields.members(hint):
                if fields.is_object(inner) and inner not in seen:
                    def within(held, kind=kind, field=field, hint=hint, inner=inner, body=body):
                        return body({**instance(kind), field: holding(hint, inner, held)})
                    queue.append((f"{fields.name(kind)}.{field}".lstrip("."), inner, within))


class Gateway:
    def __init__(self):
        self.connection = http.client.HTTPConnection(GATEWAY, timeout=30)

    def send(self, heading, body):
        """The bytes that were sent, and the tokens that the gateway counted."""
        path, model = PATHS[heading]
        # Spacing that no writer of JSON would choose.
        asked = {"input": "text"} if heading == "responses" else {}
        asked = {**asked, **body, "model": model, "stream": False}
        raw = json.dumps(asked, ensure_ascii=False, separators=(" ,", ":  ")).encode()
        headers = {
            "content-type": "application/json", "authorization": "Bearer sk-client", "x-answer-plainly": "1",
            "anthropic-version": "2023-06-01",
        }
        self.connection.request("POST", path, raw, headers)
        reply = self.connection.getresponse()
        said = reply.read()
        if reply.status != 200:
            raise ValueError(f"status {reply.status}: {said[:300].decode()}")
        return raw, int(reply.getheader("x-larder-tokens-before") or 0)


def texts(kind):
    """The fields of a kind that may be any text."""
    return [name for name, hint in fields.fields(kind).items() if str in list(fields.members(hint))]


def expected(rule, field, free):
    """The least and the most by which a long text in a field raises the count."""
    # Where the tokenizer is not public, the estimate of the worst case.
    most = 3 * WORDS
    if rule in FLAT:
        return 0, FLAT[rule]
    if rule in UNCOUNTED:
        return 0, 0
    if rule in AS_TEXT:
        return WORDS * 9 // 10, most
    if rule in CONTENT:
        content = next((name for name in CONTENT[rule] if name in free), None)
        return (WORDS * 9 // 10, most) if field == content else (0, most)
    return 0, most


def main():
    table, gateway, wrong, sent, counted = fields.read(), Gateway(), [], [], 0
    for heading in PATHS:
        rows, seen = fields.rows(table, heading), set()
        for root in fields.roots()[heading]:
            if root.__name__ != "InputTokenCountParams" and "Count" not in root.__name__:
                for place, kind, body in objects(root):
                    name = fields.name(kind)
                    if (place, name, kind) in seen or (place, name) not in rows:
                        continue
                    seen.add((place, name, kind))
                    row = rows[place, name]
                    where = f"{heading}: {place or 'the body'} {name}".rstrip()
                    try:
                        whole = instance(kind, whole=True)
                        raw, base = gateway.send(heading, body(whole))
                        sent.append((where, hashlib.sha256(raw).hexdigest()))
                        free = texts(kind)
                        for field in free:
                            rule = row[4].get(field, row[3]) if len(row) > 4 else row[3]
                            if rule in ("model", "stream"):
                                continue
                            long = holding_text(fields.fields(kind)[field])
                            grown = gateway.send(heading, body({**whole, field: long}))[1] - base
                            sent.append(None)
                            least, most = expected(rule, field, free)
                            counted += 1
                            if not least <= grown <= most:
                                wrong.append(f"{where}.{field}: {grown} tokens for {WORDS} words, as {rule}")
                    except Exception as error:  # noqa: BLE001: every kind reports
                        wrong.append(f"{where}: {type(error).__name__}: {error}")
    got = {json.loads(line).get("sha256") for line in RECORD.read_text(encoding="utf-8").splitlines()}
    bodies = [one for one in sent if one]
    wrong += [f"{where}: the upstream got other bytes" for where, digest in bodies if digest not in got]
    print(f"{'FAILED' if wrong else 'ok':7} {len(bodies)} kinds pass byte for byte, {counted} fields are counted by their rule")
    for line in wrong:
        print("          " + line)
    return 1 if wrong else 0


def holding_text(hint):
    """A long text as a value of a type that may be text."""
    return holding(hint, str, LONG)


if __name__ == "__main__":
    sys.exit(main())
