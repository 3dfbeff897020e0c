"""Holds Larder's MCP server to the client of the official Python package: every tool, prompts, resources, errors,
progress, cancellation and parallel calls, in the protocol's older lifecycle (initialize) and in its newer one.

    check.py --larder PATH                    over standard input and output: starts `larder mcp` itself
    check.py --http 'COMMAND'                 over HTTP: starts COMMAND, in which {project}, {home} and {port} are filled in
    check.py --http 'COMMAND' --conformance 'COMMAND'    the protocol's conformance suite instead of the Python client
    check.py --url URL                        over HTTP, against a server that runs; a key comes from MCP_TOKEN

A stub of a provider on the loopback address plays the model. With --url the model is the server's own and is not asked.
"""

import argparse
import contextlib
import http.server
import json
import os
import shlex
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import anyio
import httpx2
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

TOOLS = ["rehydrate", "search", "ask", "condense", "count", "explain"]
FAILURE = "2026-01-01T00:11:40Z ERROR payment of 42.50 EUR failed: card declined"
LOG = "".join(
    f"{FAILURE}\n" if at == 700 else f"2026-01-01T00:{at // 60 % 60:02}:{at % 60:02}Z INFO request {at} served\n"
    for at in range(1000)
)
ORDERS = json.dumps({"orders": [{"id": 7, "name": "lamp"}, {"id": 8, "name": "chair"}]})
GUIDE = "# Guide\n\nThe budget is enforced by the packer before a request leaves.\n"
HANG = "How long does it hang?"
# Scenarios of the conformance suite that ask for nothing but the protocol; the others call tools of the suite's own.
SCENARIOS = """
server-initialize server-session-lifecycle server-stateless ping completion-complete tools-list server-sse-polling
server-sse-multiple-streams resources-list sep-2164-resource-not-found prompts-list dns-rebinding-protection caching
http-header-validation input-required-result-unsupported-methods
""".split()


class Stub(http.server.BaseHTTPRequestHandler):
    """A provider that says one thing, except that it never answers HANG."""

    asked = threading.Event()
    left = threading.Event()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if HANG in body:
            Stub.asked.set()
            # Nothing more comes from a client unless it goes.
            with contextlib.suppress(OSError):
                self.connection.recv(1)
            Stub.left.set()
            return
        said = json.dumps({"answer": "The budget is enforced by the packer.", "citations": ["p1"]})
        message = {"role": "assistant", "content": said}
        reply = json.dumps({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


def make_project(folder: Path, port: int):
    (folder / "files").mkdir(parents=True)
    (folder / "files/app.log").write_text(LOG)
    (folder / "files/guide.md").write_text(GUIDE)
    (folder / "files/.secret").write_text("hidden")
    (folder / "outside.md").write_text("outside")
    (folder / "files/link.md").symlink_to(folder / "outside.md")
    (folder / "larder.toml").write_text(f"""
[models.layers]
VOICE = "stub"

[models.stub]
provider = "openai"
base_url = "http://127.0.0.1:{port}/v1"
id = "gpt-4o-mini"
window = 8000
max_output = 1000
retries = 0
""")


def text_of(result) -> str:
    return result.content[0].text


async def gives(client, tool, **arguments):
    # The client holds the data to the tool's output schema.
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, arguments, text_of(result))
    return result.structured_content, text_of(result)


async def fails(client, words, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error and words in text_of(result), (tool, arguments, result)


async def refuses(code, call):
    try:
        result = await call
    except MCPError as error:
        assert error.error.code == code, error
        return
    raise AssertionError(f"expected error {code}, got {result}")


async def check_lists(client, modern):
    # A client that is told the version beforehand asks for nothing else at first.
    assert client.server_info is None or client.server_info.name == "larder", client.server_info
    assert client.protocol_version == ("2026-07-28" if modern else "2025-11-25"), client.protocol_version
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", tool
        assert tool.annotations.read_only_hint == (tool.name != "ask"), tool
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["larder://pointer/{id}"]
    assert (await client.list_resources()).resources == []


async def check_tools(client) -> str:
    data, shown = await gives(client, "condense", text=LOG, target_tokens=300, query="payment")
    assert FAILURE in shown and data["text"] == shown and data["tokens"] <= 300 < data["original_tokens"], data
    pointer = data["pointer"]
    assert (await gives(client, "rehydrate", id=pointer, limit=100_000))[1] == LOG
    for part in ({"lines": "701:701"}, {"pattern": "ERROR"}, {"bytes": "0:4"}):
        wanted = "2026" if "bytes" in part else f"{FAILURE}\n"
        assert (await gives(client, "rehydrate", id=pointer, **part))[1] == wanted, part
    for gap in data["gaps"]:
        start, end = gap["bytes"]
        back = (await gives(client, "rehydrate", id=gap["pointer"], limit=100_000))[1]
        assert back.encode() == LOG.encode()[start:end], gap
    orders = (await gives(client, "condense", text=ORDERS, target_tokens=1000))[0]["pointer"]
    assert (await gives(client, "rehydrate", id=orders, path="$.orders[1].name"))[1] == '"chair"'
    data, _ = await gives(client, "search", pattern="ERROR|FATAL", sources=[pointer])
    assert [found["lines"] for found in data["found"]] == [[701, 701]] and not data["more"], data
    data, _ = await gives(client, "search", query="which payment failed?", sources=[pointer, orders], most=3)
    assert FAILURE in data["found"][0]["text"] and data["more"], data
    assert (await gives(client, "count", text="one two three", model="gpt-4o"))[0]["tokens"] == 3
    assert (await gives(client, "count", source=pointer, limit=10))[0]["over_limit"]
    document = {"input": "document", "source": LOG}
    data, shown = await gives(
        client, "explain", recipe="summarize/summarize", query="What failed?", documents=[document]
    )
    assert data["fits"] and data["used"] <= data["available"] and "condensed" in shown, data
    await fails(client, "not a pointer", "rehydrate", id="lp1-nonsense")
    await fails(client, "copy it exactly", "rehydrate", id="lp1-0000000000000-000000")
    await fails(client, "narrow it", "rehydrate", id=pointer, limit=100)
    await fails(client, "one of lines", "rehydrate", id=pointer, lines="1:2", pattern="a")
    await fails(client, "unknown field", "rehydrate", id=pointer, line="1:2")
    await fails(client, "missing field", "condense", text="a")
    await fails(client, "ask/answer", "ask", question="Who?", sources=[pointer], recipe="ask/anser")
    await fails(client, "pattern", "search", pattern="(", sources=[pointer])
    for name in ("/etc/passwd", "../outside.md", "missing.md"):
        await fails(client, "open to this server", "count", source=name)
    await refuses(-32602, client.call_tool("delete", {}))
    return pointer


async def check_files(client):
    data, shown = await gives(client, "search", pattern="ERROR")
    assert [found["source"] for found in data["found"]] == ["app.log"] and data["read"]["files"] == 2, data
    data, _ = await gives(client, "search", query="Who enforces the budget?", sources=["."], most=1)
    assert data["found"][0]["source"] == "guide.md", data
    assert (await gives(client, "count", source="guide.md"))[0]["bytes"] == len(GUIDE)
    for name in (".secret", "link.md", "../larder.toml", "../home/key"):
        await fails(client, "open to this server", "count", source=name)


async def check_prompts(client, pointer):
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    arguments = {argument.name: argument for argument in prompts["summarize/summarize"].arguments}
    assert arguments["query"].required and "document" in arguments, arguments
    got = await client.get_prompt("summarize/summarize", {"query": "What failed?", "document": pointer})
    text = "".join(message.content.text for message in got.messages)
    assert "What failed?" in text and FAILURE in text and len(text) < len(LOG) / 2, text
    at = text.index("lp1-")
    read = await client.read_resource(f"larder://pointer/{text[at:at + 24]}")
    assert read.contents[0].text == LOG, "the prompt's pointer gives the document back"
    await refuses(-32602, client.get_prompt("summarize/nothing", {}))
    await refuses(-32602, client.get_prompt("summarize/summarize", {"query": "What failed?"}))
    await refuses(-32602, client.get_prompt("summarize/summarize", {"query": "?", "document": "/etc/passwd"}))


async def check_resources(client, pointer, modern):
    part = await client.read_resource(f"larder://pointer/{pointer}#L701-701")
    assert part.contents[0].text == f"{FAILURE}\n", part
    missing = -32602 if modern else -32002
    await refuses(missing, client.read_resource("larder://pointer/lp1-0000000000000-000000"))
    await refuses(missing, client.read_resource("file:///etc/passwd"))


async def check_ask(client, pointer):
    guide = (await gives(client, "condense", text=GUIDE, target_tokens=1000))[0]["pointer"]
    steps = []

    async def progress(step, total, message):
        steps.append((step, message))

    arguments = {"question": "Who enforces the budget?", "sources": [guide]}
    result = await client.call_tool("ask", arguments, progress_callback=progress)
    assert not result.is_error, text_of(result)
    claim = result.structured_content["claims"][0]
    assert result.structured_content["answer"] == "The budget is enforced by the packer." and claim["supported"]
    assert "enforced by the packer" in (await gives(client, "rehydrate", id=claim["pointer"]))[1]
    numbers = [step for step, _ in steps]
    assert len(steps) >= 3 and numbers == sorted(set(numbers)), steps
    assert any(message == "asking stub" for _, message in steps), steps

    Stub.asked.clear()
    Stub.left.clear()
    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as tasks:
            async def hang():
                await client.call_tool("ask", {"question": HANG, "sources": [guide]})
                raise AssertionError("a model that says nothing was answered for")

            tasks.start_soon(hang)
            await anyio.to_thread.run_sync(Stub.asked.wait, 20)
            tasks.cancel_scope.cancel()
    assert not scope.cancelled_caught and Stub.asked.is_set()
    gone = await anyio.to_thread.run_sync(Stub.left.wait, 20)
    assert gone, "a cancelled question leaves the model alone"
    assert (await gives(client, "count", text="a"))[0]["tokens"] == 1


async def check_parallel(client):
    async def one(at):
        data, _ = await gives(client, "count", text="word " * at)
        assert data["bytes"] == 5 * at, (at, data)

    async with anyio.create_task_group() as tasks:
        for at in range(1, 33):
            tasks.start_soon(one, at)


async def check(server, mode, has_files, has_model):
    modern = mode != "legacy"
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        await check_lists(client, modern)
        pointer = await check_tools(client)
        if has_files:
            await check_files(client)
        await check_prompts(client, pointer)
        await check_resources(client, pointer, modern)
        if has_model:
            await check_ask(client, pointer)
        await check_parallel(client)


async def check_modes(make_server, has_files, has_model):
    for mode in ("legacy", "2026-07-28", "auto"):
        started = time.monotonic()
        async with make_server() as server:
            await check(server, mode, has_files, has_model)
        print(f"passed: mode {mode} ({time.monotonic() - started:.1f} s)", flush=True)


def over_http(url):
    @contextlib.asynccontextmanager
    async def make():
        token = os.environ.get("MCP_TOKEN")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            yield streamable_http_client(url, http_client=http_client)

    return make


def conform(suite, url, scratch):
    """Runs the scenarios; a check that fails only for want of a tool of the suite's own says so."""
    failures = []
    for scenario in SCENARIOS:
        results = Path(scratch, scenario)
        command = [*suite, "server", "--url", url, "--scenario", scenario, "--output-dir", str(results)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False)
        files = list(results.glob("**/checks.json"))
        checks = [check for file in files for check in json.loads(file.read_text())]
        passed = sum(check["status"] == "SUCCESS" for check in checks)
        failed = [
            (check["id"], check.get("errorMessage")) for check in checks
            if check["status"] == "FAILURE" and not (check.get("errorMessage") or "").startswith("Not testable")
        ]
        print(f"{scenario}: {passed} passed, {len(failed)} failed", flush=True)
        failures += failed if checks else [(scenario, "no results")]
    assert not failures, failures


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def started(command, port):
    process = subprocess.Popen(command)
    try:
        for _ in range(300):
            assert process.poll() is None, f"{command} ended"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--larder")
    parser.add_argument("--http")
    parser.add_argument("--conformance")
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.url:
        anyio.run(check_modes, over_http(options.url), False, False)
        return
    stub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    stub.daemon_threads = True
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        project, home = Path(scratch, "project"), Path(scratch, "home")
        make_project(project, stub.server_port)
        if options.http:
            port = free_port()
            filled = options.http.format(project=project, home=home, port=port)
            url = f"http://127.0.0.1:{port}/mcp"
            with started(shlex.split(filled), port):
                if options.conformance:
                    conform(shlex.split(options.conformance), url, scratch)
                else:
                    anyio.run(check_modes, over_http(url), False, True)
            return
        files = str(project / "files")
        args = ["--home", str(home), "--project", str(project), "mcp", "--root", files]

        @contextlib.asynccontextmanager
        async def make():
            yield StdioServerParameters(command=options.larder, args=args, cwd=str(project))

        anyio.run(check_modes, make, True, True)


main()
