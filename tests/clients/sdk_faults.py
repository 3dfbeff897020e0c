#!/usr/bin/env python3
"""The official Python clients of OpenAI and Anthropic when the upstream fails, and when their user leaves. Prints what
their user sees. The agents SDK and pydantic-ai ask through these clients.

    sdk_faults.py BASE faults
"""
import json
import sys

import anthropic
import openai

from crates import fault, runs, shown

base = sys.argv[1]
gpt = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-client")
claude = anthropic.Anthropic(base_url=base, api_key="sk-client")


def user(text):
    return [{"role": "user", "content": text}]


ASK = {
    "chat": lambda text, retries, **more: gpt.with_options(max_retries=retries).chat.completions.create(
        model="gpt-5.2", messages=user(text), **more
    ),
    "responses": lambda text, retries, **more: gpt.with_options(max_retries=retries).responses.create(
        model="gpt-5.2", input=user(text), **more
    ),
    "messages": lambda text, retries, **more: claude.with_options(max_retries=retries).messages.create(
        model="claude-sonnet-4-5", max_tokens=64, messages=user(text), **more
    ),
}


def attempt(ask):
    try:
        return ask()
    except Exception as error:  # noqa: BLE001: what is shown of it is compared
        return shown(error)


def whole(ask, kind, times, retries):
    return attempt(lambda: ask(fault(kind, times), retries).model_dump(mode="json"))


def streamed(ask, kind, times, retries, leaves=False):
    """The kinds of events up to the end or the error; `leaves`: the user leaves at the first."""
    kinds = []

    def read():
        with ask(fault(kind, times), retries, stream=True) as stream:
            for event in stream:
                kinds.append(getattr(event, "type", "chunk"))
                if leaves:
                    return "left"
        return "ended"

    return [attempt(read), runs(kinds)]


reports = {}
for api, ask in ASK.items():
    reports[f"{api} whole"] = {
        "retried": whole(ask, 429, 2, 2),
        "overloaded": whole(ask, 529, 1, 2),
        "given up": whole(ask, 429, 9, 1),
        "refused": whole(ask, 400, 9, 2),
        "failed": whole(ask, 500, 9, 0),
    }
    reports[f"{api} streamed"] = {
        "retried": streamed(ask, 529, 2, 2),
        "refused": streamed(ask, 400, 9, 2),
        "cut": streamed(ask, "cut", 1, 0),
        "left": streamed(ask, "wait", 1, 0, leaves=True),
    }
print(json.dumps(reports))
