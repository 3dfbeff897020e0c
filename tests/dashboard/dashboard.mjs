// The dashboard in a real browser, while a client talks. See run.sh.
//
//     node dashboard.mjs GATEWAY RECORD [--pictures DIR | --only NAME]
//
// Every wait is for a condition.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as say from "./scenario.mjs";

const [GATEWAY, RECORD, ...flags] = process.argv.slice(2);
const flag = (name) => (flags.includes(name) ? flags[flags.indexOf(name) + 1] : null);
const [PICTURES, ONLY] = [flag("--pictures"), flag("--only")];
const { CHROMIUM, LARDER, LARDER_HOME, PROJECT, ASSETS, UPSTREAM } = process.env;
const npm = createRequire(resolve(process.env.NODE_MODULES_HOME, "package.json"));
const { chromium } = npm("playwright-core");
const AXE = readFileSync(npm.resolve("axe-core/axe.min.js"), "utf8");

// ---------------------------------------------------------------------------------------------------- what is counted

let patience = 15_000;
let assertions = 0;

class Broken extends Error {}

function yes(condition, words) {
  assertions += 1;
  if (!condition) throw new Broken(words);
}

function is(found, expected, words) {
  const short = (value) => {
    const text = typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
    return text.length > 300 ? `${text.slice(0, 300)}…` : text;
  };
  yes(isDeepStrictEqual(found, expected), `${words}: found ${short(found)}, expected ${short(expected)}`);
}

const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
const figure = (text) => Number(text.replaceAll(",", ""));

// ---------------------------------------------------------------------------------------------------------- the client

async function send(request, session = request.session) {
  const headers = { "content-type": "application/json", authorization: "Bearer sk-client", "anthropic-version": "2023-06-01" };
  if (session) headers["x-larder-session"] = session;
  const reply = await fetch(GATEWAY + request.path, { method: "POST", headers, body: JSON.stringify(request.body) });
  await reply.text();
  const told = (name) => reply.headers.get(`x-larder-${name}`);
  return { status: reply.status, id: told("request"), before: Number(told("tokens-before")), after: Number(told("tokens-after")) };
}

async function expect(status, request, session) {
  const reply = await send(request, session);
  if (reply.status !== status) throw new Error(`the client got HTTP ${reply.status}, not ${status}`);
  return reply;
}

const api = async (path) => (await fetch(`${GATEWAY}/api/v1/${path}`)).json();
const post = async (path, body) =>
  (await fetch(`${GATEWAY}/api/v1/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json();
// Asks a question as a turn; gives the response, whose body tells what happens where `stream` is set.
const askTurn = (query, stream) =>
  fetch(`${GATEWAY}/api/v1/turns`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query, stream }) });

// Asks until the answer is as it should be; the gateway works on it.
async function eventually(words, ask) {
  const end = Date.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`in vain waited for: ${words}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

const upstreamGot = () =>
  readFileSync(RECORD, "utf8").trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));

// Everything that the pages are to show.
async function talk() {
  for (const request of say.smallTalk) await expect(200, request);
  for (const request of say.releaseNotes) await expect(200, request);
  await expect(200, say.streamed);
  await expect(429, say.limited);
  await expect(400, say.tooLarge);
  await expect(200, say.triage);
  await expect(502, say.triageFails);
  await expect(404, say.noRecipe);
  const documents = ["--doc", "log=import.log", "--doc", "notes=notes.md"];
  execFileSync(LARDER, ["run", "orders/incident", ...documents, "-q", say.incident.question], { cwd: PROJECT, stdio: "pipe" });
  const cartons = await expect(200, say.awkward);
  const long = [];
  for (const request of say.nightlyImport) long.push(await expect(200, request));
  const asked = await askTurn(say.turnQuestion, false);
  const outcome = await asked.json();
  if (outcome.status !== "complete" || outcome.unverified) throw new Error(`the turn came to ${JSON.stringify(outcome)}`);
  await eventually("the turn is summarized", async () => (await api(`turns/${outcome.turn}`)).turn.summary.startsWith("The cheapest laptop of"));
  const { runs } = await api("runs");
  const people = [{ name: "Ann" }, { name: "Ben" }];
  const conflict = await post("conversations", { type: "mediation", title: "Sunday", participants: people });
  await post(`conversations/${conflict.id}/messages`, { participant: "Ann", text: say.conflict.private });
  await post(`conversations/${conflict.id}/shares/preview?participant=Ann`, { text: say.conflict.attack, to: ["Ben"] });
  const lesson = await post("conversations", { type: "tutor", title: "Fractions" });
  await post(`conversations/${lesson.id}/messages`, { text: say.lesson.question });
  const named = (recipe, status) => runs.find((run) => run.recipe === recipe && run.status === status).run_id;
  const run = named("incident", "completed");
  const { window } = await api(`exchanges/${cartons.id}`);
  const part = window.findIndex((each) => each.role === "tool");
  return {
    conflict: conflict.id, lesson: lesson.id, cartons: cartons.id, part, pointer: window[part].pointer, long: long.map(({ id }) => id),
    turn: outcome.turn, folder: outcome.folder, run, failedRun: named("triage", "intervention"), goodRun: named("triage", "completed"),
  };
}

// --------------------------------------------------------------------------------------------------------- the browser

// What a proof changes on the way to the browser: [what part of which addresses, from, to].
let patch = null;
let patched = 0;
let browser;

// The style sheet is one asset made of several files, in the order of dashboard/mod.rs.
const STYLES = ["tokens", "layout", "components", "pictures", "documents", "conversation", "media"];
const asset = (name) => {
  const files = name === "style.css" ? STYLES.map((each) => `style/${each}.css`) : [name];
  return files.map((file) => readFileSync(join(ASSETS, file), "utf8")).join("");
};

async function change(route) {
  const path = new URL(route.request().url()).pathname;
  const own = ASSETS && /^\/assets\/(style\.css|script\.js)$/.exec(path);
  const response = await route.fetch({ maxRedirects: 0 });
  let body = own ? asset(own[1]) : await response.text();
  if (patch?.at.test(path)) {
    const changed = body.replace(patch.from, patch.to);
    if (changed !== body) patched += 1;
    body = changed;
  }
  await route.fulfill({ response, body });
}

async function withPage(options, use) {
  const { width = 1280, height = 900, scheme = "light", script = true } = options;
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: script, reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  page.on("console", (line) => {
    const expected = options.console?.test(line.text());
    if (["error", "warning"].includes(line.type()) && !expected) wrong.push(`console: ${line.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${GATEWAY}/`)) wrong.push(`it asked ${request.url()}`);
  });
  if (patch || ASSETS) {
    // Streams and forms that answer with another address pass as they are.
    await context.route((address) => !/^\/(live|sign-|interventions\/)/.test(address.pathname), (route) =>
      // Whoever leaves a page before it is there gets none of it.
      change(route).catch(() => route.abort().catch(() => {})));
  }
  try {
    await use(page, context);
    is(wrong, [], "nothing goes wrong in the browser");
  } finally {
    await context.close();
  }
}

async function open(page, path, status = 200) {
  const reply = await page.goto(GATEWAY + path, { waitUntil: "load" });
  is(reply.status(), status, `${path} answers`);
}

const until = (page, words, condition, argument) =>
  page.waitForFunction(condition, argument, { timeout: patience }).then(
    () => yes(true, words),
    () => yes(false, `in vain waited for: ${words}`),
  );
// Clicks and waits until the page that the form leads to is there: a reload before that would cut the form's request off.
const submitted = (page, button) => Promise.all([page.waitForEvent("load"), button.click()]);

const texts = (locator) => locator.evaluateAll((found) => found.map((each) => each.textContent.replace(/\s+/g, " ").trim()));
const rows = (page, name) =>
  page.locator(`[role=group][aria-label="${name}"] tbody tr`).evaluateAll((found) =>
    found.map((row) => [...row.children].map((cell) => cell.textContent.replace(/\s+/g, " ").trim())),
  );
const columns = (page, name) => texts(page.locator(`[role=group][aria-label="${name}"] thead th`));

async function table(page, name) {
  const heads = await columns(page, name);
  return (await rows(page, name)).map((cells) => Object.fromEntries(cells.map((cell, at) => [heads[at], cell])));
}

// Presses Tab until what is focused matches; as a reader without a mouse gets there.
async function tabTo(page, selector, most = 120) {
  for (let step = 0; step < most; step += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return yes(true, selector);
  }
  return yes(false, `the tab key does not lead to ${selector}`);
}

// ---------------------------------------------------------------------------------------------------------- the checks

let shown;
const checks = new Map();
const check = (name, run) => checks.set(name, run);

const cards = (page) =>
  page.locator("#live-totals .card").evaluateAll((found) =>
    Object.fromEntries(found.map((card) => [card.querySelector("dt").textContent, [...card.querySelectorAll("dd")].map((each) => each.textContent)])),
  );
const cardIs = (page, title, value) =>
  until(page, `${title} is ${value}`, ([title, value]) => {
    const card = [...document.querySelectorAll("#live-totals .card")].find((each) => each.querySelector("dt").textContent === title);
    return card?.querySelector("dd").textContent === value;
  }, [title, value]);

async function openLive(page) {
  await open(page, "/");
  await page.evaluate(() => { window.sameDocument = true; });
  await until(page, "the page says that it is live", () => document.getElementById("live-state").textContent === "live");
}

check("live totals move while a client talks", () =>
  withPage({}, async (page) => {
    await openLive(page);
    const counted = async () => figure((await cards(page)).Requests[0]);
    const before = await cards(page);
    const at = await counted();
    await expect(200, say.smallTalk[0]);
    await cardIs(page, "Requests", number(at + 1));

    const long = await expect(200, say.nightlyImport[1], `live-${at}`);
    await cardIs(page, "Requests", number(at + 2));
    await cardIs(page, "Prompt tokens", number(long.after));
    await cardIs(page, "Pointers", "1");
    const after = await cards(page);
    yes(after["Tokens saved"][0] !== before["Tokens saved"][0], "saved tokens have grown");
    yes(after["Money saved"][0] !== before["Money saved"][0], "saved money has grown");
    is(after["Budget violations"][0], "0", "no prompt left over its budget");
    const link = page.getByRole("link", { name: "Show it part by part" });
    is(await link.getAttribute("href"), `/requests/${long.id}`, "the last window is that of the last request");
    const [first] = await table(page, "Requests");
    is([first.Decision, first.Outcome], ["shrunk", "ok"], "the newest request stands first");
    yes(first["Prompt tokens"].includes("→"), "and says how it shrank");

    const failed = (note) => Number(/(\d+) failed/.exec(note)[1]);
    const refused = (note) => Number(/(\d+) refused/.exec(note)[1]);
    const counts = after.Requests[1];
    await expect(429, say.limited);
    await cardIs(page, "Requests", number(at + 3));
    is(failed((await cards(page)).Requests[1]), failed(counts) + 1, "an error is counted");
    await expect(400, say.tooLarge);
    await cardIs(page, "Requests", number(at + 4));
    is(refused((await cards(page)).Requests[1]), refused(counts) + 1, "a refusal is counted");
    is((await texts(page.locator("#live-requests tbody tr:first-child .chip"))), ["rejected", "refused"], "and stands there");
    await expect(200, say.streamed);
    await cardIs(page, "Requests", number(at + 5));
    await expect(200, say.releaseNotes[0]);
    await cardIs(page, "Requests", number(at + 6));
    const totals = (await api("live")).totals;
    is(await counted(), totals.requests, "the page and the API count alike");
    const { ok, needs_summary: shrunk, reject } = totals.decisions;
    is((await cards(page)).Decisions[0], number(ok + shrunk + reject), "so with decisions");
    yes(await page.evaluate(() => window.sameDocument === true), "and the page was never loaded again");
  }));

// Keeps what the page's own stream of events brings, before the page does anything with it.
const overhear = (page) =>
  page.addInitScript(() => {
    const Real = window.EventSource;
    window.heard = [];
    window.EventSource = function (address) {
      const events = new Real(address);
      events.addEventListener("pieces", (event) => window.heard.push(JSON.parse(event.data)["live-totals"]));
      return events;
    };
  });
const heard = (page, requests) =>
  until(page, `the page has heard of ${requests} requests`, (wanted) => window.heard.some((html) => {
    const piece = document.createElement("div");
    piece.innerHTML = html;
    const card = [...piece.querySelectorAll(".card")].find((each) => each.querySelector("dt").textContent === "Requests");
    return card.querySelector("dd").textContent === wanted;
  }), requests);

check("updates pause, and leave what is in use alone", () =>
  withPage({}, async (page) => {
    await overhear(page);
    await openLive(page);
    const at = figure((await cards(page)).Requests[0]);
    const pause = page.getByRole("button", { name: "Pause updates" });
    await pause.click();
    const resume = page.getByRole("button", { name: "Resume updates" });
    is(await resume.getAttribute("aria-pressed"), "true", "the button says that it is pressed");
    await expect(200, say.smallTalk[1]);
    await heard(page, number(at + 1));
    is((await cards(page)).Requests[0], number(at), "a paused page stands still");
    await resume.click();
    await cardIs(page, "Requests", number(at + 1));

    const link = page.locator("#live-requests tbody tr:first-child a");
    await link.focus();
    const address = await link.getAttribute("href");
    await expect(200, say.smallTalk[2]);
    await cardIs(page, "Requests", number(at + 2));
    is(await page.evaluate(() => document.activeElement.getAttribute("href")), address, "the focus stays where it was");
    await page.locator("#live-pause").focus();
    await until(page, "the table follows when the reader leaves it", (old) =>
      document.querySelector("#live-requests tbody tr:first-child a").getAttribute("href") !== old, address);
  }));

check("the window of a request as a picture", () =>
  withPage({}, async (page) => {
    for (const id of [shown.long[8], shown.long.at(-1), shown.cartons]) {
      const { window, tokens } = await api(`exchanges/${id}`);
      await open(page, `/requests/${id}`);
      const lanes = await page.locator(".lane").evaluateAll((found) => found.map((lane) => ({
        name: lane.querySelector(".lane-name").textContent,
        tokens: lane.querySelector(".lane-figure strong").textContent,
        parts: [...lane.querySelectorAll("a.part")].map((part) => ({
          why: part.dataset.why, name: part.getAttribute("aria-label"), hover: part.querySelector("title").textContent,
          row: part.getAttribute("href"), form: part.querySelector("rect").getAttribute("fill"),
          width: parseFloat(part.querySelector("rect").getAttribute("width")),
        })),
      })));
      const slots = [...new Set(window.map((part) => part.slot))];
      is(lanes.map((lane) => lane.name), ["As it came", "As sent", ...slots], "the lanes of the picture");
      is([lanes[0].tokens, lanes[1].tokens], [number(tokens.before), number(tokens.after)], "the sums of the picture");
      const widest = Math.max(tokens.before, tokens.after, tokens.budget);
      for (const [lane, size] of [[lanes[0], "original_tokens"], [lanes[1], "tokens"]]) {
        const parts = window.map((part, at) => ({ part, at })).filter(({ part }) => part[size] > 0);
        is(lane.parts.length, parts.length, `${lane.name}: every part is drawn`);
        parts.forEach(({ part, at }, place) => {
          const drawn = lane.parts[place];
          const whole = part.rendition === "whole" || part.original_tokens === part.tokens;
          const change = whole ? number(part.tokens) : `${number(part.original_tokens)} → ${number(part.tokens)}`;
          yes(drawn.why.endsWith(`: ${part.rendition}, ${change} tokens; ${part.reason}`), `part ${at} says why: ${drawn.why}`);
          is([drawn.name, drawn.hover], [drawn.why, drawn.why], `part ${at} says it to ears and on hover`);
          is([drawn.row, drawn.form], [`#part-${at}`, `url(#fill-${part.rendition})`], `part ${at} is in its colour`);
          yes(Math.abs(drawn.width - (part[size] / widest) * 100) < 0.01, `part ${at} is as wide as its tokens`);
        });
      }
      const parts = await table(page, "Parts of the window");
      is(parts.map((row) => [row["#"], row.Slot]), window.map((part, at) => [String(at + 1), part.slot]), "the table has every part");
      window.forEach((part, at) => {
        yes(parts[at].Rendition.startsWith(part.rendition) && parts[at].Why.startsWith(part.reason), `row ${at} says the same`);
      });
    }
    const forms = await page.goto(`${GATEWAY}/requests/${shown.long.at(-1)}`).then(() =>
      page.locator(".lane:nth-child(2) a.part rect").evaluateAll((found) => found.map((rect) => rect.getAttribute("fill"))));
    for (const form of ["whole", "condensed", "pointer"]) yes(forms.includes(`url(#fill-${form})`), `the picture has parts that are ${form}`);
    const part = page.locator("a.part", { has: page.locator('rect[fill="url(#fill-condensed)"]') }).first();
    await part.hover();
    await until(page, "the line below says why", (why) => document.querySelector("[data-why-line]").textContent === why, await part.getAttribute("data-why"));
    const line = await page.locator("[data-why-line]").textContent();
    yes(/^(read|query)_\w+ \(tool\): condensed, [\d,]+ → [\d,]+ tokens; (written tersely|.*(cap|budget))/.test(line), `in words: ${line}`);
  }));

async function badgeShows(page, badge, original) {
  await badge.locator("pre").first().waitFor();
  const pre = badge.locator('pre[aria-label="The original"]');
  is(await pre.evaluate((each) => each.textContent), original, "the original, character by character");
  is(await pre.locator("*").count(), 0, "and nothing in it is markup");
}

check("a badge opens to the raw payload", () =>
  withPage({}, async (page) => {
    await open(page, `/requests/${shown.cartons}`);
    const badge = page.locator(`#part-${shown.part} details.disclosure`);
    is(await badge.locator("pre").count(), 0, "closed it has loaded nothing");
    const shut = await page.locator("#part-0").boundingBox();
    await badge.locator("summary").click();
    await badgeShows(page, badge, say.AWKWARD);
    is(await badge.locator("main, nav, h1").count(), 0, "it opens to the payload, not to a page");
    const sent = JSON.parse(await badge.locator('pre[aria-label="As sent"]').textContent());
    const went = upstreamGot().map(({ body }) => body?.messages?.at(-1)).find((last) => last?.content?.includes?.(shown.pointer));
    is(sent, went, "what was sent is what the provider got");
    const opened = await page.locator("#part-0").boundingBox();
    is(opened.width, shut.width, "and the table keeps its width");
    const link = badge.getByRole("link", { name: "The whole original" });
    const bytes = Buffer.from(await (await fetch(GATEWAY + (await link.getAttribute("href")))).arrayBuffer());
    yes(bytes.equals(Buffer.from(say.AWKWARD)), "the whole original, byte for byte");
    await badge.getByRole("button", { name: "Copy" }).click();
    await until(page, "the button says so", () => document.querySelector("[data-copy]").textContent === "Copied");
    is(await page.evaluate(() => navigator.clipboard.readText()), shown.pointer, "the pointer can be copied");

    await open(page, `/requests/${shown.long.at(-1)}`);
    const log = page.locator("tr", { hasText: "read_log" }).filter({ hasText: "tool" }).locator("details.disclosure").first();
    await log.locator("summary").click();
    await badgeShows(page, log, say.LOG);
  }));

check("a badge leads there without scripts, too", () =>
  withPage({ script: false }, async (page) => {
    await open(page, `/requests/${shown.cartons}`);
    const badge = page.locator(`#part-${shown.part} details.disclosure`);
    await badge.locator("summary").click();
    await badge.getByRole("link").click();
    await page.waitForURL(/\/parts\//);
    is(await page.locator('pre[aria-label="The original"]').textContent(), say.AWKWARD, "the original is on a page of its own");
    await open(page, `/sessions/${say.SESSION}`);
    is(await page.locator("svg.chart a.column").count(), say.nightlyImport.length, "pictures are there, too");
  }));

check("the compaction map of a session", () =>
  withPage({}, async (page) => {
    const map = await api(`sessions/${say.SESSION}`);
    await open(page, "/sessions");
    const listed = (await table(page, "Sessions")).find((row) => row.Session === say.SESSION);
    is(listed.Requests, String(map.requests.length), "the list counts its requests");
    await page.getByRole("link", { name: say.SESSION }).click();
    await page.waitForURL(`**/sessions/${say.SESSION}`);
    const drawn = await page.locator("svg.chart a.column").evaluateAll((found) =>
      found.map((column) => [column.dataset.why, column.getAttribute("href"), column.querySelectorAll("rect").length]));
    const expected = map.requests.map((head, at) => {
      const { tokens, shape } = head;
      const words =
        `Request ${at + 1}: ${number(tokens.after)} tokens sent of ${number(tokens.before)}; whole ${number(shape.tokens.whole)}, ` +
        `condensed ${number(shape.tokens.condensed)}, pointers ${number(shape.tokens.pointer)}; epoch ${shape.epoch}`;
      const layers = [true, shape.tokens.condensed > 0, shape.tokens.pointer > 0, tokens.before > tokens.after];
      return [words, `/requests/${head.id}`, layers.filter(Boolean).length];
    });
    is(drawn, expected, "a column for each request, with what it held");
    const epochs = map.requests.filter((head, at) => at > 0 && head.shape.epoch !== map.requests[at - 1].shape.epoch);
    yes(epochs.length > 0, "the session has epochs");
    is(await page.locator("svg.chart line.epoch").count(), epochs.length, "a line for each epoch");
    const entries = await table(page, "Compactions");
    is(
      entries.map((row) => [row.Epoch, row.Message, row.Part, row.Tokens, row.Why]),
      map.compactions.map(({ compaction: of }) => [
        String(of.epoch), String(of.message + 1), of.label, `${number(of.before)} → ${number(of.after)}`, of.reason,
      ]),
      "what changed form, when and why",
    );
    yes(entries.every((row, at) => row.Rendition.startsWith(`${map.compactions[at].compaction.from} → ${map.compactions[at].compaction.to}`)), "from which form to which");
    const badge = page.locator('[aria-label="Compactions"] details.disclosure').first();
    await badge.locator("summary").click();
    await badgeShows(page, badge, say.LOG);
    const column = page.locator("svg.chart a.column").nth(4);
    await column.hover();
    await until(page, "the line below tells of the request", (why) => document.querySelector("[data-why-line]").textContent === why, expected[4][0]);
    await column.click();
    await page.waitForURL(`**${expected[4][1]}`);
    yes(true, "a column leads to its request");
  }));

check("the transcript of a session", () =>
  withPage({}, async (page) => {
    const history = say.nightlyImport.at(-1).body.messages;
    await open(page, `/sessions/${say.SESSION}`);
    await page.getByRole("link", { name: "Its transcript" }).click();
    await page.waitForURL("**/transcript");
    const found = await rows(page, "Messages");
    is(found.map((row) => Number(row[1])), [...history.map((_, at) => at + 1), history.length], "every message in its order, and the reply");
    const said = history.findIndex((message) => message.role === "user");
    is(found[said][3], history[said].content, "what the user said");
    const log = page.locator("tr", { hasText: /tool\s*read_log/ }).filter({ hasText: "shortened" }).locator("details.disclosure").first();
    is(await log.locator("pre").count(), 0, "closed it has loaded nothing");
    await log.locator("summary").click();
    await badgeShows(page, log, say.LOG);
    const link = log.getByRole("link", { name: "The whole message as it came" });
    const came = await (await fetch(GATEWAY + (await link.getAttribute("href")))).json();
    is(came, history.find((message) => message.role === "tool"), "the message as the client sent it");
  }));

check("a book becomes a pointer, and its badge opens to it", () =>
  withPage({}, async (page) => {
    const { id, before, after } = await expect(200, say.book);
    yes(before > 100_000 && after < 3_000, `of ${before} tokens ${after} were sent`);
    await eventually("the request is recorded", async () => (await fetch(`${GATEWAY}/api/v1/exchanges/${id}`)).ok);
    await open(page, `/requests/${id}`);
    const badge = page.locator("tr", { hasText: /read_file\s*tool/ }).locator("details.disclosure").first();
    yes(/condensed|pointer/.test(await badge.locator("summary").textContent()), "the badge says how it stands");
    await badge.locator("summary").click();
    const pre = badge.locator('pre[aria-label="The original"]');
    await pre.waitFor();
    // A character may be cut where the page ends.
    const begins = (await pre.evaluate((each) => each.textContent)).replace(/\ufffd$/, "");
    yes(begins.length > 50_000 && say.BOOK.startsWith(begins), "it opens to the book's beginning");
    const link = badge.getByRole("link", { name: "The whole original" });
    const bytes = Buffer.from(await (await fetch(GATEWAY + (await link.getAttribute("href")))).arrayBuffer());
    yes(bytes.equals(Buffer.from(say.BOOK)), "all of the book is a link away");
  }));

check("runs", () =>
  withPage({}, async (page) => {
    await open(page, "/runs");
    const listed = await table(page, "Runs");
    const statuses = listed.map((row) => `${row.Recipe} ${row.Status}`);
    for (const one of ["triage completed", "triage intervention", "incident completed"]) yes(statuses.includes(one), `${one} is listed`);
    await open(page, `/runs/${shown.run}`);
    is(await page.locator('pre[aria-label="The answer"]').textContent(), say.ANSWERS["Write the report"], "the answer, as it came");
    const parts = await table(page, "Parts of the window");
    is(parts.map((row) => row.Part), ["prompt:orders/incident", "notes.md", "import.log", "marks", "query"], "the parts of its window");
    const came = await texts(page.locator(".lane-figure strong"));
    yes(figure(came[0]) > 2 * figure(came[1]), `it came larger than it was sent: ${came.slice(0, 2)}`);
    const badge = page.locator("tr", { hasText: "import.log" }).locator("details.disclosure");
    await badge.locator("summary").click();
    await badgeShows(page, badge, say.LOG);
    await open(page, `/runs/${shown.failedRun}`);
    is(await texts(page.locator(".heading .chip")), ["intervention"], "one that a human has to look at says so");
    await open(page, `/requests/${(await api("exchanges?limit=500")).exchanges.find((head) => head.run === shown.goodRun).id}`);
    await page.locator(".facts").getByRole("link", { name: shown.goodRun.slice(-8) }).click();
    await page.waitForURL(`**/runs/${shown.goodRun}`);
    yes(true, "the request of a recipe leads to its run");
  }));

check("costs by model, by recipe and by day", () =>
  withPage({}, async (page) => {
    await open(page, "/costs");
    const { costs } = await api("costs");
    const dollars = (amount) => (amount === 0 ? "$0.00" : amount < 0.0001 ? "<$0.0001" : amount < 1 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`);
    for (const [title, head, key] of [
      ["By model", "Model", (row) => row.model],
      ["By recipe", "Recipe", (row) => row.recipe ?? "(no recipe)"],
      ["By day", "Day (UTC)", (row) => row.day],
    ]) {
      const sums = new Map();
      for (const row of costs) {
        const sum = sums.get(key(row)) ?? { requests: 0, cost: 0, without: 0 };
        sums.set(key(row), { requests: sum.requests + row.requests, cost: sum.cost + Number(row.cost), without: sum.without + Number(row.cost_without) });
      }
      const found = await table(page, title);
      is(found.map((row) => row[head]).sort(), [...sums.keys()].sort(), `${title}: a row for each`);
      for (const row of found) {
        const sum = sums.get(row[head]);
        is(row["Requests and runs"], number(sum.requests), `${title}: the requests and runs of ${row[head]}`);
        const near = (text, amount) => text === dollars(amount) || Math.abs(Number(text.replace(/[<$−]/g, "")) - Math.abs(amount)) <= 0.00011;
        yes(near(row.Cost, sum.cost), `${title}: the cost of ${row[head]} is ${row.Cost}, expected ${dollars(sum.cost)}`);
        yes(near(row.Saved, sum.without - sum.cost), `${title}: what ${row[head]} saved is ${row.Saved}`);
      }
    }
    const models = (await table(page, "By model")).map((row) => row.Model);
    for (const model of ["gpt-4.1-mini", "claude-sonnet"]) yes(models.includes(model), `${model} has cost something`);
    yes((await table(page, "By recipe")).some((row) => row.Recipe === "orders/triage"), "so has a recipe");
    await page.getByLabel("Period").selectOption("7");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL("**/costs?days=7");
    yes((await page.locator(".heading p").textContent()).startsWith("The last 7 days"), "the period can be chosen");
  }));

check("the queue of interventions", () =>
  withPage({}, async (page) => {
    await expect(404, say.noRecipe);
    const { interventions } = await api("interventions");
    await open(page, "/interventions");
    const titles = await texts(page.locator("section h2"));
    is(titles, [...interventions.map((one) => `#${one.id} ${one.type}`), "Background jobs"], "what waits for a human, then for a worker");
    const failed = page.locator("section", { hasText: "gate_failure" }).first();
    yes((await failed.textContent()).includes('"printer" is not one of'), "says what is wrong");
    is(await failed.getByRole("link", { name: /^run / }).getAttribute("href"), `/runs/${shown.failedRun}`, "and leads to its run");
    const last = interventions.at(-1).id;
    await page.locator(`#resolution-${last}`).fill("The desk refunds by hand <b>for now</b>.");
    await page.locator("section", { has: page.locator(`#intervention-${last}`) }).getByRole("button", { name: "Settle" }).click();
    await until(page, "it leaves the queue", (id) => document.readyState === "complete" && !document.getElementById(`intervention-${id}`), last);
    await page.getByRole("link", { name: "Settled ones too" }).click();
    const settled = page.locator("section", { has: page.locator(`#intervention-${last}`) });
    yes((await settled.textContent()).includes("The desk refunds by hand <b>for now</b>."), "what was decided is kept, as text");
  }));

check("what is behind a pointer", () =>
  withPage({}, async (page) => {
    const { window } = await api(`exchanges/${shown.long.at(-1)}`);
    const { pointer } = window.find((part) => part.label === "read_log" && part.pointer);
    await open(page, `/pointers/${pointer}`);
    yes((await page.locator(".heading p").textContent()).includes(`${number(Buffer.byteLength(say.LOG))} bytes`), "it says how large the original is");
    is(await page.locator("pre.payload").textContent(), say.LOG, "the original");
    await page.getByLabel("Lines that match").fill("ERROR");
    await page.getByLabel("Lines that match").press("Enter");
    await page.waitForURL("**?grep=ERROR");
    const lines = (await page.locator("pre.payload").textContent()).split("\n").filter((line) => /INFO|WARN|ERROR/.test(line));
    yes(lines.length === 2 && lines.every((line) => line.includes("1205 lock wait timeout")), `only lines that match: ${lines.length}`);
    await open(page, "/pointers/lp1-0000000000000-000000", 404);
    is(await page.locator("h1").count(), 1, "a pointer that was made for nobody has a page that says so");
  }).catch((error) => {
    // Chromium reports a page with status 404 on its console; nothing else may be there.
    if (!(error instanceof Broken) || !/^nothing goes wrong.*found \["console: Failed to load resource[^,]*404[^,]*"\]/.test(error.message)) throw error;
  }));

check("the policy: settings with help, budgets, and what would become of a request", () =>
  withPage({}, async (page) => {
    await open(page, "/policy");
    const { settings } = await api("policy");
    const listed = await table(page, "Settings");
    is(listed.map((row) => [row.Setting, row.Value, row["What it does"]]), settings.map((one) => [one.key, one.value, one.help.replace(/\s+/g, " ")]), "every setting with its help");
    yes(listed.every((row) => row["What it does"].length > 10 || row.Setting.startsWith("models.")), "no help is empty");
    yes(/larder\.toml/.test(listed.find((row) => row.Setting === "policy.entry_cap").From), "and says where it comes from");
    const budgets = await table(page, "Budgets");
    is(budgets.map((row) => [row.Window, row["Prompt budget"], row.Reserve, row["Compacts from"]]), [
      ["200,000", "12,000", "2,000", "6,000"], ["128,000", "12,000", "2,000", "6,000"],
    ], "the budgets of both models");

    const [sent, kept] = [upstreamGot().length, (await api("live")).totals.requests];
    const inspect = async (wire, body) => {
      await page.getByLabel("Format").selectOption({ label: wire });
      await page.getByLabel("The request as JSON").fill(body);
      await page.getByRole("button", { name: "Inspect" }).click();
      await page.locator("#inspected").waitFor();
    };
    await inspect("OpenAI chat completions", JSON.stringify(say.nightlyImport[3].body));
    is(await page.locator("#inspected h2").first().textContent(), "It would be sent, with parts condensed or replaced by pointers.", "a request that would shrink");
    yes((await page.locator("#inspected a.part").count()) > 8, "and its picture");
    await inspect("Anthropic messages", JSON.stringify(say.releaseNotes[0].body));
    is(await page.locator("#inspected h2").first().textContent(), "It would be sent unchanged.", "one that fits");
    await inspect("OpenAI chat completions", JSON.stringify(say.tooLarge.body));
    is(await page.locator("#inspected h2").first().textContent(), "It would be refused.", "one that would be refused");
    yes(/[\d,]+ tokens too many/.test(await page.locator("#inspected section").first().textContent()), "and by how much");
    await inspect("OpenAI chat completions", "no JSON");
    is(await page.locator("#inspected [role=alert]").count(), 1, "one that is none");
    is([upstreamGot().length, (await api("live")).totals.requests], [sent, kept], "nothing of it was sent or counted");
  }));

check("by keyboard alone", () =>
  withPage({}, async (page) => {
    await open(page, `/requests/${shown.cartons}`);
    await page.keyboard.press("Tab");
    is(await page.evaluate(() => document.activeElement.textContent), "Skip to the content", "the first stop skips the menu");
    yes((await page.locator(".skip").boundingBox()).y >= 0, "and is in view");
    await page.keyboard.press("Enter");
    await until(page, "the content is focused", () => document.activeElement.id === "main");

    await tabTo(page, "a.part");
    const parts = page.locator(".lane:first-child a.part");
    await page.keyboard.press("End");
    const line = page.locator("[data-why-line]");
    is(await line.textContent(), await parts.last().getAttribute("data-why"), "the End key leads to the last part");
    await page.keyboard.press("ArrowLeft");
    is(await line.textContent(), await parts.nth(-2).getAttribute("data-why"), "the arrow keys walk the parts");
    await page.keyboard.press("Home");
    is(await line.textContent(), await parts.first().getAttribute("data-why"), "the Home key leads back");
    await page.keyboard.press("ArrowRight");
    const wanted = await parts.nth(1).getAttribute("href");
    await page.keyboard.press("Enter");
    await until(page, "Enter leads to the row of the part", (hash) => location.hash === hash && document.querySelector(hash).matches(":target"), wanted);

    // Every stop from here on shows where the reader is.
    const summary = `#part-${shown.part} summary`;
    let there = false;
    for (let step = 0; step < 60 && !there; step += 1) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const each = document.activeElement;
        const style = getComputedStyle(each);
        const box = each.getBoundingClientRect();
        return {
          what: each.outerHTML.slice(0, 80), ringed: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
          seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
        };
      });
      yes(stop.ringed, `${stop.what} shows that it is focused`);
      yes(stop.seen, `${stop.what} is in view`);
      there = await page.evaluate((selector) => document.activeElement.matches(selector), summary);
    }
    yes(there, "the tab key leads to the badge");
    await page.keyboard.press("Enter");
    await badgeShows(page, page.locator(`#part-${shown.part} details.disclosure`), say.AWKWARD);
    yes(await page.evaluate((selector) => document.activeElement.matches(selector), summary), "the focus stays on the badge");
    await page.keyboard.press("Tab");
    yes(await page.evaluate(() => document.activeElement.matches("pre.payload")), "the next stop is the payload, to scroll it");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Space");
    is(await page.locator(`#part-${shown.part} details[open]`).count(), 0, "the space bar closes it");

    await open(page, `/sessions/${say.SESSION}`);
    await tabTo(page, "a.column");
    await page.keyboard.press("ArrowRight");
    yes((await line.textContent()).startsWith("Request 2:"), "the map of a session can be walked, too");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/requests/${shown.long[1]}`);
    yes(true, "and Enter leads to the request");
  }));

check("by ear: landmarks, headings, names", () =>
  withPage({}, async (page) => {
    for (const [path, name] of pages()) {
      await open(page, path);
      const tree = await page.locator("body").ariaSnapshot();
      for (const landmark of ["- banner:", '- navigation "Main"', "- main:", "- contentinfo:"]) yes(tree.includes(landmark), `${name} has ${landmark}`);
      is((tree.match(/\[level=1\]/g) ?? []).length, 1, `${name} has one heading above all`);
      const levels = await page.locator("h1, h2, h3").evaluateAll((found) => found.map((each) => Number(each.tagName[1])));
      yes(levels.every((level, at) => at === 0 ? level === 1 : level - levels[at - 1] <= 1), `${name} skips no level of headings: ${levels}`);
      yes((await page.title()).endsWith(" · Larder"), `${name} has a title`);
      yes((await page.locator("nav [aria-current=page]").count()) === 1, `${name} says where it is`);
    }
    await open(page, `/requests/${shown.long.at(-1)}`);
    const tree = await page.locator("main").ariaSnapshot();
    yes(/link "read_log \(tool\): pointer, [\d,]+ → [\d,]+ tokens; [^"]+"/.test(tree), "a part of the picture has its reason as its name");
    yes(/group.*\n?.*pointer, show what is behind it/.test(tree) || tree.includes("pointer , show what is behind it") || tree.includes("pointer, show what is behind it"), "a badge says what it opens");
  }));

check("a turn, from the list to the bytes of a claim", () =>
  withPage({}, async (page) => {
    await open(page, "/");
    await page.getByRole("link", { name: "Documents" }).click();
    await page.waitForURL("**/documents");
    const listed = (await table(page, "Turns")).find((row) => row.Turn === String(shown.turn));
    is([listed.Question, listed.Status], [say.turnQuestion, "complete"], "the list names the question and how it ended");
    await page.getByRole("link", { name: say.turnQuestion }).click();
    await page.waitForURL(`**/turns/${shown.turn}`);
    is(await page.locator("h1").textContent(), say.turnQuestion, "the turn's page is headed by its question");
    const raw = await (await fetch(`${GATEWAY}/api/v1/documents/${shown.folder}/context.md`)).text();
    const written = [...new Set([...raw.matchAll(/^## (\d\. [^(\n]+?)(?: \(Attempt \d+\))?$/gm)].map((found) => found[1]))];
    const heads = await texts(page.locator(".turn-section > h2"));
    is(heads.map((each) => each.replace(/ attempt \d+$/, "")), written, "every section of the document stands on the page");
    yes(heads.includes("5. Synthesis attempt 2") && heads.includes("6. Validation attempt 2"), "what was written again says so");
    const older = page.locator("section", { has: page.locator("h2", { hasText: "5. Synthesis" }) }).locator("details");
    is(await older.getByText("On sale it goes for $599.").isVisible(), false, "an older attempt is folded");
    await older.locator("summary").click();
    yes(await older.getByText("On sale it goes for $599.").isVisible(), "and opens");

    const { metrics } = await api(`turns/${shown.turn}`);
    const phases = await table(page, "Phases");
    is(phases.map((row) => row["Tokens in"]), [...metrics.runs].sort((one, other) => one.phase - other.phase).map((run) => number(run.tokens_in)), "each run says what it took");
    const calls = await table(page, "Tool calls");
    is([calls.length, calls[0].Status], [1, "success"], "the call of the tool stands there");
    const claims = await table(page, "Claims");
    is(claims.map((row) => row.Claim), [say.CLAIM, "Acer Nitro V costs $749"], "the claims stand there");

    await page.getByRole("link", { name: "Trace claim-001" }).click();
    await page.waitForURL("**/claims/claim-001");
    const pointer = await page.locator("[data-copy]").getAttribute("data-copy");
    const bytes = await (await fetch(`${GATEWAY}/api/v1/pointers/${encodeURIComponent(pointer)}/content`)).text();
    is(await page.locator("mark").textContent(), bytes, "the marked stretch is what the pointer gives back");
    yes(bytes.includes("Lenovo LOQ 15") && bytes.includes("$697"), `and it says so: ${bytes}`);
    await page.getByRole("link", { name: "Exactly these bytes" }).click();
    await page.waitForURL(/\/pointers\//);
    is(await page.locator('pre[aria-label="The original"]').textContent(), bytes, "the link opens exactly these bytes");
    await page.goBack();
    await page.getByRole("link", { name: "result 1" }).click();
    await page.waitForURL(/toolresults%2Emd#b-result-001$/);
    yes(await page.locator("#b-result-001").isVisible(), "the link to the result leads to its block");
  }));

check("links of documents lead where they say", () =>
  withPage({ console: /status of 404/ }, async (page) => {
    const seen = new Map();
    const waiting = [`/turns/${shown.turn}`, "/vault"];
    while (waiting.length > 0 && seen.size < 40) {
      const path = waiting.shift();
      if (seen.has(path)) continue;
      await open(page, path);
      seen.set(path, await page.evaluate(() => [...document.querySelectorAll("[id]")].map((each) => each.id)));
      is(await texts(page.locator("main .broken")), [], `${path} has no broken link`);
      const links = await page.locator("main a").evaluateAll((found) => found.map((each) => each.getAttribute("href")));
      for (const link of links.filter((each) => /^\/(turns|vault)\//.test(each))) {
        const [to, id] = link.split("#");
        if (!seen.has(to) && !waiting.includes(to)) waiting.push(to);
        if (id && seen.has(to)) yes(seen.get(to).includes(id), `${link} leads to something`);
      }
    }
    yes(seen.size > 10, `${seen.size} pages were looked at`);
    const context = `/vault/${shown.folder}/context.md`;
    await open(page, context);
    is(await page.locator("h1").textContent(), "context.md", "a document is headed by its name");
    await page.locator("details.properties summary").click();
    const properties = await table(page, "Properties");
    yes(properties.some((row) => row.Property === "turn_number" && row.Value === String(shown.turn)), "its properties are a table");
    await page.getByRole("link", { name: "Raw" }).click();
    const raw = await (await fetch(`${GATEWAY}/api/v1/documents/${shown.folder}/context.md`)).text();
    is(await page.locator("pre").textContent(), raw, "raw it is the file, character by character");
    await open(page, "/vault/users/nobody/facts.md", 404);
  }));

check("documents are searched", () =>
  withPage({}, async (page) => {
    await open(page, "/documents");
    await page.getByLabel("Words").fill("cheapest laptop");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\?q=cheapest/);
    const { hits } = await api("search?q=cheapest%20laptop");
    is(await page.locator(".search-hits li").count(), hits.length, "the page and the API find alike");
    yes(hits.some((hit) => hit.document === `${shown.folder}/context.md`), "the turn is found");
    await page.getByLabel("Words").fill("zebra");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("No document holds these words.").waitFor();
  }));

check("a turn under way is shown as it goes on", () =>
  withPage({}, async (page) => {
    const answer = await askTurn(say.waiting, true);
    const told = answer.text();
    const running = await eventually("the turn is under way", async () => (await api("turns")).unfinished.find((each) => each.running && each.phase === 2));
    await open(page, `/turns/${running.number}`);
    await until(page, "the page says that it is live", () => document.getElementById("live-state").textContent === "live");
    await until(page, "it says which phase goes on", () => document.querySelector(".events li:last-child")?.textContent.includes("Phase 3"));
    await fetch(`${UPSTREAM}/release`);
    await page.getByRole("link", { name: "Show the whole turn" }).click();
    await page.locator("h2", { hasText: "5. Synthesis" }).waitFor();
    const events = [...(await told).matchAll(/^event: (\w+)$/gm)].map((found) => found[1]);
    is([events[0], events.at(-1)], ["started", "outcome"], "who asked has heard all of it");
  }));

check("a conversation type is tried, with what was sent next to it", () =>
  withPage({}, async (page) => {
    await open(page, "/conversations");
    await page.getByLabel("Type").selectOption("tutor");
    await page.getByRole("button", { name: "Begin" }).click();
    await page.waitForURL("**/conversations/conv-*");
    await page.evaluate(() => { window.sameDocument = true; });
    await page.getByLabel("Your message").fill(say.lesson.question);
    await page.getByRole("button", { name: "Send" }).click();
    const said = page.locator("#messages li p");
    await until(page, "what was said and the reply are there", (wanted) =>
      JSON.stringify([...document.querySelectorAll("#messages li p")].map((each) => each.textContent.trim())) === JSON.stringify(wanted),
      [say.lesson.question, say.lesson.answer]);
    await until(page, "the fields stand next to it", () => document.getElementById("aside").textContent.includes("Frustration"));
    yes((await page.locator("#aside").textContent()).includes("tokens"), "with what was sent");
    yes(await page.evaluate(() => window.sameDocument === true), "and the page was never loaded again");
    await page.reload();
    is((await texts(said))[1], say.lesson.answer, "it stays");
    await page.getByRole("link", { name: "Memory and consent" }).click();
    const everything = page.locator("#consents + ul > li").first();
    await submitted(page, everything.getByRole("button", { name: "I agree" }));
    await everything.getByText("agreed", { exact: true }).waitFor();
    const note = page.locator("#notes + ul > li").first();
    await eventually("the note is made", async () => {
      await page.reload();
      return note.count();
    });
    yes((await note.textContent()).includes(say.lesson.words), "a note has the words it comes from");
    await note.getByLabel("What is right").fill("Works on thirds.");
    await submitted(page, note.getByRole("button", { name: "Correct" }));
    await page.getByText("no longer used since").waitFor();
    await submitted(page, everything.getByRole("button", { name: "Revoke" }));
    await eventually("the notes are erased", async () => {
      await page.reload();
      return (await note.count()) === 0;
    });
    yes(true, "what was kept under a consent goes with it");
  }));

check("a conversation is led without scripts, too", () =>
  withPage({ script: false }, async (page) => {
    await open(page, "/conversations");
    await page.getByRole("button", { name: "Begin" }).first().waitFor();
    await page.getByLabel("Type").selectOption("tutor");
    await page.getByRole("button", { name: "Begin" }).click();
    await page.getByLabel("Your message").fill(say.lesson.question);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(say.lesson.answer).waitFor();
    yes((await page.locator("#aside").textContent()).includes("Frustration"), "with what was sent next to it");
  }));

for (const script of [true, false]) {
  check(`the last message is said anew ${script ? "in the browser" : "without scripts, too"}`, () =>
    withPage({ script }, async (page) => {
      await open(page, "/conversations");
      await page.getByLabel("Type").selectOption("tutor");
      await submitted(page, page.getByRole("button", { name: "Begin" }));
      await page.getByLabel("Your message").fill("Wait: " + say.lesson.question);
      await page.getByRole("button", { name: "Send" }).click();
      const said = page.locator("#messages li p");
      await said.getByText(say.lesson.answer).waitFor();
      if (!script) await page.reload();
      const change = async (button) => {
        await page.getByText("Change it, have it answered once more, or delete it").click();
        await submitted(page, page.getByRole("button", { name: button }));
      };
      await page.getByLabel("In other words").waitFor({ state: "attached" });
      await page.getByText("Change it, have it answered once more, or delete it").click();
      await page.getByLabel("In other words").fill(say.lesson.question);
      await submitted(page, page.getByRole("button", { name: "Say this instead" }));
      is((await texts(said)).join("|"), [say.lesson.question, say.lesson.answer].join("|"), "in other words");
      await change("Answer once more");
      is((await texts(said)).join("|"), [say.lesson.question, say.lesson.answer].join("|"), "and answered once more");
      await change("Delete with its reply");
      is(await said.count(), 0, "and deleted");
      is(await page.getByLabel("In other words").count(), 0, "with nothing left to change");
    }));
}

// Begins a mediation and leads Ann's side as far as a draft; the browser may have its script or not.
async function mediate(page, type = "mediation", people = "Ann, Ben") {
  await open(page, "/conversations");
  await page.getByLabel("Type").selectOption(type);
  await page.getByLabel("Participants").fill(people);
  await submitted(page, page.getByRole("button", { name: "Begin", exact: true }));
  await submitted(page, page.getByRole("button", { name: "Let the assistant begin" }));
  await page.locator("#messages").getByText(say.conflict.welcome).waitFor();
  await submitted(page, page.locator("#acts").getByRole("button", { name: "Begin", exact: true }));
  await page.locator("#acts").getByText("You are at Witnessing").waitFor();
  await page.getByLabel("Your message").fill(say.conflict.private);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("#messages").getByText(say.conflict.reply).waitFor();
  await page.locator("#messages blockquote").getByText(say.conflict.draft).waitFor();
  await until(page, "the draft waits to be previewed", (draft) => document.getElementById("share-text")?.value === draft, say.conflict.draft);
}

const shared = (page) => page.locator("#sharing").locator("xpath=ancestor::section");

for (const script of [true, false]) {
  check(`a mediation of two is led ${script ? "in the browser" : "without scripts, too"}`, () =>
    withPage({ script }, async (page) => {
      await mediate(page);
      const sharing = shared(page);
      await sharing.getByLabel("What you want to share").fill(say.conflict.attack);
      await submitted(page, sharing.getByRole("button", { name: "Preview", exact: true }));
      const preview = page.locator("#preview");
      await preview.getByText("This cannot be shared as it is").waitFor();
      yes((await preview.textContent()).includes("You never"), "the words of which the type warns are named");
      is(await preview.getByRole("button", { name: "Give exactly this" }).count(), 0, "what is stopped cannot be confirmed");
      is(await preview.locator("textarea").inputValue(), say.conflict.milder, "other words are suggested");
      await preview.locator("textarea").fill(say.conflict.draft);
      await submitted(page, preview.getByRole("button", { name: "Preview this instead" }));
      const give = preview.getByRole("button", { name: "Give exactly this to Ben" });
      await give.waitFor();

      await submitted(page, page.getByRole("link", { name: "As Ben" }));
      const received = async () => texts(shared(page).locator("h3:has-text('Shared with you') + ul blockquote"));
      is(await received(), [], "a preview gives nothing");
      yes(!(await page.content()).includes(say.conflict.draft), "and shows nothing");
      await submitted(page, page.getByRole("link", { name: "As Ann" }));
      await submitted(page, give);
      await page.getByText("Shared by you").waitFor();
      is(await preview.count(), 0, "what was confirmed is no preview any more");

      await submitted(page, page.getByRole("link", { name: "As Ben" }));
      is(await received(), [say.conflict.draft], "the other has what was shared");
      yes((await page.locator("#acts").textContent()).includes("Ann is at Witnessing"), "and sees how far the first has come");
      const all = await page.content();
      for (const words of [say.conflict.private, say.conflict.reply, say.conflict.attack, say.conflict.milder]) {
        yes(!all.includes(words), `nothing else of the first's side: ${words}`);
      }

      await page.getByLabel("Where").selectOption("inner_work");
      await submitted(page, page.getByRole("button", { name: "Begin a session" }));
      await page.locator("#acts").getByText("You are at Inner work (session 2)").waitFor();
      yes(true, "an aside is begun");
    }));
}

check("a mediation of three keeps who is left out", () =>
  withPage({}, async (page) => {
    await mediate(page, "family", "Ann, Ben, Carl");
    const answered = async () => {
      const replies = await page.locator("#messages .reply").count();
      await page.locator("#text").fill(say.conflict.private);
      await page.getByRole("button", { name: "Send" }).click();
      await until(page, "a reply", (count) => document.querySelectorAll("#messages .reply").length > count, replies);
      await until(page, "it is complete", () => !document.querySelector("[data-converse] button").disabled);
    };
    const sharing = shared(page);
    await sharing.getByLabel("Carl").uncheck();
    await page.getByLabel("Where").selectOption("inner_work");
    await answered();
    const carl = page.locator("#share-to-Carl");
    yes(!(await carl.isChecked()) && (await page.locator("#share-to-Ben").isChecked()), "a reply ticks nobody again");
    is(await page.getByLabel("Where").inputValue(), "inner_work", "and selects nothing else");

    await submitted(page, sharing.getByRole("button", { name: "Preview", exact: true }));
    const preview = page.locator("#preview");
    await preview.getByText("Change it").click();
    await preview.getByLabel("Ben").uncheck();
    await preview.getByLabel("Carl").check();
    await answered();
    yes(await preview.getByLabel("Carl").isVisible(), "what is open stays open");
    await preview.locator("textarea").fill(say.conflict.milder);
    await submitted(page, preview.getByRole("button", { name: "Preview this instead" }));
    await preview.getByRole("button", { name: "Give exactly this to Carl" }).waitFor();
    is(await preview.getByRole("button", { name: "Ben" }).count(), 0, "it goes to those who are ticked");
    await page.reload();
    await preview.getByText("Change it").click();
    yes(!(await preview.getByLabel("Ben").isChecked()), "who was left out of a preview is not ticked to change it");
  }));

const pages = () => [
  ["/", "overview"],
  ["/requests", "requests"],
  [`/requests?session=${say.SESSION}`, "requests of a session"],
  [`/requests/${shown.long.at(-1)}`, "request"],
  [`/requests/${shown.cartons}/parts/${shown.part}`, "part"],
  [`/pointers/${shown.pointer}`, "pointer"],
  ["/sessions", "sessions"],
  [`/sessions/${say.SESSION}`, "session"],
  [`/sessions/${say.SESSION}/transcript`, "transcript"],
  ["/conversations", "conversations"],
  [`/conversations/${shown.lesson}`, "conversation"],
  [`/conversations/${shown.conflict}?as=Ann`, "mediation with a preview"],
  [`/conversations/${shown.lesson}/memory`, "memory and consent"],
  ["/runs", "runs"],
  [`/runs/${shown.run}`, "run"],
  ["/documents", "documents"],
  ["/documents?q=laptop", "documents, found"],
  [`/turns/${shown.turn}`, "turn"],
  [`/turns/${shown.turn}/claims/claim-001`, "claim"],
  ["/vault", "vault"],
  [`/vault/${shown.folder}/context.md`, "document"],
  [`/vault/${shown.folder}/toolresults.md`, "results of tools"],
  [`/vault/${shown.folder}/metrics.json?view=raw`, "raw document"],
  ["/costs", "costs"],
  ["/interventions?all=true", "interventions"],
  ["/policy", "policy"],
];
const WIDTHS = [360, 1280, 3840];
const findings = new Map();

// No serious finding of axe, nothing that is cut off, no page that scrolls sideways.
async function stands(page, name, where) {
  const sideways = await page.evaluate(() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth);
  is(sideways, 0, `${name} at ${where} does not scroll sideways`);
  const cut = await page.evaluate(() => {
    const scrolls = (each) => each && (["auto", "scroll"].includes(getComputedStyle(each).overflowX) || scrolls(each.parentElement));
    return [...document.querySelectorAll("main *, header *, footer *")].filter((each) => {
      const box = each.getBoundingClientRect();
      return box.width > 1 && box.right > innerWidth + 1 && !each.closest("svg") && !scrolls(each);
    }).map((each) => each.outerHTML.slice(0, 80));
  });
  is(cut, [], `nothing of ${name} at ${where} is cut off`);
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map(({ id, impact, nodes }) => `${impact}: ${id} (${nodes.length}: ${nodes[0].html.slice(0, 100)})`);
  const grave = told.filter((words) => /^(serious|critical)/.test(words));
  const of = findings.get(name) ?? { runs: 0, grave: 0, light: 0 };
  findings.set(name, { runs: of.runs + 1, grave: of.grave + grave.length, light: of.light + told.length - grave.length });
  yes(passes.length > 10, `axe looked at ${name}`);
  is(grave, [], `axe finds nothing serious on ${name} at ${where}`);
  for (const words of told) console.log(`    ${name} at ${where}: ${words}`);
}

check("accessible in light and dark, from 360 to 3840 pixels", async () => {
  for (const scheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      await withPage({ width, height: width === 3840 ? 2160 : 800, scheme, console: /status of 40[14]/ }, async (page) => {
        const where = `${width} px, ${scheme}`;
        for (const [path, name] of patch ? pages().slice(0, 4) : pages()) {
          await open(page, path);
          if (name === "request" || name === "session") {
            const badge = page.locator("details.disclosure", { hasText: /pointer|condensed/ }).first();
            await badge.locator("summary").click();
            await badge.locator("pre").first().waitFor();
          }
          if (path === "/") await until(page, "live", () => document.getElementById("live-state").textContent === "live");
          await stands(page, name, where);
        }
        if (patch) return;
        await page.getByLabel("The request as JSON").fill(JSON.stringify(say.nightlyImport[3].body));
        await page.getByRole("button", { name: "Inspect" }).click();
        await page.locator("#inspected").waitFor();
        await stands(page, "policy, inspected", where);
        await open(page, "/sign-in");
        await stands(page, "sign in", where);
        await open(page, "/requests/none", 404);
        await stands(page, "not found", where);
      });
      if (patch) return;
    }
  }
});

check("signing in where keys were made", () =>
  withPage({ console: /status of 401/ }, async (page) => {
    const key = execFileSync(LARDER, ["keys", "create", "--user", "local", "--yes"], { cwd: PROJECT, encoding: "utf8", stdio: "pipe" }).match(/lk-\w+-\w+/)[0];
    await page.goto(`${GATEWAY}/costs`);
    is(page.url(), `${GATEWAY}/sign-in`, "who is not known is led to the page where they sign in");
    await page.getByLabel("Key").fill("lk-000000000000-000000000000000000000000000000000000000000000000");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    yes(true, "a wrong key is refused in words");
    await page.getByLabel("Key").fill(key);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${GATEWAY}/`);
    yes(!(await page.content()).includes(key), "the key is shown nowhere");
    await until(page, "live for one who signed in", () => document.getElementById("live-state").textContent === "live");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL("**/sign-in");
    await page.goto(`${GATEWAY}/costs`);
    is(page.url(), `${GATEWAY}/sign-in`, "who signed out is known no more");
  }));

// --------------------------------------------------------------------------- the checks are held to what they check

const PAGE = /^\/(?!assets|live)/;
const SCRIPT = /script\.js$/;
const STYLE = /style\.css$/;
const PROOFS = [
  // These need runs that are among the newest.
  ["runs", PAGE, /intervention<\/span>/g, "completed</span>"],
  ["runs", PAGE, "captured twice", "captured once"],
  ["live totals move while a client talks", SCRIPT, '"pieces", (event)', '"nothing", (event)'],
  ["live totals move while a client talks", SCRIPT, "piece.innerHTML = html;", "location.reload();"],
  ["a conversation type is tried, with what was sent next to it", SCRIPT, 'add("own", form.dataset.as, text);', ""],
  ["a conversation type is tried, with what was sent next to it", SCRIPT, "if (!read.ok) return;", "return;"],
  ["a mediation of two is led in the browser", SCRIPT, "data.draft && data.draft !== data.text", "false"],
  ["a mediation of two is led in the browser", PAGE, /name="confirm" value="[^"]*"/, 'name="confirm" value="0"'],
  ["a mediation of three keeps who is left out", SCRIPT, 'checked: "defaultChecked"', ""],
  ["a mediation of three keeps who is left out", SCRIPT, 'open: ""', ""],
  ["a mediation of three keeps who is left out", PAGE, /(id="change-to-Ben"[^>]*?)>/, "$1 checked>"],
  ["a mediation of two is led without scripts, too", PAGE, 'value="inner_work"', 'value="inner_thoughts"'],
  ["updates pause, and leave what is in use alone", SCRIPT, "|| paused", ""],
  ["updates pause, and leave what is in use alone", SCRIPT, "|| piece.contains(document.activeElement)", ""],
  ["updates pause, and leave what is in use alone", SCRIPT, 'root.addEventListener("focusout"', 'root.addEventListener("nothing"'],
  ["the window of a request as a picture", PAGE, /over entry cap/, "it fits"],
  ["the window of a request as a picture", PAGE, /<a class="part"/, "<a"],
  ["the window of a request as a picture", PAGE, /fill="url\(#fill-condensed\)"\/?>/, 'fill="url(#fill-whole)">'],
  ["the window of a request as a picture", PAGE, /(<rect x="[^"]+" width=")(\d)/, "$19$2"],
  ["the window of a request as a picture", SCRIPT, "line.textContent = part.dataset.why", "line.textContent"],
  ["a badge opens to the raw payload", /parts/, "تالف", "تلف"],
  ["a badge opens to the raw payload", /parts/, /&lt;b&gt;(.*?)&lt;\/b&gt;/g, "<b>$1</b>"],
  ["a badge opens to the raw payload", /parts/, "role&quot;:&quot;tool", "role&quot;:&quot;user"],
  ["a badge opens to the raw payload", /parts/, /data-copy="lp1/, 'data-copy="lp2'],
  ["a badge opens to the raw payload", SCRIPT, "?piece=true", ""],
  ["a badge opens to the raw payload", STYLE, /\.scroll \.loaded \{\s*width: 0;/, ".scroll .loaded { width: 200vw;"],
  ["a badge leads there without scripts, too", PAGE, /<a href="[^"]+">Open what is behind it<\/a>/g, ""],
  ["the compaction map of a session", PAGE, /<a class="column"/, "<a"],
  ["the compaction map of a session", PAGE, /<line class="epoch"/, "<line"],
  ["the compaction map of a session", PAGE, "whole</span> → ", "pointer</span> → "],
  ["the compaction map of a session", /pointers/, "ERROR", "WARN"],
  ["the transcript of a session", PAGE, "Its transcript</a>", "Its past</a>"],
  ["the transcript of a session", PAGE, /<tr id="line-2"[^>]*>.*?<\/tr>/s, ""],
  ["the transcript of a session", PAGE, ">shortened<", ">whole<"],
  ["the transcript of a session", /transcript\/\d/, /ERROR/g, "WARN"],
  ["a book becomes a pointer, and its badge opens to it", /parts/, /aria-label="The original" dir="auto">\n/, "$&x"],
  ["a book becomes a pointer, and its badge opens to it", /parts/, /\/content"/g, '/content?lines=1:1"'],
  ["a turn, from the list to the bytes of a claim", PAGE, "<mark>", "<mark>x"],
  ["a turn, from the list to the bytes of a claim", PAGE, /<details class="fold" id/g, '<details open class="fold" id'],
  ["a turn, from the list to the bytes of a claim", PAGE, 'id="b-result-001"', 'id="b-result-002"'],
  ["a turn, from the list to the bytes of a claim", PAGE, "<h2 id=\"h-3-task-plan\">", "<h2>3"],
  ["links of documents lead where they say", PAGE, /href="\/vault\/([^"]+)%2Emd/, 'href="/vault/$1%2Emdx'],
  ["links of documents lead where they say", PAGE, "turn_number", "turn"],
  ["documents are searched", PAGE, /<ol class="search-hits"><li>/, '<ol class="search-hits"><li></li><li>'],
  ["costs by model, by recipe and by day", PAGE, /<td class="numeric">\$0\.0[1-9]/, '<td class="numeric">$0.9'],
  ["costs by model, by recipe and by day", PAGE, "orders/triage", "orders/other"],
  ["costs by model, by recipe and by day", PAGE, 'value="7"', 'value="8"'],
  ["the queue of interventions", PAGE, "is not one of", "is one of"],
  ["the queue of interventions", PAGE, /action="\/interventions\/\d+"/g, 'action="/interventions/1"'],
  ["what is behind a pointer", PAGE, 'name="grep"', 'name="other"'],
  ["what is behind a pointer", PAGE, "ERROR", "INFO"],
  ["the policy: settings with help, budgets, and what would become of a request", PAGE, /Condense what does not fit[^<]*/, ""],
  ["the policy: settings with help, budgets, and what would become of a request", PAGE, "12,000", "21,000"],
  ["the policy: settings with help, budgets, and what would become of a request", PAGE, "It would be refused.", "It would be sent."],
  ["by keyboard alone", SCRIPT, "ArrowLeft: at - 1", "ArrowLeft: at"],
  ["by keyboard alone", PAGE, /<summary/g, '<summary tabindex="-1"'],
  ["by keyboard alone", STYLE, "outline: 3px solid var(--accent);", "outline: none;"],
  ["by keyboard alone", PAGE, '<a class="skip"', '<a hidden class="skip"'],
  ["by ear: landmarks, headings, names", PAGE, '<nav aria-label="Main">', "<nav>"],
  ["by ear: landmarks, headings, names", PAGE, "</h1>", "</h1><h4>x</h4><h3>x</h3>"],
  ["by ear: landmarks, headings, names", PAGE, /, show what is behind it/g, ""],
  ["accessible in light and dark, from 360 to 3840 pixels", STYLE, "--muted: #565b4f", "--muted: #b5b5b5"],
  ["accessible in light and dark, from 360 to 3840 pixels", PAGE, '<html lang="en">', "<html>"],
  ["accessible in light and dark, from 360 to 3840 pixels", STYLE, "overflow-x: auto;\n  margin-inline", "margin-inline"],
  ["accessible in light and dark, from 360 to 3840 pixels", PAGE, '<main id="main"', '<img src="https://example.org/x.png"><main id="main"'],
  ["the last message is said anew in the browser", /\/acts/, 'name="change" value="edit"', 'name="change" value="again"'],
  ["the last message is said anew without scripts, too", PAGE, 'name="change" value="edit"', 'name="change" value="again"'],
];

async function prove() {
  patience = 2_500;
  let proven = 0;
  const missed = [];
  for (const [name, at, from, to] of PROOFS) {
    if (ONLY && !name.includes(ONLY)) continue;
    [patch, patched] = [{ at, from, to }, 0];
    const [counted, before] = [assertions, new Map(findings)];
    const failure = await checks.get(name)().then(() => null, (error) => error);
    [assertions] = [counted];
    findings.clear();
    before.forEach((value, key) => findings.set(key, value));
    if (failure && patched) proven += 1;
    else missed.push(`${name}: ${patched ? "does not notice" : "never meets"} ${from} → ${to}`);
    if (process.env.VERBOSE) console.log(`    ${name}: ${from} → ${failure?.message?.split("\n")[0].slice(0, 160)}`);
  }
  [patch, patience] = [null, 15_000];
  for (const words of missed) console.log(`  NOT PROVEN  ${words}`);
  console.log(`${proven} of ${proven + missed.length} ways to break the pages are noticed`);
  return missed.length;
}

// -------------------------------------------------------------------------------------------------------- the pictures

async function pictures(folder) {
  mkdirSync(folder, { recursive: true });
  const take = (name, options, path, prepare, clip) =>
    withPage(options, async (page) => {
      await open(page, path);
      await prepare?.(page);
      // Pictures show pages as they stand once everything has come.
      await page.evaluate(() => document.fonts.ready);
      const file = join(folder, `${name}.png`);
      if (clip) await page.locator(clip).first().screenshot({ path: file });
      else await page.screenshot({ path: file });
      console.log(`${file}: ${Math.round(readFileSync(file).length / 1000)} kB`);
      yes(readFileSync(file).length < 200_000, `${name} is smaller than 200 kB`);
    });
  const live = (page) => until(page, "live", () => document.getElementById("live-state").textContent === "live");
  const inspect = async (page) => {
    await page.getByLabel("The request as JSON").fill(JSON.stringify(say.tooLarge.body));
    await page.getByRole("button", { name: "Inspect" }).click();
    await page.locator("#inspected").waitFor();
  };
  const last = `/requests/${shown.long.at(-1)}`;
  const hover = (page) => page.locator("a.part", { has: page.locator('rect[fill="url(#fill-condensed)"]') }).first().hover();
  await take("overview", { height: 960 }, "/", live);
  await take("overview-dark", { height: 960, scheme: "dark" }, "/", live);
  await take("overview-phone", { width: 360, height: 720 }, "/", live);
  await take("window", { height: 1200 }, last, hover, "section[aria-labelledby=window]");
  await take("badge", { height: 720 }, last, async (page) => {
    const row = page.locator("tr", { hasText: "query_orders tool" }).filter({ hasText: "condensed" }).first();
    await row.locator("summary").click();
    await row.locator("pre").first().waitFor();
    await row.evaluate((each) => scrollTo(0, each.getBoundingClientRect().top + scrollY - 260));
  });
  await take("session", { height: 1000 }, `/sessions/${say.SESSION}`, (page) => page.locator("a.column").nth(9).hover());
  await take("run", { height: 1000 }, `/runs/${shown.run}`);
  const section = (words) => `section:has(> h2:text-is("${words}"))`;
  await take("documents", { height: 760 }, "/documents");
  await take("turn", { height: 1100 }, `/turns/${shown.turn}`);
  await take("turn-tools", { height: 1100 }, `/turns/${shown.turn}`, null, 'section[aria-labelledby="h-4-tool-execution"]');
  await take("turn-attempts", { height: 1100 }, `/turns/${shown.turn}`, (page) =>
    page.locator('section[aria-labelledby="h-5-synthesis"] > details > summary').click(), 'section[aria-labelledby="h-5-synthesis"]');
  await take("turn-claims", { height: 900 }, `/turns/${shown.turn}`, null, section("Claims"));
  await take("turn-phases", { height: 900 }, `/turns/${shown.turn}`, null, section("Time and cost"));
  await take("claim", { height: 1000 }, `/turns/${shown.turn}/claims/claim-001`);
  await take("vault", { height: 900 }, "/vault");
  await take("document", { height: 900 }, `/vault/${shown.folder}/toolresults.md`);
  await take("turn-phone", { width: 360, height: 720 }, `/turns/${shown.turn}`);
  await take("costs", { height: 980 }, "/costs");
  await take("interventions", { height: 760 }, "/interventions");
  await take("inspect", { height: 900 }, "/policy", inspect);
  await take("budgets", { height: 900 }, "/policy", null, "section[aria-labelledby=budgets]");
  await take("settings", { height: 760 }, "/policy", (page) =>
    page.locator("tr", { hasText: "policy.enabled" }).evaluate((each) => scrollTo(0, each.getBoundingClientRect().top + scrollY - 60)));
}

// ------------------------------------------------------------------------------------------------------------- all of it

const hold = (words) => words.split("\n").slice(0, 3).join("\n    ");
let failed = 0;
browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
try {
  shown = await talk();
  if (PICTURES) {
    await pictures(PICTURES);
  } else {
    const LAST = "signing in where keys were made";
    const run = async (name) => {
      const before = assertions;
      try {
        await checks.get(name)();
        console.log(`ok      ${name} (${assertions - before})`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED  ${name}\n    ${hold(error instanceof Broken ? error.message : String(error.stack))}`);
      }
    };
    const chosen = [...checks.keys()].filter((name) => name.includes(ONLY ?? ""));
    for (const name of chosen.filter((name) => name !== LAST)) await run(name);
    for (const [name, { runs, grave, light }] of findings) console.log(`axe     ${name}: ${grave} serious, ${light} lesser, in ${runs} settings`);
    if (!process.env.NO_PROOFS) failed += await prove();
    // It closes the gateway to those without a key.
    if (chosen.includes(LAST)) await run(LAST);
    console.log(`${assertions} assertions, ${failed} failures, Chromium ${browser.version()}`);
  }
} finally {
  await browser.close();
}
process.exit(failed ? 1 : 0);
