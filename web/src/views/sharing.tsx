// Tenants: what each has and how well it uses it, what waits, hours and money; and shared devices.
import { useQuery } from "../api/query";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Meter } from "../parts/meter";
import { type SharedUse, SharedUses, Slices } from "../parts/slices";
import { duration, number, percent, t } from "../texts";

// A tenant is a user in a queue; sums count since it came.
interface Tenant {
  queue: string;
  user: string;
  devices: number;
  pending: number;
  device_seconds: number;
  measured_device_seconds: number;
  used_device_seconds: number;
  waiting_seconds: number;
  starts: number;
  evictions: number;
  money: number;
}
interface TenantsReply {
  currency: string;
  prices: Record<string, number>;
  items: Tenant[];
  shared?: SharedUse[];
}

export default function Sharing() {
  const query = "GET /v1/tenants";
  const reply = useQuery<TenantsReply>("/v1/tenants", { every: 5000 });
  const prices = Object.entries(reply.data?.prices ?? {});
  return (
    <div className="stack">
      <PageHead title={t("view.sharing")} />
      {!reply.data ? (
        reply.problem ? (
          <Trouble problem={reply.problem} what={t("tenants")} />
        ) : (
          <Loading />
        )
      ) : (
        <>
          <Card title={t("tenants")} query={query} isFlush>
            <DataTable
              label={t("tenants")}
              rows={reply.data.items}
              id={(tenant) => `${tenant.queue}/${tenant.user}`}
              empty={t("tenants.none")}
              columns={[
                { name: t("queue"), of: (tenant) => tenant.queue },
                { name: t("user"), of: (tenant) => tenant.user },
                { name: t("devices.jobs"), isNumber: true, of: (tenant) => number(tenant.devices) },
                {
                  name: t("phase.pending"),
                  isNumber: true,
                  of: (tenant) => number(tenant.pending),
                },
                { name: t("devices.use"), of: (tenant) => <Used tenant={tenant} /> },
                {
                  name: t("tenants.hours"),
                  isNumber: true,
                  of: (tenant) => number(tenant.device_seconds / 3600, 1),
                },
                {
                  name: t("waited"),
                  isNumber: true,
                  of: (tenant) => duration(tenant.waiting_seconds * 1000),
                },
                {
                  name: t("tenants.starts"),
                  isNumber: true,
                  of: (tenant) => number(tenant.starts),
                },
                {
                  name: t("tenants.evictions"),
                  isNumber: true,
                  of: (tenant) => number(tenant.evictions),
                },
                {
                  name: t("tenants.money"),
                  isNumber: true,
                  of: (tenant) => `${number(tenant.money, 2)} ${reply.data?.currency ?? ""}`,
                },
              ]}
            />
            {prices.length > 0 && (
              <p className="empty">
                {t("tenants.prices")}{" "}
                {prices
                  .map(
                    ([type, price]) => `${type} ${number(price, 2)} ${reply.data?.currency ?? ""}`,
                  )
                  .join("; ")}
              </p>
            )}
          </Card>
          <SharedUses shared={reply.data.shared ?? []} query={query} />
        </>
      )}
      <Slices />
    </div>
  );
}

function Used({ tenant }: { tenant: Tenant }) {
  if (tenant.measured_device_seconds <= 0) return <>–</>;
  const share = tenant.used_device_seconds / tenant.measured_device_seconds;
  return (
    <div className="inline" style={{ flexWrap: "nowrap", minWidth: 150 }}>
      <div className="grow">
        <Meter value={share} of={1} label={percent(share)} />
      </div>
      {percent(share)}
    </div>
  );
}
