// One job: why it waits, where it runs, what it writes, how fast it learns.
import { useEffect } from "react";
import { useQuery } from "../api/query";
import type { Attempt, Job } from "../api/types";
import { jobs as knownJobs, useVersion } from "../live/collections";
import { useSeconds } from "../live/seconds";
import { live } from "../live/stream";
import { PhaseBadge } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { Happenings } from "../parts/happenings";
import { JobActions } from "../parts/job_actions";
import { JobDevices } from "../parts/job_devices";
import { JobLogs } from "../parts/job_logs";
import { JobMetrics } from "../parts/job_metrics";
import { Tabs } from "../parts/tabs";
import { Timeline } from "../parts/timeline";
import { WhyWaiting } from "../parts/why_waiting";
import { link, setQuery, usePlace } from "../router";
import { duration, exactMoment, number, t } from "../texts";
import type { ViewProps } from "../views";
import { DataTable } from "../parts/data_table";

function useJob(handle: string) {
  const path = `/v1/jobs/${encodeURIComponent(handle)}`;
  const full = useQuery<Job>(path);
  useVersion(knownJobs);
  const id = full.data?.id;
  // The stream has jobs in short; the full one follows when its own job has changed.
  useEffect(() => {
    if (!id) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.on((kind, object) => {
      if (kind !== "job" || (object as Job).id !== id || timer) return;
      timer = setTimeout(() => {
        timer = undefined;
        void full.reload();
      }, 300);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [id, full.reload]);
  const short = id ? knownJobs.items.get(id) : undefined;
  const job =
    full.data && short && Number(short.rev) > Number(full.data.rev)
      ? { ...short, spec: full.data.spec }
      : full.data;
  return { job, path, problem: full.problem, reload: full.reload };
}

export default function JobView({ rest }: ViewProps) {
  const handle = rest[0] ?? "";
  const { job, path, problem, reload } = useJob(handle);
  const place = usePlace();
  const tab = place.query.get("tab") ?? "overview";
  const attempts = useQuery<{ items: Attempt[] }>(job ? `${path}/attempts` : null, {});
  const rev = job?.rev;
  useEffect(() => {
    if (rev) void attempts.reload();
  }, [rev, attempts.reload]);
  if (!job) return problem ? <Trouble problem={problem} /> : <Loading />;
  const list = attempts.data?.items ?? (job.status.attempt ? [job.status.attempt] : []);
  const tabs = ["overview", "logs", "metrics", "attempts", "spec"].map((id) => ({
    id,
    name: t(`job.tab.${id}`),
  }));
  return (
    <>
      <PageHead title={job.handle} crumb={<a href={link("jobs")}>{t("view.jobs")}</a>}>
        <PhaseBadge job={job} />
        <JobActions job={job} onChanged={() => void reload()} />
      </PageHead>
      <Tabs
        label={job.handle}
        tabs={tabs}
        chosen={tab}
        onChoose={(id) => setQuery({ tab: id === "overview" ? "" : id })}
      >
        {tab === "overview" && (
          <JobOverview job={job} path={path} attempts={list} problem={attempts.problem} />
        )}
        {tab === "logs" && (
          <JobLogs job={job} path={path} attempts={list} hasPast={!!attempts.data} />
        )}
        {tab === "metrics" && <JobMetrics path={path} isLive={job.status.phase === "running"} />}
        {tab === "attempts" && (
          <div className="stack">
            <Card title={t("job.tab.attempts")} query={`GET ${path}/attempts`} isFlush>
              {attempts.problem && (
                <Trouble problem={attempts.problem} what={t("job.past_attempts")} />
              )}
              <AttemptTable attempts={list} />
            </Card>
            <Happenings kind="job" object={job.handle} />
          </div>
        )}
        {tab === "spec" && (
          <Card title={t("job.tab.spec")} query={`GET ${path}`}>
            <pre tabIndex={0}>{JSON.stringify(job.spec ?? {}, null, 2)}</pre>
          </Card>
        )}
      </Tabs>
    </>
  );
}

interface OverviewProps {
  job: Job;
  path: string;
  attempts: Attempt[];
  problem: import("../api/client").Problem | undefined;
}
function JobOverview({ job, path, attempts, problem }: OverviewProps) {
  const { status } = job;
  const now = useSeconds();
  const waited = (status.started_ms ?? status.ended_ms ?? now) - status.submitted_ms;
  return (
    <div className="grid">
      {status.phase === "pending" && <WhyWaiting job={job} path={path} />}
      <Card title={t("job.facts")} query={`GET ${path}`} className="w4">
        <dl className="facts">
          <Fact name={t("reason")}>{status.reason || "–"}</Fact>
          <Fact name={t("queue")}>
            <a href={`#/jobs?queue=${encodeURIComponent(job.queue)}`}>{job.queue}</a>
          </Fact>
          <Fact name={t("user")}>{job.user}</Fact>
          <Fact name={t("priority")}>{number(job.priority)}</Fact>
          <Fact name={t("devices")}>{number(status.devices)}</Fact>
          <Fact name={t("submitted")}>{exactMoment(status.submitted_ms)}</Fact>
          <Fact name={t("waited")}>{duration(waited)}</Fact>
          <Fact name={t("started")}>{exactMoment(status.started_ms)}</Fact>
          {status.ended_ms && <Fact name={t("ended")}>{exactMoment(status.ended_ms)}</Fact>}
          {status.started_ms && (
            <Fact name={t("took")}>{duration((status.ended_ms ?? now) - status.started_ms)}</Fact>
          )}
          {status.exit_status !== undefined && (
            <Fact name={t("exit_status")}>{String(status.exit_status)}</Fact>
          )}
          <Fact name={t("job.attempts")}>
            {t("job.attempts_words", {
              attempts: status.attempts,
              failures: status.failures,
              evictions: status.evictions,
            })}
          </Fact>
          {job.after && (
            <Fact name={t("job.after")}>
              {job.after.map((id) => (
                <a key={id} href={link("jobs", id)}>
                  {id}{" "}
                </a>
              ))}
            </Fact>
          )}
        </dl>
      </Card>
      <Card title={t("job.timeline")} query={`GET ${path}/attempts`} className="w8">
        {problem && !problem.isMissing && <Trouble problem={problem} />}
        {attempts.length > 0 ? (
          <Timeline attempts={attempts} label={t("job.timeline")} />
        ) : (
          <p className="quiet">{t(status.attempts > 0 ? "job.no_past" : "job.not_started")}</p>
        )}
      </Card>
      <JobDevices path={path} isLive={status.phase === "running"} />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function AttemptTable({ attempts }: { attempts: Attempt[] }) {
  return (
    <DataTable
      label={t("job.tab.attempts")}
      rows={[...attempts].reverse()}
      id={(attempt) => attempt.number}
      empty={t("job.not_started")}
      columns={[
        { name: t("attempt"), isNumber: true, of: (attempt) => number(attempt.number) },
        { name: t("started"), of: (attempt) => exactMoment(attempt.started_ms) },
        { name: t("ended"), of: (attempt) => exactMoment(attempt.ended_ms) },
        {
          name: t("took"),
          isNumber: true,
          of: (attempt) => duration((attempt.ended_ms || Date.now()) - attempt.started_ms),
        },
        { name: t("job.stop"), of: (attempt) => t(`stop.${attempt.stop}`) },
        {
          name: t("nodes"),
          isWide: true,
          of: (attempt) =>
            [...new Set(attempt.replicas.map((replica) => replica.node))].slice(0, 40).join(", "),
        },
      ]}
    />
  );
}
