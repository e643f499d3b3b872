// Why a job waits: its place, the smallest set of things that keep it, and when it is likely to start.
import { useQuery } from "../api/query";
import type { Job } from "../api/types";
import { link } from "../router";
import { duration, moment, number, t } from "../texts";
import { Card, Loading, Trouble } from "./card";
import { DataTable } from "./data_table";

export interface Why {
  fits?: boolean; // false: not even the empty cluster holds it
  position?: number;
  ahead?: number;
  reason: string;
  blocking: { kind: string; name: string; text: string }[];
  start?: {
    known: boolean;
    early_ms?: number;
    likely_ms?: number;
    late_ms?: number;
    text?: string;
  };
}

// The latest start may be beyond what is predicted.
function rangeOf(start: NonNullable<Why["start"]>): string {
  return t(start.late_ms ? "why.range" : "why.range_open", {
    early: moment(start.early_ms),
    late: moment(start.late_ms),
  });
}

export function WhyWaiting({ job, path }: { job: Job; path: string }) {
  const why = useQuery<Why>(`${path}/why`, { on: ["job", "node", "queues"], every: 10000 });
  return (
    <Card title={t("why.title")} query={`GET ${path}/why`}>
      {!why.data && !why.problem && <Loading />}
      {why.problem && !why.data && (
        <>
          <p style={{ marginBottom: 10 }}>{job.status.reason}</p>
          <Trouble problem={why.problem} what={t("why.more")} />
        </>
      )}
      {why.data && (
        <WhyShown
          why={why.data}
          waited={duration(Date.now() - job.status.submitted_ms)}
          reason={job.status.reason}
        />
      )}
    </Card>
  );
}

// The place, the predicted start and the blocking set. `waited` empty: the job was not submitted.
export function WhyShown({ why, waited, reason }: { why: Why; waited: string; reason: string }) {
  const { start } = why;
  return (
    <div className="stack">
      <div className="tiles">
        <Figure
          name={t("why.position")}
          value={why.position ? number(why.position) : "–"}
          foot={t("why.ahead", { count: why.ahead ?? 0 })}
        />
        <Figure
          name={t("why.start")}
          value={start?.known ? moment(start.likely_ms) : t("why.unknown")}
          foot={start?.known ? rangeOf(start) : (start?.text ?? "")}
        />
        <Figure
          name={waited ? t("waited") : t("reason")}
          value={waited || t(why.fits === false ? "why.never" : "why.held")}
          foot={why.reason || reason}
        />
      </div>
      {why.blocking.length > 0 && (
        <DataTable
          label={t("why.blocking")}
          rows={why.blocking}
          id={(_, index) => index}
          columns={[
            {
              name: t("why.blocking"),
              of: (each) => <Named kind={each.kind} name={each.name} />,
            },
            { name: t("why.how"), isWide: true, of: (each) => each.text },
          ]}
        />
      )}
    </div>
  );
}

function Named({ kind, name }: { kind: string; name: string }) {
  if (kind === "job" || kind === "dependency") return <a href={link("jobs", name)}>{name}</a>;
  if (kind === "node") return <a href={link("nodes", name)}>{name}</a>;
  return <>{name || kind}</>;
}

function Figure({ name, value, foot }: { name: string; value: string; foot: string }) {
  return (
    <div>
      <div className="quiet">{name}</div>
      <div style={{ fontSize: 19, fontWeight: 600 }}>{value}</div>
      <div className="quiet">{foot}</div>
    </div>
  );
}
