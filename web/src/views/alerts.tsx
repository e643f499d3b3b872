// Alerts now and before, and the rules that make them.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { Badge } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { link } from "../router";
import { useSession } from "../session";
import { exactMoment, has, number, t } from "../texts";

interface Alert {
  id: string;
  rule: string;
  kind: string;
  object: string;
  text: string;
  phase: "firing" | "resolved";
  since_ms: number;
  resolved_ms?: number;
}
interface Rule {
  name: string;
  kind: string;
  after_s: number;
  clear_s: number;
  limit?: number;
  enabled: boolean;
}
interface Rules {
  rev: string;
  rules: Rule[];
}

export default function Alerts() {
  const reply = useQuery<{ items: Alert[] }>("/v1/alerts", { every: 5000 });
  const firing = reply.data?.items.filter((alert) => alert.phase === "firing") ?? [];
  const resolved = reply.data?.items.filter((alert) => alert.phase !== "firing") ?? [];
  return (
    <div className="stack">
      <PageHead title={t("view.alerts")} />
      {!reply.data ? (
        reply.problem ? (
          <Trouble problem={reply.problem} what={t("view.alerts")} />
        ) : (
          <Loading />
        )
      ) : (
        <>
          <AlertTable title={t("alerts.now")} alerts={firing} empty={t("alerts.none")} />
          <AlertTable title={t("alerts.resolved")} alerts={resolved} empty={t("nothing")} />
        </>
      )}
      <RuleTable />
    </div>
  );
}

function AlertTable({ title, alerts, empty }: { title: string; alerts: Alert[]; empty: string }) {
  return (
    <Card title={title} query="GET /v1/alerts" isFlush>
      <DataTable
        label={title}
        rows={alerts}
        id={(alert) => alert.id}
        empty={empty}
        columns={[
          {
            name: t("state"),
            of: (alert) => (
              <Badge tone={alert.phase === "firing" ? "bad" : "good"}>
                {t(`alerts.${alert.phase}`)}
              </Badge>
            ),
          },
          { name: t("alerts.rule"), of: (alert) => alert.rule },
          { name: t("alerts.object"), of: (alert) => <ObjectLink alert={alert} /> },
          { name: t("since"), of: (alert) => exactMoment(alert.since_ms) },
          { name: t("alerts.text"), isWide: true, of: (alert) => alert.text },
        ]}
      />
    </Card>
  );
}

const nodeKinds = ["node_silent", "device_failed", "certificate_ends"];
const jobKinds = ["job_failed", "job_restarts", "device_idle"];

function ObjectLink({ alert }: { alert: Alert }) {
  if (!alert.object) return <>–</>;
  if (nodeKinds.includes(alert.kind))
    return <a href={link("nodes", alert.object)}>{alert.object}</a>;
  if (jobKinds.includes(alert.kind)) return <a href={link("jobs", alert.object)}>{alert.object}</a>;
  return <>{alert.object}</>;
}

// Rules with their figures, which operators change in place.
function RuleTable() {
  const session = useSession();
  const action = useAction();
  const reply = useQuery<Rules>("/v1/alerts/rules");
  const [draft, setDraft] = useState<Rule[]>();
  const rules = draft ?? reply.data?.rules ?? [];
  const set = (index: number, change: Partial<Rule>) =>
    setDraft(rules.map((rule, at) => (at === index ? { ...rule, ...change } : rule)));
  const save = async () => {
    const isDone = await action.run(() =>
      request("/v1/alerts/rules", { method: "PUT", body: { rules }, ifMatch: reply.data?.rev }),
    );
    if (!isDone) return;
    setDraft(undefined);
    await reply.reload();
  };
  const figure = (rule: Rule, index: number, key: "after_s" | "clear_s" | "limit") =>
    draft && rule[key] !== undefined ? (
      <input
        type="number"
        min={0}
        style={{ width: 90 }}
        aria-label={`${rule.name}: ${t(`alerts.${key}`)}`}
        value={rule[key]}
        onChange={(event) => set(index, { [key]: Number(event.target.value) })}
      />
    ) : rule[key] === undefined ? (
      "–"
    ) : (
      number(rule[key], 2)
    );
  if (!reply.data)
    return reply.problem && !reply.problem.isMissing ? <Trouble problem={reply.problem} /> : null;
  return (
    <Card
      title={t("alerts.rules")}
      query="GET /v1/alerts/rules"
      isFlush
      actions={
        session.may("operator") &&
        (draft ? (
          <>
            <button type="button" className="small" onClick={() => setDraft(undefined)}>
              {t("close")}
            </button>
            <button
              type="button"
              className="small main"
              disabled={action.isBusy}
              onClick={() => void save()}
            >
              {t("save")}
            </button>
          </>
        ) : (
          <button type="button" className="small" onClick={() => setDraft(reply.data?.rules)}>
            {t("alerts.change")}
          </button>
        ))
      }
    >
      {action.problem && <Trouble problem={action.problem} />}
      <DataTable
        label={t("alerts.rules")}
        rows={rules.map((rule, index) => ({ rule, index }))}
        id={({ rule }) => rule.name}
        columns={[
          {
            name: t("alerts.enabled"),
            of: ({ rule, index }) => (
              <input
                type="checkbox"
                checked={rule.enabled}
                disabled={!draft}
                aria-label={`${rule.name}: ${t("alerts.enabled")}`}
                onChange={(event) =>
                  set(index, { enabled: (event.target as HTMLInputElement).checked })
                }
              />
            ),
          },
          { name: t("name"), of: ({ rule }) => rule.name },
          {
            name: t("alerts.kind"),
            isWide: true,
            of: ({ rule }) =>
              has(`alerts.kind.${rule.kind}`) ? t(`alerts.kind.${rule.kind}`) : rule.kind,
          },
          {
            name: t("alerts.after_s"),
            isNumber: true,
            of: ({ rule, index }) => figure(rule, index, "after_s"),
          },
          {
            name: t("alerts.clear_s"),
            isNumber: true,
            of: ({ rule, index }) => figure(rule, index, "clear_s"),
          },
          {
            name: t("alerts.limit"),
            isNumber: true,
            of: ({ rule, index }) => figure(rule, index, "limit"),
          },
        ]}
      />
    </Card>
  );
}
