#!/usr/bin/env python3
"""OpenAI's agents SDK: an agent that looks up a line in a log, by chat completions and responses, whole and streamed.
Prints what its user sees.

    agents_sdk.py BASE
"""
import asyncio
import json
import sys

import agents
import openai

from crates import ASKED, LOG, runs

agents.set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="sk-client", max_retries=0)
MODELS = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}


@agents.function_tool
def read_log(path: str) -> str:
    """Reads a log."""
    return LOG


def report(result):
    return {
        "text": result.final_output,
        "items": [[item.type, getattr(item.raw_item, "type", None)] for item in result.new_items],
        "replies": [
            {"id": reply.response_id, "output": [item.model_dump() for item in reply.output], "usage": usage(reply.usage)}
            for reply in result.raw_responses
        ],
    }


def usage(usage):
    cached = usage.input_tokens_details.cached_tokens
    return {"input": usage.input_tokens, "cached": cached, "output": usage.output_tokens, "requests": usage.requests}


async def main():
    reports = {}
    for api, model in MODELS.items():
        asked = model(model="gpt-5.2", openai_client=client)
        # Left to itself, it asks no server but OpenAI's for the usage of a stream.
        settings = agents.ModelSettings(include_usage=True)
        agent = agents.Agent(name="clerk", tools=[read_log], model=asked, model_settings=settings)
        reports[f"{api} whole"] = report(await agents.Runner.run(agent, ASKED))
        result = agents.Runner.run_streamed(agent, ASKED)
        events = []
        async for event in result.stream_events():
            events.append(event.data.type if event.type == "raw_response_event" else event.type)
        reports[f"{api} streamed"] = {**report(result), "events": runs(events)}
    print(json.dumps(reports))


asyncio.run(main())
