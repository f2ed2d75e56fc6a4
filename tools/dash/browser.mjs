// A browser, runs to look at, and a dashboard that can be killed.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const TILP = process.env.TILP;

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

export const scratch = () => mkdtempSync(join(tmpdir(), "tilp-dash-"));

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

// A dashboard at a port; 0 for any.
export async function dash(folder, port = 0) {
  const child = start(folder, "dash", ".", "--listen", `127.0.0.1:${port}`);
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  const url = line.match(/http:\S+/)[0];
  const stop = async () => { child.kill("SIGKILL"); await once(child, "exit"); };
  return { url, pid: child.pid, port: Number(new URL(url).port), stop };
}
