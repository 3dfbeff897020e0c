// What the client of the dashboard's checks says: an agent that looks into a failed import over the wire of OpenAI's
// chat completions, one that writes release notes over Anthropic's messages, single questions, recipes, and requests
// that go wrong. Everything is made by rule, so that each run has the same bytes; only the book is another one where the
// corpora have it.
import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const CITIES = ["Oslo", "Lyon", "Graz", "Porto", "Gdańsk", "Bergen", "Turin", "Malmö"];
const clock = (second) => {
  const two = (number) => String(number).padStart(2, "0");
  return `2026-11-22 02:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`;
};
const lines = (count, line) => Array.from({ length: count }, (_, at) => line(at)).join("\n");

export const LOG = lines(420, (at) => {
  if (at === 268 || at === 301) {
    return `${clock(at * 4)} ERROR import.worker-${1 + (at % 2)} order batch ${at}: 1205 lock wait timeout exceeded; 40 orders left in state 'pending'`;
  }
  if (at % 61 === 0) return `${clock(at * 4)} WARN  import.worker-2 batch ${at} is slow: ${1200 + ((at * 37) % 4000)} ms`;
  return `${clock(at * 4)} INFO  import.worker-${1 + (at % 2)} batch ${at}: 40 orders from ${CITIES[at % 8]} in ${80 + ((at * 13) % 90)} ms`;
});

const ORDERS = JSON.stringify(
  {
    query: { state: "pending", day: "2026-11-22" },
    total: 80,
    orders: Array.from({ length: 80 }, (_, at) => ({
      id: `A-${70410 + at * 3}`,
      customer: `c-${(at * 7919) % 10007}`,
      city: CITIES[(at * 5) % 8],
      total_eur: Number((19.9 + ((at * 1337) % 40000) / 100).toFixed(2)),
      state: at === 41 ? "failed" : "pending",
      batch: at < 40 ? 268 : 301,
      ...(at === 41 ? { error: "payment captured twice" } : {}),
    })),
  },
  null,
  1,
);

const IMPORTER = `"""Reads the orders of the night and writes them to the shop's database."""
import logging
import queue

from shop.db import Session, locked
from shop.feeds import batches

log = logging.getLogger("import")

${lines(24, (at) => `
def read_${CITIES[at % 8].toLowerCase().replace(/[^a-z]/g, "")}_${at}(feed, since):
    """Batches of feed ${at} that are newer than since."""
    for batch in batches(feed, since=since, size=40):
        if not batch.orders:
            log.info("feed %s: nothing new", feed)
            continue
        yield batch.normalised(currency="EUR", zone="Europe/Oslo")`)}


def write(batch):
    with Session() as session, locked(session, "orders", mode="exclusive"):
        for order in batch.orders:
            session.merge(order)
        session.commit()


def work(jobs: "queue.Queue"):
    while (batch := jobs.get()) is not None:
        try:
            write(batch)
        except TimeoutError as problem:
            log.error("order batch %s: %s; %s orders left in state 'pending'", batch.id, problem, len(batch.orders))
`;

const TESTS = `${lines(140, (at) => `tests/test_import.py::test_batch_is_written_once[feed-${at}] ${at === 97 ? "FAILED" : "PASSED"} [${String(Math.floor((at + 1) / 1.4)).padStart(3)}%]`)}

=================================== FAILURES ===================================
______________________ test_batch_is_written_once[feed-97] _____________________
    def test_batch_is_written_once(feed):
>       assert written(feed) == 40
E       assert 80 == 40
E        +  where 80 = written('feed-97')
tests/test_import.py:61: AssertionError
=========================== 1 failed, 139 passed in 8.12s ======================`;

const DIFF = lines(30, (at) => `diff --git a/shop/feeds/feed_${at}.py b/shop/feeds/feed_${at}.py
index ${(at * 7919 + 4096).toString(16)}..${(at * 104729 + 65536).toString(16)} 100644
--- a/shop/feeds/feed_${at}.py
+++ b/shop/feeds/feed_${at}.py
@@ -${10 + at},6 +${10 + at},7 @@ def rows(feed, since):
     cursor = feed.open(since)
     for row in cursor:
-        yield row.order()
+        if row.state != "withdrawn":
+            yield row.order()
     cursor.close()`);

// Everything that a page could get wrong on the way: an empty first line, carriage returns, tabs, markup, characters of
// four bytes, other directions of writing, spaces at the end.
export const AWKWARD = `\r\n\tcarton\tplace\tnote\r\n${Array.from(
  { length: 160 },
  (_, at) => `${at}\t"row ${at % 9}"\t<b>&amp; 📦 ${at % 3 ? "ok" : "تالف"} </b>  `,
).join("\r\n")}\r\n\n`;

// A whole book, as a tool that reads files gives it.
const corpus = `${process.env.LARDER_CORPORA ?? ""}/text/war_and_peace.txt.gz`;
export const BOOK = existsSync(corpus)
  ? gunzipSync(readFileSync(corpus)).toString("utf8")
  : lines(16_000, (at) => `${at % 40 ? "" : `\nChapter ${1 + at / 40}\n\n`}On day ${at} the barge from ${CITIES[(at * 7) % 8]} brought ${(at * 31) % 97} crates, and the miller wrote it down.`);

const tool = (name, description, key) => ({
  name,
  description,
  schema: { type: "object", properties: { [key]: { type: "string" } }, required: [key] },
});
const TOOLS = [
  tool("read_log", "Reads a log file.", "path"),
  tool("query_orders", "Looks orders up.", "where"),
  tool("read_file", "Reads a source file.", "path"),
  tool("run_tests", "Runs the tests.", "filter"),
  tool("document_edit", "Edits a file.", "patch"),
];
const SYSTEM =
  "You look after the order import of a shop. Find causes before you change anything, change as little as you can, " +
  "and say what you did in two sentences.";

const user = (text) => ({ user: text });
const says = (text) => ({ says: text });
const calls = (name, argument, result) => ({ name, argument, result });

// The whole conversation of the agent; each request holds its beginning up to one of its stops.
const IMPORT = [
  user("The nightly import stopped with code 1205 and orders are stuck. Find out why, and mend it."),
  calls("read_log", "import-2026-11-22.log", LOG),
  calls("query_orders", "state = 'pending'", ORDERS),
  calls("read_file", "shop/importer.py", IMPORTER),
  says("Both workers take an exclusive lock on the whole table, so the slower one times out. I will lock rows instead."),
  user("Good. Do it, then run the tests."),
  calls("document_edit", "locked(session, 'orders', mode='rows')", "shop/importer.py: 1 line changed"),
  calls("run_tests", "import", TESTS),
  calls("read_log", "import-2026-11-21.log", LOG.replaceAll("2026-11-22", "2026-11-21")),
  says("Feed 97 is written twice: its batches have no id, so a retry is taken for a new batch."),
  user("Why did nobody see that before?"),
  calls("query_orders", "feed = 97", ORDERS.replaceAll("A-7", "B-7")),
  calls("read_file", "shop/feeds.py", IMPORTER.replaceAll("read_", "rows_")),
  calls("run_tests", "feed-97", TESTS.replaceAll("feed-", "case-")),
  says("Until last week feed 97 never timed out, so nothing was ever retried."),
  user("Give batches an id and release the stuck orders."),
  calls("document_edit", "batch.id = digest(batch.orders)", "shop/feeds.py: 3 lines changed"),
  calls("run_tests", "all", TESTS.replace("FAILED", "PASSED")),
  calls("query_orders", "released", ORDERS.replaceAll('"pending"', '"released"')),
];
const NOTES = [
  user("Write the release notes of 2.4 from what was merged since 2.3."),
  calls("read_file", "2.3..2.4.diff", DIFF),
  calls("read_log", "deploy.log", LOG.replaceAll("import.", "deploy.")),
  says("Withdrawn rows are no longer imported; deploys report slow batches."),
  user("Mention the orders that were released."),
  calls("query_orders", "state = 'released'", ORDERS.replaceAll("pending", "released")),
];

function chat(steps) {
  const messages = [{ role: "system", content: SYSTEM }];
  steps.forEach((step, at) => {
    if (step.user) messages.push({ role: "user", content: step.user });
    else if (step.says) messages.push({ role: "assistant", content: step.says });
    else {
      const wanted = { name: step.name, arguments: JSON.stringify({ about: step.argument }) };
      messages.push({ role: "assistant", content: null, tool_calls: [{ id: `call_${at}`, type: "function", function: wanted }] });
      messages.push({ role: "tool", tool_call_id: `call_${at}`, content: step.result });
    }
  });
  const tools = TOOLS.map(({ schema, ...about }) => ({ type: "function", function: { ...about, parameters: schema } }));
  return { path: "/v1/chat/completions", body: { model: "gpt-4.1-mini", messages, tools } };
}

function claude(steps) {
  const messages = [];
  steps.forEach((step, at) => {
    if (step.user) messages.push({ role: "user", content: step.user });
    else if (step.says) messages.push({ role: "assistant", content: [{ type: "text", text: step.says }] });
    else {
      messages.push({ role: "assistant", content: [{ type: "tool_use", id: `toolu_${at}`, name: step.name, input: { about: step.argument } }] });
      messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: `toolu_${at}`, content: step.result }] });
    }
  });
  const tools = TOOLS.map(({ schema, ...about }) => ({ ...about, input_schema: schema }));
  return { path: "/v1/messages", body: { model: "claude-sonnet", max_tokens: 1024, system: SYSTEM, messages, tools } };
}

// A request for each point at which the model is to speak.
const requests = (steps, wire, session) =>
  steps
    .map((step, at) => (step.says ? null : { ...wire(steps.slice(0, at + 1)), session }))
    .filter((request) => request !== null);

const question = (text, model = "gpt-4.1-mini") => ({
  path: "/v1/chat/completions",
  body: { model, messages: [{ role: "user", content: text }] },
});

export const SESSION = "nightly-import";
export const nightlyImport = requests(IMPORT, chat, SESSION);
export const releaseNotes = requests(NOTES, claude, "release-notes-2.4");
export const awkward = {
  ...chat([user("Which cartons are damaged?"), calls("read_file", "cartons.tsv", AWKWARD)]),
  session: "cartons",
};
export const book = { ...chat([user("Who is the book about?"), calls("read_file", "War and Peace.txt", BOOK)]), session: "book" };
export const smallTalk = [
  "Which carrier serves Gdańsk on Sundays?",
  "Put the returns of last week into one sentence.",
  "Translate 'lock wait timeout' for a customer.",
].map((text) => question(text));
export const streamed = { ...question("What is open from yesterday?"), session: "standup" };
streamed.body = { ...streamed.body, stream: true, stream_options: { include_usage: true } };
export const limited = question("error 429");
export const tooLarge = question(`Compare these two logs.\n${LOG}\n${LOG}`);
export const triage = question("Orders from Oslo have been stuck since two in the night.", "recipe/orders/triage");
export const triageFails = question("The printer on the second floor hums.", "recipe/orders/triage");
export const noRecipe = question("Refund order A-70533.", "recipe/orders/refund");
export const lesson = {
  question: "What is a half of a third, and why?",
  answer: "Cut a third of a cake in two. How many such pieces make the whole cake?",
  words: "a half of a third",
  fact: "Works on halves of thirds.",
};
// Two people in conflict, led in the browser: what is said on one track, what of it is shared, and what is private.
export const conflict = {
  welcome: "Welcome. What brings you here?",
  private: "I read her letters last winter.",
  reply: "It weighs on you that you never said it.",
  draft: "I was hurt when you did not come on Sunday.",
  attack: "You never come, you idiot.",
  milder: "You did not come on Sunday.",
};
const thinks = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nStrategy: listen\n</thinking>";
// The first of these whose words are in the prompt; facts are updated from what was said.
export const ANSWERS = {
  "Update the facts.": JSON.stringify({ upsert: [{ category: "Other", fact: lesson.fact, quote: lesson.words, confidence: 0.9 }], delete: [] }),
  [conflict.attack]: JSON.stringify({ attacks: true, spans: ["you idiot"], suggestion: conflict.milder }),
  "Looks for words that would make the other person": JSON.stringify({ attacks: false, spans: [], suggestion: "" }),
  "Begin.": conflict.welcome,
  [conflict.private]: `${thinks}${conflict.reply}<draft>${conflict.draft}</draft>`,
  "What is a half of a third": `<notes>\nMode: ASK\nFrustration: 2\nUnderstanding: 1\nStrategy: let them draw\n</notes>${lesson.answer}`,
  "Orders from Oslo": '{"kind": "import", "urgency": "now"}',
  "The printer on": '{"kind": "printer", "urgency": "whenever"}',
  "Write the report":
    "## Import of 22 November\n\nThe import stopped at 02:17 with error 1205 (lock wait timeout). 80 orders stayed in state `pending`; " +
    "they were released at 07:40.\n\nOpen: one payment was captured twice.\n",
};
export const incident = {
  question: "Write the report of the import of 22 November.",
  log: LOG,
  notes:
    "# Notes\n\n- 02:17 the import stops, error 1205; nobody is called, because the alarm watches only the process.\n" +
    "- 06:55 Maria sees 80 orders in state `pending`.\n- 07:40 they are released by hand. Jonas writes to the customers.\n" +
    "- One payment was captured twice (order A-70533). Accounting knows.\n",
};

// A question that runs through all phases: a page is visited, a claim is taken from it, and the answer is written twice,
// because the first one states a price that stands nowhere. What is said in each phase: [words of the prompt, the reply].
const SHOP = "http://127.0.0.1:UPSTREAM/shop/laptops";
const same = (reply) => [["", reply]];
const verdict = (decision, more) => ({
  decision, confidence: 0.93, checks: { claims_supported: true, no_hallucinations: true, query_addressed: true, coherent_format: true },
  goals: [], issues: [], revision_hints: [], suggested_fixes: [], notes: "", ...more,
});
const round = (more) => ({
  action: "DONE", goal: null, reasoning: "", calls: [], goal_confidence: null, progress: null, claims: [], ...more,
});
export const CLAIM = "Lenovo LOQ 15 costs $697";
export const turnQuestion = "Which laptop of Corner Shop is the cheapest with 16 GB of memory?";
export const waiting = "Wait for it: which laptop is in stock?";
const WRONG = "On sale it goes for $599.";
export const turn = {
  waits: waiting,
  pages: {
    "/shop/laptops":
      "<!DOCTYPE html><html lang=en><head><title>Laptops at Corner Shop</title></head><body><main><h1>Laptops</h1>" +
      "<p>Corner Shop sells laptops for work and for play. Every price holds for today, and every machine is new.</p>" +
      "<table><tr><th>Laptop</th><th>Memory</th><th>Price</th><th>In stock</th></tr>" +
      "<tr><td>HP Victus 15</td><td>8 GB</td><td>$649</td><td>yes</td></tr>" +
      "<tr><td>Lenovo LOQ 15</td><td>16 GB</td><td>$697</td><td>yes</td></tr>" +
      "<tr><td>Acer Nitro V</td><td>16 GB</td><td>$749</td><td>no</td></tr></table>" +
      "<p>The Lenovo LOQ 15 with 16 GB of memory costs $697 and leaves the shop today.</p>" +
      "<p>The Acer Nitro V with 16 GB of memory costs $749 and comes back next week.</p></main></body></html>",
  },
  phases: {
    "You read a user's query before it is answered": same({
      resolved_query: "", was_resolved: false, query_type: "general_question", intent: "informational", entities: [],
      content_reference: null,
      reasoning: "It stands by itself; nothing came before.",
    }),
    "You are the gate before any work": same({
      decision: "PROCEED", confidence: 0.96, is_action: false, is_follow_up: false,
      reasoning: "One shop and one measure are named.", question: null,
    }),
    "You choose what is read before a query is answered": same({ direct_info: [], links_to_follow: [], reasoning: "Nothing is known yet." }),
    "You compile what is known before a query is answered": same({
      information: "Nothing is known yet of the laptops of Corner Shop.", preferences: [], prior_turns: [], references: [], sufficiency: "NEEDS_RESEARCH",
    }),
    "You plan how a query is answered": ["Wait for it", ""].map((words) => [words === "" ? "" : waiting, {
      goal: "The cheapest laptop of Corner Shop with 16 GB of memory", intent: "comparison", confidence: 0.94, next_step: "coordinator",
      question: null, goals: [], tasks: [{ goal: null, text: `Visit ${SHOP} and compare the prices` }], focus: "memory of 16 GB",
      previous_failure: null, new_approach: null, topic: "commerce.laptop",
    }]),
    "You carry out a plan with tools": [
      ["Iteration 1", round({
        reasoning: "The page lists every laptop with memory and price.",
        progress: "Two laptops have 16 GB: the Lenovo LOQ 15 at $697 and the Acer Nitro V at $749.",
        claims: [
          { claim: CLAIM, confidence: 0.95, source: SHOP, ttl: "6h" },
          { claim: "Acer Nitro V costs $749", confidence: 0.95, source: SHOP, ttl: "6h" },
        ],
      })],
      ["", round({ action: "TOOL_CALL", reasoning: "The shop's own page has the prices.", calls: [{ tool: "web.visit", arguments: { url: SHOP } }] })],
    ],
    "You write the answer that the user gets": [
      ["Remove the price $599", `The cheapest is the **Lenovo LOQ 15** at **$697**. [1] The Acer Nitro V with as much memory costs $749. [1]\n\nPrices are those of [Corner Shop](${SHOP}) today.\n`],
      ["", `The cheapest is the Lenovo LOQ 15 at $697. [1] ${WRONG} [1]\n`],
    ],
    "You are the last check before a user sees an answer": [
      ["The Acer Nitro V with as much memory", verdict("APPROVE", {})],
      ["", verdict("REVISE", {
        confidence: 0.7,
        checks: { claims_supported: false, no_hallucinations: false, query_addressed: true, coherent_format: true },
        issues: [`"${WRONG}": no document gives $599.`],
        revision_hints: ["Remove the price $599: nothing states it. Name the other laptop with 16 GB."],
      })],
    ],
    "You write the index entry of a finished turn": same({
      summary: "The cheapest laptop of Corner Shop with 16 GB is the Lenovo LOQ 15 at $697; the Acer Nitro V costs $749.", topic: "commerce.laptop", lessons: [],
    }),
  },
};
