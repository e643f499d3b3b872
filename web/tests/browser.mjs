// A headless Chromium at a running platform: starts both, signs in with a secret that works once, and
// ends what it started.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
export const chromiumPath = process.env.REGATTA_CHROMIUM ?? "/usr/bin/chromium";
export const here = path.dirname(fileURLToPath(import.meta.url));
export const bin = process.env.REGATTA_BIN ?? path.resolve(here, "../../build/dev/bin");

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function until(look, what, limit = 8000) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
    await pause(50);
  }
}

// A platform of its own, with its own folders.
export async function startPlatform({ nodes = 2, devices = 8 } = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), "regatta-page-"));
  const env = {
    ...process.env,
    XDG_STATE_HOME: path.join(folder, "state-home"),
    XDG_CONFIG_HOME: path.join(folder, "config"),
  };
  const state = path.join(folder, "state");
  const regatta = (...words) => run(path.join(bin, "regatta"), words.map(String), { env });
  await regatta("up", "--nodes", nodes, "--devices", devices, "--state", state);
  const url = (await readFile(path.join(state, "controller.url"), "utf8")).trim();
  const made = await openPlatform(url, path.join(state, "controller"));
  return {
    ...made,
    regatta,
    folder,
    state,
    async end() {
      await regatta("down", "--state", state).catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// A controller that runs already; `folder` has its ca.pem and admin.token.
export async function openPlatform(url, folder) {
  const ca = await readFile(path.join(folder, "ca.pem"));
  const token = (await readFile(path.join(folder, "admin.token"), "utf8")).trim();
  const agent = new https.Agent({ ca, keepAlive: true });
  const api = (method, target, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const request = https.request(
        url + target,
        {
          method,
          agent,
          headers: {
            Authorization: `Bearer ${token}`,
            ...(sent ? { "Content-Type": "application/json", "Content-Length": sent.length } : {}),
            ...headers,
          },
        },
        (response) => {
          const parts = [];
          response.on("data", (part) => parts.push(part));
          response.on("end", () => {
            const text = Buffer.concat(parts).toString();
            let value = text;
            try {
              value = JSON.parse(text);
            } catch {
              // Some replies are plain text.
            }
            if (response.statusCode >= 400)
              reject(new Error(`${method} ${target}: HTTP ${response.statusCode}: ${text}`));
            else resolve(value);
          });
        },
      );
      request.on("error", reject);
      request.end(sent);
    });
  return { url, api, ca, token };
}

export async function startBrowser() {
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--font-render-hinting=none",
      "--force-color-profile=srgb",
    ],
  });
}

export async function newPage(browser, options = {}) {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "UTC",
    ...options,
  });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    // A request that is refused is shown by the page itself.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      page.faults.push(message.text());
  });
  return page;
}

export async function signIn(page, platform, target = "") {
  const made = await platform.api("POST", "/v1/tokens", { use: "login" });
  await page.goto(`${platform.url}/#once=${made.secret}`);
  await page.waitForSelector("nav.side");
  if (target) await page.goto(`${platform.url}/#/${target}`);
}
