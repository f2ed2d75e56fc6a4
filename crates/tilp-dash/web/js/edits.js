// Changes of what single terminals are to do: chosen one by one, and listed.

import { h, empty } from "./dom.js";

export class Edits {
  constructor(context, change) {
    Object.assign(this, { context, change, edits: new Map(), key: null });
    const given = (name, title, attributes) => h("input", { type: "number", step: "any", min: "0", id: `edit-${name}`, placeholder: "as planned", ...attributes, oninput: () => this.set(name, this[name].value) });
    this.who = h("select", { id: "edit-terminal", onchange: () => this.fill() });
    this.state = h("select", { id: "edit-state", onchange: () => this.set("state", this.state.value) }, [["", "as planned"], ["in", "takes part"], ["out", "does not take part"], ["gone", "is not there"]].map(([value, text]) => h("option", { value, text })));
    this.cut = h("select", { id: "edit-cut", onchange: () => this.set("cut", this.cut.value) });
    this.power_w = given("power_w");
    this.compression = given("compression", "", { max: "1" });
    this.list = h("ul", { class: "edits" });
    const row = (id, text, control) => [h("label", { for: id, text }), control];
    this.element = h("fieldset", { class: "plain-set" }, h("legend", { text: "One terminal" }),
      h("div", { class: "fields" }, row("edit-terminal", "Terminal", this.who), row("edit-state", "Schedule", this.state), row("edit-cut", "Cut", this.cut), row("edit-power_w", "Power, W", this.power_w), row("edit-compression", "Compression q", this.compression)),
      this.list);
  }

  // Terminals and cuts of the run, once they are known.
  update() {
    const { store, where } = this.context;
    const round = store.lastRound;
    const key = `${store.run} ${round > 0}`;
    if (!round || this.key === key) return;
    const isOther = this.key !== null && !this.key.startsWith(`${store.run} `);
    this.key = key;
    if (isOther) this.edits.clear();
    empty(this.cut).append(h("option", { value: "", text: "as planned" }), ...(store.about?.cuts ?? []).map((cut) => h("option", { value: String(cut), text: String(cut) })));
    store.round(Math.min(this.context.round ?? round, round)).then(({ decided }) => {
      const plan = decided?.terminals;
      if (!plan) return;
      empty(this.who).append(...plan.terminal.map((id, n) => h("option", { value: String(id), text: `${id} · ${store.about?.tasks?.[plan.task[n]] ?? ""}` })));
      if (plan.terminal.includes(where.terminal)) this.who.value = String(where.terminal);
      this.fill();
    }, () => { this.key = null; });
  }

  // Shows what is changed of the chosen terminal.
  fill() {
    const edit = this.edits.get(this.who.value) ?? {};
    for (const name of ["state", "cut", "power_w", "compression"]) this[name].value = edit[name] ?? "";
    this.draw();
  }

  set(name, value) {
    const id = this.who.value;
    if (!id) return;
    const edit = { ...this.edits.get(id), [name]: value };
    if (!value) delete edit[name];
    if (Object.keys(edit).length) this.edits.set(id, edit);
    else this.edits.delete(id);
    this.draw();
    this.change();
  }

  draw() {
    const words = { in: "takes part", out: "does not take part", gone: "is not there" };
    const text = (edit) => [words[edit.state], edit.cut && `cut ${edit.cut}`, edit.power_w && `${edit.power_w} W`, edit.compression && `q ${edit.compression}`].filter(Boolean).join(", ");
    empty(this.list).append(...[...this.edits].map(([id, edit]) => h("li", {}, `Terminal ${id}: ${text(edit)} `,
      h("button", { type: "button", class: "linkish", text: "undo", "aria-label": `Undo the changes of terminal ${id}`, onclick: () => { this.edits.delete(id); this.fill(); this.change(); } }))));
  }

  // The same for the server.
  parameters() {
    const found = [];
    for (const [id, edit] of this.edits) {
      if (edit.state === "gone") { found.push(["remove", id]); continue; }
      const parts = [id];
      if (edit.state) parts.push(`scheduled=${edit.state === "in"}`);
      for (const name of ["cut", "power_w", "compression"]) if (edit[name]) parts.push(`${name}=${edit[name]}`);
      found.push(["edit", parts.join(",")]);
    }
    return found;
  }
}
