// The dialog that chooses a run.

import { h, empty } from "./dom.js";
import { percent, isNumber } from "./format.js";

const MOST_SHOWN = 400;

export class Picker {
  constructor(dialog, store, link) {
    Object.assign(this, { dialog, store, link });
    this.search = h("input", { type: "search", placeholder: "Find by name, method, scenario or seed", "aria-label": "Find a run", oninput: () => this.fill() });
    this.body = h("div", { class: "list", tabindex: "0", role: "region", "aria-label": "Runs" });
    empty(dialog).append(
      h("header", {}, h("h2", { id: "picker-title", text: "Runs" }), this.search, h("button", { type: "button", class: "button", text: "Close", onclick: () => dialog.close() })),
      this.body);
    dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.closest("a.run")) dialog.close(); });
    store.addEventListener("list", () => { if (dialog.open) this.fill(); });
  }

  open() {
    this.fill();
    this.dialog.showModal();
    this.search.focus();
  }

  fill() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (one) => `${one.id} ${one.method} ${one.scenario} seed ${one.seed} ${one.at ?? ""}`.toLowerCase();
    const found = this.store.list.runs.filter((one) => words.every((word) => text(one).includes(word)));
    const order = { running: 0, stopped: 1, finished: 2 };
    found.sort((a, b) => order[a.state] - order[b.state] || a.id.localeCompare(b.id, "en", { numeric: true }));
    const groups = new Map();
    for (const one of found.slice(0, MOST_SHOWN)) {
      const name = one.study ? `Study ${this.studyName(one.study)}` : one.state === "running" ? "Running" : "Runs";
      groups.set(name, [...(groups.get(name) ?? []), one]);
    }
    empty(this.body);
    for (const [name, runs] of groups) this.body.append(h("h3", { text: name }), h("ul", {}, runs.map((one) => h("li", {}, this.entry(one)))));
    if (!found.length) {
      const where = this.store.list.roots.join(", ");
      this.body.append(h("p", { class: "faint", text: this.store.list.runs.length ? "No run has all these words." : `There is no run below ${where} yet. Start one with: tilp run tiny` }));
    }
    if (found.length > MOST_SHOWN) this.body.append(h("p", { class: "faint", text: `${found.length - MOST_SHOWN} more: type to narrow down.` }));
  }

  studyName(id) {
    return this.store.list.studies.find((one) => one.id === id)?.name ?? id;
  }

  entry(one) {
    const round = one.last?.round;
    const success = isNumber(one.success_final) ? one.success_final : one.last?.success;
    const progress = one.state === "finished" ? "finished" : `${one.state === "running" ? "" : "stopped, "}${round ?? 0}${one.rounds ? ` / ${one.rounds}` : ""}`;
    return h("a", { class: "run", href: this.link(one.id), "aria-current": String(one.id === this.store.run) },
      h("span", { text: one.name }), h("span", { class: "faint", text: `${one.scenario ?? "?"}, seed ${one.seed ?? "?"}${one.at ? `, at ${one.at}` : ""}` }),
      h("span", { class: one.state === "running" ? "good" : "faint", text: progress }), h("span", { text: percent(success) }));
  }
}
