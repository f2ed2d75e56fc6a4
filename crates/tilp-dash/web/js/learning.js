// Learning: does the policy succeed, and what has that cost?

import { h, empty, card, choice } from "./dom.js";
import { percent, count, seconds, joules, bytes, isNumber } from "./format.js";
import { Chart } from "./chart.js";
import { series, dashes } from "./colour.js";

const AXES = {
  round: { title: "round", name: "Round", format: count, whole: true },
  seconds: { title: "simulated seconds", name: "After", format: seconds },
  joules: { title: "joules of all terminals", name: "After", format: joules },
  bytes: { title: "bytes on the air, both ways", name: "After", format: bytes },
};

const rate = (count) => (count && count[1] > 0 ? count[0] / count[1] : NaN);

export const learning = {
  name: "learning",
  title: "Learning",
  mount(root, context) {
    const { store } = context;
    const tiles = h("dl", { class: "tiles" });
    let axis = "round";
    const rateAxis = { title: "success", format: (value) => percent(value, 0), low: 0, high: 1 };
    const success = new Chart({ label: "Success over the run", height: 330, x: AXES.round, y: rateAxis });
    const loss = new Chart({ label: "Training loss", height: 230, x: AXES.round, y: { title: "loss", low: 0 } });
    const latency = new Chart({ label: "Latency of a round", height: 230, x: AXES.round, y: { title: "seconds", low: 0 } });
    const turns = new Chart({ label: "Terminals in a round", height: 230, x: AXES.round, y: { title: "terminals", low: 0 } });
    const cost = new Chart({ label: "Energy of a round", height: 230, x: AXES.round, y: { title: "joules", low: 0 } });
    const charts = [success, loss, latency, turns, cost];
    const minis = h("div", { class: "minis" });
    const binNote = h("p", { class: "small faint card-note" });
    const tasks = new Map();
    const axisChoice = choice("Horizontal axis", [["round", "Rounds"], ["seconds", "Seconds"], ["joules", "Joules"], ["bytes", "Bytes"]], axis, (value) => {
      axis = value;
      for (const chart of [...charts, ...tasks.values()]) chart.options.x = AXES[axis];
      update();
    });
    root.append(h("div", { class: "grid" },
      h("h1", { class: "hidden-text", text: "Learning" }), tiles,
      card("Success", { class: "two-thirds", note: "report episodes, which no method sees; bands are 95 % intervals", right: axisChoice }, success.element),
      card("Latency", { class: "third", note: "slowest terminal of a round" }, latency.element),
      card("Success by task", { note: "with 95 % intervals" }, minis),
      card("Loss", { class: "third", note: "of the minibatches" }, loss.element),
      card("Participation", { class: "third" }, turns.element),
      card("Energy", { class: "third", note: "radio and computation" }, cost.element), binNote));

    function update() {
      const reports = store.measurements("report");
      const at = (one) => store.at(axis, one.round);
      const line = (of, list = reports) => list.map((one) => [at(one), rate(of(one))]);
      const band = (of, list = reports) => list.filter((one) => of(one)).map((one) => [at(one), of(one)[2], of(one)[3]]);
      drawTiles(tiles, store);
      success.update({ empty: "Not measured yet", series: [
        { name: "all terminals", colour: series(0), points: line((one) => one.all), band: band((one) => one.all), marks: reports.length < 60 },
        { name: "far third", colour: series(1), dash: dashes[1], points: line((one) => one.far), band: band((one) => one.far) },
        ...calibration(store, at),
      ] });
      drawTasks(reports, at);
      const column = (name) => store.rows[name]?.map((value, n) => [store.at(axis, store.rows.round[n]), value]) ?? [];
      const size = Math.ceil(store.nRows / 120);
      const dense = (name) => binned(column(name), size);
      binNote.textContent = size > 1 ? `Loss, latency, participation and energy: mean of ${size} rounds each; bands from the lowest to the highest of them.` : "";
      loss.update({ series: [{ name: "loss", colour: series(0), ...dense("loss") }] });
      latency.update({ series: [{ name: "latency", colour: series(0), ...dense("latency_s") }], rules: [{ y: store.about?.limits?.deadline_s, label: "deadline" }] });
      turns.update({ series: [{ name: "scheduled", colour: series(7), thin: true, dash: dashes[2], ...dense("n_scheduled") }, { name: "took part", colour: series(0), ...dense("n_took_part") }, { name: "late", colour: series(1), dash: dashes[1], ...dense("n_late") }] });
      cost.update({ series: [{ name: "radio", colour: series(0), ...dense("energy_radio_j") }, { name: "computation", colour: series(1), dash: dashes[1], ...dense("energy_compute_j") }] });
    }

    function drawTasks(reports, at) {
      const names = store.about?.tasks ?? [];
      const used = names.map((name, n) => [name, n]).filter(([, n]) => reports.some((one) => one.tasks[n]?.[1] > 0));
      const wanted = used.map(([name]) => name).join("\n");
      if (minis.dataset.names !== wanted) {
        minis.dataset.names = wanted;
        empty(minis);
        tasks.clear();
        for (const [name, n] of used) {
          const chart = new Chart({ label: `Success of ${name}`, height: 110, compact: true, x: AXES[axis], y: { ...rateAxis } });
          tasks.set(n, chart);
          minis.append(h("div", {}, h("h3", {}, name, h("span", { "data-task": n })), chart.element));
        }
      }
      for (const [n, chart] of tasks) {
        chart.update({ series: [{ name: names[n], colour: series(n), points: reports.map((one) => [at(one), rate(one.tasks[n])]), band: reports.map((one) => [at(one), one.tasks[n]?.[2], one.tasks[n]?.[3]]) }] });
        const last = reports[reports.length - 1]?.tasks[n];
        const label = minis.querySelector(`[data-task="${n}"]`);
        if (label) label.textContent = last ? `${last[0]} of ${last[1]}` : "";
      }
    }

    return { update, remove: () => [...charts, ...tasks.values()].forEach((chart) => chart.remove()) };
  },
};

// What the planner sees, thin: another set of episodes.
function calibration(store, at) {
  const list = store.measurements("calibration");
  return list.length ? [{ name: "calibration (what the planner sees)", colour: series(7), thin: true, dash: dashes[2], points: list.map((one) => [at(one), rate(one.all)]) }] : [];
}

// Means of so many rounds each, at the last of them, with the lowest and the highest.
function binned(points, size) {
  if (size <= 1) return { points };
  const found = { points: [], band: [] };
  for (let from = 0; from < points.length; from += size) {
    const part = points.slice(from, from + size);
    const values = part.map(([, y]) => y).filter(isNumber);
    const x = part[part.length - 1][0];
    found.points.push([x, values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN]);
    if (values.length) found.band.push([x, Math.min(...values), Math.max(...values)]);
  }
  return found;
}

function drawTiles(root, store) {
  const reports = store.measurements("report");
  const final = store.measurements("final")[0];
  const last = final ?? reports[reports.length - 1];
  const interval = (count) => (count && isNumber(count[2]) ? `${percent(count[2])} to ${percent(count[3])}` : "");
  const worst = worstTask(last, store.about?.tasks ?? []);
  const total = store.about?.rounds;
  const sum = (name) => store.rows[name]?.reduce((a, b) => a + b, 0) ?? 0;
  const n = store.nRows;
  const tile = (name, value, note, id) => h("div", { class: "tile", "data-tile": id }, h("dt", { text: name }), h("dd", {}, value, h("span", { class: "note", text: note ?? "" })));
  empty(root).append(
    tile(final ? "Final success" : "Success", percent(rate(last?.all)), interval(last?.all), "success"),
    tile("Far third", percent(rate(last?.far)), interval(last?.far), "far"),
    tile("Worst task", worst ? percent(worst[1]) : "–", worst?.[0], "worst"),
    tile("Rounds", String(store.lastRound), total ? `of ${total}` : "", "rounds"),
    tile("Simulated time", seconds(store.rows.clock_s?.[n - 1]), n ? `${seconds(store.rows.clock_s[n - 1] / n)} a round` : "", "time"),
    tile("Energy", joules(store.sums.energy_j[n - 1]), n ? `${percent(sum("energy_radio_j") / store.sums.energy_j[n - 1], 0)} radio` : "", "energy"),
    tile("On the air", bytes(store.sums.air_bytes[n - 1]), n ? `${percent(sum("sync_bytes") / store.sums.air_bytes[n - 1], 0)} model exchange` : "", "air"),
    tile("Late", String(sum("n_late")), n ? `of ${sum("n_scheduled")} turns` : "", "late"));
}

function worstTask(one, names) {
  const all = (one?.tasks ?? []).map((count, n) => [names[n], rate(count)]).filter(([, value]) => isNumber(value));
  return all.sort((a, b) => a[1] - b[1])[0];
}
