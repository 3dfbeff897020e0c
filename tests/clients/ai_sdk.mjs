// The Vercel AI SDK: an agent that looks up a line in a log, in each format, whole and streamed. Prints what its user
// sees.
//
//     node ai_sdk.mjs BASE [faults]
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const base = process.argv[2];
const require = createRequire(pathToFileURL(`${process.env.NODE_MODULES_HOME}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, streamText, stepCountIs, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { z } = await load("zod");

const LOG = Array.from({ length: 400 }, (_, n) =>
  `crate ${n} stands in row ${n % 17}, weighs ${(n * 37) % 911} kg and was last seen on day ${n % 31}`,
).join("\n");
const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "sk-client" });
const anthropic = createAnthropic({ baseURL: `${base}/v1`, apiKey: "sk-client" });
const models = {
  chat: openai.chat("gpt-5.2"),
  responses: openai.responses("gpt-5.2"),
  messages: anthropic("claude-sonnet-4-5"),
};
const tools = {
  read_log: tool({
    description: "Reads a log.",
    inputSchema: z.object({ path: z.string() }),
    execute: async () => LOG,
  }),
};
const prompt = 'Look it up: {"name": "read_log", "arguments": {"path": "crates.log"}}';

// Deltas follow each other; how many there are depends on how the text arrives.
const runs = (kinds) => kinds.filter((kind, at) => kind !== kinds[at - 1]);
const report = (text, steps) => ({
  text,
  steps: steps.map((step) => ({
    finish: step.finishReason,
    usage: step.usage,
    id: step.response.id,
    model: step.response.modelId,
    warnings: step.warnings,
    content: step.content.map((part) => [part.type, part.toolName, part.input, part.text]),
  })),
});

const fault = (kind, times) => `fault ${kind} ${times} times: ${randomUUID()}`;
const shown = (error) => [error.name, error.statusCode, error.message];
const read = async (stream, kinds = [], leave) => {
  for await (const part of stream.fullStream) {
    if (part.type === "error") throw part.error;
    kinds.push(part.type);
    if (part.type === "text-delta") leave?.();
  }
  return kinds;
};
const failing = async (asks) => {
  try {
    return await asks();
  } catch (error) {
    return shown(error);
  }
};

// What the user sees when the upstream fails, and when the user leaves.
if (process.argv[3] === "faults") {
  const reports = {};
  for (const [api, model] of Object.entries(models)) {
    const quiet = { model, onError: () => {} };
    const whole = async (prompt, maxRetries) => (await generateText({ model, prompt, maxRetries })).text;
    const streamed = async (prompt, maxRetries) => {
      const stream = streamText({ ...quiet, prompt, maxRetries });
      const kinds = await read(stream);
      return [await stream.text, runs(kinds)];
    };
    reports[`${api} whole`] = {
      retried: await failing(() => whole(fault(429, 2), 2)),
      overloaded: await failing(() => whole(fault(529, 1), 2)),
      given_up: await failing(() => whole(fault(500, 9), 0)),
      refused: await failing(() => whole(fault(400, 9), 2)),
    };
    const left = new AbortController();
    const kinds = [];
    const leaving = streamText({ ...quiet, prompt: fault("wait", 1), abortSignal: left.signal });
    const leaves = await failing(async () => runs(await read(leaving, kinds, () => left.abort())));
    reports[`${api} streamed`] = {
      retried: await failing(() => streamed(fault(429, 2), 2)),
      refused: await failing(() => streamed(fault(400, 9), 2)),
      cut: await failing(() => streamed(fault("cut", 1), 0)),
      left: [leaves, runs(kinds)],
    };
  }
  console.log(JSON.stringify(reports));
  process.exit(0);
}

const reports = {};
for (const [api, model] of Object.entries(models)) {
  const asked = { model, tools, prompt, stopWhen: stepCountIs(5), maxRetries: 0 };
  const whole = await generateText(asked);
  reports[`${api} whole`] = report(whole.text, whole.steps);
  const kinds = [];
  const stream = streamText(asked);
  await read(stream, kinds);
  reports[`${api} streamed`] = { ...report(await stream.text, await stream.steps), events: runs(kinds) };
}
console.log(JSON.stringify(reports));
