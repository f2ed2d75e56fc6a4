// A robot and its work as solids on a canvas, seen from a camera that the visitor turns.

import { colourOf } from "./colour.js";

const ROUND = 18; // corners of a circle
const PARTS = { hand: "--c7", object: "--c1", fixture: "--c5", mark: "--c2" };

// The corners of the faces of a solid, each face turned outwards.
function facesOf({ form, sizes }) {
  if (form === "box") {
    const faces = [];
    for (let axis = 0; axis < 3; axis += 1) {
      for (const side of [1, -1]) {
        const [u, v] = [(axis + 1) % 3, (axis + 2) % 3];
        const corner = (a, b) => { const point = [0, 0, 0]; point[axis] = side * sizes[axis]; point[u] = a * sizes[u]; point[v] = b * side * sizes[v]; return point; };
        faces.push([corner(1, 1), corner(-1, 1), corner(-1, -1), corner(1, -1)]);
      }
    }
    return faces;
  }
  const [radius, half] = sizes;
  const rim = (n, y) => [radius * Math.sin((2 * Math.PI * n) / ROUND), y, radius * Math.cos((2 * Math.PI * n) / ROUND)];
  const all = Array.from({ length: ROUND }, (_, n) => n);
  return [all.map((n) => rim(n, half)), all.map((n) => rim(-n, -half)),
    ...all.map((n) => [rim(n, half), rim(n, -half), rim(n + 1, -half), rim(n + 1, half)])];
}

// A point turned by a quaternion and moved.
function placed([x, y, z], [px, py, pz, qx, qy, qz, qw]) {
  const [tx, ty, tz] = [2 * (qy * z - qz * y), 2 * (qz * x - qx * z), 2 * (qx * y - qy * x)];
  return [px + x + qw * tx + qy * tz - qz * ty, py + y + qw * ty + qz * tx - qx * tz, pz + z + qw * tz + qx * ty - qy * tx];
}

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const length = Math.hypot(...a) || 1; return [a[0] / length, a[1] / length, a[2] / length]; };

export class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.episode = null;
    this.step = 0;
    [this.yaw, this.pitch] = [-0.62, 0.5];
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(canvas);
    let from = null;
    canvas.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY, this.yaw, this.pitch]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => { if (from) this.turn(from[2] - (event.clientX - from[0]) / 160, from[3] + (event.clientY - from[1]) / 200); });
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => { from = null; });
  }

  turn(yaw, pitch) {
    [this.yaw, this.pitch] = [yaw, Math.min(1.5, Math.max(0.08, pitch))];
    this.draw();
  }

  show(episode, step) {
    if (episode !== this.episode) {
      this.episode = episode;
      this.faces = episode?.solids.map(facesOf);
      this.middle = this.middleOf(episode);
    }
    this.step = step;
    this.draw();
  }

  // The middle of where hand and object go.
  middleOf(episode) {
    if (!episode) return [0, 0, 0.1];
    const all = [...episode.hand, ...episode.object, ...episode.goal];
    return [0, 1, 2].map((axis) => { const own = all.map((point) => point[axis]); return (Math.min(...own) + Math.max(...own)) / 2; });
  }

  draw() {
    const { canvas, episode } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!episode) return;
    this.look(width, height);
    this.table(pen);
    const solids = episode.solids.map((solid, n) => ({ ...solid, faces: this.faces[n].map((face) => face.map((point) => placed(point, episode.poses[this.step][n]))) }));
    this.shadow(pen, solids);
    this.path(pen, episode.object.slice(0, this.step + 1), PARTS.object, [3, 4]);
    this.path(pen, episode.hand.slice(0, this.step + 1), PARTS.hand, []);
    this.solids(pen, solids);
    this.goal(pen, episode.goal[this.step]);
  }

  // The camera: where it stands, and its axes.
  look(width, height) {
    const away = [Math.cos(this.pitch) * Math.sin(this.yaw), -Math.cos(this.pitch) * Math.cos(this.yaw), Math.sin(this.pitch)];
    const distance = 1.5;
    this.eye = this.middle.map((value, axis) => value + distance * away[axis]);
    this.forward = away.map((value) => -value);
    this.right = unit(cross(this.forward, [0, 0, 1]));
    this.up = cross(this.right, this.forward);
    const scale = Math.min(width / 0.86, height / 0.58) * distance;
    this.project = (point) => {
      const way = minus(point, this.eye), depth = Math.max(0.05, dot(way, this.forward));
      return [width / 2 + (scale * dot(way, this.right)) / depth, 0.46 * height - (scale * dot(way, this.up)) / depth];
    };
  }

  line(pen, points, isClosed = true) {
    points.forEach((point, n) => { const [x, y] = this.project(point); if (n) pen.lineTo(x, y); else pen.moveTo(x, y); });
    if (isClosed) pen.closePath();
  }

  table(pen) {
    const [cx, cy] = this.middle, reach = 0.33;
    pen.beginPath();
    this.line(pen, [[cx - reach, cy - reach, 0], [cx + reach, cy - reach, 0], [cx + reach, cy + reach, 0], [cx - reach, cy + reach, 0]]);
    pen.fillStyle = colourOf("--bg");
    pen.fill();
    pen.beginPath();
    const first = (value) => Math.ceil((value - reach) * 10) / 10;
    for (let x = first(cx); x <= cx + reach; x += 0.1) this.line(pen, [[x, cy - reach, 0], [x, cy + reach, 0]], false);
    for (let y = first(cy); y <= cy + reach; y += 0.1) this.line(pen, [[cx - reach, y, 0], [cx + reach, y, 0]], false);
    [pen.strokeStyle, pen.lineWidth] = [colourOf("--line"), 1];
    pen.stroke();
  }

  // Straight down: the faces that look up, as one area.
  shadow(pen, solids) {
    pen.beginPath();
    for (const { part, faces } of solids) {
      if (part === "mark") continue;
      for (const face of faces) {
        const normal = cross(minus(face[1], face[0]), minus(face[2], face[0]));
        if (normal[2] > 0) this.line(pen, face.map(([x, y]) => [x, y, 0]));
      }
    }
    pen.fillStyle = "rgb(0 0 0 / 16%)";
    pen.fill();
  }

  path(pen, points, colour, dashes) {
    if (points.length < 2) return;
    pen.beginPath();
    this.line(pen, points, false);
    [pen.strokeStyle, pen.lineWidth] = [colourOf(colour), 1.4];
    pen.setLineDash(dashes);
    pen.stroke();
    pen.setLineDash([]);
  }

  // Faces that look at the camera, far ones first.
  solids(pen, solids) {
    const seen = [];
    const light = unit([-0.35, -0.3, 0.9]);
    for (const { part, faces } of solids) {
      for (const face of faces) {
        const normal = unit(cross(minus(face[1], face[0]), minus(face[2], face[0])));
        const middle = [0, 1, 2].map((axis) => face.reduce((sum, point) => sum + point[axis], 0) / face.length);
        const way = minus(middle, this.eye);
        if (dot(normal, way) < 0) seen.push({ face, part, far: Math.hypot(...way), light: dot(normal, light) });
      }
    }
    seen.sort((a, b) => b.far - a.far);
    pen.lineJoin = "round";
    for (const one of seen) {
      pen.beginPath();
      this.line(pen, one.face);
      pen.fillStyle = shaded(colourOf(PARTS[one.part]), one.light);
      [pen.strokeStyle, pen.lineWidth] = ["rgb(0 0 0 / 35%)", 0.6];
      pen.fill();
      pen.stroke();
    }
  }

  goal(pen, point) {
    const [x, y] = this.project(point);
    pen.beginPath();
    pen.arc(x, y, 5, 0, 2 * Math.PI);
    pen.moveTo(x - 9, y); pen.lineTo(x + 9, y); pen.moveTo(x, y - 9); pen.lineTo(x, y + 9);
    [pen.strokeStyle, pen.lineWidth] = [colourOf("--c2"), 1.8];
    pen.stroke();
  }

  remove() {
    this.size.disconnect();
  }
}

// A colour in the light of a lamp above.
function shaded(colour, light) {
  const share = 0.7 + 0.3 * Math.max(-0.4, light);
  return `rgb(${[1, 3, 5].map((at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * share)).join(" ")})`;
}
