// The servers, with filters for those that need somebody.
import { useNodes } from "../live/node_list";
import { setQuery, link, usePlace } from "../router";
import { type ClusterNode } from "../api/types";
import { NodeBadge, nodeState } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Meter } from "../parts/meter";
import { mebibytes, number, t } from "../texts";

const states = ["ready", "cordoned", "draining", "away", "silent", "fenced", "faulty"];

export default function Nodes() {
  const place = usePlace();
  const nodes = useNodes();
  const state = place.query.get("state") ?? "";
  const words = (place.query.get("name") ?? "").toLowerCase();
  const rows = nodes.all.filter(
    (node) =>
      (!state || nodeState(node) === state) && (!words || node.name.toLowerCase().includes(words)),
  );
  if (nodes.isLoading) return nodes.problem ? <Trouble problem={nodes.problem} /> : <Loading />;
  return (
    <>
      <PageHead title={t("view.nodes")}>
        <span className="quiet">
          {t("nodes.count", { count: rows.length, total: nodes.all.length })}
        </span>
      </PageHead>
      <div className="filters">
        <input
          type="search"
          aria-label={t("name")}
          placeholder={t("name")}
          value={place.query.get("name") ?? ""}
          onChange={(event) => setQuery({ name: event.target.value })}
        />
        <select
          aria-label={t("state")}
          value={state}
          onChange={(event) => setQuery({ state: event.target.value })}
        >
          <option value="">{t("all.states")}</option>
          {states.map((each) => (
            <option key={each} value={each}>
              {t(`node.${each}`)}
            </option>
          ))}
        </select>
      </div>
      <Card title={t("view.nodes")} query="GET /v1/nodes" isFlush>
        <DataTable
          label={t("view.nodes")}
          rows={rows}
          id={(node) => node.id}
          empty={t("nodes.none")}
          columns={[
            {
              name: t("name"),
              of: (node: ClusterNode) => <a href={link("nodes", node.name)}>{node.name}</a>,
            },
            { name: t("state"), of: (node) => <NodeBadge node={node} /> },
            { name: t("device_type"), of: (node) => node.device_type },
            {
              name: t("devices"),
              of: (node) => (
                <div className="inline" style={{ flexWrap: "nowrap", minWidth: 120 }}>
                  <div className="grow">
                    <Meter
                      value={node.status.devices_in_use}
                      of={node.devices}
                      label={t("node.devices_of", {
                        used: node.status.devices_in_use,
                        total: node.devices,
                      })}
                    />
                  </div>
                  <span>
                    {node.status.devices_in_use}/{node.devices}
                  </span>
                </div>
              ),
            },
            {
              name: t("node.replicas"),
              isNumber: true,
              of: (node) => number(node.status.replicas.length),
            },
            { name: t("cpus"), isNumber: true, of: (node) => number(node.cpus, 1) },
            { name: t("memory"), isNumber: true, of: (node) => mebibytes(node.memory_mib) },
            { name: t("leaf"), isNumber: true, of: (node) => node.leaf },
            { name: t("address"), of: (node) => <span className="mono">{node.address}</span> },
          ]}
        />
      </Card>
    </>
  );
}
