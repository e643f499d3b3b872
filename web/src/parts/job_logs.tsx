// The output of a job, a rank at a time.
import { useMemo } from "react";
import type { Attempt, Job } from "../api/types";
import { setQuery, usePlace } from "../router";
import { t } from "../texts";
import { QueryButton } from "./card";
import { LogReader } from "./log_reader";

// Ranks of a replica: one, or one for each device.
function ranksOf(job: Job, devices: number): number {
  let count = 0;
  for (let bits = devices; bits; bits &= bits - 1) ++count;
  return job.spec?.ranks === "device" ? Math.max(1, count) : 1;
}

export function JobLogs({ job, path, attempts }: { job: Job; path: string; attempts: Attempt[] }) {
  const place = usePlace();
  const chosen = place.query.get("rank") ?? "0.0";
  const ranks = useMemo(() => {
    const replicas = attempts[attempts.length - 1]?.replicas;
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
  }, [attempts, job]);
  const [replica = "0", rank = "0"] = chosen.split(".");
  const query = `${path}/logs?replica=${replica}&rank=${rank}&follow=true`;
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
