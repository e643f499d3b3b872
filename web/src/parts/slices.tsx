// Shared devices: how much each tenant of the daemons of shared GPUs has and takes.
import { link } from "../router";
import { mebibytes, number, percent, t } from "../texts";
import { Card } from "./card";
import { DataTable } from "./data_table";

export interface SharedUse {
  tenant: string;
  devices?: number; // how many
  device?: number; // which one, of one node
  node?: string;
  use_percent: number;
  memory_mib: number;
}

export function Slices({ shared, query }: { shared: SharedUse[]; query: string }) {
  return (
    <Card title={t("slices")} query={query} isFlush>
      <DataTable
        label={t("slices")}
        rows={shared}
        id={(_, index) => index}
        empty={t("slices.none")}
        columns={[
          { name: t("tenant"), of: (each) => each.tenant },
          {
            name: t("devices"),
            isNumber: true,
            of: (each) =>
              each.device === undefined ? number(each.devices ?? 0) : `GPU ${each.device}`,
          },
          { name: t("devices.use"), isNumber: true, of: (each) => percent(each.use_percent / 100) },
          { name: t("devices.memory"), isNumber: true, of: (each) => mebibytes(each.memory_mib) },
          ...(shared.some((each) => each.node)
            ? [
                {
                  name: t("node"),
                  of: (each: SharedUse) => <a href={link("nodes", each.node ?? "")}>{each.node}</a>,
                },
              ]
            : []),
        ]}
      />
    </Card>
  );
}
