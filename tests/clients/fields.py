#!/usr/bin/env python3
"""Compares the table of fields in the docs with the types of OpenAI's and Anthropic's Python clients.

    fields.py check             # fails on a kind or field of the clients that fields.json lacks, and the reverse
    fields.py update            # writes what the clients have into fields.json; rows without a rule get "?"
    fields.py docs              # writes docs/reference/fields.md

fields.json is the table: which kinds of objects a request may have, the fields of each, and the rule by which the
gateway counts and treats it. check also fails where the page is not what the table gives, and where a field is said to be
condensed although it holds only objects that never are.
"""
import collections
import json
import pathlib
import sys
import types
import typing

import pydantic
import typing_extensions

HERE = pathlib.Path(__file__).parent
TABLE = HERE / "fields.json"
# Rules of objects that the page leaves out.
LIKE_HOLDER = {"with its holder", "passed"}
INTRODUCTION = """\
# Fields

What the gateway does with each field that the types of OpenAI's and Anthropic's Python clients have, of the versions in `tests/clients/requirements.txt`. The table is `tests/clients/fields.json`; `tests/clients/fields.py check`, which CI runs, fails on a field or kind that the clients have and the table lacks, on a field under `result` that holds only objects under other rules, and on a page that differs from the table.

Whatever is not named as changed is sent byte for byte, in its place and spelling, and so is every field that neither the clients nor the table know; what the gateway does not recognise within a message is counted as its JSON text. Headers pass both ways, except those of the connection and, where Larder holds the provider's key, the client's key. Responses over a WebSocket are not served: the status 426 sends clients to HTTP. A place is written as the member that holds the object, behind the kind of object that this is a member of; objects of a kind that occurs in several places are listed at the first. Objects within the listed ones go with what holds them; `fields.json` lists them too.
"""
PAGE = HERE.parent.parent / "docs" / "reference" / "fields.md"


def roots():
    """What is walked: heading → types."""
    from anthropic.types import message_count_tokens_params, message_create_params
    from anthropic.types.beta import message_count_tokens_params as beta_count_tokens_params
    from anthropic.types.beta import message_create_params as beta_create_params
    from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
    from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
    from openai.types.responses import Response, ResponseStreamEvent, input_token_count_params, response_create_params

    chat, responses = completion_create_params, response_create_params
    return {
        "chat completions": [chat.CompletionCreateParamsStreaming],
        "responses": [responses.ResponseCreateParamsStreaming, input_token_count_params.InputTokenCountParams],
        "messages and count_tokens": [
            message_create_params.MessageCreateParamsStreaming,
            message_count_tokens_params.MessageCountTokensParams,
            beta_create_params.MessageCreateParamsStreaming,
            beta_count_tokens_params.MessageCountTokensParams,
        ],
        "replies of chat completions": [ChatCompletion, ChatCompletionChunk],
        "replies of responses": [Response, ResponseStreamEvent],
        "headers": [],
        "replies of messages": [BetaMessage, BetaRawMessageStreamEvent],
    }


def headers():
    """The headers that the clients send by themselves, and those of a request that their methods name."""
    import anthropic
    import openai

    clients = [openai.OpenAI(api_key="k", organization="o", project="p"), anthropic.Anthropic(api_key="k")]
    names = {name.lower() for client in clients for name in {**client.default_headers, **client.auth_headers}}
    return names | {"anthropic-beta", "anthropic-user-profile-id", "authorization", "x-api-key", "idempotency-key"}


def found(heading, kinds):
    """What the clients have under a heading: (place, name) → fields."""
    return {("", name): set() for name in headers()} if heading == "headers" else walk(kinds)


def bare(kind):
    """A type without Required, Annotated and the like."""
    while True:
        origin = typing.get_origin(kind)
        if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing.Annotated, typing.Final):
            kind = typing.get_args(kind)[0]
        elif isinstance(kind, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()):
            kind = kind.__value__
        elif isinstance(kind, typing_extensions.TypeAliasType):
            kind = kind.__value__
        else:
            return kind


def members(kind):
    """The types that a value may have, with those of elements: objects and everything else."""
    kind = bare(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        for one in typing.get_args(kind):
            yield from members(one)
    elif origin in (list, tuple, dict, collections.abc.Iterable, collections.abc.Sequence, collections.abc.Mapping):
        for one in typing.get_args(kind):
            yield from members(one)
    else:
        yield kind


def is_object(kind):
    return typing_extensions.is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, pydantic.BaseModel))


def fields(kind):
    """The fields of an object by their name in JSON."""
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return {alias(hint) or name: hint for name, hint in hints.items()}
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def alias(hint):
    """The name of a field in JSON, or of its header, where the client's own differs."""
    while typing.get_origin(hint) in (typing_extensions.Required, typing_extensions.NotRequired):
        hint = typing.get_args(hint)[0]
    known = getattr(hint, "__metadata__", ())
    return next((one.alias for one in known if getattr(one, "alias", None)), None)


def name(kind):
    """What tells an object from others at its place: its type or role."""
    for tag in ("type", "role", "object"):
        values = [bare(hint) for key, hint in fields(kind).items() if key == tag]
        literal = [value for hint in values for value in members(hint) if typing.get_origin(value) is typing.Literal]
        if literal:
            values = [str(value) for one in literal for value in typing.get_args(one)]
            return " ".join(values) if len(values) < 4 else tag
    return ""


def walk(kinds):
    """Every object that these types lead to: (place, name) → fields. The place is the name of the member that holds it,
    behind the object that this is a member of."""
    found, seen = {}, set()
    queue = collections.deque(("", kind) for root in kinds for kind in members(root))
    while queue:
        place, kind = queue.popleft()
        if not is_object(kind) or (place, kind) in seen:
            continue
        seen.add((place, kind))
        found.setdefault((place, name(kind)), set()).update(fields(kind))
        for field, hint in fields(kind).items():
            # Same objects at deeper places have the same rule as at the first.
            for inner in members(hint):
                if is_object(inner) and not any(known is inner for _, known in seen):
                    queue.append((f"{name(kind)}.{field}".lstrip("."), inner))
    return found


def contradictions(table, heading, kinds):
    """Fields that the table says are condensed although they hold only objects that it says never are."""
    known, seen = rows(table, heading), set()
    queue = collections.deque(kind for root in kinds for kind in members(root))
    while queue:
        kind = queue.popleft()
        if not is_object(kind) or kind in seen:
            continue
        seen.add(kind)
        for field, hint in fields(kind).items():
            held = [inner for inner in members(hint) if inner is not type(None)]
            queue.extend(held)
            if not held or not all(is_object(inner) for inner in held):
                continue
            within = [known.get((f"{name(kind)}.{field}", name(inner))) for inner in held]
            if None in within:
                continue
            for row in (row for row in known.values() if row[1] == name(kind) and field in row[2]):
                rule = (row[4] if len(row) > 4 else {}).get(field, row[3])
                if rule == "result" and not {"result", "breakpoint", *LIKE_HOLDER} & {inner[3] for inner in within}:
                    yield f"{heading}: {row[0] or 'the body'} {row[1]}: {field} is a result, and all that it holds is none"


def read():
    return json.loads(TABLE.read_text(encoding="utf-8"))


def rows(table, heading):
    return {(row[0], row[1]): row for row in table["rows"].get(heading, [])}


def problems(table):
    for heading, kinds in roots().items():
        known, there = rows(table, heading), found(heading, kinds)
        for (place, kind), names in sorted(there.items()):
            where = f"{heading}: {place or 'the body'} {kind}".rstrip()
            if (place, kind) not in known:
                yield f"{where}: a kind that the table lacks, with {', '.join(sorted(names))}"
            elif missing := sorted(names - set(known[place, kind][2])):
                yield f"{where}: fields that the table lacks: {', '.join(missing)}"
            elif gone := sorted(set(known[place, kind][2]) - names):
                yield f"{where}: fields that the clients no longer have: {', '.join(gone)}"
        yield from sorted(set(contradictions(table, heading, kinds)))
        for place, kind in sorted(known.keys() - there.keys()):
            yield f"{heading}: {place or 'the body'} {kind}: the clients no longer have it"
        for row in known.values():
            for rule in [row[3], *(row[4] if len(row) > 4 else {}).values()]:
                if rule not in table["rules"]:
                    yield f"{heading}: {row[0]} {row[1]}: no rule {rule!r}"
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(table):
        yield f"{PAGE.name} is not what the table gives: run tests/clients/fields.py docs"


def update(table):
    for heading, kinds in roots().items():
        known = rows(table, heading)
        table["rows"][heading] = [
            [place, kind, sorted(names), *(known[place, kind][3:] if (place, kind) in known else ["?"])]
            for (place, kind), names in sorted(found(heading, kinds).items())
        ]
    write(table)


def write(table):
    out = ['{\n"rules": ' + json.dumps(table["rules"], indent=1, ensure_ascii=False) + ',\n"rows": {']
    for at, (heading, lines) in enumerate(table["rows"].items()):
        body = ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        out.append(("," if at else "") + f"{json.dumps(heading)}: [\n{body}\n]")
    TABLE.write_text("\n".join(out) + "\n}}\n", encoding="utf-8")


def page(table):
    out = [INTRODUCTION, "## Rules", "", "| rule | counted | touched |", "|---|---|---|"]
    own = {rule: text for rule, text in table["rules"].items() if rule not in LIKE_HOLDER}
    out += [f"| {rule} | {text['counted']} | {text['touched']} |" for rule, text in own.items()]
    for heading, lines in table["rows"].items():
        out += ["", f"## {heading[0].upper()}{heading[1:]}", "", "| where | kind | rule | fields |", "|---|---|---|---|"]
        for place, kind, names, rule, *more in lines:
            other = more[0] if more else {}
            groups = {rule: [field for field in names if field not in other]}
            for field, its in other.items():
                groups.setdefault(its, []).append(field)
            for its, of in sorted(groups.items(), key=lambda pair: pair[0] != rule):
                if (of or not names) and its not in LIKE_HOLDER:
                    named = [f"`{text}`" if text else "" for text in (place, kind)]
                    out.append(f"| {named[0] or ('' if heading == 'headers' else 'the body')} | {named[1]} | {its} | {', '.join(f'`{one}`' for one in of)} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    table, asked = read(), sys.argv[1]
    if asked == "update":
        update(table)
    elif asked == "docs":
        PAGE.write_text(page(table), encoding="utf-8")
    else:
        wrong = list(problems(table))
        print(f"{'FAILED' if wrong else 'ok':7} fields: {sum(map(len, table['rows'].values()))} kinds of objects")
        for line in wrong:
            print("          " + line)
        sys.exit(1 if wrong else 0)
