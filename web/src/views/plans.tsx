// The planner as a form: a model, servers, a batch; the answer is the best plan with its step time.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { type PlanReply, PlanResult } from "../parts/plan_result";
import { useSession } from "../session";
import { number, t } from "../texts";

interface Presets {
  models: { name: string; parameters: number; seq: number }[];
  servers: { name: string; device: string; devices: number }[];
  stacks: string[];
  precisions: string[];
  clusters: { name: string; cluster: { server: string; servers: number } }[];
}
interface Question {
  model: string;
  server: string;
  servers: string;
  batch: string;
  seq: string;
  precision: string;
  stack: string;
  constraints: string;
}

export function parameters(count: number): string {
  return count >= 1e12 ? `${number(count / 1e12, 2)} T` : `${number(count / 1e9, 1)} B`;
}

function bodyOf(question: Question): Record<string, unknown> {
  const { model, server, servers, batch, seq, precision, stack, constraints } = question;
  const conditions = constraints
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return {
    job: {
      model: { preset: model, ...(seq ? { seq: Number(seq) } : {}) },
      global_batch: Number(batch),
      precision,
    },
    cluster: { server, servers: Number(servers) },
    ...(stack ? { stack } : {}),
    ...(conditions.length > 0 ? { constraints: conditions } : {}),
  };
}

export default function Plans() {
  const session = useSession();
  const presets = useQuery<Presets>("/v1/plans/presets");
  return (
    <div className="stack">
      <PageHead title={t("view.plans")} />
      {presets.data ? (
        session.may("user") ? (
          <Planner presets={presets.data} />
        ) : (
          <p className="notice">{t("plans.role")}</p>
        )
      ) : presets.problem ? (
        <Trouble problem={presets.problem} what={t("plans.planner")} />
      ) : (
        <Loading />
      )}
    </div>
  );
}

function Planner({ presets }: { presets: Presets }) {
  const action = useAction();
  const [result, setResult] = useState<PlanReply>();
  const [question, setQuestion] = useState<Question>({
    model:
      presets.models.find((each) => each.name.includes("70b"))?.name ??
      presets.models[0]?.name ??
      "",
    server:
      presets.servers.find((each) => each.name.includes("h100"))?.name ??
      presets.servers[0]?.name ??
      "",
    servers: "16",
    batch: "1024",
    seq: "",
    precision: "bf16",
    stack: "",
    constraints: "",
  });
  const set = (key: keyof Question) => (event: { target: { value: string } }) =>
    setQuestion({ ...question, [key]: event.target.value });
  const server = presets.servers.find((each) => each.name === question.server);
  const devices = (server?.devices ?? 0) * Number(question.servers);
  const plan = () =>
    action.run(async () =>
      setResult(await request<PlanReply>("/v1/plans", { method: "POST", body: bodyOf(question) })),
    );
  return (
    <>
      <Card title={t("plans.question")} query="POST /v1/plans">
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            void plan();
          }}
        >
          <label className="field">
            <span>{t("plans.model")}</span>
            <select value={question.model} onChange={set("model")}>
              {presets.models.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name} ({parameters(each.parameters)})
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.server")}</span>
            <select value={question.server} onChange={set("server")}>
              {presets.servers.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name} ({each.devices} x {each.device})
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.servers", { devices })}</span>
            <input
              type="number"
              min={1}
              required
              value={question.servers}
              onChange={set("servers")}
            />
          </label>
          <label className="field">
            <span>{t("plans.batch")}</span>
            <input type="number" min={1} required value={question.batch} onChange={set("batch")} />
          </label>
          <label className="field">
            <span>{t("plans.sequence")}</span>
            <input type="number" min={1} value={question.seq} onChange={set("seq")} />
          </label>
          <label className="field">
            <span>{t("plans.precision")}</span>
            <select value={question.precision} onChange={set("precision")}>
              {presets.precisions.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.stack")}</span>
            <select value={question.stack} onChange={set("stack")}>
              <option value="">{t("plans.usual")}</option>
              {presets.stacks.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.constraints")}</span>
            <input
              placeholder="pp <= 8, tp == 8"
              value={question.constraints}
              onChange={set("constraints")}
            />
          </label>
          <div className="all">
            <button type="submit" className="main" disabled={action.isBusy}>
              {t(action.isBusy ? "plans.planning" : "plans.plan")}
            </button>
          </div>
        </form>
      </Card>
      {action.problem && <Trouble problem={action.problem} what={t("plans.planner")} />}
      {result && <PlanResult reply={result} />}
    </>
  );
}
