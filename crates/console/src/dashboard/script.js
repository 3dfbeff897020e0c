// What moves on the pages: live pieces, badges that load what is behind them, maps that the arrow keys walk, and
// buttons that copy. Without this script every page still shows everything; it only stands still.
"use strict";

// Pieces of the overview come as HTML that the server wrote, and so escaped, in an event "pieces": id -> HTML.
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
      // A piece that is being used is not taken from under the reader's hands; it follows when they leave it.
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
    // Who is told not to come again has heard everything.
    if (events.readyState === EventSource.CLOSED) show("ended", "good");
    else show("reconnecting", "warn");
  });
  events.addEventListener("pieces", (event) => put(JSON.parse(event.data)));
}

// The first time a badge opens, what is behind it is fetched as HTML that the server wrote.
async function load(badge) {
  const raw = badge.querySelector(".raw");
  if (!badge.open || badge.dataset.loaded) return;
  badge.dataset.loaded = "yes";
  raw.setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(`${badge.dataset.load}?piece=true`);
    if (!reply.ok) throw new Error(reply.status === 404 ? "it is not there any more" : `HTTP ${reply.status}`);
    raw.innerHTML = await reply.text();
  } catch (problem) {
    delete badge.dataset.loaded;
    const words = document.createElement("p");
    words.textContent = `Cannot be shown: ${problem.message}`;
    raw.append(words);
  }
  raw.removeAttribute("aria-busy");
}

// One stop for the tab key in each picture; arrow keys walk its parts, and a line says why each stands as it does.
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

document.addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches?.("details.badge")) load(event.target);
  },
  true,
);

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
