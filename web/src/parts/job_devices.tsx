// How a job has used the devices that it had.
import { useQuery } from "../api/query";
import { link } from "../router";
import { number, percent, t } from "../texts";
import { Card } from "./card";
import { DataTable } from "./data_table";

interface JobDevicesReply {
  device_seconds: number;
  used_device_seconds: number;
  use_percent: number | null;
  replicas: {
    replica: number;
    node: string;
    devices: number;
    use_percent: number | null;
    memory_percent: number | null;
  }[];
}

export function JobDevices({ path, isLive }: { path: string; isLive: boolean }) {
  const reply = useQuery<JobDevicesReply>(`${path}/devices`, { every: isLive ? 2000 : undefined });
  if (!reply.data) return null; // the rest of the job is worth showing without it
  const { device_seconds: had, use_percent: use, replicas } = reply.data;
  const share = (value: number | null) => (value === null ? "–" : percent(value / 100));
  return (
    <Card title={t("job.use")} query={`GET ${path}/devices`} isFlush>
      <p className="empty" style={{ paddingBlock: 4 }}>
        {t("job.use_words", { hours: number(had / 3600, 2), use: share(use) })}
      </p>
      {replicas.length > 0 && (
        <DataTable
          label={t("job.use")}
          rows={replicas}
          id={(replica) => replica.replica}
          columns={[
            { name: t("replica"), isNumber: true, of: (replica) => replica.replica },
            {
              name: t("node"),
              of: (replica) => <a href={link("nodes", replica.node)}>{replica.node}</a>,
            },
            {
              name: t("devices"),
              isNumber: true,
              of: (replica) => number(replica.devices.toString(2).replaceAll("0", "").length),
            },
            { name: t("devices.use"), isNumber: true, of: (replica) => share(replica.use_percent) },
            {
              name: t("devices.memory"),
              isNumber: true,
              of: (replica) => share(replica.memory_percent),
            },
          ]}
        />
      )}
    </Card>
  );
}
