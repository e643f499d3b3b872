// The answer of the planner: the best plan, where its step goes, its memory, and the next plans.
import { duration, mebibytes, number, percent, t } from "../texts";
import { Card } from "./card";
import { DataTable } from "./data_table";
import { Meter } from "./meter";

type Strategy = Record<string, string | number | boolean>;
interface Interval {
  low_s: number;
  high_s: number;
}
interface Plan {
  strategy: Strategy;
  step_time_s: number;
  interval?: Interval;
  memory_per_device_bytes: number;
  fits: boolean;
  mfu?: number;
  tokens_per_s?: number;
  binding?: string;
  breakdown?: Record<string, number>;
  memory?: Record<string, number>;
  placement?: { sentence?: string };
}
export interface PlanReply {
  job: string;
  parameters: number;
  devices: number;
  device: string;
  device_memory_bytes: number;
  rates: string;
  plan: Plan;
  alternatives: Plan[];
  search: { points: number; evaluated: number; fitting: number };
}

const degrees = ["tp", "pp", "dp", "cp", "ep", "zero", "micro_batch"];
const bytes = (value: number) => mebibytes(value / (1 << 20));

// Steps differ by less than the seconds of a duration.
function stepTime(s: number): string {
  return s < 60 && s >= 1 ? `${number(s, 2)} s` : duration(s * 1000);
}

function words(strategy: Strategy): string {
  const shown = degrees.filter(
    (key) =>
      strategy[key] !== undefined && (key !== "ep" && key !== "cp" ? true : strategy[key] !== 1),
  );
  return shown.map((key) => `${key} ${strategy[key]}`).join(", ");
}

function range(interval: Interval | undefined): string {
  if (!interval) return "–";
  return `${stepTime(interval.low_s)} – ${stepTime(interval.high_s)}`;
}

export function PlanResult({ reply }: { reply: PlanReply }) {
  const { plan } = reply;
  const query = "POST /v1/plans";
  const rows = [plan, ...reply.alternatives];
  return (
    <div className="stack">
      <div className="tiles">
        <Figure
          name={t("plans.step")}
          value={stepTime(plan.step_time_s)}
          foot={t("plans.interval", { range: range(plan.interval) })}
          query={`${query}: plan.step_time_s`}
        />
        <Figure
          name={t("plans.tokens")}
          value={plan.tokens_per_s === undefined ? "–" : number(plan.tokens_per_s)}
          foot={t("plans.on", { devices: reply.devices, device: reply.device })}
          query={`${query}: plan.tokens_per_s`}
        />
        <Figure
          name="MFU"
          value={plan.mfu === undefined ? "–" : percent(plan.mfu)}
          foot={plan.binding ?? ""}
          query={`${query}: plan.mfu`}
        />
        <Figure
          name={t("plans.memory")}
          value={bytes(plan.memory_per_device_bytes)}
          foot={t(plan.fits ? "plans.fits" : "plans.misfits", {
            memory: bytes(reply.device_memory_bytes),
          })}
          query={`${query}: plan.memory_per_device_bytes`}
        />
      </div>
      <div className="grid">
        <Card title={t("plans.result")} query={query} className="w4">
          <dl className="facts">
            {Object.entries(plan.strategy).map(([key, value]) => (
              <div key={key} style={{ display: "contents" }}>
                <dt>{key}</dt>
                <dd>{String(value)}</dd>
              </div>
            ))}
          </dl>
          {plan.placement?.sentence && (
            <p className="quiet" style={{ marginTop: 10 }}>
              {plan.placement.sentence}
            </p>
          )}
        </Card>
        <Parts
          title={t("plans.breakdown")}
          parts={plan.breakdown}
          total={plan.step_time_s}
          say={(value) => stepTime(value)}
          query={query}
          suffix="_s"
        />
        <Parts
          title={t("plans.memory_parts")}
          parts={plan.memory}
          total={reply.device_memory_bytes}
          say={bytes}
          query={query}
          suffix="_bytes"
        />
      </div>
      <Card title={t("plans.next")} query={query} isFlush>
        <DataTable
          label={t("plans.next")}
          rows={rows}
          id={(_, index) => index}
          columns={[
            { name: t("plans.strategy"), of: (each) => words(each.strategy) },
            {
              name: t("plans.step"),
              isNumber: true,
              of: (each) => stepTime(each.step_time_s),
            },
            {
              name: t("plans.behind"),
              isNumber: true,
              of: (each) => percent(each.step_time_s / plan.step_time_s - 1),
            },
            { name: "80 %", isNumber: true, of: (each) => range(each.interval) },
            {
              name: t("plans.memory"),
              isNumber: true,
              of: (each) => bytes(each.memory_per_device_bytes),
            },
          ]}
        />
        <p className="empty">{t("plans.search", { ...reply.search, rates: reply.rates })}</p>
      </Card>
    </div>
  );
}

interface PartsProps {
  title: string;
  parts: Record<string, number> | undefined;
  total: number;
  say: (value: number) => string;
  query: string;
  suffix: string;
}
// The parts of a whole, the largest first, each with its share as a bar.
function Parts({ title, parts, total, say, query, suffix }: PartsProps) {
  const rows = Object.entries(parts ?? {})
    .filter(([key, value]) => value > 0 && key !== `total${suffix}`)
    .sort((a, b) => b[1] - a[1]);
  return (
    <Card title={title} query={query} className="w4">
      <ul className="stack" style={{ gap: 8 }}>
        {rows.map(([key, value]) => (
          <li key={key}>
            <div className="inline">
              <span className="grow">{key.replace(suffix, "").replaceAll("_", " ")}</span>
              <span className="quiet">
                {say(value)}, {percent(value / total)}
              </span>
            </div>
            <Meter value={value} of={total} label={`${key}: ${percent(value / total)}`} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Figure({
  name,
  value,
  foot,
  query,
}: {
  name: string;
  value: string;
  foot: string;
  query: string;
}) {
  return (
    <div className="card tile" title={query}>
      <div className="name">{name}</div>
      <div className="value">{value}</div>
      <div className="foot">{foot}</div>
    </div>
  );
}
