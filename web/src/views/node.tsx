// One server: what it has, what runs on it, and taking it out of use.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { type ClusterNode, devicesOf } from "../api/types";
import { nodes as knownNodes, useVersion } from "../live/collections";
import { NodeBadge, ReplicaBadge } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Dialog } from "../parts/dialog";
import { Happenings } from "../parts/happenings";
import { NodeHistory } from "../parts/node_history";
import { link } from "../router";
import { useSession } from "../session";
import { exactMoment, mebibytes, number, t } from "../texts";
import type { ViewProps } from "../views";

type Intent = ClusterNode["status"]["intent"];
const verbs: Record<Intent, string> = {
  in_use: "node.resume",
  cordoned: "node.cordon",
  draining: "node.drain",
};

export default function NodeView({ rest }: ViewProps) {
  const name = rest[0] ?? "";
  const path = `/v1/nodes/${encodeURIComponent(name)}`;
  const reply = useQuery<ClusterNode>(path);
  useVersion(knownNodes);
  if (reply.data) knownNodes.put(reply.data);
  const node = knownNodes.items.get(name);
  if (!node) return reply.problem ? <Trouble problem={reply.problem} /> : <Loading />;
  return (
    <>
      <PageHead title={node.name} crumb={<a href={link("nodes")}>{t("view.nodes")}</a>}>
        <NodeBadge node={node} />
        <Intents node={node} path={path} />
      </PageHead>
      {node.status.fabric_fault && (
        <p className="notice bad" style={{ marginBottom: 14 }}>
          {t("node.fault", { fault: node.status.fabric_fault })}
        </p>
      )}
      <div className="grid">
        <Card title={t("node.facts")} query={`GET ${path}`} className="w4">
          <dl className="facts">
            <dt>{t("device_type")}</dt>
            <dd>{node.device_type}</dd>
            <dt>{t("devices")}</dt>
            <dd>
              {t("node.devices_of", { used: node.status.devices_in_use, total: node.devices })}
            </dd>
            <dt>{t("memory_each")}</dt>
            <dd>{mebibytes(node.device_memory_mib)}</dd>
            <dt>{t("cpus")}</dt>
            <dd>{number(node.cpus, 1)}</dd>
            <dt>{t("memory")}</dt>
            <dd>{mebibytes(node.memory_mib)}</dd>
            <dt>{t("nics")}</dt>
            <dd>{number(node.nics)}</dd>
            <dt>{t("leaf")}</dt>
            <dd>{t("node.leaf_words", { leaf: node.leaf, group: node.group })}</dd>
            <dt>{t("address")}</dt>
            <dd className="mono">{node.address}</dd>
            <dt>{t("node.joined")}</dt>
            <dd>{exactMoment(node.joined_ms)}</dd>
          </dl>
        </Card>
        <Card title={t("node.replicas_here")} query={`GET ${path}`} className="w8" isFlush>
          <DataTable
            label={t("node.replicas_here")}
            rows={node.status.replicas}
            id={(replica) => `${replica.job}.${replica.replica}`}
            empty={t("node.empty")}
            columns={[
              {
                name: t("job"),
                of: (replica) => <a href={link("jobs", replica.handle)}>{replica.handle}</a>,
              },
              { name: t("replica"), isNumber: true, of: (replica) => replica.replica },
              { name: t("phase"), of: (replica) => <ReplicaBadge phase={replica.phase} /> },
              { name: t("devices"), of: (replica) => devicesOf(replica.devices).join(", ") || "–" },
              {
                name: t("job.tab.logs"),
                of: (replica) => (
                  <a href={`${link("jobs", replica.handle)}?tab=logs&rank=${replica.replica}.0`}>
                    {t("node.open_log")}
                  </a>
                ),
              },
            ]}
          />
        </Card>
        <NodeHistory node={node.name} />
        <Happenings kind="node" object={node.name} />
      </div>
    </>
  );
}

function Intents({ node, path }: { node: ClusterNode; path: string }) {
  const session = useSession();
  const action = useAction();
  const [asked, setAsked] = useState<Intent>();
  if (!session.may("operator")) return null;
  const set = async (intent: Intent) => {
    if (
      await action.run(async () =>
        knownNodes.put(
          await request<ClusterNode>(`${path}/intent`, { method: "PUT", body: { intent } }),
        ),
      )
    )
      setAsked(undefined);
  };
  const offered = (["in_use", "cordoned", "draining"] as const).filter(
    (intent) => intent !== node.status.intent,
  );
  return (
    <>
      <div className="actions">
        {offered.map((intent) => (
          <button
            key={intent}
            type="button"
            className={intent === "draining" ? "danger" : undefined}
            onClick={() => {
              action.clear();
              if (intent === "draining") setAsked(intent);
              else void set(intent);
            }}
          >
            {t(verbs[intent])}
          </button>
        ))}
      </div>
      {action.problem && !asked && <Trouble problem={action.problem} />}
      {asked && (
        <Dialog
          title={t("node.drain_title", { node: node.name })}
          submit={t("node.drain")}
          isDanger
          isBusy={action.isBusy}
          problem={action.problem}
          onClose={() => setAsked(undefined)}
          onSubmit={() => void set(asked)}
        >
          <p>{t("node.drain_words", { count: node.status.replicas.length })}</p>
        </Dialog>
      )}
    </>
  );
}
