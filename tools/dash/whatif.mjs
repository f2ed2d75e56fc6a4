// How long the first answer of What if takes: `TILP=.. node whatif.mjs FOLDER ROUND..`, FOLDER being a run of tilp. Every
// round is asked of a dashboard that was just started; then once more with another deadline.

import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { dash, scratch } from "./browser.mjs";

const [, , run, ...rounds] = process.argv;

async function answered(server, query) {
  const start = performance.now();
  for (;;) {
    const answer = await fetch(`${server.url}api/whatif?run=0&ahead=12&${query}`);
    if (!answer.ok) throw new Error(await answer.text());
    const found = await answer.json();
    if (!found.working) return { seconds: (performance.now() - start) / 1000, differing: found.differing };
  }
}

// The run as it is, and without the states that it has kept.
const bare = join(scratch(), "run");
cpSync(run, bare, { recursive: true });
rmSync(join(bare, "checkpoint"), { recursive: true });
for (const [folder, name] of [[run, "with the kept states"], [bare, "without"]]) {
  for (const round of rounds) {
    const server = await dash(scratch(), 0, folder);
    const first = await answered(server, `round=${round}`);
    const changed = await answered(server, `round=${round}&set=${encodeURIComponent("limits.deadline_s=3")}`);
    console.log(`round ${round}, ${name}: ${first.seconds.toFixed(1)} s, with another deadline then ${changed.seconds.toFixed(2)} s; ${first.differing} rounds repeated otherwise`);
    await server.stop();
  }
}
process.exit(0);
