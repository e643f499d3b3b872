// Use, memory, state and job of all devices, each in its place of an array: the reply of
// GET /v1/devices, and its changes from a stream of their own while somebody looks.
import { useEffect, useMemo, useReducer } from "react";
import { request, asProblem, type Problem } from "../api/client";
import type { ClusterNode } from "../api/types";

interface DevicesReply {
  cursor: string;
  count: number;
  nodes: string[];
  counts: string;
  sources: string;
  use: string;
  memory: string;
  state: string;
  job: string;
}
interface DeviceEvent {
  cursor: string;
  reset?: boolean;
  use?: { runs: number[]; use: string; memory: string };
  state?: { runs: number[]; state: string; job: string };
}

export const stateBits = { held: 1, failed: 2, cordoned: 4, draining: 8, silent: 16 };
export const unknownShare = 255;

export interface DeviceTables {
  names: string[]; // of nodes
  starts: Uint32Array; // of each node the place of its first device; one more at the end
  sources: Uint8Array | undefined; // undefined: from the list of nodes, which measures nothing
  use: Uint8Array;
  memory: Uint8Array;
  state: Uint8Array;
  job: Uint32Array;
}

export function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function numbersOf(base64: string): Uint32Array {
  const bytes = bytesOf(base64);
  const view = new DataView(bytes.buffer);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, index) =>
    view.getUint32(index * 4, true),
  );
}

function startsOf(counts: ArrayLike<number>): Uint32Array {
  const starts = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; ++i) starts[i + 1] = (starts[i] ?? 0) + (counts[i] ?? 0);
  return starts;
}

export function tablesOf(reply: DevicesReply): DeviceTables {
  return {
    names: reply.nodes,
    starts: startsOf(bytesOf(reply.counts)),
    sources: bytesOf(reply.sources),
    use: bytesOf(reply.use),
    memory: bytesOf(reply.memory),
    state: bytesOf(reply.state),
    job: numbersOf(reply.job),
  };
}

// Puts the bytes of a change where its runs say.
export function applyChange(tables: DeviceTables, change: DeviceEvent): void {
  const spread = (runs: number[], from: ArrayLike<number>, to: Uint8Array | Uint32Array) => {
    let at = 0;
    for (let run = 0; run + 1 < runs.length; run += 2) {
      const first = runs[run] ?? 0;
      const count = runs[run + 1] ?? 0;
      for (let i = 0; i < count && first + i < to.length; ++i) to[first + i] = from[at + i] ?? 0;
      at += count;
    }
  };
  if (change.use) {
    spread(change.use.runs, bytesOf(change.use.use), tables.use);
    spread(change.use.runs, bytesOf(change.use.memory), tables.memory);
  }
  if (change.state) {
    spread(change.state.runs, bytesOf(change.state.state), tables.state);
    spread(change.state.runs, numbersOf(change.state.job), tables.job);
  }
}

// The same tables from the list of nodes, for a controller without GET /v1/devices.
export function tablesOfNodes(nodes: ClusterNode[]): DeviceTables {
  const starts = startsOf(nodes.map((node) => node.devices));
  const total = starts[starts.length - 1] ?? 0;
  const made: DeviceTables = {
    names: nodes.map((node) => node.name),
    starts,
    sources: undefined,
    use: new Uint8Array(total).fill(unknownShare),
    memory: new Uint8Array(total).fill(unknownShare),
    state: new Uint8Array(total),
    job: new Uint32Array(total),
  };
  nodes.forEach((node, index) => {
    const { intent, connected, silent, fenced, replicas } = node.status;
    let state = silent || fenced || !connected ? stateBits.silent : 0;
    if (intent === "cordoned") state |= stateBits.cordoned;
    if (intent === "draining") state |= stateBits.draining;
    const first = starts[index] ?? 0;
    made.state.fill(state, first, first + node.devices);
    for (const replica of replicas)
      for (let device = 0; device < node.devices; ++device)
        if (replica.devices & (1 << device)) {
          made.state[first + device] = state | stateBits.held;
          made.job[first + device] = Number(replica.job);
        }
  });
  return made;
}

class DeviceWatch {
  tables: DeviceTables | undefined;
  problem: Problem | undefined;
  private cursor = "";
  private source: EventSource | undefined;
  private isStopped = false;
  private frame = 0;

  constructor(private readonly onChange: () => void) {}

  async start(): Promise<void> {
    try {
      const reply = await request<DevicesReply>("/v1/devices");
      if (this.isStopped) return;
      this.tables = tablesOf(reply);
      this.cursor = reply.cursor;
      this.problem = undefined;
      this.listen();
    } catch (error) {
      this.problem = asProblem(error);
    }
    if (!this.isStopped) this.onChange();
  }

  stop(): void {
    this.isStopped = true;
    this.source?.close();
    cancelAnimationFrame(this.frame);
  }

  private listen(): void {
    this.source?.close();
    const source = new EventSource(
      `/v1/watch?kinds=device&devices=${encodeURIComponent(this.cursor)}`,
    );
    this.source = source;
    source.addEventListener("device", (event) =>
      this.take(JSON.parse((event as MessageEvent<string>).data)),
    );
    source.onerror = () => {
      // Its changes have no id to resume from: a new stream goes on from the cursor.
      source.close();
      if (!this.isStopped) setTimeout(() => !this.isStopped && this.listen(), 2000);
    };
  }

  private take(change: DeviceEvent): void {
    if (change.reset) {
      this.source?.close();
      void this.start();
      return;
    }
    this.cursor = change.cursor;
    if (!this.tables) return;
    applyChange(this.tables, change);
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        if (this.tables) this.tables = { ...this.tables };
        this.onChange();
      });
  }
}

export function useDevices(): { tables: DeviceTables | undefined; problem: Problem | undefined } {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const watch = useMemo(() => new DeviceWatch(redraw as () => void), []);
  useEffect(() => {
    void watch.start();
    return () => watch.stop();
  }, [watch]);
  return { tables: watch.tables, problem: watch.problem };
}
