// What must hold of the page. Run by ./check.

import assert from "node:assert/strict";
import { readFileSync, mkdirSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { dash, launch, scratch, start, tilp } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["learning", "cell", "round", "why", "robots", "twin", "compare", "whatif"];
const SHORT = ["--quiet", "--set", "tasks.episode_steps=15", "--set", "evaluation.final_episodes=1"];
const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

const folder = scratch();
const finished = tilp(folder, "run", "tiny", "--out", "finished", "--quiet", "--format", "json");
tilp(folder, "compare", "tiny", "--methods", "random,deficit", "--seeds", "0..2", "--rounds", "12", "--out", "study", ...SHORT);
// Names with markup: they must stay text.
const evil = `<img src=x onerror="window.pwned=1">`;
mkdirSync(join(folder, evil.replaceAll("/", "")), { recursive: true });
writeFileSync(join(folder, evil, "manifest.json"), JSON.stringify({ method: evil, scenario: evil, seed: evil }));
writeFileSync(join(folder, evil, "events.jsonl"), `{"kind":"header","id":[0,0],"format":"tilp-events","version":1,"method":${JSON.stringify(evil)},"seed":1,"scenario_hash":"x","tasks":[${JSON.stringify(evil)}]}\n${evil}\n`);
// A study of 200 runs: four methods, fifty seeds.
mkdirSync(join(folder, "big"));
writeFileSync(join(folder, "big/study.json"), "{}");
const big = ["tilp", "random", "deficit", "own"].flatMap((method, n) => Array.from({ length: 50 }, (_, seed) => ({ method, seed, success: 0.5 + 0.1 * n + 0.001 * seed })));
writeFileSync(join(folder, "big/runs.jsonl"), big.map(({ method, seed, success }) => JSON.stringify({ point: "default", method, seed, summary: { success_final: success, energy_total_j: 10, success_curve: [[0, 0.1], [10, success]] }, curve: [{ round: 10, success, clock_s: 5, energy_j: 10, volume_bytes: 7 }] })).join("\n"));
say("runs are there");

let server = await dash(folder);
let near = null; // a second one, which shows the runs of the first
const browser = await launch();
const problems = [];

async function open(width, scheme = "light") {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  page.allowed = [];
  page.on("console", (one) => { if (["error", "warning"].includes(one.type()) && !page.allowed.some((text) => one.text().includes(text))) problems.push(`console: ${one.text()}`); });
  page.on("pageerror", (error) => problems.push(`page: ${error.message}`));
  page.on("response", (answer) => { if (answer.status() >= 400) problems.push(`${answer.status()} for ${answer.url()}`); });
  page.on("request", (request) => { if (![server.url, near?.url].some((own) => own && request.url().startsWith(own)) && !request.url().startsWith("data:")) problems.push(`request to ${request.url()}`); });
  return page;
}

const at = (run, view, more = "") => `${server.url}#run=${encodeURIComponent(run)}&view=${view}${more}`;
const text = (page, selector) => page.locator(selector).first().innerText();

async function shoot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) });
}

// A finished run: the numbers of the files, in every view, at three widths.
const summary = JSON.parse(finished);
const csv = readFileSync(join(folder, "finished/rounds.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
const column = (name) => csv.slice(1).map((row) => Number(row[csv[0].indexOf(name)]));
const events = readFileSync(join(folder, "finished/events.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const page = await open(1300);
await page.goto(at("0/finished", "learning"));
await page.locator("[data-tile=success] dd").waitFor();
await page.waitForFunction(() => document.querySelector("[data-tile=success] dd")?.textContent.includes("%"));
const percent = (value) => `${(100 * value).toFixed(1)} %`;
assert.ok((await text(page, "[data-tile=success] dd")).startsWith(percent(summary.success_final)));
assert.ok((await text(page, "[data-tile=success] .note")).includes(percent(summary.success_final_interval[0])));
assert.ok((await text(page, "[data-tile=far] dd")).startsWith(percent(summary.success_far)));
assert.ok((await text(page, "[data-tile=worst] dd")).startsWith(percent(summary.success_worst_task)));
assert.ok((await text(page, "[data-tile=rounds] dd")).startsWith(String(summary.rounds)));
assert.ok((await text(page, "[data-tile=energy] dd")).startsWith(`${summary.energy_total_j.toFixed(2)} J`));
assert.ok((await text(page, "[data-tile=late] dd")).startsWith(String(summary.late_total)));
assert.ok((await text(page, "[data-tile=time] dd")).startsWith(summary.clock_total_s.toFixed(1)));
await page.locator("section[aria-label=Latency] summary").click();
await page.locator("section[aria-label=Latency] tbody tr").first().waitFor();
assert.equal(await page.locator("section[aria-label=Latency] tbody tr").count(), summary.rounds);
assert.equal(Number(await page.locator("section[aria-label=Latency] tbody tr:nth-child(3) td:nth-child(2)").innerText()).toPrecision(2), column("latency_s")[2].toPrecision(2));
say("learning has the numbers of summary.json and rounds.csv");

const decided = events.find((one) => one.kind === "decided" && one.id[0] === 7);
await page.goto(at("0/finished", "cell", "&round=7&terminal=2"));
await page.waitForFunction(() => document.querySelector(".cell")?.dataset.terminals === "6" && document.querySelector("section[aria-label='Terminal 2'] svg path"));
assert.equal(Number(await page.locator(".cell").getAttribute("data-scheduled")), decided.terminals.scheduled.filter(Boolean).length);
await page.waitForFunction(() => document.querySelector(".cell").dataset.places === "known");
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Terminals] tbody tr").length === 6);
await page.goto(at("0/finished", "round", "&round=7"));
await page.waitForFunction(() => document.querySelectorAll(".gantt .predicted").length > 0);
assert.equal(await page.locator(".gantt .predicted").count(), decided.terminals.scheduled.filter(Boolean).length);
await page.goto(at("0/finished", "why", "&round=7"));
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Reasons] tbody tr").length === 6);
await page.goto(at("0/finished", "twin"));
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Delay] .dots").length > 0);
const turns = events.filter((one) => one.kind === "decided").flatMap((one) => one.terminals.scheduled).filter(Boolean).length;
assert.ok((await page.locator(".tiles").innerText()).includes(`of ${turns} turns`));
const twins = JSON.parse(tilp(folder, "twin", "finished", "--format", "json")).sub_twins;
await page.waitForFunction((n) => document.querySelectorAll("[data-twin]").length === 4 * n, twins.length);
for (const one of twins) for (const name of ["error_before", "error_after", "coverage_before", "coverage_after"]) assert.equal(await page.locator(`[data-twin="${one.name} ${name}"]`).getAttribute("title"), String(one[name]), `${one.name} ${name}`);
await page.goto(at("0/finished", "compare"));
await page.locator("label:has-text('Compare') select").selectOption("study 0/study");
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Methods] tbody tr").length === 2);
await page.locator("label:has-text('Compare') select").selectOption("study 0/big");
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Methods] tbody tr").length === 4);
const row = await page.locator("section[aria-label=Methods] tbody tr").filter({ hasText: "deficit" }).innerText();
const mean = big.filter((one) => one.method === "deficit").reduce((sum, one) => sum + one.success, 0) / 50;
assert.ok(row.includes(`${(100 * mean).toFixed(1)} %`), row);
const table = readFileSync(join(folder, "study/table.csv"), "utf8");
assert.ok(table.includes("random") && table.includes("deficit"));
say("cell, round, why, twin and compare show what the events say");

// Robots: an episode is run again; the outcomes of all of a terminal are those of the record.
const last = events.findLast((one) => one.kind === "finished").terminals;
const before = events.find((one) => one.kind === "measured" && one.id[0] === 0).terminals;
for (const [policy, counts] of [["trained", last], ["base", before]]) {
  for (const n of [0, 3]) {
    await page.goto(at("0/finished", "robots", `&terminal=${counts.terminal[n]}`));
    await page.locator("label:has-text('Policy') select").selectOption(policy);
    await page.waitForFunction((terminal) => document.querySelector("#robots-count")?.textContent.includes("the record has") && document.querySelector("section[aria-label=Episode] [role=status]").textContent.includes(`Terminal ${terminal},`), counts.terminal[n]);
    const line = await text(page, "#robots-count");
    const [k, m] = [counts.successes[n], counts.episodes[n]];
    assert.ok(line.startsWith(`${k} of ${m} `) && line.includes(`the record has ${k} of ${m}`), line);
  }
}
const drawn = () => page.evaluate(() => document.querySelector(".scene").toDataURL());
await page.locator(".player button").click();
await page.locator(".player input").fill("0");
const first = await drawn();
await page.locator(".player input").press("End");
assert.notEqual(await drawn(), first, "the scene moves");
say("robots: episodes end as the record says");

// What if: without a change the plan of the record; with one that of a branch. Both to the last digit.
const planned = (folder, round) => readFileSync(join(folder, "events.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line)).find((one) => one.kind === "decided" && one.id[0] === round).rationale;
const expects = (which) => page.evaluate((which) => Object.fromEntries([...document.querySelectorAll(`[data-${which}]`)].map((one) => [one.dataset[which], Number(one.title)])), which);
const agree = (found, rationale) => { for (const name of ["latency_s", "duration_s", "energy_j", "loss_decrease", "success_after", "violation", "planned_return"]) assert.equal(found[name], rationale[name], name); };
await page.goto(at("0/finished", "whatif", "&round=7"));
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.startsWith("Round 8. Nothing is changed."), null, { timeout: 60000 });
agree(await expects("plan"), planned(join(folder, "finished"), 8));
await page.locator("#edit-terminal").selectOption(String(decided.terminals.terminal[0]));
await page.locator("#edit-state").selectOption("gone");
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.includes("with the change"));
await page.waitForFunction(() => document.querySelector("section[aria-label='Terminals that differ'] tbody")?.textContent.includes("not there"));
await page.locator(".edits button").click();
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.includes("Nothing is changed."));
say("what if: the plan is that of the record");

// What if: the command that the page shows makes a branch, which the page finds.
await page.goto(at("0/finished", "whatif", "&round=7"));
await page.locator("[id='whatif-limits.deadline_s']").fill("0.5");
const shown = await text(page, "#whatif-command");
assert.ok(shown.endsWith("--round 7 --set limits.deadline_s=0.5"), shown);
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.includes("with the change"));
tilp(folder, ...shown.split(" ").slice(1).map((word) => word.replace(/^.*finished$/, "finished")), "--quiet");
await page.waitForFunction(() => document.querySelector("section[aria-label='Branches of this run']").textContent.includes("finished-branch-7"), null, { timeout: 10000 });
await page.goto(at("0/finished", "whatif", "&round=7"));
await page.locator("[id='whatif-limits.deadline_s']").fill("0.5");
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.includes("with the change"));
agree(await expects("changed"), planned(join(folder, "finished-branch-7"), 8));
say("a branch is found, and was predicted");

// One run as one file, without a server.
tilp(folder, "dash", "finished", "--export", "page.html");
const file = await browser.newPage({ viewport: { width: 1300, height: 900 } });
file.on("console", (one) => { if (["error", "warning"].includes(one.type())) problems.push(`file: ${one.text()}`); });
file.on("pageerror", (error) => problems.push(`file: ${error.message}`));
file.on("request", (request) => { if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) problems.push(`the file asks for ${request.url()}`); });
for (const view of ["learning", "cell", "round", "why", "robots", "twin", "whatif"]) {
  await file.goto(`file://${join(folder, "page.html")}#view=${view}&round=7&terminal=1`);
  await file.reload();
  if (view === "robots") {
    await file.waitForFunction(() => document.querySelector("#robots-count")?.textContent.includes("the record has"));
    const shows = () => file.evaluate(() => document.querySelector(".scene").toDataURL());
    await file.locator(".player input").fill("0");
    const start = await shows();
    await file.locator(".player input").press("End");
    assert.notEqual(await shows(), start, "the scene of the file moves");
    continue;
  }
  if (view === "whatif") {
    await file.waitForFunction(() => document.querySelector("#whatif-said").textContent.startsWith("Round 9. Nothing is changed."));
    const found = await file.evaluate(() => Object.fromEntries([...document.querySelectorAll("[data-plan]")].map((one) => [one.dataset.plan, Number(one.title)])));
    const { rationale } = events.find((one) => one.kind === "decided" && one.id[0] === 9);
    for (const name of ["latency_s", "energy_j", "planned_return"]) assert.equal(found[name], rationale[name], name);
    await file.locator("#whatif-sample").selectOption({ label: "limits.deadline_s = 2.5" });
    await file.waitForFunction(() => document.querySelector("#whatif-said").textContent.includes("with the change"));
    assert.ok((await text(file, "#whatif-command")).endsWith("--round 8 --set limits.deadline_s=2.5"));
    continue;
  }
  await file.waitForFunction(() => document.querySelectorAll(".tiles .tile").length > 2);
  if (view === "learning") assert.ok((await text(file, "[data-tile=success] dd")).startsWith(percent(summary.success_final)));
}
tilp(folder, "dash", "study", "--export", "study.html");
await file.goto(`file://${join(folder, "study.html")}`);
await file.waitForFunction(() => document.querySelectorAll("section[aria-label=Methods] tbody tr").length === 2);
await file.close();
say("exported files of a run and of a study show the same");

// The runs of a dashboard elsewhere, here of this one.
near = await dash(scratch(), 0, server.url);
const other = await open(1300);
other.allowed.push("net::ERR_");
await other.goto(`${near.url}#run=${encodeURIComponent("@0/0/finished")}&view=learning`);
await other.waitForFunction((text) => document.querySelector("[data-tile=success] dd")?.textContent.startsWith(text), percent(summary.success_final), { timeout: 20000 });
await other.goto(`${near.url}#run=${encodeURIComponent("@0/0/finished")}&view=cell&round=7`);
await other.waitForFunction(() => document.querySelector(".cell")?.dataset.round === "7" && document.querySelector(".cell").dataset.places === "known");
await other.close();
await near.stop();
say("a run elsewhere is shown");

// Markup in names is text; a damaged file is an error in its place.
await page.goto(at(`0/${evil}`, "learning"));
await page.waitForFunction(() => document.getElementById("notice").textContent.includes("line 2"));
await page.locator("#pick").click();
await page.locator("dialog a.run").first().waitFor();
assert.equal(await page.evaluate(() => window.pwned), undefined);
assert.equal(await page.locator("dialog img, main img").count(), 0);
await page.keyboard.press("Escape");
say("names with markup are text");

// By keyboard: rounds, a terminal, the list of runs.
await page.goto(at("0/finished", "cell", "&round=5"));
await page.waitForFunction(() => document.querySelector(".timeline output").textContent.includes("Round 5"));
await page.locator("body").press("ArrowRight");
await page.waitForFunction(() => location.hash.includes("round=6"));
await page.locator(".cell").focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("Enter");
await page.waitForFunction(() => location.hash.includes("terminal="));
await page.locator("#main").press("/");
await page.locator("dialog[open] input").fill("deficit");
await page.waitForFunction(() => [...document.querySelectorAll("dialog a.run")].every((one) => one.textContent.includes("deficit")));
await page.locator("dialog[open] button:has-text('Close')").press("Enter");
say("keyboard works");

// A live run, with the server killed and restarted under the page.
const rounds = 160;
const live = start(folder, "run", "tiny", "--method", "random", "--rounds", String(rounds), "--out", "live", ...SHORT);
const ended = once(live, "exit");
await page.goto(at("0/live", "learning"));
await page.waitForFunction(() => Number(document.querySelector("[data-tile=rounds] dd")?.textContent.match(/\d+/)?.[0]) > 3, null, { timeout: 30000 });
page.allowed.push("net::ERR_");
await server.stop();
await page.waitForFunction(() => document.getElementById("live").dataset.state === "lost");
server = await dash(folder, server.port);
await ended;
await page.waitForFunction((n) => document.querySelector("[data-tile=rounds] dd")?.textContent.startsWith(String(n)) && document.getElementById("live").dataset.state === "finished", rounds, { timeout: 60000 });
await page.locator("section[aria-label=Participation] summary").click();
const spent = readFileSync(join(folder, "live/rounds.csv"), "utf8").trim().split("\n").slice(1).length;
assert.equal(spent, rounds);
const energy = JSON.parse(readFileSync(join(folder, "live/summary.json"), "utf8")).energy_total_j;
assert.ok((await text(page, "[data-tile=energy] dd")).startsWith(energy >= 10 ? energy.toFixed(1) : energy.toFixed(2)), "no round is lost, none counted twice");
page.allowed = [];
say("a live run is followed over a restart of the server");

// Every view of a run of tilp while it goes on: the numbers of the events so far.
const going = start(folder, "run", "tiny", "--rounds", "400", "--out", "going", ...SHORT);
const over = once(going, "exit");
const eventsOf = (name) => readFileSync(join(folder, name, "events.jsonl"), "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line));
await page.goto(at("0/going", "learning"));
await page.waitForFunction(() => Number(document.querySelector("[data-tile=rounds] dd")?.textContent.match(/\d+/)?.[0]) > 12, null, { timeout: 30000 });
const early = eventsOf("going").find((one) => one.kind === "decided" && one.id[0] === 9);
const scheduled = early.terminals.scheduled.filter(Boolean).length;
await page.goto(at("0/going", "cell", "&round=9"));
await page.waitForFunction(() => document.querySelector(".cell")?.dataset.round === "9");
assert.equal(Number(await page.locator(".cell").getAttribute("data-scheduled")), scheduled);
await page.goto(at("0/going", "round", "&round=9"));
await page.waitForFunction((n) => document.querySelectorAll(".gantt .predicted").length === n, scheduled);
await page.goto(at("0/going", "why", "&round=9"));
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Reasons] tbody tr").length === 6);
await page.goto(at("0/going", "robots", "&terminal=0"));
await page.waitForFunction(() => document.querySelector("#robots-count")?.textContent.includes("the record has"));
await page.goto(at("0/going", "twin"));
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Delay] .dots").length > 0);
await page.goto(at("0/going", "whatif", "&round=8"));
await page.waitForFunction(() => document.querySelector("#whatif-said").textContent.startsWith("Round 9. Nothing is changed."), null, { timeout: 60000 });
agree(await expects("plan"), early.rationale);
await page.goto(at("0/going", "compare"));
await page.waitForFunction(() => document.body.textContent.includes("1 of them running"));
assert.equal(going.exitCode, null, "the run is still going on");
going.kill("SIGTERM");
await over;
say("every view of a live run of tilp shows what its events say");

// Accessibility, both themes; and pictures.
for (const [width, scheme] of [[390, "light"], [1300, "dark"], [1600, "light"]]) {
  const one = await open(width, scheme);
  for (const view of VIEWS) {
    await one.goto(at("0/finished", view, "&round=9&terminal=1"));
    await one.waitForTimeout(400);
    await shoot(one, `${view}-${width}-${scheme}`);
    const wide = await one.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} at ${width} px is ${wide} px too wide`);
    await one.evaluate(AXE);
    const found = await one.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    for (const { id, impact, nodes } of found.violations) if (["serious", "critical"].includes(impact)) problems.push(`axe, ${view} ${scheme}: ${id}: ${nodes[0].html}`);
  }
  await one.close();
}
say("no serious problem of accessibility");

await browser.close();
await server.stop();
assert.deepEqual(problems, []);
say("no errors in the console, no request elsewhere");
process.exit(0);
