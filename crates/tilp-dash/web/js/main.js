// The page: which view is shown of which run. All of it is in the address, so links and the back
// button work.

import { h, empty } from "./dom.js";
import { Store, isStudyFile } from "./data.js";
import { Timeline } from "./timeline.js";
import { Picker } from "./picker.js";
import { forgetColours } from "./colour.js";
import { learning } from "./learning.js";
import { cell } from "./cell.js";
import { round } from "./round.js";
import { why } from "./why.js";
import { robots } from "./robots.js";
import { twin } from "./twin.js";
import { compare } from "./compare.js";
import { whatif } from "./whatif.js";

const store = new Store();
const isFile = store.kept("round") !== null;
const VIEWS = isStudyFile ? [compare] : [learning, cell, round, why, robots, twin, ...(isFile ? [] : [compare]), whatif];
const byId = (id) => document.getElementById(id);
let where = { run: null, view: "learning", round: null, terminal: null };
let shown = null; // the view that is mounted
let frame = 0;

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (given.has(name) && Number.isInteger(Number(given.get(name))) ? Number(given.get(name)) : null);
  return { run: given.get("run"), view: given.get("view") ?? "learning", round: number("round"), terminal: number("terminal") };
}

function address(change) {
  const next = { ...where, ...change };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(next)) if (value !== null) query.set(name, value);
  return `#${query}`;
}

// Goes somewhere. Moving through rounds makes no history.
function go(change, { replace = false } = {}) {
  const target = address(change);
  if (replace) {
    history.replaceState(null, "", target);
    arrive();
  } else location.hash = target;
}

const context = {
  store,
  go,
  address,
  get where() { return where; },
  // The round that is looked at.
  get round() { return Math.min(where.round ?? store.lastRound, store.lastRound) || null; },
};

function arrive() {
  const before = where;
  where = readAddress();
  if (where.run === null && store.list.runs.length) where.run = newest();
  if (where.run !== store.run) store.choose(where.run);
  if (!shown || before.view !== where.view) mount();
  draw();
}

// The run to show first: one that is running, else the first of the list.
function newest() {
  const { runs } = store.list;
  return (runs.find((one) => one.state === "running") ?? runs[0])?.id ?? null;
}

function mount() {
  shown?.remove?.();
  const view = VIEWS.find((one) => one.name === where.view) ?? VIEWS[0];
  const root = empty(byId("view"));
  shown = { view, ...view.mount(root, context) };
  document.title = `${view.title} · TiLP`;
}

function draw() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    drawTabs();
    drawHead();
    const bar = byId("timeline");
    bar.hidden = !shown.view.rounds || !store.nRows;
    timeline.show(where.round, store.lastRound);
    shown.update?.();
  });
}

function drawTabs() {
  const list = byId("tabs");
  if (!list.childElementCount) for (const view of VIEWS) list.append(h("li", {}, h("a", { "data-view": view.name, text: view.title })));
  for (const link of list.querySelectorAll("a")) {
    link.href = address({ view: link.dataset.view });
    if (link.dataset.view === shown.view.name) {
      if (!link.hasAttribute("aria-current")) link.scrollIntoView({ block: "nearest", inline: "nearest" });
      link.setAttribute("aria-current", "page");
    } else link.removeAttribute("aria-current");
  }
}

function drawHead() {
  const entry = store.list.runs.find((one) => one.id === store.run);
  byId("pick-name").textContent = entry ? `${entry.name}${entry.study ? ` (${entry.study.split("/").pop()})` : ""}` : store.run ?? (isStudyFile ? store.list.studies[0]?.name : null) ?? "Choose a run";
  const live = byId("live");
  const lost = store.connection === "lost";
  const total = store.about?.rounds;
  const words = { running: `running, round ${store.lastRound}${total ? ` of ${total}` : ""}`, finished: "finished", stopped: `stopped at round ${store.lastRound}` };
  live.dataset.state = lost ? "lost" : store.state ?? "";
  empty(live).append(h("span", { text: lost ? "connection lost, trying again" : words[store.state] ?? "" }));
  const notice = byId("notice");
  const error = store.error;
  notice.hidden = !error;
  if (notice.textContent !== (error ?? "")) notice.textContent = error ?? "";
}

const timeline = new Timeline(byId("timeline"), (round) => go({ round: round !== null && round >= store.lastRound ? null : round }, { replace: true }));
const picker = new Picker(byId("picker"), store, (run) => address({ run, round: null, terminal: null }));

// The address holds the view, so the way to the content must not change it.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
byId("pick").addEventListener("click", () => picker.open());
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("tilp-theme", root.dataset.theme); } catch { /* not kept then */ }
  forgetColours();
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { forgetColours(); draw(); });
addEventListener("hashchange", arrive);
store.addEventListener("list", () => (where.run === null ? arrive() : draw()));
for (const kind of ["reset", "change", "connection"]) store.addEventListener(kind, draw);
addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, dialog, svg") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); picker.open(); }
  if (shown.view.rounds && event.key === "ArrowLeft") timeline.step(-1);
  if (shown.view.rounds && event.key === "ArrowRight") timeline.step(1);
  if (shown.view.rounds && event.key === " " && event.target === document.body) { event.preventDefault(); timeline.toggle(); }
});

arrive();
store.choose(where.run);
