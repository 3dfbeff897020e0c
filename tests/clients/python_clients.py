#!/usr/bin/env python3
"""The official Python clients of OpenAI and Anthropic, unmodified, against the gateway with a scripted upstream.

    python_clients.py GATEWAY RECORD      # RECORD: what tests/clients/upstream.py wrote down
"""
import json
import pathlib
import re
import sys

import anthropic
import openai
import pydantic

GATEWAY, RECORD = sys.argv[1], pathlib.Path(sys.argv[2])
HELLO = "Hello from upstream."
NEEDLE = "the seal of crate 87 is broken"
LONG = "\n".join(
    NEEDLE if n == 87 else f"crate {n} stands in row {n % 17}, weighs {n * 37 % 911} kg and was last seen on day {n % 31}"
    for n in range(120)
)
POINTER = re.compile(r"lp1-[0-9a-z]{13}-[0-9a-z]{6}")

gpt = openai.OpenAI(base_url=f"{GATEWAY}/v1", api_key="sk-client", max_retries=0)
claude = anthropic.Anthropic(base_url=GATEWAY, api_key="sk-client", max_retries=0)

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "Tells the weather.", "parameters": PARAMETERS}}
RESPONSES_TOOL = {"type": "function", "name": "weather", "description": "Tells the weather.", "parameters": PARAMETERS, "strict": False}
CLAUDE_TOOL = {"name": "weather", "description": "Tells the weather.", "input_schema": PARAMETERS}


class Person(pydantic.BaseModel):
    name: str
    age: int


def sent():
    """The body that the upstream got last."""
    return json.loads(RECORD.read_text(encoding="utf-8").splitlines()[-1])["body"]


def user(text):
    return {"role": "user", "content": text}


def check_chat():
    ask = gpt.chat.completions
    reply = ask.create(model="gpt-mock", messages=[user("hi")], metadata={"kept": "é"})
    assert reply.choices[0].message.content == HELLO and reply.usage.prompt_tokens == 10
    assert reply.x_unknown == {"kept": [1.5, "é"]}, "unknown fields come back"
    assert sent()["metadata"] == {"kept": "é"}, "unknown fields go up"
    chunks = list(ask.create(model="gpt-mock", messages=[user("hi")], stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == HELLO
    assert chunks[-1].usage.total_tokens == 15
    person = ask.parse(model="gpt-mock", messages=[user("who?")], response_format=Person)
    assert person.choices[0].message.parsed == Person(name="Ada", age=36)
    both = ask.create(model="gpt-mock", messages=[user("use both tools")], tools=[CHAT_TOOL])
    calls = both.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Paris", "Oslo"]
    results = [{"role": "tool", "tool_call_id": call.id, "content": f"sunny in {n}"} for n, call in enumerate(calls)]
    history = [user("use both tools"), both.choices[0].message.model_dump(exclude_none=True), *results]
    end = ask.create(model="gpt-mock", messages=history, tools=[CHAT_TOOL])
    assert end.choices[0].message.content == "The tool said: sunny in 1"
    with ask.stream(model="gpt-mock", messages=[user("use the tool")], tools=[CHAT_TOOL]) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "weather"


def check_chat_long():
    ask = gpt.chat.completions
    call = {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
    history = [user("Which seal is broken?"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    history += [{"role": "tool", "tool_call_id": "call_0", "content": LONG}]
    ask.create(model="gpt-mock", messages=history, tools=[CHAT_TOOL])
    short = sent()["messages"][2]["content"]
    assert len(short) < len(LONG) / 3, f"{len(short)} of {len(LONG)} characters"
    pointer = POINTER.search(short)[0]
    more = history + [{"role": "assistant", "content": "One moment."}, user(f"read it back {pointer}")]
    whole = ask.create(model="gpt-mock", messages=more, tools=[CHAT_TOOL])
    message = whole.choices[0].message
    assert not message.tool_calls, "the client never sees the call"
    assert NEEDLE in message.content, message.content[:300]
    chunks = list(ask.create(model="gpt-mock", messages=more, tools=[CHAT_TOOL], stream=True))
    assert NEEDLE in "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert not any(c.choices[0].delta.tool_calls for c in chunks if c.choices)
    assert len({c.id for c in chunks}) == 1, "one message for the client"
    assert sent()["messages"][2]["content"] == short, "what was decided stays"


def check_responses():
    ask = gpt.responses
    reply = ask.create(model="gpt-mock", input="hi")
    assert reply.output_text == HELLO and reply.usage.input_tokens == 10
    with ask.stream(model="gpt-mock", input="hi") as stream:
        events = list(stream)
        assert stream.get_final_response().output_text == HELLO
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == sorted(
        event.sequence_number for event in events if hasattr(event, "sequence_number")
    )
    assert ask.parse(model="gpt-mock", input="who?", text_format=Person).output_parsed == Person(name="Ada", age=36)
    called = ask.create(model="gpt-mock", input="use the tool", tools=[RESPONSES_TOOL])
    call = called.output[0]
    assert (call.type, call.name) == ("function_call", "weather")
    history = [user("Which seal is broken?"), {"type": "function_call", "call_id": "call_0", "name": "weather", "arguments": "{}"}]
    history += [{"type": "function_call_output", "call_id": "call_0", "output": LONG}]
    ask.create(model="gpt-mock", input=history, tools=[RESPONSES_TOOL])
    short = sent()["input"][2]["output"]
    assert len(short) < len(LONG) / 3
    more = history + [user(f"read it back {POINTER.search(short)[0]}")]
    assert NEEDLE in ask.create(model="gpt-mock", input=more, tools=[RESPONSES_TOOL]).output_text
    with ask.stream(model="gpt-mock", input=more, tools=[RESPONSES_TOOL]) as stream:
        list(stream)
        final = stream.get_final_response()
    assert NEEDLE in final.output_text and all(item.type != "function_call" for item in final.output)


def check_embeddings_and_models():
    vectors = gpt.embeddings.create(model="e", input=["a", "b"]).data
    assert [vector.embedding for vector in vectors] == [[1.0, 2.0]] * 2
    assert len(list(gpt.models.list())) > 0


def check_claude():
    ask = claude.messages
    reply = ask.create(model="claude-mock", max_tokens=64, messages=[user("hi")])
    assert reply.content[0].text == HELLO and reply.usage.cache_read_input_tokens == 3
    with ask.stream(model="claude-mock", max_tokens=64, messages=[user("hi")]) as stream:
        assert "".join(stream.text_stream) == HELLO
    assert ask.count_tokens(model="claude-mock", messages=[user("hi")]).input_tokens == 8
    both = ask.create(model="claude-mock", max_tokens=64, messages=[user("use both tools")], tools=[CLAUDE_TOOL])
    assert [block.input["city"] for block in both.content] == ["Paris", "Oslo"]
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"} for block in both.content]
    history = [user("use both tools"), {"role": "assistant", "content": [b.model_dump() for b in both.content]}, user(results)]
    assert ask.create(model="claude-mock", max_tokens=64, messages=history, tools=[CLAUDE_TOOL]).content[0].text.endswith("sunny")
    with ask.stream(model="claude-mock", max_tokens=64, messages=[user("use the tool")], tools=[CLAUDE_TOOL]) as stream:
        assert stream.get_final_message().content[0].input == {"city": "Paris"}
    parsed = ask.parse(model="claude-mock", max_tokens=64, messages=[user("who?")], output_format=Person)
    assert parsed.parsed_output == Person(name="Ada", age=36)


def check_claude_long():
    ask = claude.messages
    thinking = {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
    use = {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": LONG}]}
    history = [user("Which seal is broken?"), {"role": "assistant", "content": [thinking, use]}]
    history += [user([result, {"type": "text", "text": "Look closely."}])]
    common = {"model": "claude-mock", "max_tokens": 64, "tools": [CLAUDE_TOOL]}
    ask.create(messages=history, **common)
    body = sent()
    assert body["messages"][1]["content"][0] == thinking, "signed blocks are untouched"
    content = body["messages"][2]["content"][0]["content"]
    short = content if isinstance(content, str) else content[0]["text"]
    assert len(short) < len(LONG) / 3
    asked = user(f"read it back {POINTER.search(short)[0]}")
    more = history + [{"role": "assistant", "content": "One moment."}, asked]
    whole = ask.create(messages=more, **common)
    assert whole.stop_reason == "end_turn" and all(block.type == "text" for block in whole.content)
    assert NEEDLE in whole.content[-1].text
    sizes = [one["input_tokens"] for one in whole.model_dump()["usage"]["iterations"]]
    assert sizes == [20, 30] and whole.usage.input_tokens == 50, "the last of the rounds tells how full the window is"
    with ask.stream(messages=more, **common) as stream:
        final = stream.get_final_message()
    assert NEEDLE in final.content[-1].text and all(block.type == "text" for block in final.content)


def check_conversations():
    model, ask = "conversation/hello", gpt.chat.completions
    assert model in [one.id for one in gpt.models.list()]
    first = ask.with_raw_response.create(model=model, messages=[{"role": "system", "content": "Be rude."}, user("one")])
    talk = {"x-larder-session": first.headers["x-larder-session"]}
    assert first.parse().choices[0].message.content == HELLO and first.parse().usage.total_tokens == 15
    history = [user("one"), {"role": "assistant", "content": HELLO}, user("two")]
    with ask.with_streaming_response.create(
        model=model, messages=history, stream=True, stream_options={"include_usage": True}
    ) as second:
        assert second.headers["x-larder-session"] == talk["x-larder-session"], "the history is that of the conversation"
        chunks = list(second.parse())
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == HELLO
    assert chunks[-1].usage.total_tokens == 15
    with ask.stream(model=model, messages=[user("three")], extra_headers=talk) as stream:
        assert stream.get_final_completion().choices[0].message.content == HELLO
    assert gpt.responses.create(model=model, input="four", extra_headers=talk).output_text == HELLO
    with gpt.responses.stream(model=model, input="five", extra_headers=talk) as stream:
        assert stream.get_final_response().output_text == HELLO
    common = {"model": model, "max_tokens": 64, "extra_headers": talk}
    reply = claude.messages.create(messages=[user("six")], **common)
    assert reply.content[0].text == HELLO and reply.stop_reason == "end_turn" and reply.usage.output_tokens == 5
    with claude.messages.stream(messages=[user("seven")], **common) as stream:
        assert "".join(stream.text_stream) == HELLO
    body = sent()
    assert [message["role"] for message in body["messages"]] == ["system"] + ["user", "assistant"] * 6 + ["user"]
    assert [texts_of(body)[at] for at in (0, 1, 11)] == ["Talk with whoever writes.", "one", "six"]
    assert texts_of(body)[-1].endswith('User message: "seven"')
    for kind, call in [
        (openai.NotFoundError, lambda: ask.create(model="conversation/none", messages=[user("hi")])),
        (anthropic.NotFoundError, lambda: claude.messages.create(model="conversation/none", max_tokens=64, messages=[user("hi")])),
        (openai.ConflictError, lambda: ask.create(model=model, messages=[user("zero"), {"role": "assistant", "content": "?"}, user("hi")])),
    ]:
        try:
            call()
            raise AssertionError(f"no {kind.__name__}")
        except kind:
            pass


def check_recipes():
    model, ask = "recipe/talk/brief", gpt.chat.completions
    history = [{"role": "system", "content": "Be kind."}, user("one"), {"role": "assistant", "content": "Yes."}, user("two")]
    whole = ask.with_raw_response.create(model=model, messages=history, n=1, tools=[], temperature=0.7)
    assert whole.parse().choices[0].message.content == HELLO and whole.parse().choices[0].finish_reason == "stop"
    assert whole.headers["x-larder-ignored"] == "temperature"
    assert texts_of(sent()) == ["Answer in one sentence.", "Be kind.", "one", "Yes.", "two"], sent()
    with ask.stream(model=model, messages=history, max_completion_tokens=64) as stream:
        assert stream.get_final_completion().choices[0].message.content == HELLO
    assert gpt.responses.create(model=model, input="two", store=False).output_text == HELLO
    with gpt.responses.stream(model=model, input=history, max_output_tokens=64) as stream:
        assert stream.get_final_response().output_text == HELLO
    common = {"model": model, "max_tokens": 1024, "system": "Be kind.", "messages": history[1:]}
    reply = claude.messages.with_raw_response.create(**common)
    assert reply.parse().content[0].text == HELLO and "x-larder-ignored" not in reply.headers
    with claude.messages.stream(**common) as stream:
        assert "".join(stream.text_stream) == HELLO
    for kind, named, call in [
        (openai.BadRequestError, "n: ", lambda: ask.create(model=model, messages=history, n=2)),
        (openai.BadRequestError, "tools: ", lambda: ask.create(model=model, messages=history, tools=[CHAT_TOOL])),
        (openai.BadRequestError, "response_format: ", lambda: ask.parse(model=model, messages=history, response_format=Person)),
        (openai.BadRequestError, "text.format: ", lambda: gpt.responses.parse(model=model, input="two", text_format=Person)),
        (anthropic.BadRequestError, "stop_sequences: ", lambda: claude.messages.create(stop_sequences=["x"], **common)),
    ]:
        try:
            call()
            raise AssertionError(f"{named} is no error")
        except kind as error:
            assert named in error.message, error


def texts_of(body):
    return [message["content"].strip() for message in body["messages"]]


def check_errors():
    for status, kind in [(400, openai.BadRequestError), (429, openai.RateLimitError), (500, openai.InternalServerError)]:
        try:
            gpt.chat.completions.create(model="gpt-mock", messages=[user(f"error {status}")])
            raise AssertionError(f"no error for {status}")
        except kind as error:
            assert error.status_code == status and f"scripted error {status}" in str(error)
            assert error.response.headers["x-request-id"] == "req_upstream"
            assert status != 429 or error.response.headers["retry-after"] == "7"
    for status, kind in [(400, anthropic.BadRequestError), (429, anthropic.RateLimitError), (529, anthropic.APIStatusError)]:
        try:
            claude.messages.create(model="claude-mock", max_tokens=9, messages=[user(f"error {status}")])
            raise AssertionError(f"no error for {status}")
        except kind as error:
            assert error.status_code == status and error.body["error"]["message"] == f"scripted error {status}"
            assert error.response.headers["request-id"] == "req_upstream"
    too_long = "It goes on and on. " * 400_000
    try:
        gpt.chat.completions.create(model="gpt-mock", messages=[user(too_long)])
        raise AssertionError("a request over the window was sent")
    except openai.APIStatusError as error:
        assert error.status_code in (400, 413) and "token" in str(error).lower(), str(error)[:300]
    try:
        claude.messages.create(model="claude-mock", max_tokens=9, messages=[user(too_long)])
        raise AssertionError("a request over the window was sent")
    except anthropic.APIStatusError as error:
        assert error.status_code in (400, 413) and error.body["type"] == "error", str(error)[:300]


def checked(what, checks):
    """Runs the functions that check something, and returns whether one failed."""
    failed = 0
    for name, check in [(name, check) for name, check in checks.items() if name.startswith("check_")]:
        try:
            check()
            print(f"ok      {what} {name[6:]}")
        except Exception as error:  # noqa: BLE001: every check reports
            failed += 1
            place = error.__traceback__
            while place.tb_next and place.tb_next.tb_frame.f_code.co_filename == check.__code__.co_filename:
                place = place.tb_next
            print(f"FAILED  {what} {name[6:]} line {place.tb_lineno}: {type(error).__name__}: {str(error)[:500]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(checked("python", globals()))
