// Every change with its user, the newest first.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { setQuery, usePlace } from "../router";
import { exactMoment, t } from "../texts";

interface AuditRecord {
  number: string | number;
  time_ms: number;
  user: string;
  token: string;
  address: string;
  action: string;
  object: string;
  status: number;
  hash: string;
}
interface AuditReply {
  items: AuditRecord[];
  head?: { number: string; hash: string };
  next?: string;
}

export default function Audit() {
  const place = usePlace();
  const user = place.query.get("user") ?? "";
  const path = `/v1/audit?limit=100${user ? `&user=${encodeURIComponent(user)}` : ""}`;
  const reply = useQuery<AuditReply>(path, { every: 10000 });
  const [older, setOlder] = useState<{ path: string; items: AuditRecord[]; next?: string }>();
  const action = useAction();
  const further = older?.path === path ? older : undefined;
  const next = further ? further.next : reply.data?.next;
  const rows = [...(reply.data?.items ?? []), ...(further?.items ?? [])];
  const more = () =>
    action.run(async () => {
      const page = await request<AuditReply>(`${path}&after=${encodeURIComponent(next ?? "")}`);
      setOlder({ path, items: [...(further?.items ?? []), ...page.items], next: page.next });
    });
  return (
    <>
      <PageHead title={t("view.audit")} />
      <div className="filters">
        <input
          type="search"
          aria-label={t("user")}
          placeholder={t("user")}
          value={user}
          onChange={(event) => setQuery({ user: event.target.value })}
        />
        <span className="quiet">{t("audit.words")}</span>
      </div>
      <Card title={t("view.audit")} query={`GET ${path}`} isFlush={!reply.problem}>
        {reply.problem ? (
          <Trouble problem={reply.problem} what={t("view.audit")} />
        ) : !reply.data ? (
          <Loading />
        ) : (
          <DataTable
            label={t("view.audit")}
            rows={rows}
            id={(record) => String(record.number)}
            columns={[
              { name: t("time"), of: (record) => exactMoment(record.time_ms) },
              { name: t("user"), of: (record) => record.user || "–" },
              {
                name: t("audit.action"),
                of: (record) => <code>{record.action}</code>,
              },
              { name: t("audit.object"), of: (record) => record.object },
              { name: t("audit.status"), isNumber: true, of: (record) => record.status },
              {
                name: t("address"),
                of: (record) => <span className="mono">{record.address}</span>,
              },
              {
                name: t("audit.hash"),
                of: (record) => <span className="mono quiet">{record.hash.slice(0, 12)}</span>,
              },
            ]}
          />
        )}
        {next && (
          <p className="empty">
            <button type="button" disabled={action.isBusy} onClick={() => void more()}>
              {t("audit.more")}
            </button>
          </p>
        )}
        {action.problem && <Trouble problem={action.problem} />}
      </Card>
    </>
  );
}
