#!/usr/bin/env python3
"""pydantic-ai: an agent that looks up a line in a log, in each format, whole and streamed. Prints what its user sees.

    pydantic_ai_agents.py BASE
"""
import asyncio
import json
import sys

import anthropic
import openai
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from crates import ASKED, LOG, runs

base = sys.argv[1]
gpt = OpenAIProvider(openai_client=openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="sk-client", max_retries=0))
claude = AnthropicProvider(
    anthropic_client=anthropic.AsyncAnthropic(base_url=base, api_key="sk-client", max_retries=0)
)
MODELS = {
    "chat": OpenAIChatModel("gpt-5.2", provider=gpt),
    "responses": OpenAIResponsesModel("gpt-5.2", provider=gpt),
    "messages": AnthropicModel("claude-sonnet-4-5", provider=claude),
}


def read_log(path: str) -> str:
    """Reads a log."""
    return LOG


def report(result):
    replies = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
    return {
        "text": result.output,
        "replies": [
            {
                "id": reply.provider_response_id,
                "finish": reply.finish_reason,
                "details": reply.provider_details and {k: v for k, v in reply.provider_details.items() if k != "timestamp"},
                "usage": [reply.usage.input_tokens, reply.usage.cache_read_tokens, reply.usage.output_tokens],
                "parts": [[part.part_kind, getattr(part, "args", None), getattr(part, "id", None)] for part in reply.parts],
            }
            for reply in replies
        ],
    }


async def main():
    reports = {}
    for api, model in MODELS.items():
        agent = Agent(model, tools=[read_log])
        reports[f"{api} whole"] = report(await agent.run(ASKED))
        events, result = [], None
        async with agent.run_stream_events(ASKED) as stream:
            async for event in stream:
                events.append(event.event_kind)
                result = getattr(event, "result", result)
        reports[f"{api} streamed"] = {**report(result), "events": runs(events)}
    print(json.dumps(reports, default=str))


asyncio.run(main())
