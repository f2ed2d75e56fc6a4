// What fifty pages cost: `TILP=.. node streams.mjs [SCENARIO] [ROUNDS] [CLIENTS]` follows a live run with so many
// event streams and compares the processor time of the dashboard with that of the run. Linux only.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { dash, scratch, start } from "./browser.mjs";

const [, , scenario = "tiny", rounds = "400", clients = "50"] = process.argv;
const folder = scratch();
// Processor time of a process in seconds: clock ticks of a hundredth.
const used = (pid) => { const words = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" "); return (Number(words[11]) + Number(words[12])) / 100; };
const server = await dash(folder);
const run = start(folder, "run", scenario, "--rounds", rounds, "--out", "live", "--quiet");
const ended = once(run, "exit");
let bytes = 0, open = 0, last = 0;
for (let n = 0; n < Number(clients); n += 1) {
  get(`${server.url}api/stream?run=0/live`, (answer) => {
    open += 1;
    answer.on("data", (chunk) => { bytes += chunk.length; });
  }).on("error", () => {});
}
const watch = setInterval(() => { try { last = used(run.pid); } catch { /* it has ended */ } }, 50);
await ended;
clearInterval(watch);
await new Promise((done) => setTimeout(done, 600));
const dashboard = used(server.pid);
console.log(`${open} streams, ${(bytes / 1e6).toFixed(1)} MB; the run took ${last.toFixed(2)} s of processor time, the dashboard ${dashboard.toFixed(2)} s: ${((100 * dashboard) / last).toFixed(1)} %`);
await server.stop();
process.exit(0);
