// Numbers as people read them.

const DASH = "–";

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// Numbers of events that JSON cannot have are texts.
export function num(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return typeof value === "number" ? value : NaN;
}

export function fixed(value, digits) {
  return isNumber(value) ? value.toFixed(digits) : DASH;
}

// About three significant digits.
export function short(value) {
  if (!isNumber(value)) return value === Infinity ? "∞" : DASH;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  if (size >= 0.001) return value.toPrecision(3).replace(/\.?0+$/, "");
  return value.toExponential(1);
}

// The same without zeros at the end: for axes.
export function trimmed(value) {
  const text = short(value);
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

export const count = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en") : DASH);

export function percent(value, digits = 1) {
  return isNumber(value) ? `${(100 * value).toFixed(digits)} %` : DASH;
}

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];

export function unit(value, name) {
  if (!isNumber(value)) return DASH;
  if (value === 0) return `0 ${name}`;
  const [size, prefix] = PREFIXES.find(([size]) => Math.abs(value) >= size) ?? PREFIXES[PREFIXES.length - 1];
  return `${short(value / size)} ${prefix}${name}`;
}

export function seconds(value) {
  if (!isNumber(value)) return DASH;
  if (value < 1) return unit(value, "s");
  if (value < 1000) return `${short(value)} s`;
  return `${short(value)} s`;
}

export const joules = (value) => unit(value, "J");
export const bytes = (value) => unit(value, "B");
export const hertz = (value) => unit(value, "Hz");
export const watts = (value) => unit(value, "W");
export const decibels = (value) => (isNumber(value) ? `${value.toFixed(1)} dB` : DASH);
export const toDb = (value) => 10 * Math.log10(value);

// Round numbers that divide an interval into a few steps.
export function ticks(low, high, count, whole = false) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const steps = whole ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  const step = Math.max(whole ? 1 : 0, steps.map((one) => one * power).find((one) => one >= raw * 0.999));
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n += 1) found.push(n * step || 0);
  return found;
}
