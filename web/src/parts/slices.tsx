// Shared devices: the parts that replicas have of them, and what tenants of the daemons of shared
// GPUs take.
import { useQuery } from "../api/query";
import { devicesOf } from "../api/types";
import { link } from "../router";
import { mebibytes, number, percent, t } from "../texts";
import { Badge } from "./badge";
import { Card, Trouble } from "./card";
import { DataTable } from "./data_table";

export interface SharedUse {
  tenant: string;
  devices?: number; // how many
  device?: number; // which one, of one node
  use_percent: number;
  memory_mib: number;
}
interface Slice {
  job: string;
  handle: string;
  queue: string;
  user: string;
  replica: number;
  node: string;
  devices: number; // a bit each
  device_share: number;
  device_memory_mib: number;
  phase: string;
  enforced: boolean;
}

export function SharedUses({ shared, query }: { shared: SharedUse[]; query: string }) {
  return (
    <Card title={t("shared")} query={query} isFlush>
      <DataTable
        label={t("shared")}
        rows={shared}
        id={(_, index) => index}
        empty={t("shared.none")}
        columns={[
          { name: t("tenant"), of: (each) => each.tenant },
          {
            name: t("devices"),
            isNumber: true,
            of: (each) =>
              each.device === undefined ? number(each.devices ?? 0) : `GPU ${each.device}`,
          },
          {
            name: t("devices.use"),
            isNumber: true,
            of: (each) => percent(each.use_percent / 100),
          },
          { name: t("devices.memory"), isNumber: true, of: (each) => mebibytes(each.memory_mib) },
        ]}
      />
    </Card>
  );
}

export function Slices() {
  const reply = useQuery<{ items: Slice[] }>("/v1/slices", { on: ["job", "node"] });
  return (
    <Card title={t("slices")} query="GET /v1/slices" isFlush={!reply.problem}>
      {reply.problem ? (
        <Trouble problem={reply.problem} what={t("slices")} />
      ) : (
        <DataTable
          label={t("slices")}
          rows={reply.data?.items ?? []}
          id={(slice) => `${slice.job}.${slice.replica}`}
          empty={t("slices.none")}
          columns={[
            {
              name: t("node"),
              of: (slice) => <a href={link("nodes", slice.node)}>{slice.node}</a>,
            },
            { name: "GPU", of: (slice) => devicesOf(slice.devices).join(", ") },
            {
              name: t("job"),
              of: (slice) => <a href={link("jobs", slice.handle)}>{slice.handle}</a>,
            },
            { name: t("user"), of: (slice) => slice.user },
            { name: t("queue"), of: (slice) => slice.queue },
            {
              name: t("slices.share"),
              isNumber: true,
              of: (slice) => percent(slice.device_share),
            },
            {
              name: t("devices.memory"),
              isNumber: true,
              of: (slice) => mebibytes(slice.device_memory_mib),
            },
            {
              name: t("slices.held"),
              of: (slice) => (
                <Badge tone={slice.enforced ? "good" : "warn"}>
                  {t(slice.enforced ? "slices.enforced" : "slices.trusted")}
                </Badge>
              ),
            },
          ]}
        />
      )}
    </Card>
  );
}
