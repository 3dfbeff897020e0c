#!/usr/bin/env python3
"""Larder and Amazon Bedrock, both ways: as a provider, whose signatures the scripted upstream verifies with botocore and
whose credentials come from every usual source; and as a gateway between boto3, an agent of Strands and that upstream.

    check.py LARDER UPSTREAM RECORD SCRATCH [signs]     # `signs`: the program must have the feature `bedrock`
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

import boto3
import botocore
import botocore.config
import botocore.exceptions
from strands import Agent, tool
from strands.models import BedrockModel

LARDER, UPSTREAM, RECORD, SCRATCH, *MUST_SIGN = sys.argv[1:]
RECORD, SCRATCH = pathlib.Path(RECORD), pathlib.Path(SCRATCH)
MODEL = "us.anthropic.claude-3-5-sonnet-20241022-v2:0"
HAIKU = "anthropic.claude-3-5-haiku-20241022-v1:0"
LONG = "".join(f"{n:04} the seal of drawer {n} is intact and was seen by nobody at all\n" for n in range(900))
LONG = LONG.replace("0700 the", "0700 NEEDLE silver: the")
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIAENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "environment/secret"}
BASE = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}


def records():
    return [json.loads(line) for line in RECORD.read_text().splitlines()]


def fresh():
    RECORD.write_text("")


def project(name, settings, output=500):
    folder = SCRATCH / name
    (folder / "recipes/ask").mkdir(parents=True)
    (folder / "larder.toml").write_text(settings)
    (folder / "recipes/ask/say.yaml").write_text(
        "name: say\ndescription: Says something.\nmodel_layer: VOICE\nsystem_prompt: You answer in one sentence.\n"
        f"variables: {{tone: calm}}\ntoken_budget: {{total: 4000, prompt: 500, input: 1000, output: {output}}}\noutput_format: text\n"
    )
    return folder


def table(**more):
    lines = {"provider": "bedrock", "base_url": UPSTREAM, "id": MODEL, "window": 200_000, "max_output": 8_192,
             "capabilities": ["tools", "vision", "cache", "streaming"], "retries": 0, **more}
    written = "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())
    return f'[models.layers]\nVOICE = "sonnet"\n[models.sonnet]\n{written}\n'


def run(folder, environment, *options):
    environment = {**BASE, "LARDER_HOME": str(SCRATCH / "home"), "HOME": str(SCRATCH / "nobody"), **environment}
    done = subprocess.run([LARDER, "run", "say", "-q", "hello", *options], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def signs():
    """Whether the program can sign; one that cannot says how to build one."""
    code, said = run(project("probe", table()), ENVIRONMENT)
    if "--features bedrock" not in said:
        return True
    assert code != 0 and "AWS_BEARER_TOKEN_BEDROCK" in said and not MUST_SIGN, said
    return False


def check_provider_with_a_key():
    folder = project("named-key", table(api_key_env="AWS_BEARER_TOKEN_BEDROCK"))
    fresh()
    code, said = run(folder, {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key"})
    assert code == 0 and "Grüße, 世界!" in said, said
    (record,) = records()
    assert record["key"] == "bearer" and record["path"].endswith("/model/us.anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse"), record
    assert record["body"]["system"][-1] != [] and "hello" in json.dumps(record["body"]["messages"]), record
    code, said = run(folder, {"AWS_BEARER_TOKEN_BEDROCK": "wrong"})
    assert code != 0 and "refused the key" in said, said


def check_conversation_table():
    """The table of conversations that ships: both tiers, the switch to the alternative model, and what a call costs."""
    here = "".join(
        f'[models.{name}]\nbase_url = "{UPSTREAM}"\napi_key_env = "AWS_BEARER_TOKEN_BEDROCK"\n'
        for name in ["sonnet", "haiku", "kimi", "titan"]
    )
    for name, switch, id, cost in [
        # 100 tokens at full price, 60 read from the cache, 10 written to it, 20 of the reply.
        ("primary", "false", "anthropic.claude-3-5-sonnet-20241022-v2%3A0", "0.0006555"),
        ("alternative", "true", "moonshotai.kimi-k2.5", "0.00054"),
    ]:
        fresh()
        folder = project(name, f'[models]\ntable = "conversation"\nuse_alternative = {switch}\n{here}')
        code, said = run(folder, {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key"}, "--format", "json")
        assert code == 0, said
        assert records()[0]["path"] == f"/model/{id}/converse", records()
        said = json.loads(said)
        assert (said["cost"], said["usage"]["input"], said["usage"]["cached_input"]) == (cost, 170, 60), said


def check_thinking():
    """A thinking budget reaches a model that takes one; for another it is a line in the log (R4-9.7)."""
    for capabilities, sent in [(["thinking"], {"thinking": {"type": "enabled", "budget_tokens": 1_500}}), ([], None)]:
        fresh()
        settings = table(api_key_env="AWS_BEARER_TOKEN_BEDROCK", capabilities=capabilities)
        settings = settings.replace('VOICE = "sonnet"', 'VOICE = { model = "sonnet", thinking_budget = 1500 }')
        folder = project(f"thinks-{len(capabilities)}", settings, output=2_000)
        code, said = run(folder, {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key", "LARDER_LOG": "info"})
        assert code == 0, said
        assert records()[0]["body"].get("additionalModelRequestFields") == sent, records()
        assert ("thinking budget ignored" in said) == (sent is None), said


def check_sources_of_credentials():
    files = SCRATCH / "aws"
    files.mkdir()
    (files / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = profile+secret\n"
        "[other]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = profile+secret\n"
    )
    (files / "config").write_text(
        "[profile assumes]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = other\nregion = us-east-1\n"
        f"[profile runs]\ncredential_process = {sys.executable} {files / 'process.py'}\n"
    )
    (files / "process.py").write_text(
        "import json; print(json.dumps({'Version': 1, 'AccessKeyId': 'AKIAENVIRONMENT', 'SecretAccessKey': 'environment/secret'}))"
    )
    (files / "token").write_text("web-identity")
    shared = {"AWS_SHARED_CREDENTIALS_FILE": str(files / "credentials"), "AWS_CONFIG_FILE": str(files / "config")}
    nothing = {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}
    sts = {"AWS_ENDPOINT_URL_STS": UPSTREAM}
    usual = project("usual", table())
    other = project("other", table(aws_profile="other"))
    assumes = project("assumes", table(aws_profile="assumes"))
    runs = project("runs", table(aws_profile="runs"))
    container = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{UPSTREAM}/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-authorization"}
    machine = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": UPSTREAM}
    web = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(files / "token"), "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/w"}
    cases = [
        ("environment", usual, {**nothing, **ENVIRONMENT}, "AKIAENVIRONMENT", "us-east-1"),
        ("another region", usual, {**nothing, **ENVIRONMENT, "AWS_REGION": "eu-central-1"}, "AKIAENVIRONMENT", "eu-central-1"),
        ("shared file", usual, shared, "AKIAPROFILE", "us-east-1"),
        ("profile of the environment", usual, {**shared, **sts, "AWS_PROFILE": "assumes"}, "ASIAROLE", "us-east-1"),
        ("profile of the settings", other, {**shared, **ENVIRONMENT}, "AKIAPROFILE", "us-east-1"),
        ("role of a profile", assumes, {**shared, **sts}, "ASIAROLE", "us-east-1"),
        ("program", runs, shared, "AKIAENVIRONMENT", "us-east-1"),
        ("container", usual, {**nothing, **container}, "ASIACONTAINER", "us-east-1"),
        ("machine", usual, {**nothing, **machine}, "ASIAMACHINE", "us-east-1"),
        ("web identity", usual, {**nothing, **sts, **web}, "ASIAWEB", "us-east-1"),
    ]
    for name, folder, environment, key, region in cases:
        fresh()
        code, said = run(folder, environment)
        assert code == 0 and "Grüße, 世界!" in said, f"{name}: {said}"
        (record,) = records()
        assert (record["key"], record["region"]) == (key, region), (name, record)
    code, said = run(usual, nothing)
    assert code != 0 and "no AWS credentials" in said, said


def port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Gateway:
    def __init__(self, name, settings, environment):
        self.address = f"127.0.0.1:{port()}"
        folder = SCRATCH / name
        folder.mkdir()
        (folder / "larder.toml").write_text(settings)
        environment = {**BASE, "LARDER_HOME": str(SCRATCH / f"{name}-home"), "HOME": str(SCRATCH / "nobody"), **environment}
        self.log = open(SCRATCH / f"{name}.log", "w")
        self.process = subprocess.Popen([LARDER, "serve", "--listen", self.address], cwd=folder, env=environment, stdout=self.log, stderr=self.log)

    def __enter__(self):
        host, number = self.address.split(":")
        for _ in range(400):
            with socket.socket() as client:
                if client.connect_ex((host, int(number))) == 0:
                    return self
            assert self.process.poll() is None, "the gateway ended"
            time.sleep(0.05)
        raise AssertionError("nothing listens")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def options(self, bearer=None):
        """How boto3 asks the gateway: signing with credentials of its own, or with a Bedrock API key, which it sends over
        TLS only, unless it is told to."""
        session = boto3.Session(aws_access_key_id="AKIACLIENT", aws_secret_access_key="client", region_name="us-east-1")
        config = botocore.config.Config(retries={"max_attempts": 1})
        if bearer:
            config = config.merge(botocore.config.Config(signature_version=botocore.UNSIGNED))
            key = lambda request, **_: request.headers.update({"Authorization": f"Bearer {bearer}"})
            session.events.register("before-send.bedrock-runtime.*", key)
        return session, f"http://{self.address}", config

    def client(self, bearer=None):
        session, address, config = self.options(bearer)
        return session.client("bedrock-runtime", endpoint_url=address, config=config)


SETTINGS = f"""
[gateway]
bedrock = "{UPSTREAM}"
%s
[policy]
entry_cap = 300
expected_turns = 1000
[models.little]
provider = "bedrock"
base_url = "{UPSTREAM}"
id = "{HAIKU}"
window = 200_000
max_output = 8_192
%s
[models.vectors]
provider = "bedrock"
base_url = "{UPSTREAM}"
id = "amazon.titan-embed-text-v2:0"
capabilities = ["embedding"]
dimensions = 1024
%s
"""
TOOL = {"toolSpec": {"name": "read_log", "description": "Reads a log.", "inputSchema": {"json": {"type": "object"}}}}


def history(question="Which seal is broken?"):
    return [
        {"role": "user", "content": [{"text": question}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "log_1", "name": "read_log", "input": {"name": "seals"}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "log_1", "content": [{"text": LONG}]}}, {"cachePoint": {"type": "default"}}]},
    ]


def streamed(client, **request):
    """The parts of a reply, joined as agents do, with why it stopped and the usage."""
    blocks, stop, usage = {}, None, None
    for event in client.converse_stream(**request)["stream"]:
        if "contentBlockStart" in event:
            blocks[event["contentBlockStart"]["contentBlockIndex"]] = event["contentBlockStart"]["start"]
        if "contentBlockDelta" in event:
            piece = event["contentBlockDelta"]
            block = blocks.setdefault(piece["contentBlockIndex"], {})
            if "text" in piece["delta"]:
                block["text"] = block.get("text", "") + piece["delta"]["text"]
        stop = event.get("messageStop", {}).get("stopReason", stop)
        usage = event.get("metadata", {}).get("usage", usage)
    assert sorted(blocks) == list(range(len(blocks))), blocks
    return list(blocks.values()), stop, usage


def check_converse(client, key):
    plain = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "hello"}]}], "inferenceConfig": {"maxTokens": 100}}
    fresh()
    reply = client.converse(**plain)
    assert reply["output"]["message"]["content"] == [{"text": "Grüße, 世界!"}], reply
    assert reply["usage"]["cacheReadInputTokens"] == 60, reply
    (record,) = records()
    assert record["key"] == key and "toolConfig" not in record["body"], record
    blocks, stop, usage = streamed(client, **plain)
    assert (blocks, stop, usage["inputTokens"]) == ([{"text": "Grüße, 世界!"}], "end_turn", 100)
    for words, expected in [("be cut", "max_tokens"), ("guard me", "guardrail_intervened")]:
        asked = plain | {"messages": [{"role": "user", "content": [{"text": words}]}]}
        assert client.converse(**asked)["stopReason"] == expected == streamed(client, **asked)[1]
    try:
        streamed(client, **plain | {"messages": [{"role": "user", "content": [{"text": "fail midway"}]}]})
        raise AssertionError("the exception of the stream reaches the client")
    except botocore.exceptions.EventStreamError as error:
        assert "Too many tokens" in str(error), error

    # A long result is condensed, read back, and none of it is seen by the client.
    for whole in [True, False]:
        fresh()
        request = plain | {"messages": history(), "toolConfig": {"tools": [TOOL]}}
        if whole:
            reply = client.converse(**request)
            blocks, stop, usage = reply["output"]["message"]["content"], reply["stopReason"], reply["usage"]
        else:
            blocks, stop, usage = streamed(client, **request)
        assert blocks == [{"text": "Let me look it up."}, {"text": "It is the silver seal."}], blocks
        assert (stop, usage["inputTokens"], usage["outputTokens"]) == ("end_turn", 200, 40), (stop, usage)
        first, second = records()
        assert first["key"] == second["key"] == key
        condensed = first["body"]["messages"][2]["content"][0]["toolResult"]["content"][0]["text"]
        assert len(condensed) < len(LONG) / 5 and "lp1-" in condensed, condensed
        assert first["body"]["messages"][2]["content"][1] == {"cachePoint": {"type": "default"}}
        assert [each["toolSpec"]["name"] for each in first["body"]["toolConfig"]["tools"]] == ["read_log", "larder_rehydrate"]
        assert second["body"]["messages"][:3] == first["body"]["messages"]
        asked, answered = second["body"]["messages"][3:]
        assert asked["content"][1]["toolUse"]["name"] == "larder_rehydrate", asked
        assert "NEEDLE silver" in answered["content"][0]["toolResult"]["content"][0]["text"], answered

    # The next request gets back what its client was not shown.
    fresh()
    reply = client.converse(**plain | {"toolConfig": {"tools": [TOOL]}, "messages": history() + [
        {"role": "assistant", "content": [{"text": "Let me look it up."}, {"text": "It is the silver seal."}]},
        {"role": "user", "content": [{"text": "Thanks."}]},
    ]})
    sent = records()[0]["body"]["messages"]
    assert any("toolUse" in block and block["toolUse"]["name"] == "larder_rehydrate" for message in sent for block in message["content"]), sent

    # A prompt that cannot fit is refused in the words that clients know.
    fresh()
    try:
        client.converse(**plain | {"messages": [{"role": "user", "content": [{"text": "word " * 400_000}]}]})
        raise AssertionError("it is refused")
    except client.exceptions.ValidationException as error:
        assert "Input is too long for requested model" in str(error), error
    assert records() == []


def check_invoke(client, key):
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    def ask(body, model=MODEL):
        return json.loads(client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
    def stream(body):
        events = [json.loads(event["chunk"]["bytes"]) for event in client.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(body))["body"]]
        assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop"), events
        return "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    assert ask(body)["content"][0]["text"] == "Grüße, 世界!" == stream(body)
    tool = {"name": "read_log", "description": "Reads a log.", "input_schema": {"type": "object"}}
    long = body | {"tools": [tool], "messages": [
        {"role": "user", "content": "Which seal is broken?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "log_1", "name": "read_log", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "log_1", "content": LONG}]},
    ]}
    for whole in [True, False]:
        fresh()
        said = "".join(block["text"] for block in ask(long)["content"]) if whole else stream(long)
        assert said == "Let me look it up.It is the silver seal.", said
        first, _ = records()
        assert first["key"] == key and "lp1-" in first["body"]["messages"][2]["content"][0]["content"]
    # Other makers' bodies pass as they are.
    fresh()
    vector = json.loads(client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=json.dumps({"inputText": "x"}))["body"].read())
    assert len(vector["embedding"]) == 1024 and records()[0]["body"] == {"inputText": "x"}


def check_record(client, gateway):
    """What a streamed request leaves: usage over its rounds, its price, and a transcript that people can read."""
    def get(path):
        return json.load(urllib.request.urlopen(f"http://{gateway.address}/api/v1/{path}"))
    streamed(client, modelId=MODEL, messages=history("And which seal is it now?"), toolConfig={"tools": [TOOL]})
    # The record is written once the stream has ended, which its client does not wait for.
    for _ in range(200):
        record = get("exchanges?limit=1")["exchanges"][0]
        if record["wire"] == "converse" and record["stream"]:
            break
        time.sleep(0.02)
    assert (record["wire"], record["stream"], record["outcome"]) == ("converse", True, "ok"), record
    lines = get(f"sessions/{record['session']}/transcript")["messages"]
    used = {key: record["usage"][key] for key in ["input", "cached_input", "cache_write", "output"]}
    assert used == {"input": 340, "cached_input": 120, "cache_write": 20, "output": 40}, record
    assert lines[-1]["text"].startswith("Let me look it up.") and lines[-1]["text"].endswith("It is the silver seal."), lines[-1]
    assert record["bill"]["cost"] == "0.001311", record["bill"]


def check_table(client):
    """A model of the table is asked by its name there; its server knows it by its id."""
    fresh()
    client.converse(modelId="little", messages=[{"role": "user", "content": [{"text": "hello"}]}])
    client.invoke_model(modelId="vectors", body=json.dumps({"inputText": "x"}))
    paths = [record["path"] for record in records()]
    assert paths == ["/model/anthropic.claude-3-5-haiku-20241022-v1%3A0/converse", "/model/amazon.titan-embed-text-v2%3A0/invoke"], paths


def check_strands(gateway, bearer=None):
    @tool
    def read_log(name: str) -> str:
        """Reads a log.

        Args:
            name: Which log.
        """
        return LONG

    for streaming in [True, False]:
        fresh()
        session, address, config = gateway.options(bearer)
        model = BedrockModel(
            boto_session=session, endpoint_url=address, boto_client_config=config, model_id=MODEL, streaming=streaming
        )
        agent = Agent(model=model, tools=[read_log], callback_handler=None)
        result = agent("Which seal is broken? Read the log.")
        assert "It is the silver seal." in str(result), result
        sent = records()
        assert any("lp1-" in json.dumps(record["body"]["messages"]) for record in sent)
        assert "larder_rehydrate" not in json.dumps(agent.messages), agent.messages
        read = [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]
        assert LONG[:100] in json.dumps(read[0]["content"]).encode().decode("unicode_escape"), "the agent keeps its own result"


def check_signed(client):
    fresh()
    for ask in [
        lambda: client.converse(modelId=MODEL, messages=[{"role": "user", "content": [{"text": "hello"}]}]),
        lambda: client.converse_stream(modelId=MODEL, messages=[{"role": "user", "content": [{"text": "hello"}]}]),
        lambda: client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body="{}"),
    ]:
        try:
            ask()
            raise AssertionError("it is refused")
        except client.exceptions.AccessDeniedException as error:
            assert "bedrock_aws_profile" in str(error), error
    assert records() == [], "nothing left"


def main():
    can_sign = signs()
    check_provider_with_a_key()
    check_conversation_table()
    check_thinking()
    if can_sign:
        check_sources_of_credentials()
        profile = 'bedrock_aws_profile = "default"'
        with Gateway("signs", SETTINGS % (profile, *['aws_profile = "default"'] * 2), ENVIRONMENT) as gateway:
            client = gateway.client()
            check_converse(client, "AKIAENVIRONMENT")
            check_invoke(client, "AKIAENVIRONMENT")
            check_record(client, gateway)
            check_table(client)
            check_strands(gateway)
    with Gateway("passes", SETTINGS % ("", "", ""), {}) as gateway:
        check_signed(gateway.client())
        client = gateway.client("bedrock-api-key")
        check_converse(client, "bearer")
        check_invoke(client, "bearer")
        check_table(client)
        check_strands(gateway, "bedrock-api-key")
    print("Bedrock: all well" + ("" if can_sign else " (without signatures, which this build lacks)"))


main()
