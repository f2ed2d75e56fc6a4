// How long a large record takes to open and to scrub: `TILP=.. node large.mjs FOLDER`, FOLDER holding one run.

import { dash, launch } from "./browser.mjs";

const [, , folder] = process.argv;
const server = await dash(folder);
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
const ms = (value) => `${value.toFixed(0)} ms`;
for (const name of ["first", "second"]) {
  const start = performance.now();
  await page.goto("about:blank");
  await page.goto(`${server.url}#run=0&view=learning`);
  await page.waitForFunction(() => Number(document.querySelector("[data-tile=rounds] dd")?.textContent.match(/\d+/)?.[0]) > 1, null, { timeout: 120000 });
  console.log(`${name} opening, learning shown: ${ms(performance.now() - start)}`);
}
await page.goto(`${server.url}#run=0&view=cell&round=100`);
await page.waitForFunction(() => document.querySelectorAll(".cell .node").length > 0);
await page.waitForTimeout(8000);
// Thirty steps by the slider, the frame times while they are drawn.
const frames = await page.evaluate(async () => {
  const times = [];
  const slider = document.querySelector(".timeline input");
  let last = performance.now(), step = 0;
  return new Promise((done) => {
    const tick = () => {
      const now = performance.now();
      times.push(now - last);
      last = now;
      if (times.length % 4 === 0) { step += 1; slider.value = String(100 + step); slider.dispatchEvent(new Event("input")); }
      if (step < 30) requestAnimationFrame(tick); else done(times);
    };
    requestAnimationFrame(tick);
  });
});
frames.sort((a, b) => a - b);
const at = (share) => frames[Math.floor(share * (frames.length - 1))];
console.log(`scrubbing, frame times: median ${ms(at(0.5))}, 95 % ${ms(at(0.95))}, longest ${ms(at(1))}`);
const memory = await page.evaluate(() => performance.memory.usedJSHeapSize);
console.log(`heap of the page: ${(memory / 1e6).toFixed(0)} MB`);
await browser.close();
await server.stop();
process.exit(0);
