// The task of crates/core/benches/pack.rs for two priority renderers from npm: 10,000 one-line parts of about 20
// tokens and five priorities into 3,000 tokens of o200k_base.
//
//     npm install --ignore-scripts && node pack.mjs
//
// `@impowering/priompt` is a maintained fork of `@anysphere/priompt`. Both get a tokenizer that remembers the count
// of every text, filled before the clock starts, so that what is timed is their own work.
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';

const require = createRequire(import.meta.url);
const BUDGET = 3_000;
const items = Array.from({ length: 10_000 }, (_, at) => ({
  text: `item ${at}: the quick brown fox number ${(at * 7919) % 10_007} jumps over the lazy dog at ${at % 24}:${String(at % 60).padStart(2, '0')} and goes home`,
  // As in the benchmark, ties going to the earlier part: priompt takes or leaves all parts of one priority.
  priority: (at % 5) * 20 * 10_000 + (10_000 - at),
}));

const encoding = require('js-tiktoken').getEncoding('o200k_base');
const known = new Map();
const count = (text) => {
  let tokens = known.get(text);
  if (tokens === undefined) known.set(text, (tokens = encoding.encode(text).length));
  return tokens;
};
for (const { text } of items) for (const form of [text, `${text}\n`]) count(form);

async function median(name, rounds, run) {
  const times = [];
  let tokens;
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    tokens = await run();
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  console.log(`${name}: median ${times[rounds >> 1].toFixed(1)} ms, fastest ${times[0].toFixed(1)} ms, ${tokens} of ${BUDGET} tokens`);
}

async function priompt() {
  const { createElement, render } = require('@impowering/priompt');
  const tokenizer = {
    name: 'o200k_base', encodeTokens: (text) => encoding.encode(text), numTokens: count,
    estimateNumTokensFast: count,
    estimateTokensUsingCharCount: (text) => [text.length / 6, text.length / 2],
    getHeaderTokensForMessage: () => [], getEosTokenId: () => 0, getEosToken: () => '',
    applyChatTemplate: () => '', applyChatTemplateTokens: async () => [], shouldAddEosTokenToEachMessage: false,
  };
  await median('priompt (@impowering fork)', 11, async () => {
    const scopes = items.map(({ text, priority }) => createElement('scope', { p: priority }, `${text}\n`));
    const made = await render(scopes, { tokenLimit: BUDGET, tokenizer });
    return made.tokenCount;
  });
}

async function promptTsx() {
  const { PromptElement, PromptRenderer, UserMessage, TextChunk, OutputMode } = require('@vscode/prompt-tsx');
  class Items extends PromptElement {
    render() {
      const chunks = items.map(({ text, priority }) => vscpp(TextChunk, { priority }, `${text}\n`));
      return vscpp(UserMessage, null, ...chunks);
    }
  }
  const tokenizer = {
    mode: OutputMode.Raw,
    tokenLength: (part) => count(part.text ?? ''),
    countMessageTokens: (message) => 4 + message.content.reduce((sum, part) => sum + count(part.text ?? ''), 0),
  };
  await median('@vscode/prompt-tsx', 1, async () => {
    const renderer = new PromptRenderer({ modelMaxPromptTokens: BUDGET }, Items, {}, tokenizer);
    return (await renderer.render()).tokenCount;
  });
}

for (const peer of [priompt, promptTsx]) {
  try {
    await peer();
  } catch (error) {
    console.log(`${peer.name}: ${error?.stack ?? error}`);
  }
}
