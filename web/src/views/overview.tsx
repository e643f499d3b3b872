// The first look of a day: how much is used, what waits and why, what is broken.
import { lazy, Suspense, useEffect, useState } from "react";
import { useQuery } from "../api/query";
import type { Job, List, Queues } from "../api/types";
import { jobs as knownJobs, useVersion } from "../live/collections";
import { useSeconds } from "../live/seconds";
import { useNodes } from "../live/node_list";
import { nodeState, NodeBadge, PhaseBadge } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Icon } from "../parts/icon";
import { Meter } from "../parts/meter";
import { Spark } from "../parts/spark";
import { link } from "../router";
import { useSession } from "../session";
import { duration, moment, number, percent, t } from "../texts";

const waitingPath = "/v1/jobs?phase=pending&limit=50";
const failedPath = "/v1/jobs?phase=failed&limit=20";

const ClusterMap = lazy(() => import("../parts/cluster_map"));

// The view asks for these before the page is drawn.
export const overviewPaths = ["/v1/queues", "/v1/nodes", waitingPath, failedPath];

function Tile({
  name,
  value,
  unit,
  foot,
  query,
  to,
}: {
  name: string;
  value: string;
  unit?: string;
  foot?: React.ReactNode;
  query: string;
  to: string;
}) {
  return (
    <a className="card tile" href={to} title={query}>
      <div className="name">{name}</div>
      <div className="value">
        {value} {unit && <small>{unit}</small>}
      </div>
      <div className="foot">{foot}</div>
    </a>
  );
}

// The share in use since the page was opened, a value each two seconds.
const past: { at: number; share: number }[] = [];
function useSharePast(share: number | undefined): number[] {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (share === undefined) return;
    const add = () => {
      past.push({ at: Date.now(), share });
      if (past.length > 300) past.shift();
      redraw((count) => count + 1);
    };
    add();
    const timer = setInterval(add, 2000);
    return () => clearInterval(timer);
  }, [share]);
  return past.map((each) => each.share);
}

// The jobs of a list as the stream has them now; those that left the phase are gone.
function useJobsOf(path: string, phase: string) {
  const reply = useQuery<List<Job>>(path, { on: ["job"] });
  useVersion(knownJobs);
  for (const job of reply.data?.items ?? []) knownJobs.put(job);
  const items = (reply.data?.items ?? [])
    .map((job) => knownJobs.items.get(job.id) ?? job)
    .filter((job) => job.status.phase === phase);
  return { ...reply, items };
}

export default function Overview() {
  const session = useSession();
  const nodes = useNodes();
  const queues = useQuery<Queues>("/v1/queues", { on: ["job", "queues"], every: 15000 });
  const waiting = useJobsOf(waitingPath, "pending");
  const failed = useJobsOf(failedPath, "failed");
  const total = nodes.all.reduce((sum, node) => sum + node.devices, 0);
  const used = nodes.all.reduce((sum, node) => sum + node.status.devices_in_use, 0);
  const troubled = nodes.all.filter((node) => nodeState(node) !== "ready");
  const items = queues.data?.items ?? [];
  const pending = items.reduce((sum, queue) => sum + queue.pending, 0);
  const running = items.reduce((sum, queue) => sum + queue.running, 0);
  const history = useSharePast(total > 0 ? used / total : undefined);
  const now = useSeconds();
  const longest = [...waiting.items].sort((a, b) => a.status.submitted_ms - b.status.submitted_ms);
  const recent = failed.items.filter((job) => now - (job.status.ended_ms ?? 0) < 86400000);
  if (nodes.isLoading && queues.isLoading) return <Loading />;
  return (
    <div className="stack">
      <PageHead title={t("view.overview")}>
        <div className="actions">
          {session.may("user") && (
            <a className="button main" href={link("submit")}>
              <Icon name="submit" /> {t("submit.job")}
            </a>
          )}
        </div>
      </PageHead>
      {nodes.problem && <Trouble problem={nodes.problem} />}
      <div className="tiles">
        <Tile
          name={t("overview.devices")}
          value={total > 0 ? percent(used / total) : "–"}
          unit={total > 0 ? t("overview.used_of", { used, total }) : t("overview.no_devices")}
          foot={
            history.length > 1 ? <Spark values={history} label={t("overview.since_open")} /> : ""
          }
          query="GET /v1/nodes: items[].status.devices_in_use / items[].devices"
          to={link("devices")}
        />
        <Tile
          name={t("overview.running")}
          value={number(running)}
          foot={t("overview.running_foot", { count: items.length })}
          query="GET /v1/queues: sum of items[].running"
          to="#/jobs?phase=running"
        />
        <Tile
          name={t("overview.pending")}
          value={number(pending)}
          foot={
            longest[0]
              ? t("overview.longest", { time: duration(now - longest[0].status.submitted_ms) })
              : t("overview.none_waits")
          }
          query="GET /v1/queues: sum of items[].pending"
          to="#/jobs?phase=pending"
        />
        <Tile
          name={t("overview.failed")}
          value={number(recent.length) + (failed.data?.next && recent.length >= 20 ? "+" : "")}
          foot={t("overview.last_day")}
          query={`GET ${failedPath}`}
          to="#/jobs?phase=failed"
        />
        <Tile
          name={t("overview.nodes")}
          value={number(nodes.all.length - troubled.length)}
          unit={t("overview.of", { total: nodes.all.length })}
          foot={
            troubled.length > 0
              ? t("overview.troubled", { count: troubled.length })
              : t("overview.all_ready")
          }
          query="GET /v1/nodes: items[].status"
          to={link("nodes")}
        />
      </div>
      <Card title={t("devices.map.jobs")} query="GET /v1/nodes">
        <Suspense fallback={<div style={{ height: 58 }} />}>
          <ClusterMap nodes={nodes.all} />
        </Suspense>
      </Card>
      <div className="grid">
        <Card title={t("overview.waiting")} query={`GET ${waitingPath}`} className="w8" isFlush>
          {waiting.problem ? (
            <Trouble problem={waiting.problem} />
          ) : (
            <DataTable
              label={t("overview.waiting")}
              rows={longest.slice(0, 8)}
              id={(job) => job.id}
              empty={t("overview.none_waits")}
              columns={[
                {
                  name: t("job"),
                  of: (job) => <a href={link("jobs", job.handle)}>{job.handle}</a>,
                },
                { name: t("queue"), of: (job) => job.queue },
                {
                  name: t("waited"),
                  isNumber: true,
                  of: (job) => duration(now - job.status.submitted_ms),
                },
                {
                  name: t("reason"),
                  isWide: true,
                  of: (job) => (
                    <span className="quiet">
                      {job.status.held ? t("phase.held") : job.status.reason}
                    </span>
                  ),
                },
              ]}
            />
          )}
        </Card>
        <Card title={t("view.queues")} query="GET /v1/queues" className="w4">
          <ul className="stack" style={{ gap: 10 }}>
            {items.slice(0, 8).map((queue) => (
              <li key={queue.name}>
                <div className="inline">
                  <a href={link("queues")} className="grow cut">
                    {queue.name}
                  </a>
                  <span className="quiet">
                    {t("overview.queue_line", { running: queue.running, pending: queue.pending })}
                  </span>
                </div>
                <Meter
                  value={queue.devices}
                  of={total}
                  label={t("overview.queue_devices", {
                    name: queue.name,
                    count: queue.devices,
                    total,
                  })}
                />
              </li>
            ))}
          </ul>
        </Card>
        <Card
          title={t("overview.recent_failures")}
          query={`GET ${failedPath}`}
          className="w8"
          isFlush
        >
          <DataTable
            label={t("overview.recent_failures")}
            rows={failed.items.slice(0, 6)}
            id={(job) => job.id}
            empty={t("overview.no_failures")}
            columns={[
              { name: t("job"), of: (job) => <a href={link("jobs", job.handle)}>{job.handle}</a> },
              { name: t("phase"), of: (job) => <PhaseBadge job={job} /> },
              { name: t("ended"), of: (job) => moment(job.status.ended_ms) },
              {
                name: t("reason"),
                isWide: true,
                of: (job) => <span className="quiet">{job.status.reason}</span>,
              },
            ]}
          />
        </Card>
        <Card title={t("overview.node_trouble")} query="GET /v1/nodes" className="w4" isFlush>
          <DataTable
            label={t("overview.node_trouble")}
            rows={troubled.slice(0, 8)}
            id={(node) => node.id}
            empty={t("overview.all_ready")}
            columns={[
              { name: t("node"), of: (node) => <a href={link("nodes", node.name)}>{node.name}</a> },
              { name: t("state"), of: (node) => <NodeBadge node={node} /> },
            ]}
          />
        </Card>
      </div>
    </div>
  );
}
