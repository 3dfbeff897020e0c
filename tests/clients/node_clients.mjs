// The official Node clients of OpenAI and Anthropic, unmodified, against the gateway with a scripted upstream.
//
//     node node_clients.mjs GATEWAY RECORD      (RECORD: what tests/clients/upstream.py wrote down)
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [gateway, record] = process.argv.slice(2);
// The clients are installed in a folder of their own, which NODE_MODULES_HOME names.
const require = createRequire(pathToFileURL(`${process.env.NODE_MODULES_HOME}/package.json`));
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")));
const { default: Anthropic } = await import(pathToFileURL(require.resolve("@anthropic-ai/sdk")));

const HELLO = "Hello from upstream.";
const NEEDLE = "the seal of crate 87 is broken";
const LONG = Array.from({ length: 120 }, (_, n) =>
  n === 87 ? NEEDLE : `crate ${n} stands in row ${n % 17}, weighs ${(n * 37) % 911} kg and was last seen on day ${n % 31}`,
).join("\n");
const POINTER = /lp1-[0-9a-z]{13}-[0-9a-z]{6}/;
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const chatTool = { type: "function", function: { name: "weather", description: "Tells the weather.", parameters } };
const claudeTool = { name: "weather", description: "Tells the weather.", input_schema: parameters };

const gpt = new OpenAI({ baseURL: `${gateway}/v1`, apiKey: "sk-client", maxRetries: 0 });
const claude = new Anthropic({ baseURL: gateway, apiKey: "sk-client", maxRetries: 0 });
const user = (content) => ({ role: "user", content });
const sent = () => JSON.parse(readFileSync(record, "utf8").trimEnd().split("\n").at(-1)).body;
const fails = async (call) => {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
};

const checks = {
  async chat() {
    const reply = await gpt.chat.completions.create({ model: "gpt-mock", messages: [user("hi")] });
    assert.equal(reply.choices[0].message.content, HELLO);
    const stream = gpt.chat.completions.stream({ model: "gpt-mock", messages: [user("use both tools")], tools: [chatTool] });
    const { tool_calls: calls } = (await stream.finalChatCompletion()).choices[0].message;
    assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments).city), ["Paris", "Oslo"]);
  },
  async chatLong() {
    const call = { id: "call_0", type: "function", function: { name: "weather", arguments: "{}" } };
    const history = [user("Which seal is broken?"), { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_0", content: LONG }];
    const common = { model: "gpt-mock", tools: [chatTool] };
    await gpt.chat.completions.create({ ...common, messages: history });
    const short = sent().messages[2].content;
    assert.ok(short.length < LONG.length / 3);
    const more = [...history, user(`read it back ${POINTER.exec(short)[0]}`)];
    const stream = gpt.chat.completions.stream({ ...common, messages: more });
    const { message } = (await stream.finalChatCompletion()).choices[0];
    assert.ok(message.content.includes(NEEDLE) && !message.tool_calls?.length);
  },
  async responses() {
    assert.equal((await gpt.responses.create({ model: "gpt-mock", input: "hi" })).output_text, HELLO);
    const stream = gpt.responses.stream({ model: "gpt-mock", input: "hi" });
    assert.equal((await stream.finalResponse()).output_text, HELLO);
  },
  async embeddings() {
    const { data } = await gpt.embeddings.create({ model: "e", input: ["a", "b"] });
    assert.deepEqual(data.map((one) => one.embedding), [[1, 2], [1, 2]]);
  },
  async claude() {
    const common = { model: "claude-mock", max_tokens: 64 };
    assert.equal((await claude.messages.create({ ...common, messages: [user("hi")] })).content[0].text, HELLO);
    const stream = claude.messages.stream({ ...common, tools: [claudeTool], messages: [user("use both tools")] });
    assert.deepEqual((await stream.finalMessage()).content.map((block) => block.input.city), ["Paris", "Oslo"]);
    assert.equal((await claude.messages.countTokens({ model: "claude-mock", messages: [user("hi")] })).input_tokens, 8);
  },
  async claudeLong() {
    const use = { type: "tool_use", id: "call_0", name: "weather", input: {} };
    const history = [user("Which seal is broken?"), { role: "assistant", content: [use] },
      user([{ type: "tool_result", tool_use_id: "call_0", content: LONG }])];
    const common = { model: "claude-mock", max_tokens: 64, tools: [claudeTool] };
    await claude.messages.create({ ...common, messages: history });
    const { content } = sent().messages[2].content[0];
    const short = typeof content === "string" ? content : content[0].text;
    assert.ok(short.length < LONG.length / 3);
    const asked = user(`read it back ${POINTER.exec(short)[0]}`);
    const stream = claude.messages.stream({ ...common, messages: [...history, { role: "assistant", content: "Wait." }, asked] });
    const final = await stream.finalMessage();
    assert.ok(final.content.every((block) => block.type === "text") && final.content.at(-1).text.includes(NEEDLE));
  },
  async conversations() {
    const model = "conversation/hello";
    const { data, response } = await gpt.chat.completions.create({ model, messages: [user("one")] }).withResponse();
    assert.equal(data.choices[0].message.content, HELLO);
    const headers = { "x-larder-session": response.headers.get("x-larder-session") };
    const history = [user("one"), { role: "assistant", content: HELLO }, user("two")];
    const stream = gpt.chat.completions.stream({ model, messages: history });
    assert.equal((await stream.finalChatCompletion()).choices[0].message.content, HELLO);
    const ask = claude.messages.stream({ model, max_tokens: 64, messages: [user("three")] }, { headers });
    assert.equal((await ask.finalMessage()).content[0].text, HELLO);
    assert.deepEqual(sent().messages.map((message) => message.role),
      ["system", "user", "assistant", "user", "assistant", "user"]);
    assert.ok(sent().messages.at(-1).content.trimEnd().endsWith('User message: "three"'));
  },
  async errors() {
    for (const [status, kind] of [[400, OpenAI.BadRequestError], [429, OpenAI.RateLimitError], [500, OpenAI.InternalServerError]]) {
      const error = await fails(gpt.chat.completions.create({ model: "gpt-mock", messages: [user(`error ${status}`)] }));
      assert.ok(error instanceof kind, `${error}`);
      assert.equal(error.status, status);
    }
    const error = await fails(claude.messages.create({ model: "claude-mock", max_tokens: 9, messages: [user("error 429")] }));
    assert.ok(error instanceof Anthropic.RateLimitError && error.message.includes("scripted error 429"));
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      node ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  node ${name}: ${String(error.stack).slice(0, 700)}`);
  }
}
process.exit(failed ? 1 : 0);
