// The page in a real Chromium, at a platform of real programs. Exit status 77: skipped, with the reason.
//
//   node web/tests/page_test.mjs       REGATTA_BIN: folder of the programs; REGATTA_PAGE: the built page
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const chromiumPath = process.env.REGATTA_CHROMIUM ?? "/usr/bin/chromium";
const built =
  process.env.REGATTA_PAGE ??
  path.join(process.env.REGATTA_BIN ?? path.join(web, "../build/dev/bin"), "../web");
const missing = [
  [
    path.join(web, "node_modules/playwright-core"),
    "the packages of web/ are not fetched (ninja web)",
  ],
  [chromiumPath, "there is no Chromium (Debian: chromium)"],
  [path.join(built, "index.html"), "the page is not built (ninja web)"],
].find(([file]) => !existsSync(file));
if (missing) {
  console.log(`skipped: ${missing[1]}`);
  process.exit(77);
}

const { newPage, pause, startBrowser, startPlatform, until } = await import("./browser.mjs");
const { faultsOf } = await import("./accessibility.mjs");

let platform;
let browser;
let page;

before(async () => {
  [platform, browser] = await Promise.all([
    startPlatform({ nodes: 2, devices: 8 }),
    startBrowser(),
  ]);
  page = await newPage(browser, { colorScheme: "light" });
});

after(async () => {
  await browser?.close();
  await platform?.end();
});

const sleeper = (name, more = {}) => ({
  name,
  command: ["sleep", "300"],
  roles: [{ name: "worker", devices: 1, cpus: 0.05 }],
  ...more,
});
const submit = (job) => platform.api("POST", "/v1/jobs", job);
const show = async (target) => {
  await page.goto(`${platform.url}/#/${target}`);
  await page.waitForSelector("main h1, main table, main .notice");
};
const seen = (selector, text) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: 8000 });

test("an address that was printed signs in once", async () => {
  const made = await platform.api("POST", "/v1/tokens", { use: "login" });
  const address = `${platform.url}/#once=${made.secret}`;
  await page.goto(address);
  await page.waitForSelector("nav.side");
  assert.ok(!page.url().includes(made.secret), "the secret stays in the address");
  const other = await newPage(browser);
  await other.goto(address);
  await other.waitForSelector("form input[type=password]");
  await other.context().close();
});

test("a job that the form submits runs, and shows its output", async () => {
  await show("submit");
  await page.fill("input >> nth=1", "from-the-page");
  await page.fill("main textarea", 'for i in 1 2 3; do echo "line $i of $RANK"; done; sleep 60');
  await page.getByRole("button", { name: "Dry look" }).click();
  await seen("main", "Nothing was sent.");
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  await seen(".badge", "Running");
  assert.match(page.url(), /jobs\/from-the-page-\d+/);
  await page.getByRole("tab", { name: "Logs" }).click();
  await seen(".line", "line 3 of 0");
  await page.getByRole("searchbox", { name: "Search" }).fill("line 2");
  await seen("mark", "line 2");
});

test("what others change shows without a reload", async () => {
  const job = await submit(sleeper("live"));
  await show(`jobs/${job.handle}`);
  await seen(".badge", "Running");
  await platform.api("POST", `/v1/jobs/${job.handle}/cancel`);
  await seen(".badge", "Cancelled");
  await show("jobs");
  await submit(sleeper("appears", { hold: true }));
  await seen(".job-row", "appears");
});

test("two tabs share one stream", async () => {
  const context = page.context();
  const streams = [];
  context.on(
    "request",
    (request) => request.url().includes("/v1/watch?kinds=job") && streams.push(request.url()),
  );
  const second = await context.newPage();
  await second.goto(`${platform.url}/#/jobs`);
  await second.waitForSelector(".job-row");
  const job = await submit(sleeper("both", { hold: true }));
  for (const tab of [page, second]) await tab.getByText(job.handle).first().waitFor();
  assert.deepEqual(streams, []);
  await second.close();
});

test("a job is held, released and cancelled, a node drained, after a question", async () => {
  const job = await submit(sleeper("asked", { hold: true }));
  await show(`jobs/${job.handle}`);
  await seen(".badge", "Held");
  await page.getByRole("button", { name: "Release" }).click();
  await seen(".badge", "Running");
  await page.getByRole("button", { name: "Cancel job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel job" }).click();
  await seen(".badge", "Cancelled");
  const node = (await platform.api("GET", "/v1/nodes")).items[1].name;
  await show(`nodes/${node}`);
  await page.getByRole("button", { name: "Drain" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await seen(".badge", "Draining");
  await page.getByRole("button", { name: "Resume" }).click();
  await seen(".badge", "Ready");
});

test("a new token is shown once, and a user is made", async () => {
  await show("tokens");
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("ci");
  await page.getByRole("button", { name: "Make it" }).click();
  await seen("code", "rgt_");
  await page.reload();
  await seen("td", "ci");
  assert.equal(await page.locator("code").count(), 0);
  await show("users");
  await page.getByRole("button", { name: "Add a user" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("ada");
  await page.getByRole("button", { name: "Save" }).click();
  await seen("td", "ada");
});

test("everything is reached by keys alone", async () => {
  await show("");
  await page.reload();
  await page.waitForSelector("nav.side");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the view");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "view");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await show("jobs");
  await page.waitForSelector(".job-row a");
  await page.focus(".row-scroll");
  await page.keyboard.press("ArrowDown");
  const active = await page.locator(".job-row.active a").innerText();
  await page.keyboard.press("Enter");
  await seen("h1", active);
  await page.focus("[role=tab]");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("[role=tab][aria-selected=true]").innerText(), "Logs");
  await show("devices");
  await page.waitForSelector("canvas");
  await page.focus("canvas");
  await page.keyboard.press("ArrowRight");
  await seen("[aria-live]", "GPU 0");
  await page.keyboard.press("Enter");
  await seen("h1", "node-");
});

const views = [
  "",
  "jobs",
  "queues",
  "plans",
  "devices",
  "nodes",
  "fabric",
  "sharing",
  "alerts",
  "audit",
  "users",
  "tokens",
  "submit",
];

test("no view has a fault of accessibility, light or dark, nor an error", async () => {
  const job = (await platform.api("GET", "/v1/jobs?limit=1")).items[0].handle;
  const node = (await platform.api("GET", "/v1/nodes")).items[0].name;
  const all = [...views, `jobs/${job}`, `jobs/${job}?tab=attempts`, `nodes/${node}`];
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const view of all) {
      await show(view);
      // Not waitForFunction, which the content security policy forbids.
      await until(async () => (await page.locator("[aria-busy=true]").count()) === 0, view);
      assert.deepEqual(
        await faultsOf(page, scheme === "dark" ? ["color-contrast"] : undefined),
        [],
        `${view} ${scheme}`,
      );
    }
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(ground, scheme === "dark" ? "rgb(15, 20, 26)" : "rgb(246, 247, 249)");
  }
  await page.emulateMedia({ colorScheme: "light" });
  assert.deepEqual(page.faults, []);
});

test("each card names the query of its numbers", async () => {
  for (const view of ["", "queues", "devices", "nodes", "fabric"]) {
    await show(view);
    const cards = page.locator("main section.card");
    await cards.first().waitFor();
    assert.equal(await cards.count(), await cards.locator(".query-button").count(), view);
  }
  await page.locator(".query-button").first().click();
  await seen(".popover", "GET /v1/");
});

test("with the clock stopped a view is the same picture twice", async () => {
  const still = await newPage(browser, {
    colorScheme: "light",
    storageState: await page.context().storageState(),
  });
  await still.clock.setFixedTime(new Date());
  await still.goto(`${platform.url}/#/nodes`);
  await still.waitForSelector("main td");
  await pause(500);
  const pictures = [await still.screenshot(), await still.screenshot()];
  assert.ok(pictures[0].length > 10000 && pictures[0].equals(pictures[1]));
  await still.context().close();
});

test("the page speaks Chinese where that is chosen", async () => {
  await show("");
  await page.getByLabel("Language").selectOption("zh");
  await seen("h1", "概览");
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
  await page.reload();
  await seen("h1", "概览");
  await page.getByLabel("语言").selectOption("en");
  await seen("h1", "Overview");
});

test("both languages have every text that the source uses, with the same places", async () => {
  const { missingTexts } = await import("./texts.mjs");
  assert.deepEqual(missingTexts(web), []);
});

test("a controller that is not heard for 5 s makes the page say since when", async () => {
  await show("");
  const record = JSON.parse(readFileSync(path.join(platform.state, "processes.json"), "utf8"));
  const controller = record.processes.find((each) => each.name === "controller").pid;
  process.kill(controller, "SIGSTOP");
  try {
    await until(() => page.locator(".live.stale").count(), "Stale since", 9000);
  } finally {
    process.kill(controller, "SIGCONT");
  }
  await until(async () => (await page.locator(".live.stale").count()) === 0, "Live");
});

test("who signs out sees the form again", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForSelector("form input[type=password]");
  assert.deepEqual(await faultsOf(page), []);
});
