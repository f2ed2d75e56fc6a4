// Makes a large record out of a small one: `node record.mjs RUN OUT ROUNDS TERMINALS`. Rounds and terminals of
// RUN are repeated, with gains of their own. Nothing has really happened that way: it is for measurements of the page.

import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";

const [, , run, out, ...numbers] = process.argv;
const [rounds, terminals] = numbers.map(Number);
const read = (name) => readFileSync(join(run, name), "utf8");
const events = read("events.jsonl").trim().split("\n").map((line) => JSON.parse(line));
const header = events[0];
const of = (kind) => events.filter((one) => one.kind === kind);
const [decided, executed, measured] = [of("decided"), of("executed"), of("measured")];

// Columns of as many terminals: entries are repeated, ids go on, gains spread by 30 dB.
function widened(columns) {
  const wide = {};
  for (const [name, column] of Object.entries(columns)) {
    wide[name] = Array.isArray(column) ? Array.from({ length: terminals }, (_, n) => column[n % column.length]) : column;
  }
  if (wide.terminal) wide.terminal = Array.from({ length: terminals }, (_, n) => n);
  if (wide.gain) wide.gain = wide.gain.map((gain, n) => gain * 10 ** (3 * ((n * 0.618034) % 1) - 1.5));
  return wide;
}

const file = (name) => createWriteStream(join(out, name));
mkdirSync(out, { recursive: true });
const stream = file("events.jsonl");
const write = async (event) => { if (!stream.write(`${JSON.stringify(event)}\n`)) await once(stream, "drain"); };
await write(header);
await write({ ...measured[0], id: [0, 1], terminals: widened(measured[0].terminals) });
for (let round = 1; round <= rounds; round += 1) {
  const n = (round - 1) % Math.min(decided.length, executed.length);
  const [plan, outcome] = [structuredClone(decided[n]), structuredClone(executed[n])];
  plan.id[0] = outcome.id[0] = round;
  plan.terminals = widened(plan.terminals);
  plan.order = plan.terminals.terminal.filter((_, at) => plan.terminals.scheduled[at]);
  if (plan.rationale) plan.rationale.terminals = widened(plan.rationale.terminals);
  outcome.terminals = widened(outcome.terminals);
  if (outcome.books) { outcome.books.terminals = widened(outcome.books.terminals); outcome.books.losses &&= widened(outcome.books.losses); }
  await write(plan);
  await write(outcome);
  if (round % 10 === 0) await write({ ...measured[1 % measured.length], id: [round, 2], terminals: widened(measured[1 % measured.length].terminals) });
}
stream.end();
await once(stream, "finish");
const [names, ...rows] = read("rounds.csv").trim().split("\n");
const at = names.split(",").indexOf("round");
const row = (round) => { const cells = rows[(round - 1) % rows.length].split(","); cells[at] = String(round); return cells.join(","); };
writeFileSync(join(out, "rounds.csv"), `${[names, ...Array.from({ length: rounds }, (_, n) => row(n + 1))].join("\n")}\n`);
for (const name of ["manifest.json", "scenario.toml"]) writeFileSync(join(out, name), read(name));
