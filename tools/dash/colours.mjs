// How far apart the colours of the page are for eyes that see red, green or blue less: `node colours.mjs`. Prints
// the least distance (CIE 1976, about 2 is just noticed) of each set and fails below LEAST.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const LEAST = 10;
const css = readFileSync(new URL("../../crates/tilp-dash/web/style.css", import.meta.url), "utf8");
const themes = { light: css.slice(0, css.indexOf("@media")), dark: css.slice(css.indexOf(':root[data-theme="dark"]')) };
// What differs in colour alone: the first series (others have dashes), parts of a bar, the scale, a scene.
const SETS = { series: ["--c0", "--c1", "--c2"], bars: ["--c7", "--c4", "--c0", "--c2", "--c3"], scale: ["--low", "--mid", "--high"], scene: ["--c7", "--c1", "--c5", "--c2"] };
// Machado, Oliveira and Fernandes 2009, full strength, on linear red, green and blue.
const EYES = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, one, n) => sum + one * vector[n], 0));
const XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
function lab(rgb) {
  const f = (t) => (t > 216 / 24389 ? Math.cbrt(t) : (t * 24389 / 27 + 16) / 116);
  const [x, y, z] = times(XYZ, rgb).map((value, n) => f(Math.max(0, value) / [0.95047, 1, 1.08883][n]));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
for (const [theme, text] of Object.entries(themes)) {
  const colour = (name) => { const hex = text.match(new RegExp(`${name}: #(\\w{6})`))[1]; return [0, 2, 4].map((at) => linear(parseInt(hex.slice(at, at + 2), 16) / 255)); };
  for (const [set, names] of Object.entries(SETS)) {
    const found = Object.entries(EYES).map(([eye, matrix]) => {
      const seen = names.map((name) => lab(times(matrix, colour(name)).map((value) => Math.min(1, Math.max(0, value)))));
      let least = Infinity;
      for (let a = 0; a < seen.length; a += 1) for (let b = a + 1; b < seen.length; b += 1) least = Math.min(least, Math.hypot(...seen[a].map((value, n) => value - seen[b][n])));
      return [eye, least];
    });
    console.log(`${theme}, ${set}: ${found.map(([eye, least]) => `${eye} ${least.toFixed(0)}`).join(", ")}`);
    for (const [eye, least] of found) assert.ok(least >= LEAST, `${theme}, ${set}: ${eye} ${least.toFixed(1)}`);
  }
}
