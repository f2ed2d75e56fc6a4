// Round: where did the time go, and was it as predicted?

import { h, s, empty, set, card, table } from "./dom.js";
import { num, seconds, joules, bytes, hertz, percent, ticks, trimmed, isNumber } from "./format.js";
import { series } from "./colour.js";
import { terminalsOf } from "./cell.js";

const PARTS = [
  ["download", "download of layers", 7], ["compute", "computation", 4], ["up", "activation up", 0],
  ["down", "gradient down", 2], ["upload", "layers up", 3], ["exchange", "layers, both ways", 3],
];
const ROW = 26;
const MOST_ROWS = 200;

// How the delay of a terminal divides. The record has its computation and its bytes: the rest of the
// delay is divided by bytes.
export function partsOf(one, aggregates) {
  const compute = Math.min(one.delay, isNumber(one.computation) ? one.computation : 0);
  const total = one.up + one.down + one.sync;
  const radio = Math.max(0, one.delay - compute);
  const share = (count) => (total > 0 ? (radio * count) / total : 0);
  const lacks = one.held < one.cut && one.scheduled;
  const kind = !aggregates ? "download" : lacks ? "exchange" : "upload";
  const parts = { compute, up: share(one.up), down: share(one.down), [kind]: share(one.sync) };
  if (total === 0) parts.up = radio;
  return PARTS.filter(([name]) => parts[name] > 0).map(([name]) => [name, parts[name]]);
}

export const round = {
  name: "round",
  title: "Round",
  rounds: true,
  mount(root, context) {
    const { store, go } = context;
    const tiles = h("dl", { class: "tiles" });
    const svg = s("svg", { class: "gantt", role: "img", "aria-label": "Time of every terminal in this round" });
    const plot = h("div", { class: "chart" }, svg);
    const legend = h("div", { class: "legend" });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Times, table" });
    const note = h("p", { class: "small faint" });
    let asked = 0, answer = null, used = [];
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "Round" }), tiles,
      card("Time of every terminal", { note: "bars: realised; diamonds: predicted; ticks: surely within" }, plot, legend, note),
      card("Numbers", {}, body)));
    for (const [, title, colour] of PARTS.slice(0, 5)) legend.append(h("span", { class: "plain-key" }, h("span", { class: "key", css: { color: series(colour) } }), title));
    const size = new ResizeObserver(() => answer && drawBars());
    size.observe(plot);

    async function update() {
      const now = context.round;
      if (!now) { note.textContent = "No round yet."; return; }
      const mine = (asked += 1);
      try {
        const next = await store.round(now);
        if (mine !== asked) return;
        answer = next;
        const all = terminalsOf(answer, null);
        used = all.filter((one) => one.scheduled || one.sync > 0).sort((a, b) => b.delay - a.delay || a.id - b.id);
        drawTiles();
        drawBars();
        drawTable();
        if (now < store.lastRound) void store.round(now + 1).catch(() => {});
      } catch (error) {
        if (mine === asked) note.textContent = error.message;
      }
    }

    function drawTiles() {
      const { decided, executed } = answer;
      const why = decided.rationale, limits = store.about?.limits ?? {};
      const tile = (name, value, more) => h("div", { class: "tile" }, h("dt", { text: name }), h("dd", {}, value, h("span", { class: "note", text: more })));
      const beside = (value, text) => (why ? `predicted ${text(num(value))}` : "no prediction by this method");
      const energy = terminalsOf(answer, null).reduce((sum, one) => sum + (one.energy || 0), 0);
      const slowest = used[0];
      empty(tiles).append(
        tile("Round", String(answer.round), executed ? (decided.aggregates ? "aggregates" : decided.rule) : "is being executed"),
        tile("Duration", executed ? seconds(num(executed.duration_s)) : "…", beside(why?.duration_s, seconds)),
        tile("Energy", executed ? joules(energy) : "…", beside(why?.energy_j, joules)),
        tile("Slowest", slowest ? `Terminal ${slowest.id}` : "–", slowest ? `${seconds(slowest.delay)} of ${seconds(limits.deadline_s)}` : ""),
        tile("Late", String(used.filter((one) => one.late).length), `of ${used.filter((one) => one.scheduled).length} scheduled`),
        tile("Loss", executed && isNumber(num(executed.loss)) ? num(executed.loss).toFixed(4) : "–", "of the minibatches"));
    }

    // In sequential training one begins when the one before has finished.
    function starts() {
      const at = new Map();
      if (answer.decided.rule !== "relay") return at;
      let clock = 0;
      const ends = new Map(used.map((one) => [one.id, one.delay]));
      for (const id of answer.decided.order) { at.set(id, clock); clock = Math.max(clock, ends.get(id) ?? clock); }
      return at;
    }

    function drawBars() {
      const width = plot.clientWidth;
      if (!width) return;
      const shown = used.slice(0, MOST_ROWS);
      const deadline = store.about?.limits?.deadline_s;
      // Up to the deadline, unless all are done long before; a terminal far beyond it is cut off.
      const longest = Math.max(...shown.map((one) => Math.max(one.delay, one.scheduled && isNumber(one.sure) ? one.sure : 0)), 1e-9);
      const isFar = deadline > 1.8 * longest;
      const closes = isFar || !deadline ? 1.15 * longest : 1.03 * Math.max(deadline, Math.min(longest, 2 * deadline));
      const left = width < 500 ? 58 : 130, right = 16, height = shown.length * ROW + 44;
      const sx = (t) => left + (Math.min(t, closes) / closes) * (width - left - right);
      const begin = starts();
      set(svg, { viewBox: `0 0 ${width} ${height}`, height });
      empty(svg);
      for (const t of ticks(0, closes, Math.max(2, Math.round(width / 120)))) {
        svg.append(s("line", { class: "grid-line", x1: sx(t), x2: sx(t), y1: 6, y2: height - 30 }), s("text", { x: sx(t), y: height - 14, "text-anchor": "middle", text: `${trimmed(t)} s` }));
      }
      shown.forEach((one, n) => {
        const y = 10 + n * ROW;
        const task = store.about?.tasks?.[one.task] ?? "";
        const label = s("text", { class: "row-label", x: left - 10, y: y + 14, "text-anchor": "end", text: width < 500 ? `${one.id}` : `${one.id} ${task}` });
        const start = begin.get(one.id) ?? 0;
        const group = s("g", { class: `bar-row ${one.late ? "late" : ""} ${one.id === context.where.terminal ? "chosen" : ""}`, onclick: () => go({ terminal: one.id, view: "cell" }) }, label);
        let at = start;
        const scale = start ? (one.delay - start) / one.delay : 1;
        for (const [name, length] of partsOf(one, answer.decided.aggregates)) {
          const colour = PARTS.find(([own]) => own === name)[2];
          group.append(s("rect", { x: sx(at), y: y + 3, width: Math.max(0.5, sx(at + length * scale) - sx(at)), height: ROW - 11, css: { fill: series(colour) } }, s("title", { text: `${name}: ${seconds(length * scale)}` })));
          at += length * scale;
        }
        if (one.scheduled && isNumber(one.predicted)) {
          const px = sx(one.predicted), py = y + ROW / 2 - 2.5;
          group.append(s("path", { class: "predicted", d: `M${px} ${py - 6}l5 6l-5 6l-5 -6z` }, s("title", { text: `predicted ${seconds(one.predicted)}` })));
          group.append(s("path", { class: "sure", d: `M${sx(one.sure)} ${y + 1}v${ROW - 7}` }, s("title", { text: `surely within ${seconds(one.sure)}` })));
        }
        svg.append(group);
      });
      if (isFar) svg.append(s("text", { class: "rule-label", x: width - right, y: height - 2, "text-anchor": "end", text: `deadline ${seconds(deadline)}, not shown` }));
      else if (deadline) svg.append(s("line", { class: "rule", x1: sx(deadline), x2: sx(deadline), y1: 2, y2: height - 28 }), s("text", { class: "rule-label", x: sx(deadline) - 4, y: height - 2, "text-anchor": "end", text: `deadline ${seconds(deadline)}` }));
      note.textContent = used.length > MOST_ROWS ? `The slowest ${MOST_ROWS} of ${used.length} terminals.` : used.some((one) => !one.scheduled) ? "Terminals without a diamond were not scheduled: they upload layers that they trained before. Radio time is divided by bytes." : "Radio time is divided by bytes; computation is as measured, with its noise.";
    }

    function drawTable() {
      const part = (name) => (one) => { const found = partsOf(one, answer.decided.aggregates).find(([own]) => own === name); return found ? seconds(found[1]) : "–"; };
      empty(body).append(table([
        ["Terminal", (one) => one.id], ["Task", (one) => store.about?.tasks?.[one.task] ?? "", "left"], ["Delay", (one) => seconds(one.delay)],
        ["Predicted", (one) => (one.scheduled ? seconds(one.predicted) : "–")], ["Surely within", (one) => (one.scheduled ? seconds(one.sure) : "–")],
        ["Error", (one) => (one.scheduled && isNumber(one.predicted) ? percent(one.predicted / one.delay - 1, 0) : "–")],
        ["Computation", part("compute")], ["Up", (one) => bytes(one.up)], ["Down", (one) => bytes(one.down)], ["Layers", (one) => bytes(one.sync)],
        ["Band", (one) => hertz(one.granted)], ["Energy", (one) => joules(one.energy)],
        ["State", (one) => (one.late ? h("span", { class: "bad", text: one.unfinished ? "unfinished" : "late" }) : one.tookPart ? "took part" : one.scheduled ? "" : "upload only"), "left"],
      ], used.slice(0, MOST_ROWS), { caption: "Times of this round" }));
    }

    return { update, remove: () => size.disconnect() };
  },
};
