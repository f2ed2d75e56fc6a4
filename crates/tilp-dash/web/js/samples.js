// Changes for which a page in a file has answers: it has no planner to ask.

import { h, empty } from "./dom.js";

const STATES = { "scheduled=true": "takes part", "scheduled=false": "does not take part" };

// A change in words.
function words([kind, value]) {
  if (kind === "set") return value.replace("=", " = ");
  const [id, edit] = value.split(",");
  return kind === "remove" ? `terminal ${id} is not there` : `terminal ${id}: ${STATES[edit] ?? edit.replace("power_w=", "power in watts ")}`;
}

export class Samples {
  constructor(context, rounds, change) {
    Object.assign(this, { found: null, rounds });
    this.select = h("select", { id: "whatif-sample", onchange: () => change() });
    const follow = rounds.map(([round]) => Number(round) + 1).sort((a, b) => a - b);
    this.element = h("div", {}, h("div", { class: "fields" }, h("label", { for: "whatif-sample", text: "Change" }), this.select),
      h("p", { class: "small faint", text: `This file has the plans of ${follow.length === 1 ? "round" : "rounds"} ${follow.join(", ")} with these changes; any other needs the planner, which tilp dash asks.` }));
  }

  update() {}

  get chosen() {
    return this.found?.changes[this.select.selectedIndex - 1] ?? null;
  }

  overrides() {
    const [kind, value] = this.chosen?.change ?? [];
    return kind === "set" ? [value] : [];
  }

  parameters() {
    return [["sample", String(this.select.selectedIndex)]];
  }

  // The plan of a round beside that with the chosen change.
  answer(found) {
    if (this.found?.round !== found.round) {
      this.found = found;
      empty(this.select).append(...["nothing", ...found.changes.map((one) => words(one.change))].map((text) => h("option", { text })));
    }
    return { ...found, changed: this.chosen?.changed ?? found.plan };
  }
}
