// The planner as a form: a model, a cluster, a size; the answer is the best plans with their step time.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { PlanResult } from "../parts/plan_result";
import { t } from "../texts";

interface Preset {
  name: string;
  text?: string;
  description?: string;
}
interface Presets {
  models: (Preset | string)[];
  clusters: (Preset | string)[];
}
const nameOf = (preset: Preset | string) => (typeof preset === "string" ? preset : preset.name);
const wordsOf = (preset: Preset | string) =>
  typeof preset === "string" ? preset : (preset.text ?? preset.description ?? preset.name);

export default function Plans() {
  const presets = useQuery<Presets>("/v1/plans/presets");
  const action = useAction();
  const [result, setResult] = useState<Record<string, unknown>>();
  const [model, setModel] = useState("");
  const [cluster, setCluster] = useState("");
  const [nodes, setNodes] = useState("");
  const [batch, setBatch] = useState("");
  const [sequence, setSequence] = useState("");
  if (!presets.data)
    return (
      <>
        <PageHead title={t("view.plans")} />
        {presets.problem ? (
          <Trouble problem={presets.problem} what={t("plans.planner")} />
        ) : (
          <Loading />
        )}
      </>
    );
  const chosenModel = model || nameOf(presets.data.models[0] ?? "");
  const chosenCluster = cluster || nameOf(presets.data.clusters[0] ?? "");
  const body = {
    model: chosenModel,
    cluster: chosenCluster,
    ...(nodes ? { nodes: Number(nodes) } : {}),
    ...(batch ? { global_batch: Number(batch) } : {}),
    ...(sequence ? { sequence: Number(sequence) } : {}),
  };
  const plan = () =>
    action.run(async () =>
      setResult(await request<Record<string, unknown>>("/v1/plans", { method: "POST", body })),
    );
  return (
    <div className="stack">
      <PageHead title={t("view.plans")} />
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
            <select value={chosenModel} onChange={(event) => setModel(event.target.value)}>
              {presets.data.models.map((each) => (
                <option key={nameOf(each)} value={nameOf(each)}>
                  {wordsOf(each)}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.cluster")}</span>
            <select value={chosenCluster} onChange={(event) => setCluster(event.target.value)}>
              {presets.data.clusters.map((each) => (
                <option key={nameOf(each)} value={nameOf(each)}>
                  {wordsOf(each)}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>{t("plans.nodes")}</span>
            <input
              type="number"
              min={1}
              value={nodes}
              onChange={(event) => setNodes(event.target.value)}
            />
          </label>
          <label className="field">
            <span>{t("plans.batch")}</span>
            <input
              type="number"
              min={1}
              value={batch}
              onChange={(event) => setBatch(event.target.value)}
            />
          </label>
          <label className="field">
            <span>{t("plans.sequence")}</span>
            <input
              type="number"
              min={1}
              value={sequence}
              onChange={(event) => setSequence(event.target.value)}
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
      {result && <PlanResult result={result} />}
    </div>
  );
}
