// The costs of the page: node bench/page/page_bench.mjs [PART...]; README.md.
import { readdirSync, readFileSync } from "node:fs";
import { spawn } from "node:child_process";
import path from "node:path";
import process from "node:process";
import {
  bin,
  here,
  newPage,
  pause,
  signIn,
  startBrowser,
  startPlatform,
  until,
} from "../../web/tests/browser.mjs";
import { changeSteadily, submitHeld } from "./changes.mjs";
import { generatedDevices, heatTimes } from "./heat.mjs";

const bench = path.resolve(here, "../../bench/page");
const wanted = process.argv.slice(2);
const has = (part) => wanted.length === 0 || wanted.includes(part);
const at = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
};
const round = (value, digits = 1) => Number(value.toFixed(digits));
const say = (part, figures) =>
  console.log(JSON.stringify({ part, ...figures }));

function size() {
  const folder = path.join(bin, "../web/assets");
  const files = readdirSync(folder).filter((name) => name.endsWith(".js"));
  const sent = (name) => {
    const plain = readFileSync(path.join(folder, name)).length;
    try {
      return readFileSync(path.join(folder, `${name}.gz`)).length;
    } catch {
      return plain;
    }
  };
  const sum = (names) => names.reduce((total, name) => total + sent(name), 0);
  say("size", {
    js_bytes: sum(files),
    entry_bytes: sum(files.filter((name) => name.startsWith("index-"))),
    files: files.length,
  });
}

const observe = () => {
  window.measured = { paint: 0, blocking: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      window.measured.paint = entry.startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      window.measured.blocking += Math.max(0, entry.duration - 50);
  }).observe({ type: "longtask", buffered: true });
};

// Processor time of a page's main thread so far, in ms: other programs do not count.
async function mainThreadClock(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (
      metrics.find((metric) => metric.name === "TaskDuration").value * 1000
    );
  };
}

// Processor time of the page's main thread for a cold load, not slowed.
async function mainThreadTime(platform, browser, cookies) {
  const page = await newPage(browser);
  await page.context().addCookies(cookies);
  const clock = await mainThreadClock(page);
  await page.goto(platform.url);
  await page.waitForSelector("td");
  const spent = await clock();
  await page.context().close();
  return spent;
}

async function load(platform, browser) {
  await submitHeld(platform.api, 60, "waiting");
  const paints = [];
  const blockings = [];
  const bytes = [];
  const first = await newPage(browser);
  await signIn(first, platform);
  const cookies = await first.context().cookies();
  await first.context().close();
  for (let i = 0; i < 9; ++i) {
    const page = await newPage(browser);
    await page.context().addCookies(cookies);
    await page.addInitScript(observe);
    const session = await page.context().newCDPSession(page);
    let received = 0;
    await session.send("Network.enable");
    session.on(
      "Network.loadingFinished",
      (event) => (received += event.encodedDataLength),
    );
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await page.goto(platform.url);
    await page.waitForSelector(".tile .value");
    await pause(1500);
    const found = await page.evaluate(() => window.measured);
    paints.push(found.paint);
    blockings.push(found.blocking);
    bytes.push(received);
    await page.context().close();
  }
  const busy = [];
  for (let i = 0; i < 5; ++i)
    busy.push(await mainThreadTime(platform, browser, cookies));
  say("load", {
    slow_down: 4,
    paint_ms_p50: round(at(paints, 0.5)),
    paint_ms_max: round(Math.max(...paints)),
    blocking_ms_p50: round(at(blockings, 0.5)),
    blocking_ms_max: round(Math.max(...blockings)),
    bytes: at(bytes, 0.5),
    main_thread_cpu_ms: round(at(busy, 0.5)),
  });
}

async function scroll(platform, browser) {
  const page = await newPage(browser);
  await signIn(page, platform, "jobs");
  await page.waitForSelector(".job-row a");
  const clock = await mainThreadClock(page);
  const before = await clock();
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".row-scroll");
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    const start = last;
    // 50 pixels a frame for 8 s, then jumps of 40,000 for 2 s.
    while (last - start < 10000) {
      box.scrollTop += last - start < 8000 ? 50 : 40000;
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    return times;
  });
  const frameTime = ((await clock()) - before) / frames.length;
  const fills = [];
  for (let i = 0; i < 20; ++i)
    fills.push(
      await page.evaluate(
        async (share) => {
          const box = document.querySelector(".row-scroll");
          box.scrollTop = share * (box.scrollHeight - box.clientHeight);
          const start = performance.now();
          await new Promise(requestAnimationFrame);
          await new Promise(requestAnimationFrame);
          while (document.querySelector(".job-row .bone"))
            await new Promise(requestAnimationFrame);
          return performance.now() - start;
        },
        ((i * 7919) % 1000) / 1000,
      ),
    );
  const rows = await page
    .locator(".row-scroll")
    .evaluate((box) => box.scrollHeight / 32);
  say("scroll", {
    jobs: rows,
    frame_ms_p50: round(at(frames, 0.5)),
    frame_ms_p99: round(at(frames, 0.99)),
    frame_ms_max: round(Math.max(...frames)),
    frames_late_share: round(
      frames.filter((time) => time > 25).length / frames.length,
      4,
    ),
    frame_cpu_ms: round(frameTime),
    far_rows_ms_p50: round(at(fills, 0.5)),
    far_rows_ms_max: round(Math.max(...fills)),
  });
  await page.context().close();
}

async function heat(platform, browser) {
  const page = await newPage(browser);
  await generatedDevices(page, { nodes: 10000, devices: 8 });
  await signIn(page, platform, "devices");
  await page.waitForSelector("canvas");
  await pause(500);
  const clock = await mainThreadClock(page);
  const before = await clock();
  const all = await heatTimes(page, 60, 1);
  const updateTime = ((await clock()) - before) / 60;
  const some = await heatTimes(page, 60, 0.1);
  say("heat", {
    devices: 80000,
    all_cpu_ms: round(updateTime),
    all_ms_p50: round(at(all, 0.5)),
    all_ms_p99: round(at(all, 0.99)),
    tenth_ms_p50: round(at(some, 0.5)),
    tenth_ms_p99: round(at(some, 0.99)),
  });
  await page.context().close();
}

async function latency(platform, browser) {
  const ids = await submitHeld(platform.api, 200, "changes");
  const job = await platform.api("POST", "/v1/jobs", {
    name: "watched",
    hold: true,
    command: ["true"],
    roles: [{ devices: 1 }],
  });
  const page = await newPage(browser);
  await signIn(page, platform, "jobs");
  await page.waitForSelector(".job-row a");
  // The frame after the one that changed the row: its pixels are there then.
  await page.evaluate((handle) => {
    window.seen = new Map();
    const look = () => {
      for (const row of document.querySelectorAll(".row-scroll .job-row"))
        if (row.querySelector("a")?.textContent === handle) {
          const priority = row.children[5].textContent;
          if (!window.seen.has(priority)) {
            window.seen.set(priority, 0);
            requestAnimationFrame(() =>
              window.seen.set(
                priority,
                performance.timeOrigin + performance.now(),
              ),
            );
          }
        }
    };
    new MutationObserver(look).observe(document.querySelector(".row-scroll"), {
      childList: true,
      subtree: true,
      characterData: true,
    });
  }, job.handle);
  const measure = async (count) => {
    const times = [];
    for (let i = 0; i < count; ++i) {
      const priority = 2000 + Math.floor(Math.random() * 7000);
      const text = new Intl.NumberFormat("en-GB").format(priority);
      const start = performance.timeOrigin + performance.now();
      await platform.api(
        "PATCH",
        `/v1/jobs/${job.handle}`,
        { priority },
        { "If-Match": "*" },
      );
      const shown = await until(
        () => page.evaluate((wanted) => window.seen.get(wanted), text),
        `priority ${text}`,
      );
      times.push(shown - start);
      await pause(100 + Math.random() * 400);
    }
    return times;
  };
  const quiet = await measure(60);
  const stop = changeSteadily(platform.api, ids, 100);
  await pause(500);
  const busy = await measure(200);
  const changes = stop();
  say("latency", {
    quiet_ms_p50: round(at(quiet, 0.5)),
    quiet_ms_p99: round(at(quiet, 0.99)),
    busy_ms_p50: round(at(busy, 0.5)),
    busy_ms_p99: round(at(busy, 0.99)),
    changes_per_s: round(changes.made / changes.seconds),
    failed: changes.failed,
  });
  await page.context().close();
}

function usageOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .split(") ")[1]
    .split(" ");
  const memory = /VmRSS:\s+(\d+)/.exec(
    readFileSync(`/proc/${pid}/status`, "utf8"),
  );
  return {
    seconds: (Number(fields[11]) + Number(fields[12])) / 100,
    memory_mb: Number(memory[1]) / 1024,
  };
}

async function clients(platform) {
  const ids = await submitHeld(platform.api, 500, "clients");
  const record = JSON.parse(
    readFileSync(path.join(platform.state, "processes.json"), "utf8"),
  );
  const pid = record.processes.find((each) => each.name === "controller").pid;
  const load = async (seconds) => {
    const stop = changeSteadily(platform.api, ids, 100);
    await pause(2000);
    const before = usageOf(pid);
    await pause(seconds * 1000);
    const after = usageOf(pid);
    return {
      ...stop(),
      cores: (after.seconds - before.seconds) / seconds,
      memory_mb: after.memory_mb,
    };
  };
  const alone = await load(10);
  const child = spawn(
    process.execPath,
    [
      path.join(bench, "clients.mjs"),
      platform.url,
      path.join(platform.state, "controller"),
      "1000",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let words = "";
  child.stdout.on("data", (data) => (words += data));
  await until(() => words.includes("open"), "1,000 open streams", 60000);
  const idleStart = usageOf(pid);
  await pause(5000);
  const idleEnd = usageOf(pid);
  const shared = await load(15);
  child.kill("SIGTERM");
  await new Promise((resolve) => child.on("close", resolve));
  const got = JSON.parse(
    words.split("\n").find((line) => line.startsWith("{")),
  );
  say("clients", {
    clients: 1000,
    memory_mb: round(shared.memory_mb - alone.memory_mb),
    cores: round(shared.cores - alone.cores, 3),
    cores_with_changes_alone: round(alone.cores, 3),
    cores_idle: round((idleEnd.seconds - idleStart.seconds) / 5, 3),
    changes_per_s: round(shared.made / shared.seconds),
    events_per_client_per_s: round(got.events / 1000 / shared.seconds),
    bytes_per_client_per_s: Math.round(got.bytes / 1000 / shared.seconds),
    dropped: got.closed,
  });
}

if (has("size")) size();
if (["load", "scroll", "heat", "latency", "clients"].some(has)) {
  const platform = await startPlatform({ nodes: 2, devices: 8 });
  let browser;
  try {
    browser = await startBrowser();
    if (has("load")) await load(platform, browser);
    if (has("heat")) await heat(platform, browser);
    if (has("latency")) await latency(platform, browser);
    if (has("clients")) await clients(platform);
    if (has("scroll")) {
      await submitHeld(platform.api, 100000);
      await scroll(platform, browser);
    }
  } finally {
    await browser?.close();
    await platform.end();
  }
}
