// A reply that a view shows: fetched once, kept while the view changes, fetched again when told.
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { asProblem, type Problem, request } from "./client";
import { live, type LiveKind } from "../live/stream";

interface Entry {
  data?: unknown;
  problem?: Problem;
  at: number;
  pending?: Promise<void>;
  listeners: Set<() => void>;
}
const entries = new Map<string, Entry>();
const kept = 60; // replies that stay after their views are gone

function entryOf(path: string): Entry {
  let entry = entries.get(path);
  if (entry) return entry;
  entry = { at: 0, listeners: new Set() };
  entries.set(path, entry);
  if (entries.size > kept)
    for (const [key, old] of entries)
      if (old.listeners.size === 0 && key !== path) {
        entries.delete(key);
        break;
      }
  return entry;
}

export function load(path: string): Promise<void> {
  const entry = entryOf(path);
  if (entry.pending) return entry.pending;
  entry.pending = request<unknown>(path)
    .then((data) => replace(entry, { data, problem: undefined, at: Date.now() }))
    .catch((error) => replace(entry, { problem: asProblem(error), at: Date.now() }))
    .finally(() => (entry.pending = undefined));
  return entry.pending;
}

function replace(entry: Entry, change: Partial<Entry>): void {
  Object.assign(entry, change);
  snapshots.delete(entry);
  for (const listener of entry.listeners) listener();
}

export function forgetAll(): void {
  for (const entry of entries.values())
    replace(entry, { data: undefined, problem: undefined, at: 0 });
}

export interface Reply<T> {
  data?: T;
  problem?: Problem;
  isLoading: boolean;
}
const snapshots = new WeakMap<Entry, Reply<unknown>>();
function snapshot(entry: Entry): Reply<unknown> {
  let made = snapshots.get(entry);
  if (!made) {
    made = { data: entry.data, problem: entry.problem, isLoading: entry.at === 0 };
    snapshots.set(entry, made);
  }
  return made;
}

export interface QueryOptions {
  every?: number; // ms; while the tab is seen
  on?: LiveKind[]; // fetched again after such a change, at most each 2 s
}

const none: Reply<unknown> = { isLoading: false };

// `path` null: nothing is fetched.
export function useQuery<T>(path: string | null, options: QueryOptions = {}) {
  const { every, on } = options;
  const kinds = on?.join(",") ?? "";
  const reply = useSyncExternalStore(
    useCallback(
      (listener: () => void) => {
        if (path === null) return () => {};
        const entry = entryOf(path);
        entry.listeners.add(listener);
        return () => void entry.listeners.delete(listener);
      },
      [path],
    ),
    () => (path === null ? none : snapshot(entryOf(path))),
  ) as Reply<T>;
  const reload = useCallback(() => (path === null ? Promise.resolve() : load(path)), [path]);
  useEffect(() => {
    if (path === null) return;
    if (Date.now() - entryOf(path).at > 1000) void load(path);
    return live.onListAgain(() => void load(path));
  }, [path]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => document.hidden || void reload(), every);
    return () => clearInterval(timer);
  }, [every, reload]);
  useEffect(() => {
    if (!kinds) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.on((kind) => {
      if (!timer && kinds.split(",").includes(kind))
        timer = setTimeout(() => {
          timer = undefined;
          void reload();
        }, 2000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [kinds, reload]);
  return { ...reply, reload };
}

// Runs a change and says whether it is under way and how it failed.
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => void (alive.current = false);
  }, []);
  const run = useCallback(async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      if (alive.current) setProblem(asProblem(error));
      return false;
    } finally {
      if (alive.current) setBusy(false);
    }
  }, []);
  return { isBusy, problem, run, clear: () => setProblem(undefined) };
}
