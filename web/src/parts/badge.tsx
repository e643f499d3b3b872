// States as a word, a colour and a shape, so that none of them carries the meaning alone.
import type { ClusterNode, Job } from "../api/types";
import { t } from "../texts";

export type Tone = "good" | "warn" | "bad" | "wait" | "active" | "";
const shapes: Record<string, string> = {
  good: "M1 5l3 3 5-6",
  bad: "M2 2l6 6M8 2 2 8",
  warn: "M5 1 9 9H1z",
  wait: "M5 2v3l2 1.5M5 9.2a4.2 4.2 0 1 0 0-8.4 4.2 4.2 0 0 0 0 8.4z",
  active: "M2.5 1.5v7l6-3.5z",
  "": "M2 5h6",
};

export function Badge({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span className={`badge ${tone}`}>
      <svg
        viewBox="0 0 10 10"
        fill={tone === "active" ? "currentColor" : "none"}
        stroke="currentColor"
        strokeWidth="1.6"
        aria-hidden="true"
      >
        <path d={shapes[tone]} />
      </svg>
      {children}
    </span>
  );
}

const phaseTones: Record<string, Tone> = {
  pending: "wait",
  starting: "active",
  running: "active",
  stopping: "warn",
  succeeded: "good",
  failed: "bad",
  cancelled: "",
};

export function PhaseBadge({ job }: { job: Job }) {
  const { phase, held } = job.status;
  if (held && phase === "pending") return <Badge tone="warn">{t("phase.held")}</Badge>;
  return <Badge tone={phaseTones[phase] ?? ""}>{t(`phase.${phase}`)}</Badge>;
}

export function ReplicaBadge({
  phase,
  status,
  signal,
}: {
  phase: string;
  status?: number;
  signal?: number;
}) {
  const isBad = phase === "lost" || (phase === "ended" && (status !== 0 || !!signal));
  const tone: Tone =
    phase === "running" ? "active" : isBad ? "bad" : phase === "ended" ? "good" : "wait";
  return <Badge tone={tone}>{t(`replica.${phase}`)}</Badge>;
}

export function nodeState(
  node: ClusterNode,
): "fenced" | "faulty" | "silent" | "away" | "draining" | "cordoned" | "ready" {
  const { status } = node;
  if (status.fenced) return "fenced";
  if (status.silent) return "silent";
  if (!status.connected) return "away";
  if (status.fabric_fault) return "faulty";
  if (status.intent === "draining") return "draining";
  if (status.intent === "cordoned") return "cordoned";
  return "ready";
}
const nodeTones: Record<string, Tone> = {
  fenced: "bad",
  silent: "bad",
  away: "bad",
  faulty: "bad",
  draining: "warn",
  cordoned: "warn",
  ready: "good",
};
export function nodeTone(node: ClusterNode): Tone {
  return nodeTones[nodeState(node)] ?? "";
}
export function NodeBadge({ node }: { node: ClusterNode }) {
  return <Badge tone={nodeTone(node)}>{t(`node.${nodeState(node)}`)}</Badge>;
}
