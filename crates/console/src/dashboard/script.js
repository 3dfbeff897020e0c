// Live pieces, disclosures that load their content, pictures that the arrow keys walk, buttons that copy, and replies of
// conversations as they are written. Without this script every page still shows everything; it only does not update.
"use strict";

// An event "pieces" maps ids to HTML that the server has rendered and escaped.
function live(root) {
  const state = document.getElementById("live-state");
  const pause = document.getElementById("live-pause");
  let paused = false;
  let waiting = {};
  const show = (word, kind) => {
    state.textContent = word;
    state.className = `chip live-state ${kind}`;
  };
  const put = (pieces) => {
    for (const [id, html] of Object.entries(pieces)) {
      const piece = document.getElementById(id);
      // A piece that has the focus is updated when the focus leaves it.
      if (!piece || paused || piece.contains(document.activeElement)) {
        waiting[id] = html;
        continue;
      }
      delete waiting[id];
      const scrolled = [...piece.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
      piece.innerHTML = html;
      piece.querySelectorAll(".scroll").forEach((each, at) => {
        each.scrollLeft = scrolled[at] ?? 0;
      });
    }
  };
  const catchUp = () => put({ ...waiting });
  root.addEventListener("focusout", () => setTimeout(catchUp));
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    catchUp();
  });
  const events = new EventSource(root.dataset.live);
  events.addEventListener("open", () => show("live", "good"));
  events.addEventListener("error", () => {
    // The server refuses to reconnect once everything was sent.
    if (events.readyState === EventSource.CLOSED) show("ended", "good");
    else show("reconnecting", "warn");
  });
  events.addEventListener("pieces", (event) => put(JSON.parse(event.data)));
}

// The content of a disclosure is fetched as HTML when it first opens.
async function load(disclosure) {
  const content = disclosure.querySelector(".loaded");
  if (!disclosure.open || disclosure.dataset.loaded) return;
  disclosure.dataset.loaded = "yes";
  content.setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(`${disclosure.dataset.load}?piece=true`);
    if (!reply.ok) throw new Error(reply.status === 404 ? "it no longer exists" : `HTTP ${reply.status}`);
    content.innerHTML = await reply.text();
  } catch (problem) {
    delete disclosure.dataset.loaded;
    const words = document.createElement("p");
    words.textContent = `Cannot be shown: ${problem.message}`;
    content.append(words);
  }
  content.removeAttribute("aria-busy");
}

// Each picture is one tab stop; arrow keys walk its parts, and a line explains the focused one.
function walk(map) {
  const line = map.querySelector("[data-why-line]");
  const say = (part) => {
    line.textContent = part.dataset.why;
  };
  for (const picture of map.querySelectorAll("svg")) {
    const parts = [...picture.querySelectorAll("[data-why]")];
    parts.forEach((part, at) => {
      part.setAttribute("tabindex", at === 0 ? "0" : "-1");
      part.addEventListener("pointerenter", () => say(part));
      part.addEventListener("focus", () => say(part));
      part.addEventListener("keydown", (event) => {
        const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: parts.length - 1 }[event.key];
        if (to === undefined || !parts[to]) return;
        event.preventDefault();
        part.setAttribute("tabindex", "-1");
        parts[to].setAttribute("tabindex", "0");
        parts[to].focus();
      });
    });
  }
}

// The events of a stream, as they arrive.
async function* eventsOf(reply) {
  let rest = "";
  for await (const piece of reply.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("event")) yield { kind: field("event"), data: JSON.parse(field("data")) };
    }
  }
}

// What a person changes in an element, and what it was at first. Without the latter it always counts as changed.
const CHANGES = { value: "defaultValue", checked: "defaultChecked", open: "" };

// Reads a piece of a conversation's page again. What somebody has written, ticked, selected or opened in it stays.
async function renew(id, address) {
  const piece = document.getElementById(id);
  const read = await fetch(address);
  if (!read.ok) return;
  const html = await read.text();
  const changes = [...piece.querySelectorAll("textarea[id], input[id], select[id], details[id]")].flatMap((each) =>
    Object.entries(CHANGES).flatMap(([key, first]) => (key in each && each[key] !== each[first] ? [[each.id, key, each[key]]] : [])),
  );
  piece.innerHTML = html;
  for (const [id, key, value] of changes) {
    const element = document.getElementById(id);
    if (element) element[key] = value;
  }
}

// A chat: what is posted appears at once and its reply as it is written; then what is next to it is read again.
function converse(form) {
  const messages = document.getElementById("messages");
  const problem = document.getElementById("chat-problem");
  const button = form.querySelector("button");
  const add = (kind, who, text) => {
    const item = document.createElement("li");
    item.className = kind;
    item.append(Object.assign(document.createElement("strong"), { textContent: who }));
    const said = Object.assign(document.createElement("p"), { dir: "auto", textContent: text });
    item.append(said);
    messages.append(item);
    item.scrollIntoView({ block: "nearest" });
    return said;
  };
  const answer = async (text, key) => {
    const headers = { "content-type": "application/json", accept: "text/event-stream", "idempotency-key": key };
    const body = JSON.stringify({ text, participant: form.dataset.as });
    const reply = await fetch(`/api/v1/conversations/${form.dataset.converse}/messages`, { method: "POST", headers, body });
    if (!reply.ok) throw new Error((await reply.json()).detail);
    const said = add("reply", "Assistant", "");
    for await (const { kind, data } of eventsOf(reply)) {
      if (kind === "text") said.textContent += data.text;
      if (kind === "restart") said.textContent = "";
      if (kind === "done") {
        said.textContent = data.text;
        if (data.draft && data.draft !== data.text) {
          const words = "A draft, which nobody else has until you share it:";
          said.after(
            Object.assign(document.createElement("span"), { className: "muted", textContent: words }),
            Object.assign(document.createElement("blockquote"), { dir: "auto", textContent: data.draft }),
          );
        }
      }
      if (kind === "problem") throw new Error(data.detail);
    }
  };
  // What failed is sent again under its key, so that it is no second message.
  let failed = { text: "", key: "" };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = form.elements.text.value;
    if (button.disabled || !text.trim()) return;
    button.disabled = true;
    problem.textContent = "";
    form.reset();
    const said = add("own", form.dataset.as, text);
    const key = text === failed.text ? failed.key : `page-${Date.now()}-${Math.random().toString(36).slice(2)}`;
    failed = { text: "", key: "" };
    try {
      await answer(text, key);
      for (const piece of ["aside", "acts"]) await renew(piece, form.dataset[piece]);
    } catch (error) {
      problem.textContent = `No reply: ${error.message}`;
      failed = { text, key };
      said.parentElement.remove();
      form.elements.text.value = text;
    }
    button.disabled = false;
    form.elements.text.focus();
  });
}

document.addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches?.("details.disclosure")) load(event.target);
  },
  true,
);

// What is started once is started once, however long its model takes.
document.addEventListener("submit", ({ target }) => {
  if (!target.closest("#acts")) return;
  setTimeout(() => target.querySelectorAll("button").forEach((button) => Object.assign(button, { disabled: true, textContent: "One moment …" })));
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Cannot copy";
  }
});

document.querySelectorAll("[data-map]").forEach(walk);
const root = document.querySelector("[data-live]");
if (root) live(root);
document.querySelectorAll("[data-converse]").forEach(converse);
