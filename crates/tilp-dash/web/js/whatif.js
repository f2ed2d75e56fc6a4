// What if: what the planner would decide and the twin expects with something changed, the command
// that runs this for real, and the branches that are there already.

import { h, empty, card, table } from "./dom.js";
import { percent, seconds, joules, hertz, watts, short, isNumber } from "./format.js";
import { series, dashes } from "./colour.js";
import { Chart } from "./chart.js";
import { Edits } from "./edits.js";
import { Samples } from "./samples.js";

const FIELDS = [
  ["limits.deadline_s", "Deadline, s", (about) => about.limits?.deadline_s],
  ["limits.bandwidth_hz", "Band, Hz", (about) => about.limits?.bandwidth_hz],
  ["limits.power_w", "Most power, W", (about) => about.limits?.power_w],
  ["limits.compression", "Most compression q", (about) => about.limits?.compression],
];
// Budgets of a run that has one.
const BUDGETS = [["seconds", "Budget, s"], ["joules", "Budget, J"], ["joules_per_terminal", "Budget per terminal, J"], ["bytes", "Budget, bytes"]];
const AHEAD = 12;

const signed = (text) => (value) => (isNumber(value) ? `${value > 0 ? "+" : value < 0 ? "−" : "±"}${text(Math.abs(value))}` : "–");
const METRICS = [
  ["success_after", "Success at the end, expected", percent, (d) => signed((v) => `${(100 * v).toFixed(2)} points`)(d)],
  ["n_scheduled", "Terminals scheduled", String],
  ["latency_s", "Latency", seconds],
  ["duration_s", "Duration of the round", seconds],
  ["energy_j", "Energy", joules],
  ["loss_decrease", "Decrease of the loss", short],
  ["violation", "Violation, to be sure", short],
  ["reward", "Reward", short],
  ["planned_return", "Return over the horizon", short],
];

// A word as a shell takes it.
const quoted = (text) => (/^[\w.+/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export const whatif = {
  name: "whatif",
  title: "What if",
  rounds: true,
  mount(root, context) {
    const { store } = context;
    const inFile = store.kept("whatif"); // null with a server
    const inputs = new Map();
    const form = h("div", { class: "fields" });
    const more = h("input", { type: "text", id: "whatif-more", placeholder: "key=value, for instance methods.tilp.caution=2", oninput: () => changed() });
    const command = h("code", { id: "whatif-command" });
    const copied = h("span", { class: "small good", role: "status" });
    const copy = h("button", { type: "button", class: "button", text: "Copy", onclick: async () => {
      try { await navigator.clipboard.writeText(command.textContent); copied.textContent = "copied"; } catch { copied.textContent = "select it by hand"; }
    } });
    const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Branches, table" });
    const field = (key, title) => {
      const input = h("input", { type: "number", step: "any", min: "0", id: `whatif-${key}`, oninput: () => changed() });
      inputs.set(key, input);
      form.append(h("label", { for: `whatif-${key}`, text: title }), input);
    };
    for (const [key, title] of FIELDS) field(key, title);
    const budgets = h("div", { class: "fields" });
    const edits = inFile ? new Samples(context, inFile, () => changed()) : new Edits(context, () => changed());
    const controls = inFile ? [] : [form, budgets, h("div", { class: "fields" }, h("label", { for: "whatif-more", text: "Anything else" }), more)];
    const said = h("p", { class: "small", role: "status", id: "whatif-said" });
    const progress = h("progress", { max: "1", value: "0", "aria-label": "Repetition of the run", hidden: true });
    const expected = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Expected, table" });
    const others = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runner-up plans, table" });
    const differ = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Terminals that differ, table" });
    const axis = { title: "round", name: "Round", format: (value) => String(Math.round(value)), whole: true };
    const success = new Chart({ label: "Success expected", height: 170, x: axis, y: { title: "success", format: (v) => percent(v, 2), tick: (v) => percent(v, 1) } });
    const loss = new Chart({ label: "Loss expected", height: 170, x: axis, y: { title: "loss" } });
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "What if" }),
      h("div", { class: "stack five" },
        card("Change something from the next round on", { note: "choose the round below" }, controls, edits.element),
        card("Run it", {}, h("p", { class: "command" }, command), h("p", {}, copy, " ", copied),
          h("p", { class: "small faint", text: "This page only reads. The command repeats the run up to this round, which gives the same bytes, and continues with the changed limits in a folder of its own, which appears here by itself. Changes of single terminals are predicted only." }))),
      h("div", { class: "stack seven" },
        card("What is expected", { note: "of the round that follows" }, said, progress, expected),
        card("The next rounds", { note: "if the decision is kept" }, success.element, loss.element),
        card("Terminals that differ", {}, differ),
        card("Runner-up plans", { note: "the next best that the search found" }, others),
        inFile ? null : card("Branches of this run", {}, body))));

    let timer = null, asked = 0, key = null, wait = null;
    const own = () => store.list.runs.find((one) => one.id === store.run);
    const round = () => {
      const given = Math.max(1, Math.min(context.round ?? 1, (store.about?.rounds ?? Infinity) - 1));
      return inFile?.length ? store.nearest(given, "whatif") : given;
    };

    function path() {
      const there = /^@(\d+)\/(.*)$/.exec(store.run ?? "");
      const roots = there ? store.list.elsewhere?.[Number(there[1])]?.roots : store.list.roots;
      const [n, ...rest] = (there ? there[2] : store.run ?? "").split("/");
      return [roots?.[Number(n)] ?? ".", ...rest].join("/");
    }

    // Overrides of the scenario as they were typed.
    function overrides() {
      if (inFile) return edits.overrides();
      const about = store.about, found = [];
      for (const [key, , of] of FIELDS) {
        const input = inputs.get(key), given = Number(input.value), now = of(about);
        input.placeholder = isNumber(now) ? String(now) : "";
        if (input.value !== "" && Number.isFinite(given) && given !== now) found.push(`${key}=${given}`);
      }
      for (const [name] of BUDGETS) {
        const input = inputs.get(`limits.budget.${name}`);
        if (input && input.value !== "" && Number.isFinite(Number(input.value))) found.push(`limits.budget.${name}=${Number(input.value)}`);
      }
      if (more.value.includes("=")) found.push(more.value.trim());
      return found;
    }

    function drawBudgets() {
      const budget = store.about?.limits?.budget ?? {};
      const names = BUDGETS.filter(([name]) => isNumber(budget[name]));
      if (budgets.childElementCount === 2 * names.length) return;
      empty(budgets);
      for (const [name, title] of names) {
        const key = `limits.budget.${name}`;
        const input = h("input", { type: "number", step: "any", min: "0", id: `whatif-${key}`, placeholder: String(budget[name]), oninput: () => changed() });
        inputs.set(key, input);
        budgets.append(h("label", { for: `whatif-${key}`, text: title }), input);
      }
    }

    function draw() {
      if (!store.about) return;
      drawBudgets();
      const sets = overrides().map((text) => `--set ${quoted(text)}`);
      command.textContent = `tilp branch ${quoted(path())} --round ${round()} ${sets.join(" ")}`.trim();
      drawBranches();
      edits.update();
      const parameters = [["round", round()], ["ahead", AHEAD], ...overrides().map((text) => ["set", text]), ...edits.parameters()];
      const now = JSON.stringify([store.run, store.state === "finished" || store.lastRound > round(), parameters]);
      if (now === key) return;
      key = now;
      clearTimeout(wait);
      wait = setTimeout(() => void ask(parameters), 120);
    }

    function changed() {
      draw();
    }

    // Asks until the repetition has come to the round.
    async function ask(parameters) {
      const mine = (asked += 1);
      said.className = "small";
      if (store.about?.manifest?.method && store.about.manifest.method !== "tilp") {
        clear(`The method ${store.about.manifest.method} has no twin that could be asked: only runs of tilp have predictions.`);
        return;
      }
      if (round() >= store.lastRound) {
        clear("Choose a round before the last one: what the terminals reported in the round that follows must be in the record.");
        return;
      }
      try {
        if (inFile) { show(edits.answer(await store.get("whatif", { round: round() }))); return; }
        for (;;) {
          const answer = await store.get("whatif", parameters);
          if (mine !== asked) return;
          if (!answer.working) { show(answer); return; }
          said.textContent = `Repeating the planner: round ${answer.done} of ${answer.round}.`;
          progress.hidden = false;
          progress.value = String(answer.done / answer.round);
          await new Promise((done) => { timer = setTimeout(done, 30); });
          if (mine !== asked) return;
        }
      } catch (error) {
        if (mine === asked) { clear(error.message); said.className = "small bad"; }
      }
    }

    function clear(text) {
      progress.hidden = true;
      said.textContent = text;
      empty(expected);
      empty(differ);
      empty(others);
      for (const chart of [success, loss]) chart.update({ series: [] });
    }

    function show({ round: next, differing, plan, changed: other }) {
      progress.hidden = true;
      const isSame = JSON.stringify(plan) === JSON.stringify(other);
      said.textContent = `Round ${next}. ${isSame ? "Nothing is changed." : "The plan as it is, and with the change."}${differing ? ` The repetition decided ${differing} rounds otherwise than the record: another processor or version.` : ""}`;
      const count = (one) => ({ ...one.predicted, n_scheduled: one.terminals.filter((t) => t.scheduled).length });
      const [a, b] = [count(plan), count(other)];
      empty(expected).append(table([
        ["Of the round", ([, title]) => title, "left"],
        ["The plan", ([name, , text]) => h("span", { "data-plan": name, title: String(a[name]), text: text(a[name]) })],
        ["With the change", ([name, , text]) => h("span", { "data-changed": name, title: String(b[name]), text: text(b[name]) })],
        ["Difference", ([name, , text, difference]) => (isSame ? "–" : (difference ?? signed(text))(b[name] - a[name])), "optional"],
      ], METRICS, { caption: "What the twin expects of the round" }));
      const lines = (of) => [
        { name: "the plan", colour: series(0), points: plan.ahead.map((one) => [one.round, of(one)]), marks: true },
        ...(isSame ? [] : [{ name: "with the change", colour: series(1), dash: dashes[1], points: other.ahead.map((one) => [one.round, of(one)]), marks: true }]),
      ];
      success.update({ series: lines((one) => one.success) });
      loss.update({ series: lines((one) => one.loss) });
      drawTerminals(plan.terminals, other.terminals);
      drawOthers(other.runner_ups);
    }

    // Of the plan with the change, where it was not edited.
    function drawOthers(all) {
      if (!all.length) { empty(others).append(h("p", { class: "faint", text: "None: no search has found this plan, or it found nothing else." })); return; }
      const list = (word, ids) => (ids.length ? `${word} ${ids.slice(0, 12).join(", ")}${ids.length > 12 ? ", …" : ""}` : "");
      const words = (one) => [list("with", one.added), list("without", one.left_out)].filter(Boolean).join("; ") || "the same terminals, otherwise configured";
      empty(others).append(table([
        ["Plan", words, "words"], ["Scheduled", (one) => one.n_scheduled], ["Return", (one) => short(one.score)], ["Behind", (one) => short(one.behind)],
      ], all.slice(0, 8), { caption: "Plans that came close" }));
    }

    function drawTerminals(before, after) {
      const known = new Map(after.map((one) => [one.terminal, one]));
      const differs = (one) => { const now = known.get(one.terminal); return !now || (one.scheduled || now.scheduled) && ["scheduled", "cut", "power_w", "compression", "bandwidth_hz", "delay_s"].some((name) => one[name] !== now[name]); };
      const rows = before.filter(differs);
      if (!rows.length) { empty(differ).append(h("p", { class: "faint", text: "None: every terminal does the same." })); return; }
      const both = (of, text) => (one) => { const now = known.get(one.terminal); const show = (t) => (t?.scheduled ? text(of(t)) : "–"); return now ? `${show(one)} → ${show(now)}` : show(one); };
      const state = (one) => (one === undefined ? "not there" : one.scheduled ? "in" : "out");
      empty(differ).append(table([
        ["Terminal", (one) => one.terminal], ["Plan", (one) => `${state(one)} → ${state(known.get(one.terminal))}`, "left"],
        ["Band", both((t) => t.bandwidth_hz, hertz)], ["Power", both((t) => t.power_w, watts)], ["Cut", both((t) => t.cut, String)],
        ["q", both((t) => t.compression, (v) => v.toFixed(2))], ["Delay", both((t) => t.delay_s, seconds)], ["Surely within", both((t) => t.sure_delay_s, seconds), "optional"],
      ], rows.slice(0, 200), { caption: "Terminals that differ" }));
    }

    function drawBranches() {
      const hash = store.about?.manifest?.scenario_hash, mine = own();
      const found = store.list.runs.filter((one) => one.branch?.of === hash && one.method === mine?.method && one.seed === mine?.seed && one.id !== store.run);
      if (!found.length) { empty(body).append(h("p", { class: "faint", text: "There is none yet." })); return; }
      const reached = (one) => (isNumber(one?.success_final) ? one.success_final : one?.last?.success);
      empty(body).append(table([
        ["Run", (one) => h("a", { href: context.address({ run: one.id, view: "learning", round: null }), text: one.name }), "left"],
        ["From round", (one) => one.branch?.round ?? "–"], ["Change", (one) => (one.branch?.set ?? []).join(", ") || "nothing", "words"],
        ["Rounds", (one) => short(one.last?.round)], ["Success", (one) => percent(reached(one))], ["Simulated time", (one) => seconds(one.last?.clock_s)],
      ], [mine, ...found].filter(Boolean), { caption: "This run and its branches", row: (one) => ({ class: one.id === store.run ? "on" : "" }) }));
    }

    return { update: draw, remove: () => { asked += 1; clearTimeout(timer); clearTimeout(wait); success.remove(); loss.remove(); } };
  },
};
