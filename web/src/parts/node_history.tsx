// Use and memory of a node's devices over the last hour.
import { useMemo } from "react";
import { useQuery } from "../api/query";
import { bytesOf, unknownShare } from "../live/devices";
import { t } from "../texts";
import { Card, Trouble } from "./card";
import { Chart } from "./chart";
import { type SharedUse, SharedUses } from "./slices";

interface History {
  source: number;
  step_s: number;
  end_ms: number;
  devices: { use: string; memory: string }[];
  shared?: SharedUse[];
}

export function NodeHistory({ node }: { node: string }) {
  const path = `/v1/devices/${encodeURIComponent(node)}/history`;
  const reply = useQuery<History>(path, { every: 10000 });
  const drawn = useMemo(() => {
    const history = reply.data;
    if (!history) return undefined;
    const rows = history.devices.map((device) => ({
      use: bytesOf(device.use),
      memory: bytesOf(device.memory),
    }));
    const count = Math.max(0, ...rows.map((row) => row.use.length));
    const x = Array.from(
      { length: count },
      (_, index) => history.end_ms / 1000 - (count - 1 - index) * history.step_s,
    );
    const lines = (key: "use" | "memory") =>
      rows.map((row, device) => ({
        name: `GPU ${device}`,
        unit: "%",
        values: Array.from(row[key], (value) => (value === unknownShare ? null : value)),
      }));
    return { x, use: lines("use"), memory: lines("memory") };
  }, [reply.data]);
  if (!drawn)
    return reply.problem ? <Trouble problem={reply.problem} what={t("devices.measured")} /> : null;
  return (
    <>
      <Card title={t("devices.map.use")} query={`GET ${path}`} className="w6">
        <Chart
          label={t("devices.map.use")}
          x={drawn.x}
          xName={t("time")}
          isTime
          lines={drawn.use}
        />
      </Card>
      <Card title={t("devices.map.memory")} query={`GET ${path}`} className="w6">
        <Chart
          label={t("devices.map.memory")}
          x={drawn.x}
          xName={t("time")}
          isTime
          lines={drawn.memory}
        />
      </Card>
      {!!reply.data?.shared?.length && (
        <SharedUses shared={reply.data.shared} query={`GET ${path}`} />
      )}
    </>
  );
}
