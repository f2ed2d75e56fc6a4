// Twin: what the planner predicted, beside what came of it.

import { h, empty, card, table } from "./dom.js";
import { percent, count, short, isNumber } from "./format.js";
import { Chart } from "./chart.js";
import { series, dashes } from "./colour.js";

const median = (values) => {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  return sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : NaN;
};

export const twin = {
  name: "twin",
  title: "Twin",
  mount(root, context) {
    const { store } = context;
    const x = { title: "round", name: "Round", format: count, whole: true };
    const tiles = h("dl", { class: "tiles" });
    const note = h("p", { class: "faint" });
    const make = (label, height, options) => new Chart({ label, height, ...options });
    const share = (value) => percent(value, 0);
    const delay = make("Delay of a terminal, predicted and realised", 300, { x: { title: "predicted, s" }, y: { title: "realised, s" }, crosshair: false });
    const energy = make("Energy of a terminal, predicted and realised", 300, { x: { title: "predicted, J" }, y: { title: "realised, J" }, crosshair: false });
    const error = make("Error of the forecasts over the run", 300, { x, y: { title: "median |error|", low: 0, format: (v) => percent(v, 1) } });
    const duration = make("Duration of a round, predicted and realised", 240, { x, y: { title: "seconds", low: 0 } });
    const decrease = make("Loss decrease of a round, predicted and realised", 240, { x, y: { title: "loss before minus after" } });
    const success = make("Success, predicted and measured", 240, { x, y: { title: "success", low: 0, high: 1, format: share } });
    const charts = [delay, energy, error, duration, decrease, success];
    const grid = h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "Twin" }), tiles,
      card("Delay", { class: "third", note: "network sub-twin; on the line: as predicted" }, delay.element),
      card("Energy", { class: "third", note: "network sub-twin" }, energy.element),
      card("Calibration", { class: "third", note: "error of forecasts made before each round" }, error.element),
      card("Duration", { class: "third", note: "of a round" }, duration.element),
      card("Loss decrease", { class: "third", note: "training sub-twin, in the rounds that are looked at" }, decrease.element),
      card("Success", { class: "third", note: "task sub-twin" }, success.element),
      h("p", { class: "small faint card-note", text: "Contests with naive rules and hidden factors: tilp twin DIR." }));
    const both = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "With and without calibration, table" });
    root.append(note, grid, h("div", { class: "grid below" }, card("With and without calibration", { note: "the same rounds shown to a twin that calibrates and to one that never does" }, both)));
    let key = null, shown = null;

    // A finished run is shown to both twins once.
    async function compare() {
      const run = store.run;
      if (store.state !== "finished") { if (shown !== "") empty(both).append(h("p", { class: "faint", text: "Shown when the run is finished." })); shown = ""; return; }
      if (shown === run) return;
      shown = run;
      empty(both).append(h("p", { class: "faint", text: "Showing the rounds to both twins…" }));
      try {
        const { sub_twins: rows } = await store.get("twin");
        if (shown !== run) return;
        const error = (one, value) => (one.relative ? percent(value) : short(value));
        const cell = (name, text) => (one) => h("span", { "data-twin": `${one.name} ${name}`, title: String(one[name]), text: text(one, one[name]) });
        const share1 = (_, value) => percent(value, 0);
        empty(both).append(table([
          ["Forecast", (one) => one.name, "left"], ["Number", (one) => count(one.n)],
          ["Median error without", cell("error_before", error)], ["with", cell("error_after", error)],
          ["In the 90 % interval without", cell("coverage_before", share1)], ["with", cell("coverage_after", share1)],
        ], rows, { caption: "Error and coverage with and without calibration" }));
      } catch (problem) {
        if (shown === run) empty(both).append(h("p", { class: "faint", text: problem.message }));
      }
    }

    async function update() {
      const now = `${store.run} ${store.nRows}`;
      void compare();
      if (!store.nRows) { note.textContent = "No round yet."; grid.hidden = true; return; }
      if (key === now) return;
      key = now;
      try {
        const found = await store.get("predictions", {});
        if (key === now) draw(found);
      } catch (problem) {
        note.textContent = problem.message;
      }
    }

    function draw({ n, within_sure: within, points, rounds }) {
      grid.hidden = !n;
      note.textContent = n ? "" : `The method ${store.about?.manifest?.method ?? ""} records no predictions. The method tilp does; tilp twin DIR shows any run to a twin.`;
      if (!n) return;
      const relative = (predicted, real) => Math.abs(predicted / real - 1);
      const delays = points.delay_s.map((real, i) => relative(points.delay_predicted_s[i], real));
      const energies = points.energy_j.map((real, i) => relative(points.energy_predicted_j[i], real));
      const half = points.round.map((one) => one <= store.lastRound / 10);
      const part = (values, first) => median(values.filter((_, i) => half[i] === first));
      const tile = (name, value, more) => h("div", { class: "tile" }, h("dt", { text: name }), h("dd", {}, value, h("span", { class: "note", text: more })));
      empty(tiles).append(
        tile("Delay, median error", percent(median(delays)), `first tenth ${percent(part(delays, true))}, later ${percent(part(delays, false))}`),
        tile("Energy, median error", percent(median(energies)), `first tenth ${percent(part(energies, true))}, later ${percent(part(energies, false))}`),
        tile("Within the sure delay", percent(within / n, 2), `${count(within)} of ${count(n)} turns`),
        tile("Duration, median error", percent(median(rounds.duration_s.map((real, i) => relative(rounds.duration_predicted_s[i], real)))), "of a round"));
      scatter(delay, points.delay_predicted_s, points.delay_s);
      scatter(energy, points.energy_predicted_j, points.energy_j);
      error.update({ series: [
        { name: "delay", colour: series(0), points: binned(points.round, delays, 30) },
        { name: "energy", colour: series(1), dash: dashes[1], points: binned(points.round, energies, 30) },
      ] });
      const line = (name, values, n2, extra) => ({ name, colour: series(n2), points: rounds.round.map((r, i) => [r, values[i]]), ...extra });
      const size = Math.ceil(rounds.round.length / 150);
      const thin = (one) => (size > 1 ? { ...one, points: binned(one.points.map(([r]) => r), one.points.map(([, v]) => v), 150) } : one);
      duration.update({ series: [thin(line("realised", rounds.duration_s, 0)), thin(line("predicted", rounds.duration_predicted_s, 1, { dash: dashes[1] }))], rules: [{ y: store.about?.limits?.deadline_s, label: "deadline" }] });
      const looked = rounds.round.map((r, i) => [r, rounds.decrease[i], rounds.decrease_predicted[i]]).filter(([, real]) => isNumber(real));
      decrease.update({ empty: "No round was looked at yet", series: [{ name: "realised", colour: series(0), points: looked.map(([r, real]) => [r, real]), marks: true, thin: true }, { name: "predicted", colour: series(1), dash: dashes[1], points: looked.map(([r, , p]) => [r, p]) }] });
      const reports = store.measurements("report");
      success.update({ series: [
        { name: "predicted", colour: series(1), dash: dashes[1], points: rounds.round.map((r, i) => [r, rounds.success_after[i]]) },
        { name: "measured", colour: series(0), points: reports.map((one) => [one.round, one.all[0] / one.all[1]]), band: reports.map((one) => [one.round, one.all[2], one.all[3]]), marks: true },
      ] });
    }

    return { update, remove: () => charts.forEach((chart) => chart.remove()) };
  },
};

function scatter(chart, predicted, real) {
  const step = Math.ceil(predicted.length / 4000) || 1;
  const points = predicted.map((p, i) => [p, real[i]]).filter(([p, r], i) => i % step === 0 && isNumber(p) && isNumber(r));
  const most = Math.max(...points.map(([p, r]) => Math.max(p, r)), 1e-9);
  chart.options.x.low = 0;
  chart.options.y.low = 0;
  chart.options.x.high = most;
  chart.options.y.high = most;
  chart.update({ series: [
    { name: "as predicted", colour: "var(--soft)", thin: true, dash: dashes[1], points: [[0, 0], [most, most]] },
    { name: "terminal in a round", colour: series(0), points, line: false, marks: true, radius: 1.6, opacity: "0.55" },
  ] });
}

// Medians of equal parts of the rounds.
function binned(rounds, values, most) {
  const last = rounds.reduce((a, b) => Math.max(a, b), 1), bins = Math.min(most, last);
  const found = Array.from({ length: bins }, () => []);
  rounds.forEach((round, i) => found[Math.min(bins - 1, Math.floor(((round - 1) / last) * bins))].push(values[i]));
  return found.map((part, n) => [Math.round(((n + 1) / bins) * last), median(part)]).filter(([, value]) => isNumber(value));
}
