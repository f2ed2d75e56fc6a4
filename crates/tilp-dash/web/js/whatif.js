// What if: the command that runs this run again from a round with something changed, and the
// branches that are there already.

import { h, empty, card, table } from "./dom.js";
import { percent, seconds, short, isNumber } from "./format.js";

const FIELDS = [
  ["limits.deadline_s", "Deadline, s", (about) => about.limits?.deadline_s],
  ["limits.bandwidth_hz", "Band, Hz", (about) => about.limits?.bandwidth_hz],
  ["limits.power_w", "Most power, W", (about) => about.limits?.power_w],
  ["limits.compression", "Most compression q", (about) => about.limits?.compression],
];

// A word as a shell takes it.
const quoted = (text) => (/^[\w.+/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export const whatif = {
  name: "whatif",
  title: "What if",
  rounds: true,
  mount(root, context) {
    const { store } = context;
    const inputs = new Map();
    const form = h("div", { class: "fields" });
    const more = h("input", { type: "text", id: "whatif-more", placeholder: "key=value, for instance methods.tilp.caution=2", oninput: () => draw() });
    const command = h("code", { id: "whatif-command" });
    const copied = h("span", { class: "small good", role: "status" });
    const copy = h("button", { type: "button", class: "button", text: "Copy", onclick: async () => {
      try { await navigator.clipboard.writeText(command.textContent); copied.textContent = "copied"; } catch { copied.textContent = "select it by hand"; }
    } });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Branches, table" });
    for (const [key, title] of FIELDS) {
      const input = h("input", { type: "number", step: "any", min: "0", id: `whatif-${key}`, oninput: () => draw() });
      inputs.set(key, input);
      form.append(h("label", { for: `whatif-${key}`, text: title }), input);
    }
    form.append(h("label", { for: "whatif-more", text: "Anything else" }), more);
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "What if" }),
      card("Change something from the next round on", { class: "half", note: "choose the round below" }, form, h("p", { class: "command" }, command), h("p", {}, copy, " ", copied),
        h("p", { class: "small faint", text: "This page only reads. The command repeats the run up to this round, which gives the same bytes, and goes on with the change in a folder of its own; it appears here by itself." })),
      card("Branches of this run", { class: "half" }, body)));

    const own = () => store.list.runs.find((one) => one.id === store.run);

    function path() {
      const [n, ...rest] = (store.run ?? "").split("/");
      return [store.list.roots[Number(n)] ?? ".", ...rest].join("/");
    }

    function draw() {
      const about = store.about;
      if (!about) return;
      const sets = [];
      for (const [key, , of] of FIELDS) {
        const input = inputs.get(key), given = Number(input.value), now = of(about);
        input.placeholder = isNumber(now) ? String(now) : "";
        if (input.value !== "" && Number.isFinite(given) && given !== now) sets.push(`--set ${quoted(`${key}=${given}`)}`);
      }
      if (more.value.includes("=")) sets.push(`--set ${quoted(more.value.trim())}`);
      const round = Math.max(1, Math.min(context.round ?? 1, (about.rounds ?? Infinity) - 1));
      command.textContent = `tilp branch ${quoted(path())} --round ${round} ${sets.join(" ")}`.trim();
      drawBranches();
    }

    function drawBranches() {
      const hash = store.about?.manifest?.scenario_hash, mine = own();
      const found = store.list.runs.filter((one) => one.branch?.of === hash && one.method === mine?.method && one.seed === mine?.seed && one.id !== store.run);
      if (!found.length) { empty(body).append(h("p", { class: "faint", text: "There is none yet." })); return; }
      const success = (one) => (isNumber(one?.success_final) ? one.success_final : one?.last?.success);
      empty(body).append(table([
        ["Run", (one) => h("a", { href: context.address({ run: one.id, view: "learning", round: null }), text: one.name }), "left"],
        ["From round", (one) => one.branch?.round ?? "–"], ["Change", (one) => (one.branch?.set ?? []).join(", ") || "nothing", "words"],
        ["Rounds", (one) => short(one.last?.round)], ["Success", (one) => percent(success(one))], ["Simulated time", (one) => seconds(one.last?.clock_s)],
      ], [mine, ...found].filter(Boolean), { caption: "This run and its branches", row: (one) => ({ class: one.id === store.run ? "on" : "" }) }));
    }

    return { update: draw };
  },
};
