// The bar that chooses a round: a slider, steps, play, and following the newest.

import { h, s, empty } from "./dom.js";

const SHAPES = { back: "M3 3h2.4v14H3zM17 3v14L6.5 10z", play: "M4 2.5v15L17 10z", stop: "M4 3h4.5v14H4zM11.5 3H16v14h-4.5z", on: "M14.6 3H17v14h-2.4zM3 3v14l10.5-7z" };

export class Timeline {
  constructor(element, change) {
    this.element = element;
    this.change = change; // (round or null for the newest)
    this.last = 0;
    this.round = null;
    this.timer = null;
    const button = (shape, label, onclick) => h("button", { type: "button", class: "plain", "aria-label": label, title: label, onclick },
      s("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, s("path", { d: SHAPES[shape] })));
    this.play = button("play", "Play", () => this.toggle());
    this.slider = h("input", { type: "range", min: "1", max: "1", step: "1", "aria-label": "Round", oninput: () => this.choose(Number(this.slider.value)) });
    this.output = h("output", {});
    this.follow = h("button", { type: "button", class: "button", "aria-pressed": "true", text: "Newest", onclick: () => this.choose(null) });
    empty(element).append(button("back", "Back one round", () => this.step(-1)), this.play, button("on", "On one round", () => this.step(1)), this.slider, this.output, this.follow);
  }

  choose(round) {
    this.stop();
    this.change(round);
  }

  step(by) {
    this.choose(Math.min(this.last, Math.max(1, (this.round ?? this.last) + by)));
  }

  toggle() {
    if (this.timer) return this.stop();
    if ((this.round ?? this.last) >= this.last) this.change(1);
    this.sign("stop", "Stop");
    const tick = () => {
      const next = (this.round ?? this.last) + 1;
      if (next > this.last) return this.stop();
      this.change(next);
    };
    this.timer = setInterval(tick, 160);
    return undefined;
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.sign("play", "Play");
  }

  sign(shape, label) {
    this.play.querySelector("path").setAttribute("d", SHAPES[shape]);
    this.play.setAttribute("aria-label", label);
    this.play.title = label;
  }

  show(round, last) {
    [this.round, this.last] = [round, last];
    const now = round ?? last;
    this.slider.max = String(Math.max(1, last));
    this.slider.value = String(now);
    this.output.textContent = last ? `Round ${now} of ${last}` : "No round yet";
    this.follow.setAttribute("aria-pressed", String(round === null));
    this.follow.classList.toggle("on", round === null);
  }
}
