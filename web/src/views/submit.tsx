// A job as a form or as JSON. The dry look says, before anything is sent, what would be sent and where
// it would fit now.
import { useNodes } from "../live/node_list";
import { useEffect, useMemo, useRef, useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import type { ClusterNode, Job, Queues } from "../api/types";
import { jobs } from "../live/collections";
import { nodeState } from "../parts/badge";
import { Card, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { type Why, WhyShown } from "../parts/why_waiting";
import { go, link } from "../router";
import { mebibytes, number, t } from "../texts";

interface Draft {
  name: string;
  queue: string;
  command: string;
  replicas: string;
  devices: string;
  cpus: string;
  memory: string;
  priority: string;
  rule: string;
  ranks: string;
  hold: boolean;
}
const start: Draft = {
  name: "hello",
  queue: "",
  command: 'echo "rank $RANK of $WORLD_SIZE on $REGATTA_NODE"',
  replicas: "1",
  devices: "0",
  cpus: "1",
  memory: "256MiB",
  priority: "0",
  rule: "on_node_fault",
  ranks: "replica",
  hold: false,
};

function specOf(draft: Draft): Record<string, unknown> {
  const role: Record<string, unknown> = { name: "worker", replicas: Number(draft.replicas) || 1 };
  if (Number(draft.devices) > 0) role.devices = Number(draft.devices);
  if (draft.cpus) role.cpus = Number(draft.cpus);
  if (draft.memory) role.memory = draft.memory;
  const spec: Record<string, unknown> = {
    name: draft.name.trim(),
    command: ["sh", "-c", draft.command],
    roles: [role],
  };
  if (draft.queue) spec.queue = draft.queue;
  if (Number(draft.priority)) spec.priority = Number(draft.priority);
  if (draft.ranks !== "replica") spec.ranks = draft.ranks;
  if (draft.hold) spec.hold = true;
  spec.restart = { rule: draft.rule };
  return spec;
}

interface RoleWish {
  name: string;
  replicas: number;
  devices: number;
  cpus: number;
}
function rolesOf(spec: Record<string, unknown>): RoleWish[] {
  const roles = Array.isArray(spec.roles) ? (spec.roles as Record<string, unknown>[]) : [{}];
  return roles.map((role, index) => ({
    name: String(role.name ?? index),
    replicas: Number(role.replicas ?? 1),
    devices: Number(role.devices ?? 0),
    cpus: Number(role.cpus ?? 0),
  }));
}

// How many replicas of a role have room on free devices now; only devices are counted.
function roomFor(role: RoleWish, nodes: ClusterNode[]): number {
  return nodes
    .filter((node) => nodeState(node) === "ready" && node.cpus >= role.cpus)
    .reduce(
      (sum, node) =>
        sum +
        (role.devices > 0
          ? Math.floor((node.devices - node.status.devices_in_use) / role.devices)
          : role.replicas),
      0,
    );
}

export default function Submit() {
  const [draft, setDraft] = useState(start);
  const [json, setJson] = useState<string>();
  const [isLooking, setLooking] = useState(false);
  const action = useAction();
  const queues = useQuery<Queues>("/v1/queues");
  const once = useRef(crypto.randomUUID());
  const parsed = useMemo(() => {
    if (json === undefined) return { spec: specOf(draft) };
    try {
      return { spec: JSON.parse(json) as Record<string, unknown> };
    } catch (error) {
      return { error: t("json.wrong", { error: String(error) }) };
    }
  }, [draft, json]);
  const set = (key: keyof Draft) => (event: { target: { value: string } }) => {
    once.current = crypto.randomUUID();
    setDraft({ ...draft, [key]: event.target.value });
  };
  const submit = () =>
    action.run(async () => {
      if (!parsed.spec) throw new Error(parsed.error);
      const job = await request<Job>("/v1/jobs", {
        method: "POST",
        body: parsed.spec,
        once: once.current,
      });
      jobs.put(job);
      go(link("jobs", job.handle));
    });
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <PageHead title={t("submit.job")} crumb={<a href={link("jobs")}>{t("view.jobs")}</a>}>
        <div className="actions">
          <button
            type="button"
            aria-pressed={json !== undefined}
            onClick={() =>
              setJson(json === undefined ? JSON.stringify(specOf(draft), null, 2) : undefined)
            }
          >
            JSON
          </button>
          <button type="button" aria-expanded={isLooking} onClick={() => setLooking(!isLooking)}>
            {t("submit.dry")}
          </button>
          <button type="submit" className="main" disabled={action.isBusy || !parsed.spec}>
            {t("submit.send")}
          </button>
        </div>
      </PageHead>
      {action.problem && <Trouble problem={action.problem} />}
      <Card title={t("submit.spec")} query="POST /v1/jobs">
        {json !== undefined ? (
          <label className="field">
            <span>{t("submit.json_words")}</span>
            <textarea
              rows={18}
              spellCheck={false}
              value={json}
              onChange={(event) => {
                once.current = crypto.randomUUID();
                setJson(event.target.value);
              }}
            />
          </label>
        ) : (
          <DraftFields
            draft={draft}
            set={set}
            queues={queues.data?.items.map((queue) => queue.name) ?? []}
            setHold={(hold) => setDraft({ ...draft, hold })}
          />
        )}
        {parsed.error && <p className="notice bad">{parsed.error}</p>}
      </Card>
      {isLooking && parsed.spec && <DryLook spec={parsed.spec} queues={queues.data} />}
    </form>
  );
}

interface FieldsProps {
  draft: Draft;
  set: (key: keyof Draft) => (event: { target: { value: string } }) => void;
  queues: string[];
  setHold: (hold: boolean) => void;
}
function DraftFields({ draft, set, queues, setHold }: FieldsProps) {
  return (
    <div className="form">
      <label className="field">
        <span>{t("name")}</span>
        <input required value={draft.name} onChange={set("name")} />
      </label>
      <label className="field">
        <span>{t("queue")}</span>
        <select value={draft.queue} onChange={set("queue")}>
          <option value="">{t("submit.default_queue")}</option>
          {queues.map((queue) => (
            <option key={queue}>{queue}</option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{t("priority")}</span>
        <input type="number" value={draft.priority} onChange={set("priority")} />
      </label>
      <label className="field all">
        <span>{t("submit.command")}</span>
        <textarea
          rows={4}
          required
          spellCheck={false}
          value={draft.command}
          onChange={set("command")}
        />
      </label>
      <label className="field">
        <span>{t("submit.replicas")}</span>
        <input type="number" min={1} required value={draft.replicas} onChange={set("replicas")} />
      </label>
      <label className="field">
        <span>{t("submit.devices")}</span>
        <input type="number" min={0} max={16} value={draft.devices} onChange={set("devices")} />
      </label>
      <label className="field">
        <span>{t("submit.ranks")}</span>
        <select value={draft.ranks} onChange={set("ranks")}>
          <option value="replica">{t("submit.ranks.replica")}</option>
          <option value="device">{t("submit.ranks.device")}</option>
        </select>
      </label>
      <label className="field">
        <span>{t("submit.cpus")}</span>
        <input type="number" min={0} step="0.1" value={draft.cpus} onChange={set("cpus")} />
      </label>
      <label className="field">
        <span>{t("submit.memory")}</span>
        <input value={draft.memory} onChange={set("memory")} />
      </label>
      <label className="field">
        <span>{t("submit.restart")}</span>
        <select value={draft.rule} onChange={set("rule")}>
          {["never", "on_node_fault", "on_failure"].map((rule) => (
            <option key={rule} value={rule}>
              {t(`restart.${rule}`)}
            </option>
          ))}
        </select>
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.hold}
          onChange={(event) => setHold(event.target.checked)}
        />
        {t("submit.hold")}
      </label>
    </div>
  );
}

// The controller's own answer: where the job would stand and when it would start. A controller that
// does not know the question would take the job; its document of the API tells.
function DryRun({ spec }: { spec: Record<string, unknown> }) {
  const action = useAction();
  const [why, setWhy] = useState<Why>();
  const text = JSON.stringify(spec);
  const { run } = action;
  useEffect(() => {
    const timer = setTimeout(
      () =>
        void run(async () => {
          const document = await fetch("/v1/openapi.json").then((reply) => reply.text());
          if (!document.includes('"dry_run"')) return;
          const path = "/v1/jobs?dry_run=true";
          setWhy(await request<Why>(path, { method: "POST", body: JSON.parse(text) }));
        }),
      400,
    );
    return () => clearTimeout(timer);
  }, [text, run]);
  if (action.problem) return <Trouble problem={action.problem} />;
  if (!why) return null;
  return (
    <Card title={t("submit.dry_run")} query="POST /v1/jobs?dry_run=true">
      <WhyShown why={why} waited="" reason="" />
    </Card>
  );
}

function DryLook({ spec, queues }: { spec: Record<string, unknown>; queues: Queues | undefined }) {
  const nodes = useNodes();
  const roles = rolesOf(spec);
  const queue = queues?.items.find((each) => each.name === (spec.queue ?? "default"));
  const total = roles.reduce((sum, role) => sum + role.replicas * role.devices, 0);
  const free = nodes.all
    .filter((node) => nodeState(node) === "ready")
    .reduce((sum, node) => sum + node.devices - node.status.devices_in_use, 0);
  const memory = Math.max(0, ...nodes.all.map((node) => node.device_memory_mib));
  return (
    <div className="grid" role="status">
      <DryRun spec={spec} />
      <Card title={t("submit.fit")} query="GET /v1/nodes" className="w6" isFlush>
        <DataTable
          label={t("submit.fit")}
          rows={roles}
          id={(_, index) => index}
          columns={[
            { name: t("submit.role"), of: (role) => role.name },
            { name: t("submit.wanted"), isNumber: true, of: (role) => number(role.replicas) },
            {
              name: t("submit.room"),
              isNumber: true,
              of: (role) => number(roomFor(role, nodes.all)),
            },
            {
              name: t("submit.verdict"),
              isWide: true,
              of: (role) =>
                t(roomFor(role, nodes.all) >= role.replicas ? "submit.fits" : "submit.waits"),
            },
          ]}
        />
        <p className="empty">
          {t("submit.totals", { total, free, memory: mebibytes(memory) })}{" "}
          {queue
            ? t("submit.ahead", { queue: queue.name, pending: queue.pending })
            : t("submit.unknown_queue")}{" "}
          {t("submit.not_sent")}
        </p>
      </Card>
      <Card title={t("submit.request")} query="POST /v1/jobs" className="w6">
        <pre tabIndex={0}>{JSON.stringify(spec, null, 2)}</pre>
      </Card>
    </div>
  );
}
