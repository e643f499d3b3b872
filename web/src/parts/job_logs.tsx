// The output of a job, a rank at a time.
import { useMemo } from "react";
import type { Attempt, Job } from "../api/types";
import { setQuery, usePlace } from "../router";
import { number, t } from "../texts";
import { QueryButton } from "./card";
import { LogReader } from "./log_reader";

// Ranks of a replica: one, or one for each device.
function ranksOf(job: Job, devices: number): number {
  let count = 0;
  for (let bits = devices; bits; bits &= bits - 1) ++count;
  return job.spec?.ranks === "device" ? Math.max(1, count) : 1;
}

interface JobLogsProps {
  job: Job;
  path: string;
  attempts: Attempt[];
  hasPast: boolean; // the controller knows attempts of before, and their output
}

export function JobLogs({ job, path, attempts, hasPast }: JobLogsProps) {
  const place = usePlace();
  const chosen = place.query.get("rank") ?? "0.0";
  const wanted = place.query.get("attempt") ?? "";
  const latest = attempts[attempts.length - 1];
  const shown = attempts.find((attempt) => String(attempt.number) === wanted) ?? latest;
  const isPast = shown !== latest;
  const ranks = useMemo(() => {
    const replicas = shown?.replicas;
    if (!replicas) {
      const roles = (job.spec?.roles as { name?: string; replicas?: number }[] | undefined) ?? [{}];
      let index = 0;
      return roles.flatMap((role) =>
        Array.from({ length: role.replicas ?? 1 }, () => ({
          id: `${index}.0`,
          name: `${role.name ?? ""} ${index++}`,
        })),
      );
    }
    let rank = 0;
    return replicas.flatMap((replica, index) =>
      Array.from({ length: ranksOf(job, replica.devices) }, (_, local) => ({
        id: `${index}.${local}`,
        name: t("log.rank", { rank: String(rank++), node: replica.node }),
      })),
    );
  }, [shown, job]);
  const [replica = "0", rank = "0"] = chosen.split(".");
  const query = `${path}/logs?replica=${replica}&rank=${rank}${isPast ? `&attempt=${shown?.number}` : "&follow=true"}`;
  if (job.status.attempts === 0) return <p className="card empty">{t("job.not_started")}</p>;
  return (
    <div className="stack">
      <div className="inline">
        <label className="check">
          {t("rank")}
          <select value={chosen} onChange={(event) => setQuery({ rank: event.target.value })}>
            {ranks.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
        {hasPast && attempts.length > 1 && (
          <label className="check">
            {t("attempt")}
            <select
              value={isPast ? wanted : ""}
              onChange={(event) => setQuery({ attempt: event.target.value })}
            >
              <option value="">{t("log.latest")}</option>
              {attempts
                .slice(0, -1)
                .reverse()
                .map((attempt) => (
                  <option key={attempt.number} value={String(attempt.number)}>
                    {number(attempt.number)}
                  </option>
                ))}
            </select>
          </label>
        )}
        <QueryButton query={`GET ${query}`} title={t("job.tab.logs")} />
      </div>
      <LogReader
        key={`${query}/${job.status.attempts}`}
        path={query}
        label={t("log.of", { rank: chosen })}
      />
    </div>
  );
}
