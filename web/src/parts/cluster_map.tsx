// The cluster at a glance: a square for each GPU, or for each server where there are many.
import { useMemo } from "react";
import type { ClusterNode } from "../api/types";
import { nodeState } from "./badge";
import { faultValue, HeatMap } from "./heat_map";
import { go, link } from "../router";
import { t } from "../texts";

const devicesMax = 4096; // beyond it a square is a server
const heldValue = 75;

function isAway(node: ClusterNode): boolean {
  return ["fenced", "silent", "away"].includes(nodeState(node));
}

export default function ClusterMap({ nodes }: { nodes: ClusterNode[] }) {
  const served = useMemo(() => nodes.filter((node) => node.devices > 0), [nodes]);
  const total = served.reduce((sum, node) => sum + node.devices, 0);
  const isByNode = total > devicesMax;
  const shape = served.map((node) => node.devices).join();
  const starts = useMemo(() => {
    const made = new Uint32Array(served.length + 1);
    served.forEach((node, at) => (made[at + 1] = (made[at] ?? 0) + (isByNode ? 1 : node.devices)));
    return made;
  }, [shape, isByNode]);
  const values = useMemo(() => {
    const made = new Uint8Array(starts[served.length] ?? 0);
    served.forEach((node, at) => {
      const first = starts[at] ?? 0;
      const share = Math.round((node.status.devices_in_use / node.devices) * heldValue);
      let held = 0;
      for (const replica of node.status.replicas) held |= replica.devices;
      const end = starts[at + 1] ?? first;
      for (let place = first; place < end; ++place)
        if (isAway(node)) made[place] = faultValue;
        else if (isByNode) made[place] = share;
        else made[place] = held & (1 << (place - first)) ? heldValue : 0;
    });
    return made;
  }, [served, starts, isByNode]);
  if (total === 0) return <p className="quiet">{t("devices.none")}</p>;
  return (
    <HeatMap
      label={t("devices.map.label", { total })}
      starts={starts}
      values={values}
      heightMax={150}
      onOpen={(server) => go(link("nodes", served[server]?.name ?? ""))}
      describe={(_, server) => {
        const node = served[server];
        const used = node?.status.devices_in_use ?? 0;
        return `${node?.name}: ${t("node.devices_of", { used, total: node?.devices ?? 0 })}`;
      }}
    />
  );
}
