// The network as the nodes say it: groups of leaf switches, and the servers below each leaf. The
// verdicts of the prober mark what is wrong.
import { useNodes } from "../live/node_list";
import { useMemo, useState } from "react";
import { useQuery } from "../api/query";
import type { ClusterNode } from "../api/types";
import { nodeState, nodeTone } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { FabricPicture, type Leaf } from "../parts/fabric_picture";
import { link } from "../router";
import { exactMoment, number, t } from "../texts";

interface Verdict {
  element?: string;
  kind?: string;
  name?: string;
  verdict?: string;
  text?: string;
  at_ms?: number;
  probability?: number;
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
  const verdicts = useQuery<{ verdicts?: Verdict[]; items?: Verdict[] }>("/v1/fabric", {
    every: 10000,
  });
  const [isTable, setTable] = useState(false);
  const leaves = useMemo(() => leavesOf(nodes.all), [nodes.all]);
  if (nodes.isLoading) return nodes.problem ? <Trouble problem={nodes.problem} /> : <Loading />;
  const groups = [...new Set(leaves.map((leaf) => leaf.group))];
  const found = verdicts.data?.verdicts ?? verdicts.data?.items ?? [];
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
          <DataTable
            label={t("fabric.verdicts")}
            rows={found}
            id={(_, index) => index}
            empty={t("fabric.no_verdict")}
            columns={[
              {
                name: t("fabric.element"),
                of: (verdict) => verdict.element ?? `${verdict.kind ?? ""} ${verdict.name ?? ""}`,
              },
              {
                name: t("fabric.verdict"),
                isWide: true,
                of: (verdict) => verdict.text ?? verdict.verdict ?? "",
              },
              { name: t("time"), of: (verdict) => exactMoment(verdict.at_ms) },
            ]}
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
          <FabricPicture leaves={leaves} />
        )}
      </Card>
    </div>
  );
}
