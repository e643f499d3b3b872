// The past of an object, as the history has it.
import { useQuery } from "../api/query";
import { exactMoment, t } from "../texts";
import { Card, Trouble } from "./card";
import { DataTable } from "./data_table";

export interface PastEvent {
  id: string;
  time_ms: number;
  kind: string;
  object: string;
  reason: string;
  text: string;
}

export function Happenings({ kind, object }: { kind: string; object: string }) {
  const path = `/v1/events?kind=${kind}&object=${encodeURIComponent(object)}&limit=100`;
  const reply = useQuery<{ items: PastEvent[] }>(path, { on: [kind === "node" ? "node" : "job"] });
  return (
    <Card title={t("events")} query={`GET ${path}`} isFlush={!reply.problem}>
      {reply.problem ? (
        <Trouble problem={reply.problem} what={t("events")} />
      ) : (
        <DataTable
          label={t("events")}
          rows={reply.data?.items ?? []}
          id={(event) => event.id}
          columns={[
            { name: t("time"), of: (event) => exactMoment(event.time_ms) },
            {
              name: t("events.what"),
              isWide: true,
              of: (event) => event.text,
            },
          ]}
        />
      )}
    </Card>
  );
}
