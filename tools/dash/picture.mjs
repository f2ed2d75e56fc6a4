// The picture of the README: the cell of a run, half way. Run by ./picture.

import { statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { dash, launch } from "./browser.mjs";

const [, , run, out] = process.argv;
// The folder above, so that the run has its name.
const server = await dash(dirname(run));
const id = encodeURIComponent(`0/${basename(run)}`);
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1440, height: 940 }, colorScheme: "light" });
await page.goto(`${server.url}#run=${id}&view=cell`);
await page.waitForFunction(() => Number(document.querySelector(".cell")?.dataset.terminals) > 0);
const last = await page.evaluate(() => Number(document.querySelector(".timeline input").max));
// A round in which terminals train and none uploads for an aggregation: the plainest picture.
await page.goto(`${server.url}#run=${id}&view=cell&round=${Math.max(1, Math.floor(last * 0.8) - 3)}`);
await page.waitForTimeout(1500);
await page.screenshot({ path: out });
await browser.close();
await server.stop();
const size = statSync(out).size;
console.log(`${out}: ${Math.round(size / 1024)} KB`);
if (size > 300 * 1024) throw new Error("the picture has more than 300 KB");
process.exit(0);
