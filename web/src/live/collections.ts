// Objects by their id, each in its newest revision, from lists and from the event stream. Views
// hear of changes once a frame.
import { useSyncExternalStore } from "react";
import type { ClusterNode, Job } from "../api/types";
import { live } from "./stream";

interface Revised {
  id: string;
  rev: string;
}

// Revisions are decimal texts without leading zeros.
export function isNewer(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

export class Collection<T extends Revised> {
  readonly items = new Map<string, T>();
  version = 0;
  private listeners = new Set<() => void>();
  private isTold = true;

  put(object: T): boolean {
    const before = this.items.get(object.id);
    if (before && !isNewer(object.rev, before.rev)) return false;
    this.items.set(object.id, object);
    this.changed();
    return true;
  }

  clear(): void {
    this.items.clear();
    this.changed();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  changed(): void {
    if (!this.isTold) return;
    this.isTold = false;
    requestAnimationFrame(() => {
      this.isTold = true;
      ++this.version;
      for (const listener of this.listeners) listener();
    });
  }
}

export const jobs = new Collection<Job>();
export const nodes = new Collection<ClusterNode>();

// The newest job that the stream has shown; lists of jobs grow by it.
export const newest = { id: 0 };

live.on((kind, object) => {
  if (kind === "job") {
    const job = object as Job;
    newest.id = Math.max(newest.id, Number(job.id));
    jobs.put(job);
  }
  if (kind === "node") nodes.put(object as ClusterNode);
});

export function useVersion(collection: {
  subscribe: (l: () => void) => () => void;
  version: number;
}) {
  return useSyncExternalStore(collection.subscribe, () => collection.version);
}
