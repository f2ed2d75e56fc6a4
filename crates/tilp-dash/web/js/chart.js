// Line charts: axes, series with bands, rules, a crosshair for mouse, finger and keyboard, and the
// numbers as a table.

import { h, s, empty, set, table } from "./dom.js";
import { ticks, short, trimmed, isNumber } from "./format.js";

const MARGIN = { top: 24, right: 14, bottom: 34, left: 52 };

let charts = 0;

export class Chart {
  // options: label, height, x {title, format}, y {title, format, low, high, within, log}, compact
  constructor(options) {
    this.options = options;
    this.hidden = new Set();
    this.data = { series: [], rules: [] };
    this.id = (charts += 1);
    this.svg = s("svg", { role: "img", "aria-label": options.label, tabindex: options.compact ? null : "0" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.said = h("p", { class: "hidden-text", "aria-live": "polite" });
    this.plot = h("div", { class: "chart" }, this.svg, this.tip);
    this.legend = h("div", { class: "legend" });
    this.numbers = h("details", { class: "numbers" }, h("summary", { text: "Numbers" }), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${options.label}, numbers` }));
    this.numbers.addEventListener("toggle", () => this.fillNumbers());
    const parts = options.compact ? [this.plot] : [this.plot, this.said, this.legend, this.numbers];
    this.element = h("div", {}, parts);
    this.cursor = null;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.setCursor(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => this.setCursor(null));
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.plot);
  }

  // series: [{name, colour, dash, points: [[x, y]], band: [[x, low, high]], thin, marks}], rules: [{y, label}]
  update(data) {
    this.data = { rules: [], series: [], ...data };
    this.draw();
    this.fillNumbers();
  }

  visible() {
    return this.data.series.filter((one) => !this.hidden.has(one.name));
  }

  extent() {
    const { x = {}, y = {} } = this.options;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    const see = (px, py) => {
      if (!isNumber(px) || !isNumber(py)) return;
      [x0, x1, y0, y1] = [Math.min(x0, px), Math.max(x1, px), Math.min(y0, py), Math.max(y1, py)];
    };
    for (const one of this.visible()) {
      for (const [px, py] of one.points) see(px, py);
      for (const [px, low, high] of one.band ?? []) { see(px, low); see(px, high); }
    }
    if (x0 > x1) return null;
    for (const rule of this.data.rules) if (isNumber(rule.y)) [y0, y1] = [Math.min(y0, rule.y), Math.max(y1, rule.y)];
    const pad = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 1;
    const side = x.pad ? (x1 - x0) * x.pad || Math.abs(x1) * 0.1 || 1 : 0;
    const [least, most] = y.within ?? [-Infinity, Infinity];
    const [bottom, top] = [y.low ?? Math.max(least, y0 - pad), y.high ?? Math.min(most, y1 + pad)];
    return {
      x0: x.low ?? x0 - side, x1: Math.max(x.high ?? x1 + side, x0 + 1e-12),
      y0: bottom, y1: Math.max(top, bottom + 1e-12),
    };
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const { height = 260, compact, x = {}, y = {} } = this.options;
    const m = compact ? { top: 6, right: 6, bottom: 16, left: 30 } : MARGIN;
    empty(this.svg);
    set(this.svg, { viewBox: `0 0 ${width} ${height}`, height });
    const range = this.extent();
    if (!range) {
      this.svg.append(s("text", { class: "empty", x: width / 2, y: height / 2, "text-anchor": "middle", text: this.data.empty ?? "Nothing yet" }));
      this.drawLegend();
      return;
    }
    const sx = (value) => m.left + ((value - range.x0) / (range.x1 - range.x0)) * (width - m.left - m.right);
    const sy = (value) => height - m.bottom - ((value - range.y0) / (range.y1 - range.y0)) * (height - m.top - m.bottom);
    this.scale = { sx, sy, range, width, height, m };
    const format = { x: x.tick ?? x.format ?? trimmed, y: y.tick ?? y.format ?? trimmed };
    const yTicks = ticks(range.y0, range.y1, compact ? 2 : Math.max(2, Math.round((height - 50) / 48)));
    for (const value of yTicks) {
      this.svg.append(s("line", { class: "grid-line", x1: m.left, x2: width - m.right, y1: sy(value), y2: sy(value) }),
        s("text", { x: m.left - 7, y: sy(value) + 4, "text-anchor": "end", text: format.y(value) }));
    }
    const xTicks = ticks(range.x0, range.x1, compact ? 2 : Math.max(2, Math.round(width / 110)), x.whole);
    for (const value of xTicks) {
      const end = compact && sx(value) > width - 20 ? "end" : "middle";
      this.svg.append(s("text", { x: sx(value), y: height - m.bottom + (compact ? 13 : 17), "text-anchor": end, text: format.x(value) }));
    }
    this.svg.append(s("line", { class: "base-line grid-line", x1: m.left, x2: width - m.right, y1: height - m.bottom, y2: height - m.bottom }));
    if (x.title && !compact) this.svg.append(s("text", { class: "axis-title", x: width - m.right, y: height - 2, "text-anchor": "end", text: x.title }));
    if (y.title && !compact) this.svg.append(s("text", { class: "axis-title", x: 0, y: 10, text: y.title }));
    this.labels = [];
    const clip = `clip-${this.id}`;
    this.svg.append(s("clipPath", { id: clip }, s("rect", { x: m.left - 5, y: m.top - 6, width: Math.max(0, width - m.left - m.right + 11), height: Math.max(0, height - m.top - m.bottom + 8) })));
    const body = s("g", { "clip-path": `url(#${clip})` });
    this.svg.append(body);
    for (const one of this.visible()) if (one.band?.length) body.append(this.band(one, sx, sy));
    for (const one of this.visible()) this.line(one, sx, sy, body);
    for (const rule of this.data.rules) {
      if (!isNumber(rule.y) || rule.y < range.y0 || rule.y > range.y1) continue;
      this.svg.append(s("line", { class: "rule", x1: m.left, x2: width - m.right, y1: sy(rule.y), y2: sy(rule.y) }));
      if (rule.label) this.svg.append(s("text", { class: "rule-label", x: width - m.right, y: sy(rule.y) - 4, "text-anchor": "end", text: rule.label }));
    }
    if (isNumber(this.data.now)) this.svg.append(s("line", { class: "now", x1: sx(this.data.now), x2: sx(this.data.now), y1: m.top, y2: height - m.bottom }));
    this.cross = s("line", { class: "cross", y1: m.top, y2: height - m.bottom, visibility: "hidden" });
    this.svg.append(this.cross);
    this.drawLegend();
  }

  band(one, sx, sy) {
    const good = one.band.filter((point) => point.every(isNumber));
    const there = good.map(([x, , high]) => `${sx(x).toFixed(1)},${sy(high).toFixed(1)}`);
    const back = good.toReversed().map(([x, low]) => `${sx(x).toFixed(1)},${sy(low).toFixed(1)}`);
    return s("polygon", { class: "band", points: [...there, ...back].join(" "), css: { fill: one.colour } });
  }

  line(one, sx, sy, body) {
    if (one.line !== false) {
      let path = "", pen = "M";
      for (const [x, y] of one.points) {
        if (!isNumber(x) || !isNumber(y)) { pen = "M"; continue; }
        path += `${pen}${sx(x).toFixed(1)} ${sy(y).toFixed(1)}`;
        pen = "L";
      }
      body.append(s("path", { class: `series ${one.thin ? "thin" : ""}`, d: path, "stroke-dasharray": one.dash || null, css: { stroke: one.colour } }));
    }
    if (one.label && one.points.length) {
      const [x, y] = one.points[one.points.length - 1];
      const isRight = sx(x) > this.scale.width * 0.6;
      // A label that would cover another is left out; legend and table have all of them.
      const width = 6.6 * one.label.length;
      const box = { left: sx(x) + (isRight ? -9 - width : 9), top: sy(y) - 7, width };
      if (!this.labels.some((other) => Math.abs(other.top - box.top) < 13 && box.left < other.left + other.width && other.left < box.left + width)) {
        this.labels.push(box);
        this.svg.append(s("text", { class: "point-label", x: sx(x) + (isRight ? -9 : 9), y: sy(y) + 4, "text-anchor": isRight ? "end" : "start", text: one.label }));
      }
    }
    if (one.marks || one.points.length === 1) {
      // One path with dots of no length: thousands of them are drawn at once.
      const dots = one.points.filter(([x, y]) => isNumber(x) && isNumber(y)).map(([x, y]) => `M${sx(x).toFixed(1)} ${sy(y).toFixed(1)}h0`);
      body.append(s("path", { class: "dots", d: dots.join(""), "stroke-width": 2 * (one.radius ?? 2.6), css: { stroke: one.colour, opacity: one.opacity ?? "1" } }));
    }
  }

  drawLegend() {
    if (this.options.compact || this.options.legend === false) return;
    const shown = this.data.series.filter((one) => one.name);
    if (this.legend.childElementCount === shown.length && shown.every((one, n) => this.legend.children[n].dataset.name === one.name)) return;
    empty(this.legend);
    if (shown.length < 2) return;
    for (const one of shown) {
      const mark = one.line === false
        ? s("circle", { cx: 11, cy: 4, r: 3.6, css: { fill: one.colour } })
        : s("line", { x1: 1, x2: 21, y1: 4, y2: 4, "stroke-width": 2.4, "stroke-dasharray": one.dash || null, css: { stroke: one.colour } });
      const key = s("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, mark);
      this.legend.append(h("button", { type: "button", "aria-pressed": String(!this.hidden.has(one.name)), "data-name": one.name, onclick: (event) => {
        if (!this.hidden.delete(one.name)) this.hidden.add(one.name);
        event.currentTarget.setAttribute("aria-pressed", String(!this.hidden.has(one.name)));
        this.draw();
      } }, key, one.name));
    }
  }

  // All x that any visible series has a point at.
  places() {
    const all = new Set();
    for (const one of this.visible()) for (const [x, y] of one.points) if (isNumber(x) && isNumber(y)) all.add(x);
    return [...all].sort((a, b) => a - b);
  }

  point(event) {
    if (!this.scale || this.options.crosshair === false) return;
    const box = this.svg.getBoundingClientRect();
    const places = this.places();
    if (!places.length) return;
    const px = event.clientX - box.left;
    let best = places[0];
    for (const x of places) if (Math.abs(this.scale.sx(x) - px) < Math.abs(this.scale.sx(best) - px)) best = x;
    this.setCursor(best);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !this.scale) return;
    event.preventDefault();
    const places = this.places();
    const now = this.cursor === null ? -1 : places.indexOf(this.cursor);
    const next = Math.min(places.length - 1, Math.max(0, now + step));
    this.setCursor(places[next] ?? null);
    this.said.textContent = this.tip.textContent;
  }

  setCursor(x) {
    this.cursor = x;
    this.tip.hidden = x === null;
    if (!this.cross) return;
    this.cross.setAttribute("visibility", x === null ? "hidden" : "visible");
    if (x === null) return;
    const { sx, width } = this.scale;
    set(this.cross, { x1: sx(x), x2: sx(x) });
    const { x: ax = {}, y: ay = {} } = this.options;
    const rows = [];
    for (const one of this.visible()) {
      const n = one.points.findIndex((point) => point[0] === x);
      if (n < 0 || !isNumber(one.points[n][1])) continue;
      const band = one.band?.find((point) => point[0] === x);
      const range = band && band.every(isNumber) ? ` (${(ay.format ?? short)(band[1])} to ${(ay.format ?? short)(band[2])})` : "";
      rows.push(h("span", {}, h("i", {}, h("span", { class: "key", css: { color: one.colour } }), one.name ?? ""), `${(ay.format ?? short)(one.points[n][1])}${range}`));
    }
    empty(this.tip).append(h("b", { text: `${ax.name ?? ax.title ?? ""} ${(ax.format ?? short)(x)}` }), ...rows);
    const left = sx(x) > width / 2 ? sx(x) - this.tip.offsetWidth - 12 : sx(x) + 12;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = "8px";
  }

  fillNumbers() {
    if (!this.numbers.open) return;
    const { x = {}, y = {} } = this.options;
    const shown = this.visible().filter((one) => one.points.length);
    const maps = shown.map((one) => new Map(one.points.map(([px, py]) => [px, py])));
    const places = this.places();
    const step = Math.ceil(places.length / 300) || 1;
    const rows = places.filter((_, n) => n % step === 0 || n === places.length - 1);
    const columns = [[x.title ?? "x", (px) => (x.format ?? short)(px)],
      ...shown.map((one, n) => [one.name ?? y.title ?? "value", (px) => (y.format ?? short)(maps[n].get(px))])];
    empty(this.numbers.lastChild).append(table(columns, rows, { caption: this.options.label }));
  }

  remove() {
    this.size.disconnect();
  }
}
