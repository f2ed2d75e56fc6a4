// Cell: who is scheduled now, over which link, with which resources?

import { h, s, empty, card } from "./dom.js";
import { num, percent, short, seconds, joules, hertz, watts, decibels, toDb, isNumber } from "./format.js";
import { ramp, series } from "./colour.js";
import { TerminalPanel } from "./terminal.js";
import { CellMap, boxed } from "./map.js";

const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

// What a terminal can be coloured by: title, value, ends of the scale, text.
const COLOURS = {
  success: { title: "Success of the robot", of: (t) => t.success, ends: () => [0, 1], text: (v) => percent(v, 0) },
  link: { title: "Link quality (gain and fading)", of: (t) => t.linkDb, text: decibels },
  joules: { title: "Joules spent", of: (t) => t.joules, ends: (all) => [0, most(all)], text: joules, turn: true },
  turns: { title: "Times scheduled", of: (t) => t.turns, ends: (all) => [0, most(all)], text: short },
  compression: { title: "Compression q (scheduled)", of: (t) => (t.scheduled ? t.compression : NaN), ends: () => [0, 1], text: (v) => v.toFixed(2), turn: true },
  power: { title: "Power (scheduled)", of: (t) => (t.scheduled ? t.power : NaN), text: watts, turn: true },
  cut: { title: "Cut (scheduled)", of: (t) => (t.scheduled ? t.cut : NaN), text: short },
};

// The terminals of a round, one object each.
export function terminalsOf(answer, spent) {
  const { decided, executed, success } = answer;
  const plan = decided?.terminals;
  if (!plan) return [];
  const counts = new Map(success?.terminal.map((id, n) => [id, [success.successes[n], success.episodes[n]]]));
  const used = new Map(spent?.terminal.map((id, n) => [id, [spent.joules[n], spent.turns[n]]]));
  const seen = executed?.terminals, books = executed?.books?.terminals, why = decided.rationale?.terminals;
  return plan.terminal.map((id, n) => {
    const count = counts.get(id);
    return {
      id, n, task: plan.task[n], gainDb: toDb(num(plan.gain[n])), fadingDb: toDb(num(plan.fading_power[n])),
      linkDb: toDb(num(plan.gain[n]) * num(plan.fading_power[n])), scheduled: plan.scheduled[n],
      bandwidth: num(plan.bandwidth_hz[n]), power: num(plan.power_w[n]), cut: plan.cut[n], compression: num(plan.compression[n]),
      held: plan.held_layers[n], owed: plan.owed_layers[n], samples: plan.n_samples[n], memory: plan.memory_bytes[n],
      tookPart: seen?.took_part[n] ?? false, late: seen?.late[n] ?? false, unfinished: seen?.unfinished[n] ?? false,
      delay: num((books ?? seen)?.delay_s[n]), computation: num(seen?.computation_s[n]),
      energy: books ? num(books.energy_radio_j[n]) + num(books.energy_compute_j[n]) : num(seen?.energy_j[n]),
      up: books?.bytes_up[n] ?? 0, down: books?.bytes_down[n] ?? 0, sync: books?.bytes_sync[n] ?? 0,
      granted: books ? num(books.bandwidth_hz[n]) : num(plan.bandwidth_hz[n]),
      predicted: num(why?.delay_s[n]), sure: num(why?.sure_delay_s[n]), predictedEnergy: num(why?.energy_j[n]), reason: why?.reason[n],
      count, success: count && count[1] ? count[0] / count[1] : NaN, joules: used.get(id)?.[0] ?? NaN, turns: used.get(id)?.[1] ?? NaN,
    };
  });
}

export const cell = {
  name: "cell",
  title: "Cell",
  rounds: true,
  mount(root, context) {
    const { store, go } = context;
    let by = "success", sortBy = "id", rising = true, terminals = [], answer = null, resting = 0;
    const scale = h("p", { class: "ramp" });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Terminals, table" });
    const sum = h("dl", { class: "tiles" });
    const note = h("p", { class: "small faint" });
    const kind = h("p", { text: "near the centre: strong channel" });
    const select = h("select", { onchange: () => { by = select.value; void update(); } }, Object.entries(COLOURS).map(([value, { title }]) => h("option", { value, text: title })));
    const panel = new TerminalPanel(context);
    const map = new CellMap((id) => go({ terminal: context.where.terminal === id ? null : id }, { replace: true }), words);
    const cellCard = card("Cell", { class: "five", right: h("label", { class: "inline" }, "Colour", select) }, map.element, scale, note);
    cellCard.querySelector("header h2").after(kind);
    root.append(h("div", { class: "grid" },
      h("h1", { class: "hidden-text", text: "Cell" }), sum,
      cellCard,
      h("div", { class: "stack seven" }, panel.element, card("Terminals", {}, body))));
    let busy = false, missed = false, places = null, placesOf = null, spentOf = null;

    // One request at a time: while the slider moves, the newest round is asked for next.
    async function update() {
      panel.update();
      void fetchPlaces();
      if (!context.round) { note.textContent = "No round yet."; return; }
      if (busy) { missed = true; return; }
      busy = true;
      try {
        do {
          missed = false;
          await load(context.round);
        } while (missed && context.round);
      } catch (error) {
        note.textContent = error.message;
      }
      busy = false;
    }

    async function load(round) {
      const run = store.run;
      const next = await store.round(round);
      if (run !== store.run) return;
      answer = next;
      const needs = by === "joules" || by === "turns";
      const spent = needs ? await store.get("spent", { round }) : null;
      spentOf = needs ? round : null;
      terminals = terminalsOf(answer, spent);
      draw();
      if (context.where.round !== null) void store.round(Math.min(round + 1, store.lastRound)).catch(() => {});
    }

    // When the rounds rest: what the terminals have spent, and the table.
    async function rest() {
      const round = answer.round;
      if (spentOf !== round) {
        const spent = await store.get("spent", { round }).catch(() => null);
        if (answer.round !== round) return;
        spentOf = round;
        terminals = terminalsOf(answer, spent);
        drawMap(store.about?.limits ?? {});
      }
      drawTable(store.about?.limits ?? {});
    }

    async function fetchPlaces() {
      if (placesOf === store.run) return;
      const run = placesOf = store.run;
      places = null;
      // Without a map terminals are on rings by gain.
      const found = await store.get("map").catch(() => null);
      if (run !== store.run) return;
      places = boxed(found);
      kind.textContent = places ? "where the terminals stand" : "near the centre: strong channel";
      if (answer) draw();
    }

    function draw() {
      const limits = store.about?.limits ?? {};
      drawSum(limits);
      drawMap(limits);
      // While rounds are moved through, the map follows at once and the table when they rest.
      clearTimeout(resting);
      resting = setTimeout(() => void rest(), 90);
      const success = answer.success;
      note.textContent = success ? `Success: ${success.kind} episodes after round ${success.round}.` : "Success is not measured yet.";
    }

    function drawSum(limits) {
      const used = terminals.filter((one) => one.scheduled);
      const band = used.reduce((all, one) => all + one.bandwidth, 0);
      const tile = (name, value, more) => h("div", { class: "tile" }, h("dt", { text: name }), h("dd", {}, value, h("span", { class: "note", text: more ?? "" })));
      const { executed, decided } = answer;
      const late = used.filter((one) => one.late).length;
      const mean = (of) => (used.length ? used.reduce((all, one) => all + of(one), 0) / used.length : NaN);
      empty(sum).append(
        tile("Scheduled", `${used.length}`, `of ${terminals.length} terminals${late ? `, ${late} late` : ""}`),
        tile("Band", percent(band / limits.bandwidth_hz, 0), `${hertz(band)} of ${hertz(limits.bandwidth_hz)}`),
        tile("Round took", executed ? seconds(num(executed.duration_s)) : "…", limits.deadline_s ? `deadline ${seconds(limits.deadline_s)}` : ""),
        tile("Energy", joules(terminals.reduce((all, one) => all + (one.energy || 0), 0)), "of all terminals in this round"),
        tile("Compression", isNumber(mean((one) => one.compression)) ? mean((one) => one.compression).toFixed(2) : "–", "mean q"),
        tile("Power", watts(mean((one) => one.power)), `mean, limit ${watts(limits.power_w)}`),
        tile("Rule", h("small", { text: decided.rule }), decided.aggregates ? "copies are averaged" : "no aggregation"));
    }

    function drawMap(limits) {
      const { of, ends, text, turn } = COLOURS[by];
      const found = terminals.map(of), values = found.filter(isNumber);
      const [from, to] = ends?.(values.length ? values : [1]) ?? [least(values), most(values)];
      const share = (value) => { const at = to > from ? (value - from) / (to - from) : 0.5; return turn ? 1 - at : at; };
      drawScale(scale, values.length ? [text(from), text(to)] : ["–", "–"], turn);
      map.show({ terminals, values: found.map((value) => (isNumber(value) ? share(value) : NaN)), places, round: answer.round, band: limits.bandwidth_hz, chosen: context.where.terminal });
    }

    const taskName = (one) => store.about?.tasks?.[one.task] ?? `task ${one.task}`;

    function words(one) {
      const { of, title, text } = COLOURS[by], value = of(one);
      const state = one.scheduled ? `scheduled with ${hertz(one.bandwidth)}${one.late ? ", late" : ""}` : "not scheduled";
      return `Terminal ${one.id}, ${taskName(one)}: ${state}. ${title}: ${isNumber(value) ? text(value) : "not known"}.`;
    }

    function drawTable(limits) {
      const columns = [
        ["id", "Terminal", (t) => t.id, (t) => h("button", { type: "button", class: "linkish", text: String(t.id), onclick: () => go({ terminal: t.id }, { replace: true }) })],
        ["task", "Task", taskName, (t) => [h("span", { class: "dot", css: { background: series(t.task) } }), taskName(t)], "left"],
        ["link", "Link", (t) => t.linkDb, (t) => decibels(t.linkDb)],
        ["band", "Band", (t) => (t.scheduled ? t.bandwidth : -1), (t) => (t.scheduled ? `${hertz(t.bandwidth)}` : "–")],
        ["share", "Share", (t) => (t.scheduled ? t.bandwidth : -1), (t) => (t.scheduled ? percent(t.bandwidth / limits.bandwidth_hz) : "–")],
        ["power", "Power", (t) => (t.scheduled ? t.power : -1), (t) => (t.scheduled ? watts(t.power) : "–")],
        ["cut", "Cut", (t) => (t.scheduled ? t.cut : -1), (t) => (t.scheduled ? String(t.cut) : "–")],
        ["q", "q", (t) => (t.scheduled ? t.compression : -1), (t) => (t.scheduled ? t.compression.toFixed(2) : "–")],
        ["delay", "Delay", (t) => (t.scheduled ? t.delay : -1), (t) => (t.scheduled ? h("span", { class: t.late ? "bad" : "", text: `${seconds(t.delay)}${t.late ? " late" : ""}` }) : "–")],
        ["success", "Success", (t) => t.success, (t) => (t.count ? `${t.count[0]} of ${t.count[1]}` : "–")],
        ["joules", "Joules", (t) => t.joules, (t) => joules(t.joules)],
      ];
      const [, , key] = columns.find(([name]) => name === sortBy);
      const value = (one) => { const found = key(one); return typeof found === "number" && Number.isNaN(found) ? -Infinity : found; };
      const sorted = [...terminals].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : a.id - b.id) * (rising ? 1 : -1));
      const head = h("tr", {}, columns.map(([name, title, , , kind]) => h("th", { scope: "col", class: kind, "aria-sort": name === sortBy ? (rising ? "ascending" : "descending") : null },
        h("button", { type: "button", text: title, onclick: () => { rising = sortBy === name ? !rising : name === "id" || name === "task"; sortBy = name; draw(); } }))));
      const rows = sorted.slice(0, 300).map((one) => h("tr", { class: one.id === context.where.terminal ? "on" : "" }, columns.map(([, title, , show, kind]) => h("td", { class: kind, "data-label": title }, show(one)))));
      const top = body.scrollTop;
      empty(body).append(h("table", {}, h("caption", { class: "hidden-text", text: "Terminals in this round" }), h("thead", {}, head), h("tbody", {}, rows)));
      if (sorted.length > 300) body.append(h("p", { class: "small faint", text: `${sorted.length - 300} more terminals: sort by another column.` }));
      body.scrollTop = top;
    }

    return { update, remove: () => { clearTimeout(resting); map.remove(); panel.remove(); } };
  },
};

function drawScale(root, [low, high], turn) {
  const stops = Array.from({ length: 12 }, (_, n) => n / 11);
  const bar = s("svg", { viewBox: "0 0 120 8", preserveAspectRatio: "none", "aria-hidden": "true" }, stops.map((at, n) => s("rect", { x: n * 10, y: 0, width: 10.5, height: 8, css: { fill: ramp(turn ? 1 - at : at) } })));
  empty(root).append(low, bar, high, h("span", { class: "faint", text: "line width: share of the band · ring: scheduled · grey: not known" }));
}
