// Queues as a tree with what they are guaranteed, what they use and what waits; operators change them.
import { useNodes } from "../live/node_list";
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import type { Queues, QueueSpec } from "../api/types";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Dialog } from "../parts/dialog";
import { Meter } from "../parts/meter";
import { useSession } from "../session";
import { number, t } from "../texts";

interface Row {
  name: string;
  depth: number;
  spec: QueueSpec | undefined;
  pending: number;
  running: number;
  devices: number;
}

function rowsOf(queues: Queues): Row[] {
  const specs = queues.spec?.queues ?? [];
  const rows: Row[] = [];
  const add = (spec: QueueSpec, depth: number): Row => {
    const item = queues.items.find((each) => each.name === spec.name);
    const row: Row = {
      name: spec.name,
      depth,
      spec,
      pending: item?.pending ?? 0,
      running: item?.running ?? 0,
      devices: item?.devices ?? 0,
    };
    rows.push(row);
    for (const child of specs.filter((each) => each.parent === spec.name)) {
      const made = add(child, depth + 1);
      row.pending += made.pending;
      row.running += made.running;
      row.devices += made.devices;
    }
    return row;
  };
  for (const spec of specs) if (!spec.parent) add(spec, 0);
  for (const item of queues.items)
    if (!rows.some((row) => row.name === item.name))
      rows.push({
        name: item.name,
        depth: 0,
        spec: undefined,
        pending: item.pending,
        running: item.running,
        devices: item.devices,
      });
  return rows;
}

export default function QueuesView() {
  const session = useSession();
  const nodes = useNodes();
  const reply = useQuery<Queues>("/v1/queues", { on: ["job", "queues"], every: 15000 });
  const [isEditing, setEditing] = useState(false);
  if (!reply.data) return reply.problem ? <Trouble problem={reply.problem} /> : <Loading />;
  const total = nodes.all.reduce((sum, node) => sum + node.devices, 0);
  const rows = rowsOf(reply.data);
  return (
    <>
      <PageHead title={t("view.queues")}>
        {session.may("operator") && (
          <div className="actions">
            <button type="button" onClick={() => setEditing(true)}>
              {t("queues.change")}
            </button>
          </div>
        )}
      </PageHead>
      {isEditing && (
        <QuotaEditor
          queues={reply.data}
          onClose={() => setEditing(false)}
          onSaved={() => void reply.reload()}
        />
      )}
      <Card title={t("queues.title")} query="GET /v1/queues" isFlush>
        <DataTable
          label={t("queues.title")}
          rows={rows}
          id={(row) => row.name}
          columns={[
            {
              name: t("queue"),
              of: (row) => (
                <a
                  href={`#/jobs?queue=${encodeURIComponent(row.name)}`}
                  style={{ paddingLeft: row.depth * 18 }}
                >
                  {row.name}
                </a>
              ),
            },
            {
              name: t("queues.used"),
              of: (row) => (
                <div style={{ minWidth: 180 }}>
                  <Meter
                    value={row.devices}
                    of={row.spec?.limit?.gpus ?? total}
                    mark={row.spec?.guaranteed?.gpus}
                    label={t("queues.meter", {
                      used: row.devices,
                      limit: row.spec?.limit?.gpus ?? total,
                      guaranteed: row.spec?.guaranteed?.gpus ?? 0,
                    })}
                  />
                </div>
              ),
            },
            { name: t("devices.jobs"), isNumber: true, of: (row) => number(row.devices) },
            {
              name: t("queues.guaranteed"),
              isNumber: true,
              of: (row) => amount(row.spec?.guaranteed?.gpus),
            },
            { name: t("queues.limit"), isNumber: true, of: (row) => amount(row.spec?.limit?.gpus) },
            {
              name: t("queues.user_limit"),
              isNumber: true,
              of: (row) => amount(row.spec?.user_limit?.gpus),
            },
            { name: t("phase.running"), isNumber: true, of: (row) => number(row.running) },
            { name: t("phase.pending"), isNumber: true, of: (row) => number(row.pending) },
            {
              name: t("queues.weight"),
              isNumber: true,
              of: (row) => number(row.spec?.weight ?? 1, 2),
            },
          ]}
        />
      </Card>
    </>
  );
}

function amount(value: number | undefined): string {
  return value === undefined ? "–" : number(value);
}

interface EditorProps {
  queues: Queues;
  onClose: () => void;
  onSaved: () => void;
}
function QuotaEditor({ queues, onClose, onSaved }: EditorProps) {
  const action = useAction();
  const start = queues.spec ?? { queues: queues.items.map((item) => ({ name: item.name })) };
  const [text, setText] = useState(JSON.stringify(start, null, 2));
  const [rev] = useState(queues.rev);
  const save = async () => {
    const isDone = await action.run(async () => {
      let body: unknown;
      try {
        body = JSON.parse(text);
      } catch (error) {
        throw new Error(t("json.wrong", { error: String(error) }));
      }
      await request("/v1/queues", { method: "PUT", body, ifMatch: rev });
    });
    if (isDone) {
      onSaved();
      onClose();
    }
  };
  return (
    <Dialog
      title={t("queues.change")}
      submit={t("save")}
      isBusy={action.isBusy}
      problem={action.problem}
      onClose={onClose}
      onSubmit={() => void save()}
    >
      <label className="field">
        <span>{t("queues.words")}</span>
        <textarea
          rows={16}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
    </Dialog>
  );
}
