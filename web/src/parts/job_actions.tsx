// The changes of a job that the signed-in user may make: hold, release, priority, cancel.
import { useState } from "react";
import { request } from "../api/client";
import { useAction } from "../api/query";
import type { Job } from "../api/types";
import { jobs } from "../live/collections";
import { useSession } from "../session";
import { number, t } from "../texts";
import { Trouble } from "./card";
import { Dialog } from "./dialog";

export const overPhases = ["succeeded", "failed", "cancelled"];

export function JobActions({ job, onChanged }: { job: Job; onChanged: () => void }) {
  const session = useSession();
  const action = useAction();
  const [asked, setAsked] = useState<"cancel" | "priority">();
  const [priority, setPriority] = useState(String(job.priority));
  const isMine = session.user === job.user || session.may("operator");
  if (!session.may("user") || !isMine || overPhases.includes(job.status.phase)) return null;
  const path = `/v1/jobs/${encodeURIComponent(job.handle)}`;
  const change = async (work: () => Promise<Job>) => {
    if (
      await action.run(async () => {
        jobs.put(await work());
        onChanged();
      })
    )
      setAsked(undefined);
  };
  const post = (verb: string) => change(() => request<Job>(`${path}/${verb}`, { method: "POST" }));
  return (
    <>
      <div className="actions">
        {job.status.held ? (
          <button type="button" disabled={action.isBusy} onClick={() => void post("release")}>
            {t("job.release")}
          </button>
        ) : (
          job.status.phase === "pending" && (
            <button type="button" disabled={action.isBusy} onClick={() => void post("hold")}>
              {t("job.hold")}
            </button>
          )
        )}
        <button
          type="button"
          onClick={() => {
            setPriority(String(job.priority));
            action.clear();
            setAsked("priority");
          }}
        >
          {t("job.set_priority")}
        </button>
        <button
          type="button"
          className="danger"
          onClick={() => {
            action.clear();
            setAsked("cancel");
          }}
        >
          {t("job.cancel")}
        </button>
      </div>
      {action.problem && !asked && <Trouble problem={action.problem} />}
      {asked === "cancel" && (
        <Dialog
          title={t("job.cancel_title", { job: job.handle })}
          submit={t("job.cancel")}
          isDanger
          isBusy={action.isBusy}
          problem={action.problem}
          onClose={() => setAsked(undefined)}
          onSubmit={() => void post("cancel")}
        >
          <p>{t("job.cancel_words", { count: number(job.status.devices) })}</p>
        </Dialog>
      )}
      {asked === "priority" && (
        <Dialog
          title={t("job.priority_title", { job: job.handle })}
          submit={t("save")}
          isBusy={action.isBusy}
          problem={action.problem}
          onClose={() => setAsked(undefined)}
          onSubmit={() =>
            void change(() =>
              request<Job>(path, {
                method: "PATCH",
                body: { priority: Number(priority) },
                ifMatch: job.rev,
              }),
            )
          }
        >
          <label className="field">
            <span>{t("job.priority_words")}</span>
            <input
              type="number"
              required
              value={priority}
              onChange={(event) => setPriority(event.target.value)}
            />
          </label>
        </Dialog>
      )}
    </>
  );
}
