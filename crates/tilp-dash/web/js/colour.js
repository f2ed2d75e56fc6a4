// Colours of the theme. Series differ by dash and label too, so that no colour stands alone.

export const series = (n) => `var(--c${n % 8})`;
export const dashes = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 3", "12 3", "6 2 2 2"];

function parse(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

let stops = null;
let known = new Map();
let steps = null;
export function forgetColours() {
  stops = null;
  steps = null;
  known = new Map();
}

// A colour of the theme, as a canvas needs it.
export function colourOf(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return known.get(name);
}

// Low, middle, high: orange over sand to blue, which all common kinds of sight tell apart.
export function ramp(share) {
  if (!Number.isFinite(share)) return "var(--line)";
  stops ??= ["--low", "--mid", "--high"].map(parse);
  const at = Math.min(1, Math.max(0, share)) * 2;
  const [from, to] = at < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
  const mixed = from.map((one, n) => Math.round(one + (to[n] - one) * (at % 1 || (at === 2 ? 1 : 0))));
  return `rgb(${mixed.join(" ")})`;
}

// The same in 128 steps, for thousands of terminals at a time.
export function rampAt(share) {
  steps ??= Array.from({ length: 128 }, (_, n) => ramp(n / 127));
  return steps[Math.round(127 * Math.min(1, Math.max(0, share)))];
}
