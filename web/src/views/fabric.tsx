// The network as the nodes say it: groups of leaf switches, and the servers below each leaf. The
// verdicts of the prober mark what is wrong.
import { useNodes } from "../live/node_list";
import { useMemo, useState } from "react";
import { useQuery } from "../api/query";
import type { ClusterNode } from "../api/types";
import { nodeState, nodeTone } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { FabricDrawing, type Leaf } from "../parts/fabric_drawing";
import { link } from "../router";
import { exactMoment, number, percent, t } from "../texts";

interface Verdict {
  source: string;
  culprit: string;
  kind: string;
  symptom: string;
  server?: string;
  confidence?: number;
  loss_share?: number;
  since_ms: number;
  over_ms?: number;
  or?: string[];
}
interface FabricReply {
  sources: { source?: string; name?: string; stale?: boolean }[];
  verdicts: Verdict[];
  past: Verdict[];
}

function leavesOf(nodes: ClusterNode[]): Leaf[] {
  const leaves = new Map<string, Leaf>();
  for (const node of nodes) {
    const key = `${node.group}/${node.leaf}`;
    let leaf = leaves.get(key);
    if (!leaf) leaves.set(key, (leaf = { group: node.group, leaf: node.leaf, servers: [] }));
    leaf.servers.push(node);
  }
  return [...leaves.values()].sort((a, b) => a.group - b.group || a.leaf - b.leaf);
}

export default function Fabric() {
  const nodes = useNodes();
  const verdicts = useQuery<FabricReply>("/v1/fabric", {
    every: 10000,
  });
  const [isTable, setTable] = useState(false);
  const leaves = useMemo(() => leavesOf(nodes.all), [nodes.all]);
  if (nodes.isLoading) return nodes.problem ? <Trouble problem={nodes.problem} /> : <Loading />;
  const groups = [...new Set(leaves.map((leaf) => leaf.group))];
  return (
    <div className="stack">
      <PageHead title={t("view.fabric")}>
        <span className="quiet">
          {t("fabric.count", {
            groups: groups.length,
            leaves: leaves.length,
            nodes: nodes.all.length,
          })}
        </span>
      </PageHead>
      <Card title={t("fabric.verdicts")} query="GET /v1/fabric" isFlush={!verdicts.problem}>
        {verdicts.problem ? (
          <Trouble problem={verdicts.problem} what={t("fabric.verdicts")} />
        ) : (
          <VerdictTable
            label={t("fabric.verdicts")}
            verdicts={verdicts.data?.verdicts ?? []}
            empty={t(
              verdicts.data?.sources.length === 0 ? "fabric.no_prober" : "fabric.no_verdict",
            )}
          />
        )}
      </Card>
      <Card
        title={t("fabric.picture")}
        query="GET /v1/nodes"
        actions={
          <button
            type="button"
            className="small"
            aria-pressed={isTable}
            onClick={() => setTable(!isTable)}
          >
            {isTable ? t("as.picture") : t("as.table")}
          </button>
        }
      >
        {isTable ? (
          <DataTable
            label={t("fabric.picture")}
            rows={leaves}
            id={(leaf) => `${leaf.group}/${leaf.leaf}`}
            columns={[
              { name: t("group"), isNumber: true, of: (leaf) => leaf.group },
              { name: t("leaf"), isNumber: true, of: (leaf) => leaf.leaf },
              { name: t("nodes"), isNumber: true, of: (leaf) => number(leaf.servers.length) },
              {
                name: t("devices"),
                isNumber: true,
                of: (leaf) => number(leaf.servers.reduce((sum, node) => sum + node.devices, 0)),
              },
              {
                name: t("devices.jobs"),
                isNumber: true,
                of: (leaf) =>
                  number(leaf.servers.reduce((sum, node) => sum + node.status.devices_in_use, 0)),
              },
              {
                name: t("overview.node_trouble"),
                isWide: true,
                of: (leaf) =>
                  leaf.servers
                    .filter((node) => nodeTone(node) !== "good")
                    .slice(0, 20)
                    .map((node) => (
                      <a key={node.name} href={link("nodes", node.name)}>
                        {node.name} ({t(`node.${nodeState(node)}`)}){" "}
                      </a>
                    )),
              },
            ]}
          />
        ) : (
          <FabricDrawing leaves={leaves} />
        )}
      </Card>
      {verdicts.data && verdicts.data.past.length > 0 && (
        <Card title={t("fabric.past")} query="GET /v1/fabric" isFlush>
          <VerdictTable label={t("fabric.past")} verdicts={verdicts.data.past} empty="" />
        </Card>
      )}
    </div>
  );
}

interface VerdictTableProps {
  label: string;
  verdicts: Verdict[];
  empty: string;
}
function VerdictTable({ label, verdicts, empty }: VerdictTableProps) {
  return (
    <DataTable
      label={label}
      rows={verdicts}
      id={(verdict, index) => `${verdict.source}.${verdict.culprit}.${index}`}
      empty={empty}
      columns={[
        {
          name: t("fabric.element"),
          isWide: true,
          of: (verdict) =>
            verdict.or && verdict.or.length > 0
              ? t("fabric.or", { culprit: verdict.culprit, others: verdict.or.join(", ") })
              : verdict.culprit,
        },
        { name: t("fabric.verdict"), of: (verdict) => verdict.kind },
        { name: t("fabric.symptom"), of: (verdict) => verdict.symptom },
        {
          name: t("node"),
          of: (verdict) =>
            verdict.server ? <a href={link("nodes", verdict.server)}>{verdict.server}</a> : "–",
        },
        {
          name: t("fabric.confidence"),
          isNumber: true,
          of: (verdict) => (verdict.confidence === undefined ? "–" : percent(verdict.confidence)),
        },
        {
          name: t("fabric.loss"),
          isNumber: true,
          of: (verdict) => (verdict.loss_share === undefined ? "–" : percent(verdict.loss_share)),
        },
        { name: t("since"), of: (verdict) => exactMoment(verdict.since_ms) },
        { name: t("fabric.source"), of: (verdict) => verdict.source },
      ]}
    />
  );
}
