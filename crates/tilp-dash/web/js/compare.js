// Compare: methods side by side, seeds as bands, and who is better at what.

import { h, empty, card, choice, table } from "./dom.js";
import { percent, count, seconds, joules, bytes, short, isNumber } from "./format.js";
import { Chart } from "./chart.js";
import { series, dashes } from "./colour.js";

const AXES = {
  round: { title: "round", name: "Round", format: count, whole: true },
  clock_s: { title: "simulated seconds", name: "After", format: seconds },
  energy_j: { title: "joules of all terminals", name: "After", format: joules },
  volume_bytes: { title: "activation bytes up", name: "After", format: bytes },
};
const COLUMNS = [
  ["success_final", "Success", percent, true], ["success_far", "Far third", percent, true], ["success_worst_task", "Worst task", percent, true],
  ["rta_0.7", "Rounds to 70 %", short, false], ["tta_s_0.7", "Seconds to 70 %", short, false], ["eta_j_0.7", "Joules to 70 %", short, false],
  ["latency_p50_s", "Median latency", seconds, false], ["energy_total_j", "Energy", joules, false], ["air_total_bytes", "On the air", bytes, false], ["late_total", "Late", short, false],
];
const COSTS = { energy_total_j: ["joules", joules], clock_total_s: ["simulated seconds", seconds], air_total_bytes: ["bytes on the air", bytes] };
const MOST_CURVES = 8;

export const compare = {
  name: "compare",
  title: "Compare",
  mount(root, context) {
    const { store } = context;
    let axis = "round", cost = "energy_total_j", chosen = null, data = null, asked = 0, point = null;
    const select = h("select", { onchange: () => { chosen = select.value; point = null; void load(); } });
    const pointSelect = h("select", { onchange: () => { point = pointSelect.value; draw(); } });
    const pointLabel = h("label", { class: "inline" }, "Point", pointSelect);
    const note = h("p", { class: "small faint" });
    const curves = new Chart({ label: "Success of every method", height: 380, x: AXES.round, y: { title: "success", low: 0, high: 1, format: (v) => percent(v, 0) } });
    const pareto = new Chart({ label: "Success against cost", height: 380, x: {}, y: { title: "final success", within: [0, 1], format: (v) => percent(v, 0) }, crosshair: false });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Methods, table" });
    const aims = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Aims, table" });
    const aimsCard = card("Aims", { note: "verdicts of the study" }, aims);
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "Compare" }),
      h("div", { class: "card bar-card" }, h("label", { class: "inline" }, "Compare", select), pointLabel, note),
      card("Success", { class: "two-thirds", note: "mean over seeds; bands from the lowest to the highest seed", right: choice("Horizontal axis", [["round", "Rounds"], ["clock_s", "Seconds"], ["energy_j", "Joules"], ["volume_bytes", "Bytes"]], axis, (value) => { axis = value; draw(); }) }, curves.element),
      card("Success against cost", { class: "third", right: choice("Cost", [["energy_total_j", "Joules"], ["clock_total_s", "Seconds"], ["air_total_bytes", "Bytes"]], cost, (value) => { cost = value; draw(); }) }, pareto.element),
      card("Methods", { note: "means over finished runs, with 95 % bootstrap intervals" }, body), aimsCard));

    // Studies, and scenarios with runs outside of studies.
    function groups() {
      const { runs, studies } = store.list;
      const scenarios = [...new Set(runs.filter((one) => !one.study && one.scenario).map((one) => one.scenario))];
      return [...studies.map((one) => [`study ${one.id}`, `Study ${one.name ?? one.id}`]), ...scenarios.map((name) => [`scenario ${name}`, `Runs on ${name}`])];
    }

    function update() {
      const options = groups();
      const wanted = options.map(([value]) => value).join("\n");
      if (select.dataset.options !== wanted) {
        select.dataset.options = wanted;
        empty(select).append(...options.map(([value, text]) => h("option", { value, text })));
        const own = store.list.runs.find((one) => one.id === store.run);
        const start = own?.study ? `study ${own.study}` : `scenario ${own?.scenario}`;
        if (!options.some(([value]) => value === chosen)) chosen = options.some(([value]) => value === start) ? start : options[0]?.[0] ?? null;
        select.value = chosen ?? "";
      }
      if (!data || data.chosen !== chosen || data.version !== store.list) void load();
    }

    async function load() {
      if (!chosen) { note.textContent = "There is nothing to compare yet."; return; }
      const mine = (asked += 1);
      const [kind, ...rest] = chosen.split(" ");
      const version = store.list;
      try {
        const found = await store.get("compare", { [kind]: rest.join(" ") });
        if (mine !== asked) return;
        data = { ...found, chosen, version };
        draw();
      } catch (error) {
        if (mine === asked) note.textContent = error.message;
      }
    }

    function draw() {
      if (!data) return;
      const names = [...new Set(data.rows.map((row) => row.point))];
      if (!names.includes(point)) point = names[0] ?? null;
      pointLabel.hidden = names.length < 2;
      if (pointSelect.dataset.options !== names.join("\n")) {
        pointSelect.dataset.options = names.join("\n");
        empty(pointSelect).append(...names.map((value) => h("option", { value, text: value })));
      }
      pointSelect.value = point ?? "";
      const order = data.study?.plan?.points?.find((one) => one.label === point)?.methods ?? [];
      const place = (row) => { const at = order.indexOf(row.method); return at < 0 ? order.length : at; };
      const rows = data.rows.filter((row) => row.point === point).sort((a, b) => place(a) - place(b) || a.method.localeCompare(b.method));
      const running = data.runs.filter((one) => one.state === "running").length;
      note.textContent = `${data.runs.length} ${data.runs.length === 1 ? "run" : "runs"}${running ? `, ${running} of them running` : ""}${rows.length > MOST_CURVES ? `; the first ${MOST_CURVES} of ${rows.length} methods are drawn` : ""}.`;
      drawCurves(rows);
      drawPareto(rows);
      drawTable(rows);
      drawAims();
    }

    const runsOf = (row) => data.runs.filter((one) => one.point === row.point && one.method === row.method);

    function drawCurves(rows) {
      curves.options.x = AXES[axis];
      curves.update({ series: rows.slice(0, MOST_CURVES).map((row, n) => {
        const byRound = new Map();
        for (const { curve } of runsOf(row)) {
          if (isNumber(curve.base)) add(byRound, 0, 0, curve.base);
          curve.round.forEach((round, i) => add(byRound, round, axis === "round" ? round : curve[axis][i], curve.success[i]));
        }
        const sorted = [...byRound.entries()].sort((a, b) => a[0] - b[0]).map(([, one]) => one);
        const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
        const at = (one) => mean(one.x);
        return { name: row.method, colour: series(n), dash: dashes[n], points: sorted.map((one) => [at(one), mean(one.y)]),
          band: sorted.some((one) => one.y.length > 1) ? sorted.map((one) => [at(one), Math.min(...one.y), Math.max(...one.y)]) : [] };
      }) });
    }

    function drawPareto(rows) {
      const [title, format] = COSTS[cost];
      pareto.options.x = { title, format, pad: 0.12 };
      const found = rows.map((row, n) => ({ row, n, x: row.metrics[cost].mean, y: row.metrics.success_final.mean })).filter((one) => isNumber(one.x) && isNumber(one.y));
      const front = found.filter((one) => !found.some((other) => other !== one && other.x <= one.x && other.y >= one.y && (other.x < one.x || other.y > one.y))).sort((a, b) => a.x - b.x);
      const ends = front.map((one) => [one.x, one.y]);
      pareto.update({ empty: "No run is finished yet", series: [
        ...found.map(({ row, n, x, y }) => ({ name: row.method, colour: series(n), points: [[x, y]], line: false, marks: true, radius: front.some((one) => one.row === row) ? 6 : 4, label: row.method })),
        ...(ends.length > 1 ? [{ name: "not beaten in both", colour: "var(--soft)", thin: true, dash: dashes[1], points: ends }] : []),
      ] });
    }

    function drawTable(rows) {
      const best = (name, high) => { const all = rows.filter((row) => row.metrics[name].n === row.finished).map((row) => row.metrics[name].mean).filter(isNumber); return high ? Math.max(...all) : Math.min(...all); };
      const cell = (name, format, high) => (row) => {
        const { mean, interval, n } = row.metrics[name];
        if (!isNumber(mean) || (name.includes("_0.") && n < row.finished)) return n && row.finished ? `${n} of ${row.finished} seeds` : "–";
        const text = `${format(mean)}`;
        return h("span", { title: interval ? `${format(interval[0])} to ${format(interval[1])}` : "" }, mean === best(name, high) ? h("b", { text }) : text,
          interval ? h("small", { class: "faint", text: ` ${format(interval[0])} to ${format(interval[1])}` }) : "");
      };
      empty(body).append(table([
        ["Method", (row) => row.method], ["Runs", (row) => (row.finished === row.runs ? row.runs : `${row.finished} of ${row.runs}`)],
        ...COLUMNS.map(([name, title, format, high]) => [title, cell(name, format, high)]),
      ], rows, { caption: "Metrics of every method" }));
    }

    function drawAims() {
      const lines = (data.study?.aims ?? "").split("\n").filter((line) => line.startsWith("|")).map((line) => line.slice(1, -1).split("|").map((one) => one.trim()));
      aimsCard.hidden = lines.length < 3;
      if (lines.length < 3) return;
      const [head, , ...rows] = lines;
      empty(aims).append(table(head.map((title, n) => [title, (row) => row[n] ?? "", "left"]), rows, { caption: "Aims and verdicts", table: { class: "stacked" } }));
    }

    return { update, remove: () => [curves, pareto].forEach((chart) => chart.remove()) };
  },
};

function add(map, round, x, y) {
  const one = map.get(round) ?? { x: [], y: [] };
  one.x.push(x);
  one.y.push(y);
  map.set(round, one);
}
