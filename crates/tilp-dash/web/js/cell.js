// Cell: who is scheduled now, over which link, with which resources?

import { h, s, empty, set, card } from "./dom.js";
import { num, percent, short, seconds, joules, hertz, watts, decibels, toDb, isNumber } from "./format.js";
import { ramp, series } from "./colour.js";
import { TerminalPanel } from "./terminal.js";

const SIZE = 640;
const MIDDLE = SIZE / 2;

// What a terminal can be coloured by: title, value, ends of the scale, text.
const COLOURS = {
  success: { title: "Success of the robot", of: (t) => t.success, ends: () => [0, 1], text: (v) => percent(v, 0) },
  link: { title: "Link quality (gain and fading)", of: (t) => t.linkDb, text: decibels },
  joules: { title: "Joules spent", of: (t) => t.joules, ends: (all) => [0, Math.max(...all)], text: joules, turn: true },
  turns: { title: "Times scheduled", of: (t) => t.turns, ends: (all) => [0, Math.max(...all)], text: short },
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
    let by = "success", sortBy = "id", rising = true, asked = 0, terminals = [], answer = null, resting = 0;
    const map = s("svg", { class: "cell", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "Terminals around the base station" });
    const scale = h("p", { class: "ramp" });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Terminals, table" });
    const sum = h("dl", { class: "tiles" });
    const note = h("p", { class: "small faint" });
    const select = h("select", { onchange: () => { by = select.value; draw(); } }, Object.entries(COLOURS).map(([value, { title }]) => h("option", { value, text: title })));
    const panel = new TerminalPanel(context);
    root.append(h("div", { class: "grid" },
      h("h1", { class: "hidden-text", text: "Cell" }), sum,
      card("Cell", { class: "five", note: "near the centre: strong channel", right: h("label", { class: "inline" }, "Colour", select) }, map, scale, note),
      h("div", { class: "stack seven" }, panel.element, card("Terminals", {}, body))));
    const nodes = new Map();
    const layers = { rings: s("g"), links: s("g"), nodes: s("g") };
    map.append(layers.rings, layers.links, layers.nodes, s("rect", { class: "station", x: MIDDLE - 7, y: MIDDLE - 7, width: 14, height: 14, rx: 3 }), s("title", { text: "Base station" }));

    async function update() {
      const round = context.round;
      panel.update();
      if (!round) { note.textContent = "No round yet."; return; }
      const mine = (asked += 1);
      try {
        const next = await store.round(round);
        if (mine !== asked) return;
        answer = next;
        terminals = terminalsOf(answer, null);
        draw();
        const spent = await store.get("spent", { round });
        if (mine !== asked) return;
        terminals = terminalsOf(answer, spent);
        draw();
        if (context.where.round !== null) void store.round(Math.min(round + 1, store.lastRound));
      } catch (error) {
        if (mine === asked) note.textContent = error.message;
      }
    }

    function draw() {
      const limits = store.about?.limits ?? {};
      drawSum(limits);
      drawMap(limits);
      // While rounds are moved through, the map follows at once and the table when they rest.
      clearTimeout(resting);
      resting = setTimeout(() => drawTable(limits), 80);
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

    // Strong channels near the station; the angle is the terminal's own for the whole run.
    function place(one, low, high) {
      const share = high > low ? (high - one.gainDb) / (high - low) : 0.5;
      const radius = 62 + share * (MIDDLE - 96);
      const angle = one.id * 2.399963;
      return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
    }

    function drawMap(limits) {
      const gains = terminals.map((one) => one.gainDb).filter(isNumber);
      const [low, high] = [Math.min(...gains), Math.max(...gains)];
      empty(layers.rings);
      for (const share of [0, 0.5, 1]) {
        const radius = 62 + share * (MIDDLE - 96);
        layers.rings.append(s("circle", { class: "ring", cx: MIDDLE, cy: MIDDLE, r: radius }),
          s("text", { class: "ring-label", x: MIDDLE, y: MIDDLE - radius - 4, "text-anchor": "middle", text: decibels(high - share * (high - low)) }));
      }
      const { of, ends, text, turn } = COLOURS[by];
      const values = terminals.map(of).filter(isNumber);
      const [from, to] = ends?.(values.length ? values : [1]) ?? [Math.min(...values), Math.max(...values)];
      const share = (value) => { const at = to > from ? (value - from) / (to - from) : 0.5; return turn ? 1 - at : at; };
      drawScale(scale, values.length ? [text(from), text(to)] : ["–", "–"], turn);
      empty(layers.links);
      const many = terminals.length > 150;
      const seen = new Set();
      for (const one of terminals) {
        seen.add(one.id);
        const [x, y] = place(one, low, high);
        if (one.scheduled || one.sync > 0) {
          const width = one.scheduled ? 1 + 16 * Math.sqrt(one.bandwidth / (limits.bandwidth_hz || 1)) : 2;
          layers.links.append(s("line", { class: `link ${one.late ? "late" : one.scheduled ? "" : "sync"}`, x1: MIDDLE, y1: MIDDLE, x2: x, y2: y, "stroke-width": width.toFixed(1) }));
        }
        const node = nodes.get(one.id) ?? makeNode(one.id);
        const value = of(one);
        set(node.group, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: `node ${one.scheduled ? "in" : ""} ${one.late ? "late" : ""} ${one.id === context.where.terminal ? "chosen" : ""}`,
          "aria-label": `Terminal ${one.id}, ${taskName(one)}, ${one.scheduled ? `scheduled with ${hertz(one.bandwidth)}${one.late ? ", late" : ""}` : "not scheduled"}, ${COLOURS[by].title} ${isNumber(value) ? text(value) : "not known"}` });
        node.body.style.fill = isNumber(value) ? ramp(share(value)) : "var(--line)";
        const radius = many ? 5 : 9;
        set(node.body, { r: radius });
        set(node.halo, { r: radius + 3 });
        set(node.pick, { r: radius + 6 });
        node.label.textContent = many ? "" : String(one.id);
        set(node.label, { y: radius + 15 });
      }
      for (const [id, node] of nodes) if (!seen.has(id)) { node.group.remove(); nodes.delete(id); }
    }

    const taskName = (one) => store.about?.tasks?.[one.task] ?? `task ${one.task}`;

    function makeNode(id) {
      const node = { body: s("circle", { class: "body" }), halo: s("circle", { class: "halo" }), pick: s("circle", { class: "pick" }), label: s("text") };
      const choose = () => go({ terminal: context.where.terminal === id ? null : id }, { replace: true });
      node.group = s("g", { class: "node", tabindex: "0", role: "button", onclick: choose, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } }, node.pick, node.halo, node.body, node.label);
      layers.nodes.append(node.group);
      nodes.set(id, node);
      return node;
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
      const rows = sorted.slice(0, 300).map((one) => h("tr", { class: one.id === context.where.terminal ? "on" : "" }, columns.map(([, , , show, kind]) => h("td", { class: kind }, show(one)))));
      const top = body.scrollTop;
      empty(body).append(h("table", {}, h("caption", { class: "hidden-text", text: "Terminals in this round" }), h("thead", {}, head), h("tbody", {}, rows)));
      if (sorted.length > 300) body.append(h("p", { class: "small faint", text: `${sorted.length - 300} more terminals: sort by another column.` }));
      body.scrollTop = top;
    }

    return { update, remove: () => { clearTimeout(resting); panel.remove(); } };
  },
};

function drawScale(root, [low, high], turn) {
  const stops = Array.from({ length: 12 }, (_, n) => n / 11);
  const bar = s("svg", { viewBox: "0 0 120 8", preserveAspectRatio: "none", "aria-hidden": "true" }, stops.map((at, n) => s("rect", { x: n * 10, y: 0, width: 10.5, height: 8, css: { fill: ramp(turn ? 1 - at : at) } })));
  empty(root).append(low, bar, high, h("span", { class: "faint", text: "· line width: share of the band · ring: scheduled · grey: not known" }));
}
