// Every GPU of the cluster as a square: use, memory, or whether a job has it.
import { memo, useEffect, useMemo, useState } from "react";
import {
  type DeviceTables,
  stateBits,
  tablesOfNodes,
  unknownShare,
  useDevices,
} from "../live/devices";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { faultValue, HeatMap, unknownValue } from "../parts/heat_map";
import { jobs as knownJobs } from "../live/collections";
import { go, link, setQuery, usePlace } from "../router";
import { number, percent, t } from "../texts";
import { useNodes } from "../live/node_list";

const modes = ["use", "memory", "jobs"] as const;
type Mode = (typeof modes)[number];
const heldValue = 75; // the colour --heat-3

export function valuesOf(tables: DeviceTables, mode: Mode): Uint8Array {
  const values = new Uint8Array(tables.state.length);
  const shares = mode === "memory" ? tables.memory : tables.use;
  for (let i = 0; i < values.length; ++i) {
    const state = tables.state[i] ?? 0;
    if (state & (stateBits.failed | stateBits.silent)) values[i] = faultValue;
    else if (mode === "jobs") values[i] = state & stateBits.held ? heldValue : 0;
    else values[i] = shares[i] === unknownShare ? unknownValue : Math.min(100, shares[i] ?? 0);
  }
  return values;
}

export default function Devices() {
  const { tables, problem } = useDevices();
  if (tables) return <Shown tables={tables} query="GET /v1/devices" />;
  if (problem?.isMissing) return <FromNodes />;
  return problem ? <Trouble problem={problem} /> : <Loading />;
}

function FromNodes() {
  const nodes = useNodes();
  const tables = useMemo(() => tablesOfNodes(nodes.all), [nodes.all]);
  if (nodes.isLoading) return nodes.problem ? <Trouble problem={nodes.problem} /> : <Loading />;
  return <Shown tables={tables} query="GET /v1/nodes" />;
}

function Shown({ tables, query }: { tables: DeviceTables; query: string }) {
  const place = usePlace();
  const wanted = (place.query.get("show") as Mode | null) ?? "use";
  const mode: Mode = tables.sources && modes.includes(wanted) ? wanted : "jobs";
  const values = useMemo(() => valuesOf(tables, mode), [tables, mode]);
  const later = useLater(tables);
  const { starts, names } = tables;
  const total = starts[starts.length - 1] ?? 0;
  let held = 0;
  for (const state of tables.state) held += state & stateBits.held;
  return (
    <div className="stack">
      <PageHead title={t("view.devices")}>
        <span className="quiet">
          {t("devices.count", { total, nodes: names.length })}; {t("devices.held", { count: held })}
        </span>
        <div className="actions" role="group" aria-label={t("devices.show")}>
          {modes.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={mode === each}
              disabled={!tables.sources && each !== "jobs"}
              onClick={() => setQuery({ show: each })}
            >
              {t(`devices.${each}`)}
            </button>
          ))}
        </div>
      </PageHead>
      {!tables.sources && (
        <p className="notice">{t("problem.missing", { what: t("devices.measured") })}</p>
      )}
      {total === 0 ? (
        <p className="card empty">{t("devices.none")}</p>
      ) : (
        <>
          <Card title={t(`devices.map.${mode}`)} query={query} actions={<HeatLegend mode={mode} />}>
            <HeatMap
              label={t("devices.map.label", { total })}
              starts={starts}
              values={values}
              onOpen={(server) => go(link("nodes", names[server] ?? ""))}
              describe={(device, server) =>
                `${names[server]} GPU ${device - (starts[server] ?? 0)}: ${wordsOf(tables, device)}`
              }
            />
          </Card>
          <ByNode tables={later} query={query} />
        </>
      )}
    </div>
  );
}

function wordsOf(tables: DeviceTables, device: number): string {
  const state = tables.state[device] ?? 0;
  if (state & stateBits.failed) return t("devices.failed");
  if (state & stateBits.silent) return t("devices.away");
  const job = tables.job[device] ?? 0;
  const words = [
    job
      ? (knownJobs.items.get(String(job))?.handle ?? t("devices.job", { job: String(job) }))
      : t("devices.free"),
  ];
  const use = tables.use[device] ?? unknownShare;
  const memory = tables.memory[device] ?? unknownShare;
  if (use !== unknownShare) words.push(`${t("devices.use")} ${use} %`);
  if (memory !== unknownShare) words.push(`${t("devices.memory")} ${memory} %`);
  if (state & stateBits.cordoned) words.push(t("node.cordoned"));
  if (state & stateBits.draining) words.push(t("node.draining"));
  return words.join(", ");
}

function meanOf(values: Uint8Array, first: number, end: number): string {
  let sum = 0;
  let count = 0;
  for (let i = first; i < end; ++i)
    if ((values[i] ?? unknownShare) <= 100) {
      sum += values[i] ?? 0;
      ++count;
    }
  return count > 0 ? percent(sum / count / 100) : "–";
}

// The value of a moment ago: the table below the map has a frame of its own.
function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), 150);
    return () => clearTimeout(timer);
  }, [value]);
  return later;
}

const ByNode = memo(function ByNode({ tables, query }: { tables: DeviceTables; query: string }) {
  const { names, starts } = tables;
  const rows = useMemo(
    () =>
      names.map((name, index) => ({
        name,
        first: starts[index] ?? 0,
        end: starts[index + 1] ?? 0,
        index,
      })),
    [names, starts],
  );
  const heldOf = (first: number, end: number) => {
    let held = 0;
    for (let i = first; i < end; ++i) held += (tables.state[i] ?? 0) & stateBits.held;
    return held;
  };
  return (
    <Card title={t("devices.by_node")} query={query} isFlush>
      <DataTable
        label={t("devices.by_node")}
        rows={rows}
        id={(row) => row.name}
        columns={[
          { name: t("node"), of: (row) => <a href={link("nodes", row.name)}>{row.name}</a> },
          { name: t("devices"), isNumber: true, of: (row) => number(row.end - row.first) },
          {
            name: t("devices.jobs"),
            isNumber: true,
            of: (row) => number(heldOf(row.first, row.end)),
          },
          {
            name: t("devices.use"),
            isNumber: true,
            of: (row) => meanOf(tables.use, row.first, row.end),
          },
          {
            name: t("devices.memory"),
            isNumber: true,
            of: (row) => meanOf(tables.memory, row.first, row.end),
          },
          {
            name: t("devices.source"),
            of: (row) => t(`devices.source.${tables.sources?.[row.index] ?? 0}`),
          },
        ]}
      />
    </Card>
  );
});

function HeatLegend({ mode }: { mode: Mode }) {
  return (
    <span className="legend">
      {mode === "jobs" ? (
        <>
          <span>
            <i style={{ background: "var(--heat-0)" }} />
            {t("devices.free")}
          </span>
          <span>
            <i style={{ background: "var(--heat-3)" }} />
            {t("devices.jobs")}
          </span>
        </>
      ) : (
        <>
          <span>0 %</span>
          <span className="ramp" />
          <span>100 %</span>
          <span>
            <i style={{ background: "var(--idle)" }} />
            {t("devices.unknown")}
          </span>
        </>
      )}
      <span>
        <i style={{ background: "var(--bad)" }} />
        {t("devices.away")}
      </span>
    </span>
  );
}
