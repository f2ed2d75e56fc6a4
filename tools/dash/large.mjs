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
await page.waitForFunction(() => Number(document.querySelector(".cell")?.dataset.terminals) > 0);
await page.waitForTimeout(Number(process.env.REST ?? 4000));
// The slider moves by a round in every frame, as by a hand that drags it.
const { times, drawn } = await page.evaluate(async () => {
  const times = [], drawn = new Set();
  const [slider, map] = [document.querySelector(".timeline input"), document.querySelector(".cell")];
  let last = performance.now();
  return new Promise((done) => {
    const tick = () => {
      const now = performance.now();
      times.push(now - last);
      last = now;
      drawn.add(map.dataset.round);
      slider.value = String(100 + times.length);
      slider.dispatchEvent(new Event("input"));
      if (times.length < 240) requestAnimationFrame(tick); else done({ times, drawn: drawn.size });
    };
    requestAnimationFrame(tick);
  });
});
const seconds = times.reduce((a, b) => a + b, 0) / 1000;
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor(share * (times.length - 1))];
console.log(`scrubbing, frame times: median ${ms(at(0.5))}, 95 % ${ms(at(0.95))}, longest ${ms(at(1))}; ${(drawn / seconds).toFixed(0)} rounds drawn a second`);
const memory = await page.evaluate(() => performance.memory.usedJSHeapSize);
console.log(`heap of the page: ${(memory / 1e6).toFixed(0)} MB`);
await browser.close();
await server.stop();
process.exit(0);
