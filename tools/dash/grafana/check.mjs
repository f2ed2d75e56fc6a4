// What must hold of ../grafana.json. Run by ./check.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const TEXT = readFileSync("../grafana.json", "utf8");
const dashboard = JSON.parse(TEXT);
const folder = mkdtempSync(join(tmpdir(), "tilp-grafana-"));
const children = [];
process.on("exit", () => { for (const child of children) child.kill("SIGKILL"); rmSync(folder, { recursive: true, force: true }); });

// The dashboard as a constant of the checked type: unknown fields and values do not compile.
function compiles(text) {
  writeFileSync("dashboard.ts", `import type { Checked } from "./types";\nexport const dashboard: Checked = ${text};\n`);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"];
  const done = spawnSync("node_modules/.bin/tsc", [...options, "dashboard.ts", "types.ts"], { encoding: "utf8" });
  rmSync("dashboard.ts");
  return done.status === 0 ? null : done.stdout;
}

assert.equal(compiles(TEXT), null);
for (const [from, to] of [["timeseries", "timelines"], ["spanNulls", "spanNull"], ["\"multi\"", "\"many\""]]) assert.ok(compiles(TEXT.replaceAll(from, to)), `${to} is an error`);
console.log("the file has Grafana's types");

const ids = dashboard.panels.map((panel) => panel.id);
assert.equal(new Set(ids).size, ids.length, "ids of panels differ");
const covers = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
for (const [n, { gridPos: a }] of dashboard.panels.entries()) {
  assert.ok(a.x + a.w <= 24, "the grid has 24 columns");
  for (const { gridPos: b } of dashboard.panels.slice(n + 1)) assert.ok(!covers(a, b), "no panel covers another");
}
const variables = new Set(dashboard.templating.list.map((one) => one.name));
for (const [, name] of TEXT.matchAll(/\$\{?(\w+)/g)) assert.ok(variables.has(name) || name.startsWith("__"), `the variable ${name} is declared`);

// A run, a dashboard that serves its numbers, and a Prometheus that reads them.
const ran = spawnSync(process.env.TILP, ["run", "tiny", "--quiet", "--rounds", "10", "--out", join(folder, "run")], { encoding: "utf8" });
assert.equal(ran.status, 0, ran.stderr);
function start(program, words, stdio) {
  const child = spawn(program, words, { stdio });
  children.push(child);
  return child;
}
const served = start(process.env.TILP, ["dash", folder, "--listen", "127.0.0.1:0"], ["ignore", "pipe", "inherit"]);
const [line] = await once(served.stdout.setEncoding("utf8"), "data");
const { host } = new URL(line.match(/http:\S+/)[0]);
const port = 20000 + Math.floor(20000 * Math.random());
writeFileSync(join(folder, "prometheus.yml"), `scrape_configs:\n- job_name: tilp\n  scrape_interval: 1s\n  static_configs:\n  - targets: ["${host}"]\n`);
start("prometheus", [`--config.file=${join(folder, "prometheus.yml")}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=127.0.0.1:${port}`, "--log.level=error"], ["ignore", "ignore", "inherit"]);
const ask = async (path, query) => (await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(query)}`)).json()).data;

// Waits for the first numbers.
const end = Date.now() + 30000;
for (;;) {
  const found = await ask("query", { query: "tilp_round" }).catch(() => null);
  if (found?.result.length) break;
  assert.ok(Date.now() < end, "Prometheus reads /metrics");
  await new Promise((done) => setTimeout(done, 500));
}
const all = (expr) => expr.replace(/\$(scenario|method)/g, ".*");
for (const { title, targets } of dashboard.panels) for (const { expr } of targets) {
  const { result } = await ask("query", { query: all(expr) });
  assert.equal(result.length, 1, `${title}: ${expr}`);
  assert.ok(Number.isFinite(Number(result[0].value[1])) && result[0].metric.run && result[0].metric.method === "tilp", title);
}
for (const { type, name, query } of dashboard.templating.list.filter((one) => one.type === "query")) {
  const [, metric, label] = query.match(/^label_values\((\w+), (\w+)\)$/);
  const expected = { scenario: "tiny", method: "tilp" }[name];
  assert.deepEqual(await ask(`label/${label}/values`, { "match[]": metric }), [expected], `${type} ${name}`);
}
console.log("every query has an answer in Prometheus");
process.exit(0);
