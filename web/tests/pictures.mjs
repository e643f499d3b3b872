// The pictures of the README: node web/tests/pictures.mjs [FOLDER] writes page-*.png (docs/) from a
// platform of its own with some jobs; 1280 x 800, light.
import path from "node:path";
import process from "node:process";
import { here, newPage, pause, signIn, startBrowser, startPlatform, until } from "./browser.mjs";

const folder = path.resolve(process.argv[2] ?? path.join(here, "../../docs"));
const queues = [
  { name: "research", guaranteed: { gpus: 32 }, limit: { gpus: 56 } },
  { name: "language", parent: "research", guaranteed: { gpus: 24 } },
  { name: "vision", parent: "research", guaranteed: { gpus: 8 } },
  { name: "service", guaranteed: { gpus: 16 }, limit: { gpus: 24 } },
  { name: "default" },
];
const trainer = `
i=0
while true; do
  i=$((i+1))
  if [ "$RANK" = 0 ]; then
    awk -v i=$i 'BEGIN { srand(i); printf "{\\"name\\": \\"loss\\", \\"step\\": %d, \\"value\\": %.4f, \\"unit\\": \\"nat\\"}\\n{\\"name\\": \\"step_time_s\\", \\"step\\": %d, \\"value\\": %.4f, \\"unit\\": \\"s\\"}\\n", i, 2 + 8 / (1 + i / 20) + rand() / 8, i, 0.2 + rand() / 50 }' >> "\${REGATTA_METRICS_FILE:-/dev/null}"
    [ $i -gt 1 ] || echo '{"predicted": {"step_time_s": 0.205}}' >> "\${REGATTA_METRICS_FILE:-/dev/null}"
  fi
  echo "step $i: loss $(awk -v i=$i 'BEGIN { srand(i); printf "%.3f", 2 + 8 / (1 + i / 20) + rand() / 8 }'), 41230 tokens/s"
  sleep 0.2
done`;
const sleeps = ["sleep", "600"];
const hours = (median) => ({ run_time: { median, log_spread: 0.4 } });
const gang = (replicas, devices) => [{ name: "worker", replicas, devices, cpus: 0.02 }];
const jobs = [
  {
    name: "llama-8b-pretrain",
    queue: "language",
    command: ["sh", "-c", trainer],
    roles: gang(3, 8),
    ...hours("3h"),
  },
  { name: "vit-h-finetune", queue: "vision", command: sleeps, roles: gang(1, 4), ...hours("1h") },
  {
    name: "rerank-serving",
    queue: "service",
    command: sleeps,
    roles: gang(6, 1),
    ...hours("40min"),
  },
  {
    name: "eval-mmlu",
    queue: "language",
    command: ["sh", "-c", "sleep 1; exit 3"],
    roles: gang(1, 1),
    restart: { rule: "on_failure", failures: 2, pause: "1s" },
  },
  { name: "embed-wiki", queue: "default", command: sleeps, roles: gang(2, 3), ...hours("30min") },
  {
    name: "mixtral-sft",
    queue: "language",
    priority: 5,
    command: sleeps,
    roles: gang(5, 8),
    run_time: { median: "2h" },
  },
  { name: "dreambooth", queue: "vision", hold: true, command: sleeps, roles: gang(1, 8) },
  {
    name: "tokenize",
    queue: "default",
    command: ["sh", "-c", "for i in $(seq 40); do echo shard $i; done"],
    roles: gang(2, 0),
  },
];

const platform = await startPlatform({ nodes: 8, devices: 8 });
let browser;
try {
  await platform.api("PUT", "/v1/queues", { queues }, { "If-Match": "*" });
  const handles = {};
  for (const job of jobs) {
    handles[job.name] = (await platform.api("POST", "/v1/jobs", job)).handle;
    await pause(300);
  }
  await until(
    async () =>
      (await platform.api("GET", `/v1/jobs/${handles["eval-mmlu"]}`)).status.phase === "failed",
    "eval-mmlu fails",
    30000,
  );
  await pause(20000); // something to see in charts
  browser = await startBrowser();
  const page = await newPage(browser, { colorScheme: "light" });
  await signIn(page, platform);
  const trained = handles["llama-8b-pretrain"];
  const shots = {
    overview: "",
    jobs: "jobs",
    job: `jobs/${trained}`,
    waiting: `jobs/${handles["mixtral-sft"]}`,
    logs: `jobs/${trained}?tab=logs`,
    metrics: `jobs/${trained}?tab=metrics`,
    restarts: `jobs/${handles["eval-mmlu"]}`,
    devices: "devices",
    node: `nodes/${(await platform.api("GET", "/v1/nodes")).items[0].name}`,
    fabric: "fabric",
    queues: "queues",
    sharing: "sharing",
    alerts: "alerts",
    audit: "audit",
    plans: "plans",
  };
  const wanted = process.argv.slice(3);
  for (const [name, target] of Object.entries(shots)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    await page.goto(`${platform.url}/#/${target}`);
    await pause(2500);
    await page.screenshot({ path: path.join(folder, `page-${name}.png`) });
  }
} finally {
  await browser?.close();
  await platform.end();
}
