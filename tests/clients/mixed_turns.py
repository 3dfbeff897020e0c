#!/usr/bin/env python3
"""Turns in which the model calls Larder's tool between two calls of the client's own, whole and streamed, with thoughts,
through the official clients: the client must see its own calls only, and when it sends their results the upstream must
get the whole turn with all three results. Then what Larder's tool cannot be offered with: `n` above 1 and `functions`.

    mixed_turns.py GATEWAY RECORD
"""
import json
import pathlib
import sys

import anthropic
import openai

from python_clients import CHAT_TOOL, CLAUDE_TOOL, LONG, NEEDLE, PARAMETERS, POINTER, RESPONSES_TOOL, checked, sent, user

GATEWAY, RECORD = sys.argv[1], pathlib.Path(sys.argv[2])
gpt = openai.OpenAI(base_url=f"{GATEWAY}/v1", api_key="sk-client", max_retries=0)
claude = anthropic.Anthropic(base_url=GATEWAY, api_key="sk-client", max_retries=0)
CITIES = ["Paris", "Oslo"]
# In the next request Larder's call comes first: the client's are found again by the first of them.
CALLED = ["larder_rehydrate", "weather", "weather"]
RESULT = "sunny in {}"


def chat_history(question):
    call = {"id": "call_9", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    return [
        user("Which seal is broken?"), {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_9", "content": LONG}, user(question),
    ]


def check_chat():
    for streamed in [False, True]:
        history = chat_history("all at once")
        common = {"model": "gpt-mock", "messages": history, "tools": [CHAT_TOOL], "parallel_tool_calls": True}
        if streamed:
            with gpt.chat.completions.stream(**common) as stream:
                reply = stream.get_final_completion()
        else:
            reply = gpt.chat.completions.create(**common)
        choice = reply.choices[0]
        calls = choice.message.tool_calls
        assert [call.function.name for call in calls] == ["weather"] * 2, calls
        assert [json.loads(call.function.arguments)["city"] for call in calls] == CITIES
        assert choice.finish_reason == "tool_calls"
        history.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in history[-1]["tool_calls"]:
            call["function"].pop("parsed_arguments", None)
        history += [{"role": "tool", "tool_call_id": call.id, "content": RESULT.format(n)} for n, call in enumerate(calls)]
        end = gpt.chat.completions.create(**common)
        assert end.choices[0].message.content == "The tool said: " + RESULT.format(1), end.choices[0].message
        turn, *results = sent()["messages"][4:]
        assert [call["function"]["name"] for call in turn["tool_calls"]] == CALLED, turn
        answers = {result["tool_call_id"]: result["content"] for result in results}
        assert NEEDLE in answers.pop("call_back"), answers
        assert answers == {f"call_{n}": RESULT.format(n) for n in range(2)}


def check_responses():
    for streamed in [False, True]:
        history = [
            user("Which seal is broken?"),
            {"type": "function_call", "call_id": "call_9", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_9", "output": LONG}, user("all at once"),
        ]
        common = {"model": "gpt-mock", "input": history, "tools": [RESPONSES_TOOL]}
        if streamed:
            with gpt.responses.stream(**common) as stream:
                reply = stream.get_final_response()
        else:
            reply = gpt.responses.create(**common)
        assert [item.name for item in reply.output] == ["weather"] * 2, reply.output
        assert [json.loads(item.arguments)["city"] for item in reply.output] == CITIES
        history += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
        history += [
            {"type": "function_call_output", "call_id": item.call_id, "output": RESULT.format(n)}
            for n, item in enumerate(reply.output)
        ]
        assert gpt.responses.create(**common).output_text == "The tool said: " + RESULT.format(1)
        items = sent()["input"][4:]
        assert [item["name"] for item in items if item["type"] == "function_call"] == CALLED, items
        answers = {item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"}
        assert NEEDLE in answers.pop("call_back"), answers
        assert answers == {f"call_{n}": RESULT.format(n) for n in range(2)}


def check_claude():
    use = {"type": "tool_use", "id": "call_9", "name": "weather", "input": {}}
    for streamed, thinks in [(False, False), (True, False), (False, True), (True, True)]:
        result = {"type": "tool_result", "tool_use_id": "call_9", "content": LONG}
        question = "think first, then all at once" if thinks else "all at once"
        history = [user("Which seal is broken?"), {"role": "assistant", "content": [use]}]
        history += [user([result, {"type": "text", "text": question}])]
        common = {"model": "claude-mock", "max_tokens": 2_000, "messages": history, "tools": [CLAUDE_TOOL]}
        if thinks:
            common["thinking"] = {"type": "enabled", "budget_tokens": 1_024}
        if streamed:
            with claude.messages.stream(**common) as stream:
                places = [event.index for event in stream if event.type == "content_block_start"]
                reply = stream.get_final_message()
            assert places == list(range(len(reply.content))), places
        else:
            reply = claude.messages.create(**common)
        kinds = ["thinking"] * thinks + ["tool_use"] * 2
        assert [block.type for block in reply.content] == kinds, reply.content
        uses = reply.content[-2:]
        assert [(block.name, block.input["city"]) for block in uses] == [("weather", city) for city in CITIES]
        assert reply.stop_reason == "tool_use"
        history.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]})
        history.append(user([
            {"type": "tool_result", "tool_use_id": block.id, "content": RESULT.format(n)} for n, block in enumerate(uses)
        ]))
        end = claude.messages.create(**common)
        assert end.content[-1].text == "The tool said: " + RESULT.format(1), end.content
        turn, results = sent()["messages"][3:]
        assert [block["name"] for block in turn["content"] if block["type"] == "tool_use"] == CALLED, turn
        assert turn["content"][0]["type"] == ("thinking" if thinks else "tool_use"), turn
        assert not thinks or turn["content"][0] == {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
        answers = {block["tool_use_id"]: block["content"] for block in results["content"]}
        assert NEEDLE in json.dumps(answers.pop("call_back")), answers
        assert answers == {f"call_{n}": RESULT.format(n) for n in range(2)}


def check_choices():
    """With several choices, nothing is hidden and Larder's tool is not offered; each choice may call the client's."""
    reply = gpt.chat.completions.create(model="gpt-mock", messages=chat_history("all at once"), tools=[CHAT_TOOL], n=2)
    body = sent()
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather"] and body["n"] == 2
    assert NEEDLE in body["messages"][2]["content"] and not POINTER.search(json.dumps(body))
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == ["weather"] * 2


def check_functions():
    """With the older `functions`, too. A prompt that does not fit is condensed, and its pointers stay for the client."""
    functions = [{"name": "weather", "description": "Tells the weather.", "parameters": PARAMETERS}]
    call = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    history = [user("Which seal is broken?"), call, {"role": "function", "name": "weather", "content": LONG}]
    gpt.chat.completions.create(model="gpt-mock", messages=history, functions=functions, function_call="auto")
    body = sent()
    assert body["functions"] == functions and "tools" not in body and body["function_call"] == "auto"
    assert NEEDLE in body["messages"][2]["content"] and not POINTER.search(json.dumps(body))
    lines = (f"crate {n} weighs {n * 7919 % 911} kg and was last seen on day {n * 31 % 365}" for n in range(20_000))
    huge = {"role": "function", "name": "weather", "content": "\n".join(lines)}
    gpt.chat.completions.create(model="gpt-mock", messages=[*history, call, huge], functions=functions)
    body = sent()
    assert body["functions"] == functions and "tools" not in body
    assert len(json.dumps(body)) < 500_000 and POINTER.search(json.dumps(body)), len(json.dumps(body))


if __name__ == "__main__":
    sys.exit(checked("mixed turns", globals()))
