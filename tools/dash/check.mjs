// What must hold of the page. Run by ./check.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { dash, freePort, launch, scratch, start, tilp } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["learning", "cell", "round", "why", "robots", "twin", "compare", "whatif"];
const SHORT = ["--quiet", "--set", "tasks.episode_steps=15", "--set", "evaluation.final_episodes=1"];
const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

async function until(holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 600, `not within half a minute: ${holds}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

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

// The rows of a table by the titles of its columns, and the number behind a text such as "65.5 MHz".
const rowsOf = (page, label) => page.evaluate((label) => [...document.querySelectorAll(`section[aria-label="${label}"] tbody tr`)].map((row) => Object.fromEntries([...row.children].map((cell) => [cell.dataset.label, cell.textContent]))), label);
const PREFIXES = { G: 1e9, M: 1e6, k: 1e3, m: 1e-3, "µ": 1e-6, "%": 0.01 };
function number(text) {
  const [, digits, prefix] = text.match(/^([-+−]?[\d.,]+(?:e[-+]?\d+)?)\s*([GMkmµ](?=[A-Za-z])|%)?/) ?? assert.fail(`${text} is no number`);
  return Number(digits.replace("−", "-").replaceAll(",", "")) * (PREFIXES[prefix] ?? 1);
}
const close = (text, expected, what, share = 0.006) => assert.ok(Math.abs(number(text) - expected) <= share * Math.abs(expected) + 1e-12, `${what}: ${text}, expected ${expected}`);
// Numbers of terminals are shown when the rounds rest.
const shows = (page, label, n) => page.waitForFunction(([label, n]) => document.querySelectorAll(`section[aria-label="${label}"] tbody tr`).length === n, [label, n]);

const at = (run, view, more = "") => `${server.url}#run=${encodeURIComponent(run)}&view=${view}${more}`;
const text = (page, selector) => page.locator(selector).first().innerText();

async function shoot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) });
}

const eventsOf = (name) => readFileSync(join(folder, name, "events.jsonl"), "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line));
const eventOf = (run, kind, round) => eventsOf(run).find((one) => one.kind === kind && one.id[0] === round);

// Cell: band, power, cut, compression, delay and gain of every terminal are those of the events.
async function terminalsShown(run, round) {
  const [{ terminals: plan }, { terminals: done, books }] = [eventOf(run, "decided", round), eventOf(run, "executed", round)];
  await shows(page, "Terminals", plan.terminal.length);
  for (const row of await rowsOf(page, "Terminals")) {
    const n = plan.terminal.indexOf(Number(row.Terminal));
    close(row.Link, 10 * Math.log10(plan.gain[n] * plan.fading_power[n]), "link");
    if (!plan.scheduled[n]) { assert.equal(row.Cut, "–"); continue; }
    close(row.Band, books.terminals.bandwidth_hz[n], "band");
    close(row.Power, plan.power_w[n], "power");
    close(row.Cut, plan.cut[n], "cut");
    assert.equal(row.q, plan.compression[n].toFixed(2), "compression");
    close(row.Delay, books.terminals.delay_s[n], "delay");
    assert.ok(done.took_part[n] || done.late[n] || done.unfit[n]);
  }
}

// Round: a bar and a row for every scheduled terminal, realised beside predicted.
async function roundShown(run, round) {
  const [{ terminals: plan, rationale }, { terminals: done, books }] = [eventOf(run, "decided", round), eventOf(run, "executed", round)];
  const scheduled = plan.scheduled.filter(Boolean).length;
  await page.goto(at(`0/${run}`, "round", `&round=${round}`));
  await page.waitForFunction((n) => document.querySelectorAll(".gantt .predicted").length === n, scheduled);
  const rows = (await rowsOf(page, "Numbers")).filter((row) => row.Predicted !== "–");
  assert.equal(rows.length, scheduled);
  for (const row of rows) {
    const n = plan.terminal.indexOf(Number(row.Terminal));
    close(row.Delay, books.terminals.delay_s[n], "delay");
    close(row.Predicted, rationale.terminals.delay_s[n], "predicted delay");
    close(row["Surely within"], rationale.terminals.sure_delay_s[n], "sure delay");
    close(row.Energy, books.terminals.energy_radio_j[n] + books.terminals.energy_compute_j[n], "energy");
    close(row.Up, books.terminals.bytes_up[n], "bytes up");
    assert.equal(row.State, done.took_part[n] ? "took part" : row.State);
  }
}

// Why: every terminal is in or out as decided, with the number of its reason.
async function reasonsShown(run, round) {
  const { terminals: plan, rationale } = eventOf(run, "decided", round);
  await page.goto(at(`0/${run}`, "why", `&round=${round}`));
  await shows(page, "Reasons", plan.terminal.length);
  for (const row of await rowsOf(page, "Reasons")) {
    const n = plan.terminal.indexOf(Number(row.Terminal));
    assert.equal(row.Plan, plan.scheduled[n] ? "in" : "out");
    const { kind, own_success: own, return_difference: difference } = rationale.terminals.reason[n];
    if (kind === "gain") assert.ok(row.Reason.includes(`${Math.abs(100 * own).toFixed(1)} points`), row.Reason);
    if (kind === "worth-less" || kind === "overlooked") close(row.Reason.match(/by ([-+][\d.e-]+\d)/)[1], difference, row.Reason, 0.03);
  }
}

// A finished run: the numbers of the files, in every view, at three widths.
const summary = JSON.parse(finished);
const csv = readFileSync(join(folder, "finished/rounds.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
const column = (name) => csv.slice(1).map((row) => Number(row[csv[0].indexOf(name)]));
const events = eventsOf("finished");
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
await page.locator("section[aria-label=Success] summary").click();
await shows(page, "Success", summary.success_curve.length);
for (const [n, [round, success]] of summary.success_curve.entries()) {
  const [shownRound, all] = await page.locator(`section[aria-label=Success] tbody tr:nth-child(${n + 1}) td`).allInnerTexts();
  assert.ok(number(shownRound) === round && Math.abs(number(all) - success) < 0.0051, `success at round ${round}: ${all}, expected ${success}`);
}
say("learning has the numbers of summary.json and rounds.csv");

const decided = events.find((one) => one.kind === "decided" && one.id[0] === 7);
await page.goto(at("0/finished", "cell", "&round=7&terminal=2"));
await page.waitForFunction(() => document.querySelector(".cell")?.dataset.terminals === "6" && document.querySelector("section[aria-label='Terminal 2'] svg path"));
assert.equal(Number(await page.locator(".cell").getAttribute("data-scheduled")), decided.terminals.scheduled.filter(Boolean).length);
await page.waitForFunction(() => document.querySelector(".cell").dataset.places === "known");
await terminalsShown("finished", 7);
await page.locator(".timeline button[aria-label=Play]").click();
await page.waitForFunction(() => Number(document.querySelector(".cell")?.dataset.round) >= 11);
await page.locator(".timeline button[aria-label=Stop]").click();
await roundShown("finished", 7);
await reasonsShown("finished", 7);
await page.goto(at("0/finished", "twin"));
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Delay] .dots").length > 0);
const turns = events.filter((one) => one.kind === "decided").flatMap((one) => one.terminals.scheduled).filter(Boolean).length;
assert.ok((await page.locator(".tiles").innerText()).includes(`of ${turns} turns`));
const twins = JSON.parse(tilp(folder, "twin", "finished", "--format", "json")).sub_twins;
await page.waitForFunction((n) => document.querySelectorAll("[data-twin]").length === 4 * n, twins.length);
for (const one of twins) for (const name of ["error_before", "error_after", "coverage_before", "coverage_after"]) assert.equal(await page.locator(`[data-twin="${one.name} ${name}"]`).getAttribute("title"), String(one[name]), `${one.name} ${name}`);
await page.goto(at("0/finished", "compare"));
await page.locator("label:has-text('Compare') select").selectOption("study 0/study");
await shows(page, "Methods", 2);
const csvOf = (name) => readFileSync(join(folder, name), "utf8").trim().split("\n").map((line) => line.split(","));
const [titles, ...means] = csvOf("study/table.csv");
for (const row of await rowsOf(page, "Methods")) for (const [title, metric] of [["Success", "success_final"], ["Far third", "success_far"], ["Energy", "energy_total_j"], ["On the air", "air_total_bytes"], ["Median latency", "latency_p50_s"]]) {
  const line = means.find((one) => one[titles.indexOf("method")] === row.Method && one[titles.indexOf("metric")] === metric);
  close(row[title], Number(line[titles.indexOf("mean")]), `${title} of ${row.Method}`);
}
await page.locator("label:has-text('Compare') select").selectOption("study 0/big");
await page.waitForFunction(() => document.querySelectorAll("section[aria-label=Methods] tbody tr").length === 4);
const row = await page.locator("section[aria-label=Methods] tbody tr").filter({ hasText: "deficit" }).innerText();
const mean = big.filter((one) => one.method === "deficit").reduce((sum, one) => sum + one.success, 0) / 50;
assert.ok(row.includes(`${(100 * mean).toFixed(1)} %`), row);
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
await page.goto(at("0/going", "learning"));
await page.waitForFunction(() => Number(document.querySelector("[data-tile=rounds] dd")?.textContent.match(/\d+/)?.[0]) > 12, null, { timeout: 30000 });
const early = eventsOf("going").find((one) => one.kind === "decided" && one.id[0] === 9);
const scheduled = early.terminals.scheduled.filter(Boolean).length;
await page.goto(at("0/going", "cell", "&round=9"));
await page.waitForFunction(() => document.querySelector(".cell")?.dataset.round === "9");
assert.equal(Number(await page.locator(".cell").getAttribute("data-scheduled")), scheduled);
await terminalsShown("going", 9);
await roundShown("going", 9);
await reasonsShown("going", 9);
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

// A run of a testbed: base station, six terminals and an evaluator as processes. The page follows it.
const ports = [await freePort(), await freePort()];
writeFileSync(join(folder, "lab.toml"), `[testbed]\nscenario = "tiny"\nmethod = "tilp"\nseed = 0\nclock = "virtual"\nfolder = "lab"\nlisten = "127.0.0.1:${ports[0]}"\nstatus = "127.0.0.1:${ports[1]}"\nterminals = "all"\nevaluator = true\n`);
// The base station is held before it decides round 4, so that the run is live for as long as it is looked at.
process.env.TILP_HOLD = join(folder, "holds");
const [hold, held] = ["deciding", "deciding.held"].map((name) => join(process.env.TILP_HOLD, name));
mkdirSync(process.env.TILP_HOLD);
writeFileSync(hold, "");
const lab = start(folder, "testbed", "up", "lab.toml", "--quiet");
const closed = once(lab, "exit");
for (let round = 1; round < 4; round++) {
  await until(() => existsSync(held));
  writeFileSync(hold, "");
  unlinkSync(held);
}
await until(() => existsSync(held));
await page.goto(at("0/lab/run", "learning"));
await page.waitForFunction(() => Number(document.querySelector("[data-tile=rounds] dd")?.textContent.match(/\d+/)?.[0]) >= 2, null, { timeout: 60000 });
assert.equal(lab.exitCode, null, "the testbed is still running");
assert.equal(await page.locator("#live").getAttribute("data-state"), "running");
unlinkSync(held);
delete process.env.TILP_HOLD;
const [code] = await closed;
assert.equal(code, 0);
await page.waitForFunction(([n, text]) => document.querySelector("[data-tile=rounds] dd")?.textContent.startsWith(String(n)) && document.querySelector("[data-tile=success] dd").textContent.startsWith(text), [summary.rounds, percent(summary.success_final)], { timeout: 30000 });
await page.goto(at("0/lab/run", "cell", "&round=7"));
await page.waitForFunction(() => document.querySelector(".cell")?.dataset.round === "7");
await terminalsShown("lab/run", 7);
await roundShown("lab/run", 7);
say("a live run of a testbed is followed, and has the numbers of tilp run");

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
