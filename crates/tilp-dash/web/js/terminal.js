// The history of one terminal.

import { h, empty, card } from "./dom.js";
import { percent, count, joules, decibels } from "./format.js";
import { Chart } from "./chart.js";
import { series, dashes } from "./colour.js";

export class TerminalPanel {
  constructor(context) {
    this.context = context;
    this.element = h("div", {});
    this.charts = [];
    this.key = null;
    this.track = null;
  }

  async update() {
    const { store, where, go } = this.context;
    const id = where.terminal;
    if (id === null) {
      if (this.key !== "") {
        this.key = "";
        this.remove();
        empty(this.element).append(card("History of a terminal", {}, h("p", { class: "faint", text: "Choose a terminal in the cell or in the table." })));
      }
      return;
    }
    const key = `${store.run} ${id} ${store.nRows}`;
    if (this.key === key) { this.mark(); return; }
    const isNew = this.id !== id || !this.charts.length;
    this.key = key;
    this.id = id;
    try {
      const track = await store.get("terminal", { terminal: id });
      if (this.key !== key) return;
      this.track = track;
      if (isNew) this.build(id, go);
      this.fill();
    } catch (error) {
      this.remove();
      empty(this.element).append(card(`Terminal ${id}`, {}, h("p", { class: "bad", text: error.message })));
    }
  }

  build(id, go) {
    this.remove();
    const x = { title: "round", name: "Round", format: count, whole: true };
    const chart = (label, height, y) => { const one = new Chart({ label, height, x, y }); this.charts.push(one); return one; };
    this.success = chart(`Success of terminal ${id}`, 150, { title: "success", low: 0, high: 1, format: (v) => percent(v, 0) });
    this.delay = chart(`Delay of terminal ${id}`, 190, { title: "seconds", low: 0 });
    this.link = chart(`Link of terminal ${id}`, 150, { title: "dB", format: (v) => v.toFixed(0) });
    this.spent = chart(`Energy of terminal ${id}`, 150, { title: "joules so far", low: 0 });
    this.head = h("p", { class: "small faint" });
    const close = h("button", { type: "button", class: "button", text: "Close", onclick: () => go({ terminal: null }, { replace: true }) });
    empty(this.element).append(card(`Terminal ${id}`, { right: close }, this.head,
      h("h3", { text: "Delay when scheduled" }), this.delay.element,
      h("h3", { text: "Success" }), this.success.element,
      h("h3", { text: "Channel gain with fading" }), this.link.element,
      h("h3", { text: "Energy" }), this.spent.element));
  }

  fill() {
    const { track } = this;
    const { store } = this.context;
    const turns = track.scheduled.filter(Boolean).length;
    const late = track.late.filter(Boolean).length;
    const last = track.round.length - 1;
    this.head.textContent = `Scheduled in ${turns} of ${track.round.length} rounds, ${late} times late; ${joules(track.spent_j[last])}; mean gain ${decibels(track.gain_db.reduce((a, b) => a + b, 0) / (last + 1))}.`;
    const only = (column, flag) => track.round.map((round, n) => [round, flag(n) ? column[n] : NaN]).filter(([, y]) => Number.isFinite(y));
    const used = (n) => track.scheduled[n];
    this.delay.update({ series: [
      { name: "realised", colour: series(0), points: only(track.delay_s, used), line: false, marks: true },
      { name: "predicted", colour: series(1), dash: dashes[1], points: only(track.predicted_delay_s, used), thin: true },
      { name: "surely within", colour: series(7), dash: dashes[2], points: only(track.sure_delay_s, used), thin: true },
    ].filter((one) => one.points.length), rules: [{ y: store.about?.limits?.deadline_s, label: "deadline" }], now: this.context.round, empty: "Never scheduled so far" });
    const measured = (kind) => track.measured.filter(([own, , , n]) => own === kind && n > 0).map(([, round, k, n]) => [round, k / n]);
    this.success.update({ series: [{ name: "report", colour: series(0), points: measured("report"), marks: true }, { name: "calibration", colour: series(7), dash: dashes[2], points: measured("calibration"), thin: true }], now: this.context.round });
    this.link.update({ series: [{ name: "with fading", colour: series(7), thin: true, points: track.round.map((r, n) => [r, track.gain_db[n] + track.fading_db[n]]) }, { name: "large-scale", colour: series(0), points: track.round.map((r, n) => [r, track.gain_db[n]]) }], now: this.context.round });
    this.spent.update({ series: [{ name: "joules", colour: series(0), points: track.round.map((r, n) => [r, track.spent_j[n]]) }], now: this.context.round });
  }

  // Only the chosen round has moved.
  mark() {
    for (const chart of this.charts) chart.update({ ...chart.data, now: this.context.round });
  }

  remove() {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
    this.id = null;
  }
}
