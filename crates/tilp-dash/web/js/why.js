// Why: the reason for every terminal, what limits the round, and the nearest other plans.

import { h, empty, card, table } from "./dom.js";
import { num, percent, seconds, joules, bytes, short, isNumber } from "./format.js";
import { terminalsOf } from "./cell.js";

const signed = (value) => (isNumber(value) ? `${value > 0 ? "+" : ""}${short(value)}` : "–");
const points = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(1)} points`;

// The reason in words.
export function words(reason, deadline) {
  if (!reason) return "No reason is recorded.";
  const difference = num(reason.return_difference), sure = num(reason.sure_delay_s);
  switch (reason.kind) {
    case "gain": {
      const own = `Scheduled: its own success is ${points(num(reason.own_success))} compared with a round without it.`;
      return isNumber(difference) ? `${own} Without it the plan's return changes by ${signed(-difference)}.` : own;
    }
    case "least-bad": return `Scheduled although no terminal is surely in time: it has the best channel (surely within ${seconds(sure)}).`;
    case "unreachable": return `Left out: even alone with the whole band it is only surely done after ${seconds(sure)}; the deadline is ${seconds(deadline)}.`;
    case "memory-short": return `Left out: the first cut needs ${bytes(reason.need_bytes)} of memory, it has ${bytes(reason.memory_bytes)}.`;
    case "crowded": return `Left out: beside the others the round would surely end only after ${seconds(sure)}; the deadline is ${seconds(deadline)}.`;
    case "worth-less": return `Left out: with it the plan's return changes by ${signed(difference)}.`;
    case "overlooked": return `Left out although the plan's return would rise by ${signed(difference)}: the search did not come across it.`;
    default: return reason.kind;
  }
}

const GROUPS = [["gain", "in, for what it brings"], ["least-bad", "in, least bad"], ["worth-less", "out, would not pay"], ["crowded", "out, no room beside the others"], ["unreachable", "out, cannot make the deadline"], ["memory-short", "out, memory too small"], ["overlooked", "out, not found by the search"]];

export const why = {
  name: "why",
  title: "Why",
  rounds: true,
  mount(root, context) {
    const { store, go } = context;
    const tiles = h("dl", { class: "tiles" });
    const list = h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Reasons, table" });
    const limits = h("ul", { class: "limits" });
    const others = h("div", {});
    let asked = 0;
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "Why" }), tiles,
      card("Reasons", { class: "seven", note: "as the method gave them when it decided" }, list),
      h("div", { class: "stack five" }, card("What limits this round", {}, limits), card("Nearest other plans", { note: "one terminal changed" }, others))));

    async function update() {
      const now = context.round;
      if (!now) { empty(list).append("No round yet."); return; }
      const mine = (asked += 1);
      try {
        const answer = await store.round(now);
        if (mine !== asked) return;
        draw(answer);
      } catch (error) {
        if (mine === asked) empty(list).append(h("p", { class: "bad", text: error.message }));
      }
    }

    function draw(answer) {
      const all = terminalsOf(answer, null);
      const rationale = answer.decided.rationale;
      const bound = store.about?.limits ?? {};
      drawTiles(answer, all);
      empty(limits).append(...limiting(all, bound, rationale).map(([name, value, share, text]) => h("li", {},
        h("span", {}, h("b", { text: name }), ` ${value}`), h("progress", { max: "1", value: String(Math.min(1, share)), "aria-label": `${name}, used share` }), h("span", { class: "small faint", text }))));
      drawOthers(all, rationale);
      if (!rationale) {
        empty(list).append(h("p", { text: `The method ${store.about?.manifest?.method ?? ""} gives no reasons. It scheduled terminals ${all.filter((one) => one.scheduled).map((one) => one.id).join(", ")}.` }));
        return;
      }
      const rank = (one) => GROUPS.findIndex(([kind]) => kind === one.reason?.kind);
      const gain = (one) => num(one.reason?.return_difference);
      const sorted = [...all].sort((a, b) => rank(a) - rank(b) || (gain(b) || 0) - (gain(a) || 0) || a.id - b.id);
      empty(list).append(table([
        ["Terminal", (one) => h("button", { type: "button", class: "linkish", text: String(one.id), onclick: () => go({ view: "cell", terminal: one.id }) })],
        ["Task", (one) => store.about?.tasks?.[one.task] ?? "", "left optional"],
        ["Plan", (one) => h("span", { class: one.scheduled ? "good" : "faint", text: one.scheduled ? "in" : "out" }), "left"],
        ["Reason", (one) => words(one.reason, bound.deadline_s), "words"],
        ["Surely within", (one) => (one.scheduled ? seconds(one.sure) : "–"), "optional"],
      ], sorted.slice(0, 400), { caption: "The reason for every terminal" }));
    }

    function drawTiles(answer, all) {
      const { decided, executed } = answer, r = decided.rationale;
      const tile = (name, value, more) => h("div", { class: "tile" }, h("dt", { text: name }), h("dd", {}, value, h("span", { class: "note", text: more ?? "" })));
      const counts = GROUPS.map(([kind, text]) => [text, all.filter((one) => one.reason?.kind === kind).length]).filter(([, n]) => n);
      empty(tiles).append(
        tile("Scheduled", String(all.filter((one) => one.scheduled).length), `of ${all.length}${decided.fallback ? ", fallback" : ""}`),
        ...(r ? [
          tile("Expected success", percent(num(r.success_after)), `${points(num(r.success_after) - num(r.success_before))} by this round`),
          tile("Duration", seconds(num(r.duration_s)), executed ? `realised ${seconds(num(executed.duration_s))}` : "predicted"),
          tile("Energy", joules(num(r.energy_j)), executed ? `realised ${joules(all.reduce((sum, one) => sum + (one.energy || 0), 0))}` : "predicted"),
          tile("Reward", short(num(r.reward_task) + num(r.reward_communication) - num(r.reward_penalty)), `task ${short(num(r.reward_task))}, cost ${short(num(r.reward_communication))}, penalty ${short(num(r.reward_penalty))}`),
          tile("Return", isNumber(num(r.planned_return)) ? short(num(r.planned_return)) : "–", "over the horizon"),
        ] : []),
        ...counts.filter(([text]) => text.startsWith("out")).slice(0, 2).map(([text, n]) => tile("Left out", String(n), text.slice(5))));
    }

    function drawOthers(all, rationale) {
      const changed = all.filter((one) => isNumber(num(one.reason?.return_difference))).map((one) => {
        const difference = num(one.reason.return_difference);
        return { one, change: one.scheduled ? -difference : difference };
      }).sort((a, b) => b.change - a.change).slice(0, 8);
      if (!rationale || !changed.length) { empty(others).append(h("p", { class: "faint", text: "The method has recorded no other plans." })); return; }
      empty(others).append(table([
        ["Plan", ({ one }) => `${one.scheduled ? "without" : "with"} terminal ${one.id}`, "left"],
        ["Return", ({ change }) => (isNumber(num(rationale.planned_return)) ? short(num(rationale.planned_return) + change) : "–")],
        ["Difference", ({ change }) => h("span", { class: change > 0 ? "warn" : "", text: signed(change) })],
      ], changed, { caption: "Plans that differ in one terminal" }));
    }

    return { update };
  },
};

// Name, value, used share, and what follows.
function limiting(all, bound, rationale) {
  const used = all.filter((one) => one.scheduled);
  const band = used.reduce((sum, one) => sum + one.bandwidth, 0) / bound.bandwidth_hz;
  const latest = used.reduce((most, one) => (isNumber(one.sure) && one.sure > (most?.sure ?? -1) ? one : most), null) ?? used.reduce((most, one) => (one.delay > (most?.delay ?? -1) ? one : most), null);
  const time = latest ? (isNumber(latest.sure) ? latest.sure : latest.delay) / bound.deadline_s : 0;
  const power = used.filter((one) => one.power > 0.98 * bound.power_w).length;
  const found = [
    ["Band", percent(band, 0), band, band > 0.99 ? "All of the band is handed out: another terminal would take from these." : "There is band left."],
    ["Deadline", latest ? `${seconds(isNumber(latest.sure) ? latest.sure : latest.delay)} of ${seconds(bound.deadline_s)}` : "–", time, latest ? `${rationale ? "Terminal" : "Slowest: terminal"} ${latest.id} ${time > 0.9 ? "is close to the deadline: it sets how much fits into the round." : "has time left before the deadline."}` : ""],
    ["Power", `${power} of ${used.length} at the limit`, used.length ? power / used.length : 0, power ? "More power is not allowed for these." : "No terminal transmits at full power: energy counts more than time here."],
  ];
  const count = (kind) => all.filter((one) => one.reason?.kind === kind).length;
  const out = [["unreachable", "cannot make the deadline even alone"], ["crowded", "find no room beside the others"], ["memory-short", "have too little memory"]];
  for (const [kind, text] of out) if (count(kind)) found.push(["Left out", `${count(kind)} terminals`, count(kind) / all.length, `They ${text}.`]);
  return found;
}
