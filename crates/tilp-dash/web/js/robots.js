// Robots: an episode of one terminal, run again and shown as a moving scene.

import { h, empty, card, set } from "./dom.js";
import { percent } from "./format.js";
import { series, dashes } from "./colour.js";
import { Chart } from "./chart.js";
import { Scene } from "./scene.js";

const POLICIES = { trained: "trained in this run", base: "before the first round", expert: "the scripted expert" };
const LOOKS = { side: ["from the side", -0.62, 0.5], front: ["from the front", 0, 0.25], above: ["from above", 0, 1.5] };
const MOST_EPISODES = 32;

export const robots = {
  name: "robots",
  title: "Robots",
  mount(root, context) {
    const { store, go } = context;
    const inFile = store.kept("episode"); // null with a server
    let policy = null, index = 0, step = 0, episode = null, asked = 0, timer = null, speed = 1, key = null, chosen = null, ids = [];
    const canvas = h("canvas", { class: "scene", role: "img", "aria-label": "The robot in this episode" });
    const scene = new Scene(canvas);
    const said = h("p", { class: "small", role: "status" });
    const slider = h("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": "Step of the episode", oninput: () => { stop(); show(Number(slider.value)); } });
    const output = h("output", {});
    const play = h("button", { type: "button", class: "button", text: "Play", onclick: () => (timer ? stop() : start()) });
    const select = (label, options, change) => { const one = h("select", { onchange: () => change(one.value) }, options.map(([value, text]) => h("option", { value, text }))); return [h("label", { class: "inline" }, label, one), one]; };
    const [speedLabel] = select("Speed", [["1", "1×"], ["0.5", "½×"], ["0.25", "¼×"], ["2", "2×"]], (value) => { speed = Number(value); if (timer) start(); });
    const [lookLabel] = select("View", Object.entries(LOOKS).map(([name, [text]]) => [name, text]), (name) => scene.turn(LOOKS[name][1], LOOKS[name][2]));
    const [whoLabel, who] = select("Terminal", [], (id) => go({ terminal: Number(id) }, { replace: true }));
    const [policyLabel, policySelect] = select("Policy", Object.entries(POLICIES), (value) => { policy = value; index = 0; void load(); });
    const list = h("div", { class: "episodes", role: "group", "aria-label": "Episodes" });
    const count = h("p", { class: "small", id: "robots-count" });
    const way = new Chart({ label: "Way of the object to its goal", height: 190, x: { title: "seconds", name: "Second" }, y: { title: "metres", low: 0 } });
    root.append(h("div", { class: "grid" }, h("h1", { class: "hidden-text", text: "Robots" }),
      card("Episode", { class: "seven", note: "drag to turn", right: lookLabel }, canvas, h("div", { class: "player" }, play, slider, output, speedLabel), said),
      h("div", { class: "stack five" },
        card("Which episode", {}, h("div", { class: "choices" }, whoLabel, policyLabel), list, count,
          h("p", { class: "small faint", text: `Episodes are not recorded. They are run again from the scenario, the seed and the policy of the run, which gives the same states on the same type of processor.${inFile ? " This file has one episode of the first terminal of every task; tilp dash shows any." : ""}` })),
        card("Way to the goal", {}, way.element))));

    function start() {
      stop();
      if (!episode) return;
      if (step >= episode.poses.length - 1) show(0);
      play.textContent = "Stop";
      timer = setInterval(() => { if (step >= episode.poses.length - 1) stop(); else show(step + 1); }, 1000 / episode.steps_per_second / speed);
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    }

    function show(next) {
      step = Math.min(next, episode ? episode.poses.length - 1 : 0);
      scene.show(episode, step);
      if (!episode) { output.textContent = ""; return; }
      const last = episode.poses.length - 1, seconds = (n) => (n / episode.steps_per_second).toFixed(2);
      set(slider, { max: last, "aria-valuetext": `${seconds(step)} seconds` });
      slider.value = String(step);
      output.textContent = `${seconds(step)} of ${seconds(last)} s`;
      way.update({ ...way.data, now: step / episode.steps_per_second });
    }

    async function update() {
      const { where } = context;
      scene.draw(); // the theme may have changed
      const round = store.lastRound;
      const now = `${store.run} ${where.terminal} ${store.state} ${round > 0}`;
      if (!round) { said.textContent = "No round yet."; return; }
      if (key === now) return;
      key = now;
      policy ??= store.state === "finished" ? "trained" : "base";
      policySelect.value = policy;
      try {
        const answer = await store.round(round);
        fillTerminals(answer);
        await load();
      } catch (error) {
        refuse(error);
      }
    }

    // The terminals of the last round, with what they have reached.
    function fillTerminals({ decided, success }) {
      const counts = new Map(success?.terminal.map((id, n) => [id, `${success.successes[n]} of ${success.episodes[n]}`]));
      const plan = decided?.terminals ?? { terminal: [], task: [] };
      const isThere = (id) => !inFile || inFile.some(([own]) => Number(own) === id);
      ids = plan.terminal.filter(isThere);
      const task = (n) => store.about?.tasks?.[plan.task[n]] ?? `task ${plan.task[n]}`;
      empty(who).append(...plan.terminal.flatMap((id, n) => (isThere(id) ? h("option", { value: String(id), text: `${id} · ${task(n)}${counts.has(id) ? ` · ${counts.get(id)}` : ""}` }) : [])));
      for (const option of policySelect.options) option.hidden = option.disabled = inFile !== null && !inFile.some(([, own]) => own === option.value);
      chosen = ids.includes(context.where.terminal) ? context.where.terminal : ids[0];
      who.value = String(chosen);
    }

    async function load() {
      if (!ids.length && inFile) { refuse(new Error("This file has no episodes: robots of this scenario are not drawn.")); return; }
      if (!ids.includes(chosen)) return;
      const mine = (asked += 1);
      stop();
      said.className = "small";
      said.textContent = "Running the episode…";
      try {
        const found = await store.get("episode", { terminal: chosen, policy, index });
        if (mine !== asked) return;
        episode = found;
        draw();
        if (inFile) { fillEpisodes([found.success]); return; }
        const n = Math.min(MOST_EPISODES, found.measured?.[1] ?? store.about?.evaluation?.final_episodes ?? 1);
        fillEpisodes(Array(n).fill(null));
        const { success } = await store.get("outcomes", { terminal: chosen, policy, index: n });
        if (mine === asked) fillEpisodes(success);
      } catch (error) {
        if (mine === asked) refuse(error);
      }
    }

    function refuse(error) {
      episode = null;
      said.className = "small bad";
      said.textContent = error.message;
      empty(list);
      count.textContent = "";
      way.update({ series: [] });
      show(0);
    }

    function draw() {
      const seconds = (n) => n / episode.steps_per_second;
      const length = ([x, y, z]) => Math.hypot(x, y, z);
      const far = (points) => points.map((point, n) => [seconds(n), length(point.map((value, axis) => value - episode.goal[n][axis]))]);
      way.update({ series: [{ name: "object to goal", colour: series(1), points: far(episode.object) }, { name: "hand to goal", colour: series(7), dash: dashes[1], points: far(episode.hand), thin: true }] });
      const took = seconds(episode.poses.length - 1).toFixed(2);
      said.className = `small ${episode.success ? "good" : "bad"}`;
      said.textContent = `Terminal ${episode.terminal}, task ${episode.task}: ${episode.success ? `done after ${took} s` : `not done within ${took} s`}.`;
      canvas.setAttribute("aria-label", `The robot of terminal ${episode.terminal} at its task ${episode.task}; ${said.textContent}`);
      show(matchMedia("(prefers-reduced-motion: reduce)").matches ? episode.poses.length - 1 : 0);
      if (!matchMedia("(prefers-reduced-motion: reduce)").matches) start();
    }

    function fillEpisodes(success) {
      empty(list).append(...success.map((done, n) => h("button", { type: "button", class: `button ${done === null ? "" : done ? "good" : "bad"}`, "aria-pressed": String(n === index), "aria-label": `Episode ${n + 1}${done === null ? "" : done ? ", done" : ", failed"}`,
        text: `${n + 1}${done === null ? "" : done ? " ✓" : " ✗"}`, onclick: () => { index = n; void load(); } })));
      const done = success.filter(Boolean).length;
      const kind = policy === "expert" ? "final" : episode.set;
      if (success.includes(null)) count.textContent = `${success.length} ${kind} episodes`;
      else count.textContent = `${done} of ${success.length} ${kind} episodes done (${percent(done / success.length, 0)})${episode.measured ? `; the record has ${episode.measured[0]} of ${episode.measured[1]}` : ""}.`;
    }

    return { update, remove: () => { stop(); scene.remove(); way.remove(); } };
  },
};
