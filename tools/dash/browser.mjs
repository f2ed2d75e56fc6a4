// A browser, runs to look at, and a dashboard that can be killed.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const TILP = process.env.TILP;

export async function launch() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const open = browser.newPage.bind(browser);
  browser.newPage = async (options) => { const page = await open(options); await fromFiles(page); return page; };
  return browser;
}

// With WEB=crates/tilp-dash/web the files of the page come from there: changes are tried without a build.
async function fromFiles(page) {
  if (!process.env.WEB) return;
  await page.route(/^http:[^?]*\/(js\/\w+\.js|style\.css|theme\.js)$/, (route) => route.fulfill({ path: join(process.env.WEB, new URL(route.request().url()).pathname) }));
}

export const scratch = () => mkdtempSync(join(tmpdir(), "tilp-dash-"));

// A port that nothing listens at.
export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

// Runs the program to its end.
export function tilp(folder, ...words) {
  const done = spawnSync(TILP, words, { cwd: folder, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`tilp ${words.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

// Processes that end with this one, also when a check fails.
const children = new Set();
process.on("exit", () => { for (const child of children) child.kill("SIGKILL"); });

export function start(folder, ...words) {
  const child = spawn(TILP, words, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  child.on("exit", () => children.delete(child));
  return child;
}

// A dashboard at a port, 0 for any, of a folder or of another dashboard.
export async function dash(folder, port = 0, place = ".") {
  const child = start(folder, "dash", place, "--listen", `127.0.0.1:${port}`);
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  const url = line.match(/http:\S+/)[0];
  const stop = async () => { child.kill("SIGKILL"); await once(child, "exit"); };
  return { url, pid: child.pid, port: Number(new URL(url).port), stop };
}
