// The objects of the API as docs/formats/api.md has them. Revisions and job numbers are texts.

export type JobPhase =
  "pending" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "cancelled";
export const jobPhases: JobPhase[] = [
  "pending",
  "starting",
  "running",
  "stopping",
  "succeeded",
  "failed",
  "cancelled",
];

export interface Replica {
  role: string;
  node: string;
  devices: number; // a bit each
  phase: "waiting" | "ordered" | "running" | "ended" | "lost";
  exit_status?: number;
  signal?: number;
  started_ms?: number;
  ended_ms?: number;
}

export interface Attempt {
  number: number;
  stop: string;
  started_ms: number;
  ended_ms?: number;
  replicas: Replica[];
}

export interface Job {
  kind: "job";
  id: string;
  name: string;
  handle: string;
  rev: string;
  queue: string;
  user: string;
  priority: number;
  after?: string[];
  status: {
    phase: JobPhase;
    reason: string;
    held: boolean;
    attempts: number;
    failures: number;
    evictions: number;
    devices: number;
    submitted_ms: number;
    started_ms?: number;
    ended_ms?: number;
    exit_status?: number;
    start?: { early_ms: number; likely_ms: number; late_ms?: number }; // of a pending job
    attempt?: Attempt;
  };
  spec?: Record<string, unknown>;
}

export interface NodeReplica {
  job: string;
  handle: string;
  replica: number;
  devices: number;
  phase: string;
}

export interface ClusterNode {
  kind: "node";
  id: string;
  name: string;
  rev: string;
  device_type: string;
  devices: number;
  device_memory_mib: number;
  cpus: number;
  memory_mib: number;
  nics: number;
  leaf: number;
  group: number;
  address: string;
  joined_ms: number;
  status: {
    intent: "in_use" | "cordoned" | "draining";
    connected: boolean;
    silent: boolean;
    fenced: boolean;
    fabric_fault?: string; // what a prober blames this server for
    devices_in_use: number;
    replicas: NodeReplica[];
  };
}

export interface QueueItem {
  kind: "queue";
  name: string;
  pending: number;
  running: number;
  devices: number;
}
export interface Amounts {
  gpus?: number;
  gpu_memory?: string;
  cpus?: number;
  memory?: string;
  nics?: number;
}
export interface QueueSpec {
  name: string;
  parent?: string;
  weight?: number;
  guaranteed?: Amounts;
  limit?: Amounts;
  user_limit?: Amounts;
}
export interface Queues {
  rev: string;
  spec: { queues: QueueSpec[] } | null;
  items: QueueItem[];
}

export interface Session {
  user: string;
  role: Role;
  tenant?: string;
}
export type Role = "viewer" | "user" | "tenant_admin" | "operator" | "admin";
export const roles: Role[] = ["viewer", "user", "tenant_admin", "operator", "admin"];
export function mayActAs(role: Role, least: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(least);
}

export interface List<T> {
  rev: string;
  items: T[];
  total?: number;
  next?: string;
}

/** The numbers of a node's devices, which the API writes as a bit each. */
export function devicesOf(bits: number): number[] {
  return Array.from({ length: 32 }, (_, index) => index).filter((index) => bits & (1 << index));
}
