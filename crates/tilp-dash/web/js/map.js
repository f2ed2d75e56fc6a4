// The cell from above: terminals where they stand, or on rings by their gain. Drawn on a canvas, so
// that a thousand terminals move from round to round at the pace of the screen.

import { colourOf, rampAt } from "./colour.js";
import { decibels, trimmed, isNumber } from "./format.js";

export const SIZE = 640;
const MIDDLE = SIZE / 2;
const INNER = 62;
const OUTER = MIDDLE - 34;

// Where terminals are on a square of SIZE, and the rings or distances behind them.
export function layout(terminals, places, round) {
  return places ? byPlace(terminals, places, round) : byGain(terminals);
}

// Strong channels near the station; the angle is the terminal's own for the whole run.
function byGain(terminals) {
  let [low, high] = [Infinity, -Infinity];
  for (const { gainDb } of terminals) if (isNumber(gainDb)) [low, high] = [Math.min(low, gainDb), Math.max(high, gainDb)];
  const at = terminals.map((one) => {
    const share = high > low && isNumber(one.gainDb) ? (high - one.gainDb) / (high - low) : 0.5;
    const [radius, angle] = [INNER + share * (OUTER - INNER), one.id * 2.399963];
    return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
  });
  const rings = [0, 0.5, 1].map((share) => [INNER + share * (OUTER - INNER), decibels(high - share * (high - low))]);
  return { at, rings: low > high ? [] : rings, station: [MIDDLE, MIDDLE], walls: [] };
}

function byPlace(terminals, { terminals_m, station_m, walls_m, box }, round) {
  const now = terminals_m[(Math.max(1, round) - 1) % terminals_m.length];
  const scale = (SIZE - 56) / Math.max(box[2] - box[0], box[3] - box[1], 1e-9);
  const [cx, cy] = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  const on = ([x, y]) => [MIDDLE + scale * (x - cx), MIDDLE - scale * (y - cy)];
  const at = terminals.map((one) => (now[one.id] ? on(now[one.id]) : [NaN, NaN]));
  const reach = (SIZE - 56) / 2 / scale;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => one * 3 >= reach) ?? reach;
  const rings = [1, 2, 3].map((n) => [n * step * scale, `${trimmed(n * step)} m`]);
  const walls = walls_m.map(([x0, y0, x1, y1]) => { const [a, b] = [on([x0, y0]), on([x1, y1])]; return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.abs(b[0] - a[0]), Math.abs(b[1] - a[1])]; });
  return { at, rings, station: on(station_m), walls };
}

// The box around all places, walls and the station, once for a run.
export function boxed(map) {
  if (!map) return null;
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  const see = (x, y) => { box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y); };
  see(...map.station_m);
  for (const all of map.terminals_m) for (const [x, y] of all) see(x, y);
  return { ...map, box };
}

export class CellMap {
  // choose(id): a terminal was chosen; say(one): the words for it.
  constructor(choose, say) {
    Object.assign(this, { choose, say, data: null, cursor: null });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "cell";
    Object.entries({ tabindex: "0", role: "application", "aria-roledescription": "map", "aria-label": "Terminals around the base station: arrow keys go from one to the next, Enter chooses" }).forEach(([name, value]) => this.canvas.setAttribute(name, value));
    this.tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    this.said = Object.assign(document.createElement("p"), { className: "hidden-text" });
    this.said.setAttribute("aria-live", "polite");
    this.element = Object.assign(document.createElement("div"), { className: "chart" });
    this.element.append(this.canvas, this.tip, this.said);
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.point(this.nearest(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => { const one = this.nearest(event); if (one) this.choose(one.id); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.point(null));
  }

  // data: terminals, value of each (0 to 1 on the scale, NaN for not known), places, round, band, chosen
  show(data) {
    this.data = { ...data, ...layout(data.terminals, data.places, data.round) };
    Object.assign(this.canvas.dataset, { round: data.round, terminals: data.terminals.length, scheduled: data.terminals.filter((one) => one.scheduled).length, places: data.places ? "known" : "by gain" });
    this.draw();
  }

  nearest(event) {
    if (!this.data) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * SIZE, ((event.clientY - box.top) / box.height) * SIZE];
    let best = null, least = 18;
    this.data.at.forEach(([px, py], n) => { const far = Math.hypot(px - x, py - y); if (far < least) [best, least] = [this.data.terminals[n], far]; });
    return best;
  }

  key(event) {
    if (!this.data?.terminals.length) return;
    const all = this.data.terminals, step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const now = all.findIndex((one) => one.id === this.cursor);
    if (step) {
      event.preventDefault();
      this.point(all[(now + step + all.length) % all.length]);
      this.said.textContent = this.say(this.data.terminals.find((one) => one.id === this.cursor));
    } else if ((event.key === "Enter" || event.key === " ") && now >= 0) {
      event.preventDefault();
      this.choose(this.cursor);
    }
  }

  point(one) {
    const next = one?.id ?? null;
    this.canvas.style.cursor = one ? "pointer" : "";
    if (this.cursor === next) return;
    this.cursor = next;
    this.tip.hidden = !one;
    if (one) {
      const [x, y] = this.data.at[this.data.terminals.indexOf(one)].map((value) => (value / SIZE) * this.canvas.clientWidth);
      this.tip.textContent = this.say(one);
      this.tip.style.left = `${Math.max(0, x > this.canvas.clientWidth / 2 ? x - this.tip.offsetWidth - 14 : x + 14)}px`;
      this.tip.style.top = `${Math.max(0, y - 10)}px`;
    }
    this.draw();
  }

  draw() {
    const { canvas, data } = this;
    const width = canvas.clientWidth;
    if (!width || !data) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const side = Math.round(width * ratio);
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const pen = canvas.getContext("2d");
    pen.setTransform(side / SIZE, 0, 0, side / SIZE, 0, 0);
    pen.clearRect(0, 0, SIZE, SIZE);
    // On a narrow screen marks and words are larger against the map.
    this.grow = Math.min(1.9, Math.max(1, 520 / width));
    this.ground(pen);
    this.links(pen);
    this.nodes(pen, data.terminals.length > 150 ? 5 : 9 * this.grow, data.terminals.length <= 150);
  }

  ground(pen) {
    const { rings, station: [x, y], walls } = this.data;
    pen.fillStyle = colourOf("--grid");
    for (const wall of walls) pen.fillRect(...wall);
    [pen.strokeStyle, pen.lineWidth] = [colourOf("--grid"), 1];
    for (const [radius] of rings) { pen.beginPath(); pen.arc(x, y, radius, 0, 2 * Math.PI); pen.stroke(); }
    pen.fillStyle = colourOf("--soft");
    [pen.font, pen.textAlign] = [`${11 * this.grow}px system-ui, sans-serif`, "center"];
    for (const [radius, text] of rings) if (y - radius > 12) pen.fillText(text, x, y - radius - 4);
  }

  links(pen) {
    const { terminals, at, station, band } = this.data;
    pen.lineCap = "round";
    terminals.forEach((one, n) => {
      if (!(one.scheduled || one.sync > 0) || !isNumber(at[n][0])) return;
      pen.lineWidth = one.scheduled ? 1 + 16 * Math.sqrt(one.bandwidth / (band || 1)) : 2;
      pen.strokeStyle = colourOf(one.late ? "--bad" : one.scheduled ? "--accent" : "--soft");
      pen.globalAlpha = one.late ? 0.9 : one.scheduled ? 0.55 : 0.4;
      pen.setLineDash(one.late ? [4, 4] : one.scheduled ? [] : [1, 5]);
      pen.beginPath();
      pen.moveTo(...station);
      pen.lineTo(...at[n]);
      pen.stroke();
    });
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    pen.fillStyle = colourOf("--ink");
    pen.fillRect(station[0] - 7, station[1] - 7, 14, 14);
  }

  nodes(pen, radius, hasNames) {
    const { terminals, at, values, chosen } = this.data;
    const [card, ink, bad, accent, line] = ["--card", "--ink", "--bad", "--accent", "--line"].map(colourOf);
    const circle = ([x, y], r) => { pen.beginPath(); pen.arc(x, y, r, 0, 2 * Math.PI); };
    terminals.forEach((one, n) => {
      if (!isNumber(at[n][0])) return;
      circle(at[n], radius);
      pen.fillStyle = isNumber(values[n]) ? rampAt(values[n]) : line;
      pen.fill();
      [pen.strokeStyle, pen.lineWidth] = [card, 1.5];
      pen.stroke();
      if (one.scheduled || one.late) {
        circle(at[n], radius + 3);
        [pen.strokeStyle, pen.lineWidth] = [one.late ? bad : ink, 1.6];
        pen.setLineDash(one.late ? [3, 2] : []);
        pen.stroke();
        pen.setLineDash([]);
      }
      if (one.id === chosen || one.id === this.cursor) {
        circle(at[n], radius + 6);
        [pen.strokeStyle, pen.lineWidth] = [accent, 3];
        pen.stroke();
      }
    });
    if (!hasNames) return;
    [pen.font, pen.textAlign, pen.lineWidth, pen.lineJoin] = [`${10 * this.grow}px system-ui, sans-serif`, "center", 2.5, "round"];
    [pen.strokeStyle, pen.fillStyle] = [card, ink];
    terminals.forEach((one, n) => {
      if (!isNumber(at[n][0])) return;
      pen.strokeText(String(one.id), at[n][0], at[n][1] + radius + 4 + 11 * this.grow);
      pen.fillText(String(one.id), at[n][0], at[n][1] + radius + 4 + 11 * this.grow);
    });
  }

  remove() {
    this.size.disconnect();
  }
}
